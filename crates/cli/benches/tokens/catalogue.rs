//! A made-up company's tools: fifteen actions on each of its kinds of records, as such servers offer them.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// What tools say of themselves where they act on one record.
const ID: &str = "Identifier of the record, as the list and search tools give it";

/// Kinds of records: one, many, what it is. The tasks are about the first four.
const KINDS: [(&str, &str, &str); 40] = [
    ("customer", "customers", "people and companies that buy from us"),
    ("order", "orders", "what customers ordered, with units, totals and status"),
    ("product", "products", "articles we sell, with price and stock"),
    ("shipment", "shipments", "parcels on their way to customers, with carrier and delivery state"),
    ("invoice", "invoices", "bills sent to customers"),
    ("payment", "payments", "money received and paid out"),
    ("supplier", "suppliers", "companies that we buy from"),
    ("employee", "employees", "people who work here"),
    ("ticket", "tickets", "questions and complaints to the help desk"),
    ("campaign", "campaigns", "advertising campaigns and their budgets"),
    ("contract", "contracts", "signed agreements and their terms"),
    ("lead", "leads", "possible customers for the sales team"),
    ("meeting", "meetings", "appointments with their participants"),
    ("project", "projects", "work with a goal, a budget and an end"),
    ("task", "tasks", "single pieces of work within projects"),
    ("document", "documents", "files of the document store"),
    ("folder", "folders", "folders of the document store"),
    ("article", "articles", "pages of the knowledge base"),
    ("vehicle", "vehicles", "cars and vans of the fleet"),
    ("trip", "trips", "journeys of the fleet with mileage"),
    ("expense", "expenses", "costs that employees want back"),
    ("budget", "budgets", "planned spending by department"),
    ("warehouse", "warehouses", "places where stock is kept"),
    ("purchase", "purchases", "orders that we placed with suppliers"),
    ("voucher", "vouchers", "discount codes and their use"),
    ("review", "reviews", "opinions of customers about articles"),
    ("subscription", "subscriptions", "recurring deliveries and their plans"),
    ("survey", "surveys", "questionnaires and their answers"),
    ("training", "trainings", "courses for employees"),
    ("vacancy", "vacancies", "open positions and applications"),
    ("applicant", "applicants", "people who applied for a position"),
    ("device", "devices", "computers and phones that were handed out"),
    ("licence", "licences", "software licences and their seats"),
    ("incident", "incidents", "outages and their resolution"),
    ("deployment", "deployments", "releases of our software"),
    ("repository", "repositories", "source code repositories"),
    ("dashboard", "dashboards", "charts for the management"),
    ("report", "reports", "periodic evaluations"),
    ("newsletter", "newsletters", "mass mailings and their recipients"),
    ("partner", "partners", "companies that sell for us"),
];

/// What can be done with records.
const ACTIONS: [&str; 15] = [
    "get", "list", "search", "count", "create", "update", "delete", "archive", "restore", "export", "history", "comment", "tag",
    "share", "assign",
];

/// Writes the tools of the first `kinds` kinds into a folder of tools; gives how many there are.
pub(crate) fn write(tools: &Path, kinds: usize) -> usize {
    for (one, many, meaning) in KINDS.iter().take(kinds) {
        for action in ACTIONS {
            let plural = matches!(action, "list" | "search" | "count" | "export");
            let name = format!("{action}_{}", if plural { many } else { one });
            let folder = tools.join(&name);
            fs::create_dir_all(&folder).expect("a folder for the tool");
            let manifest = json!({
                "name": name, "description": describe(action, one, many, meaning), "version": "1.0.0", "tool_type": "script",
                "entry_file": "main.py", "interpreter": "python3", "protocol": "function", "input_schema": schema(action, one, many),
            });
            fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a manifest");
            let source = include_str!("tool.py").replace("@MANY@", many).replace("@ACTION@", action);
            fs::write(folder.join("main.py"), source).expect("a source");
        }
    }
    kinds.min(KINDS.len()) * ACTIONS.len()
}

fn describe(action: &str, one: &str, many: &str, meaning: &str) -> String {
    match action {
        "get" => format!("Get one {one} by its identifier, with all its fields ({many}: {meaning})."),
        "list" => {
            format!("List {many} ({meaning}), filtered by their fields and by date. Gives the total and one page of items.")
        }
        "search" => {
            format!("Search {many} by words that occur anywhere in them ({meaning}). Gives the total and one page of items.")
        }
        "count" => format!("Count the {many} that match the given fields and dates, without returning them."),
        "create" => format!("Create a new {one} from the given fields and return it with its identifier."),
        "update" => format!("Change fields of one {one}; fields that are not given stay as they are."),
        "delete" => format!("Delete one {one} for good. Prefer archiving it, which can be undone."),
        "archive" => format!("Move one {one} to the archive, where it no longer appears in lists."),
        "restore" => format!("Bring one {one} back from the archive."),
        "export" => format!("Export {many} that match the given fields and dates, for use in other programs."),
        "history" => format!("Show who changed one {one}, what and when."),
        "comment" => format!("Write a comment on one {one} that all colleagues can read."),
        "tag" => format!("Put tags on one {one}, in addition to those it has."),
        "share" => format!("Give a colleague access to one {one}."),
        _ => format!("Make a colleague responsible for one {one}."),
    }
}

fn schema(action: &str, one: &str, many: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let (properties, required): (Value, &[&str]) = match action {
        "list" | "count" | "export" | "search" => (filters(action, many), if action == "search" { &["text"] } else { &[] }),
        "create" => (fields(many), &[]),
        "update" => {
            let mut properties = fields(many);
            properties["id"] = text(ID);
            (properties, &["id"])
        }
        "comment" => (json!({"id": text(ID), "text": text("The comment, in plain text")}), &["id", "text"]),
        "tag" => {
            let tags = json!({"type": "array", "items": {"type": "string"}, "description": "Tags to add, in lower case"});
            (json!({"id": text(ID), "tags": tags}), &["id", "tags"])
        }
        "share" | "assign" => (
            json!({"id": text(ID), "user_id": text("The colleague's identifier"), "notify": flag("Whether to tell them by e-mail")}),
            &["id", "user_id"],
        ),
        "delete" | "archive" => {
            (json!({"id": text(ID), "reason": text(&format!("Why the {one} goes, for the history"))}), &["id"])
        }
        _ => (json!({"id": text(ID)}), &["id"]),
    };
    json!({"type": "object", "properties": properties, "required": required})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// Fields of a kind of record, with what they hold.
fn fields(many: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let choice = |values: &[&str], description: &str| json!({"type": "string", "enum": values, "description": description});
    let number = |description: &str| json!({"type": "number", "description": description});
    match many {
        "customers" => json!({
            "name": text("Full name"), "email": text("E-mail address"), "city": text("City of the main address"),
            "status": choice(&["active", "dormant"], "Whether the customer bought lately"),
            "newsletter": flag("Whether the customer gets the newsletter"),
        }),
        "products" => json!({
            "name": text("Name in the shop"), "price": number("Price in euros"), "stock": number("Pieces in stock"),
            "category": choice(&["kitchen", "garden", "office", "toys", "sports"], "Department of the shop"),
            "supplier": text("Identifier of the supplier"), "reorder_level": number("Stock below which it is ordered again"),
        }),
        "orders" => json!({
            "customer_id": text("Identifier of the customer"), "product_id": text("Identifier of the product"),
            "units": number("Pieces ordered"), "channel": choice(&["web", "shop"], "Where it was ordered"),
            "status": choice(&["open", "paid", "shipped", "returned"], "State of the order"),
        }),
        "shipments" => json!({
            "order_id": text("Identifier of the order"), "city": text("City of the recipient"),
            "carrier": choice(&["Nord", "Express", "Kurier"], "Company that carries it"),
            "status": choice(&["delivered", "late", "under_way"], "State of the delivery"),
        }),
        _ => json!({
            "name": text("Short name"), "owner_id": text("Identifier of the colleague who is responsible"),
            "amount": number("Amount in euros, where there is one"), "status": choice(&["open", "done", "blocked"], "State"),
        }),
    }
}

fn filters(action: &str, many: &str) -> Value {
    let mut properties = fields(many);
    properties["from"] = json!({"type": "string", "description": "Only from this date on, as YYYY-MM-DD"});
    properties["to"] = json!({"type": "string", "description": "Only up to this date, as YYYY-MM-DD"});
    if action == "search" {
        properties["text"] = json!({"type": "string", "description": "Words to look for, upper and lower case alike"});
    }
    if action != "count" {
        properties["limit"] =
            json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50, "description": "Most items to return"});
        properties["offset"] =
            json!({"type": "integer", "minimum": 0, "default": 0, "description": "How many items to pass over"});
    }
    properties
}
