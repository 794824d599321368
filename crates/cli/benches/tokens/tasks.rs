//! Things that people ask for and that take several steps. Each is solved twice: call by call, where whoever calls
//! reads every result, and by a program that keeps results to itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Calls a tool by name and gives its value.
pub(crate) type Call<'a> = dyn FnMut(&str, Value) -> Value + 'a;

/// One thing that somebody asks for.
pub(crate) struct Task {
    /// What is asked.
    pub(crate) question: &'static str,
    /// What a model that knows no tool would search for.
    pub(crate) searches: &'static [&'static str],
    /// The tools that solve it; the searches must find them.
    pub(crate) tools: &'static [&'static str],
    /// Solves it call by call.
    pub(crate) steps: fn(&mut Call<'_>) -> Value,
    /// Solves it in Python.
    pub(crate) code: &'static str,
}

pub(crate) const TASKS: [Task; 8] = [
    Task {
        question: "What do the open orders of our customers in Hamburg add up to?",
        searches: &["list customers by city", "list orders of a customer"],
        tools: &["list_customers", "list_orders"],
        steps: open_orders,
        code: "total = 0
for customer in list_customers(city='Hamburg', limit=200)['items']:
    for order in list_orders(customer_id=customer['id'], status='open', limit=200)['items']:
        total += order['total']
round(total, 2)",
    },
    Task {
        question: "Whom do we have to write because a parcel of theirs is late? I need the e-mail addresses.",
        searches: &["list shipments that are late", "get an order", "get a customer"],
        tools: &["list_shipments", "get_order", "get_customer"],
        steps: late_parcels,
        code: "emails = set()
for shipment in list_shipments(status='late', limit=200)['items']:
    order = get_order(id=shipment['order_id'])
    emails.add(get_customer(id=order['customer_id'])['email'])
sorted(emails)",
    },
    Task {
        question: "Which five products sold the most pieces from January to June, returns left out?",
        searches: &["list orders by date", "get a product"],
        tools: &["list_orders", "get_product"],
        steps: best_sellers,
        code: "units = {}
for order in list_orders(**{'from': '2026-01-01', 'to': '2026-06-30', 'limit': 200})['items']:
    if order['status'] != 'returned':
        units[order['product_id']] = units.get(order['product_id'], 0) + order['units']
best = sorted(units, key=lambda id: (-units[id], id))[:5]
[get_product(id=id)['name'] for id in best]",
    },
    Task {
        question: "Which customers have never ordered anything?",
        searches: &["list all customers", "list all orders"],
        tools: &["list_customers", "list_orders"],
        steps: never_ordered,
        code: "ordered = {order['customer_id'] for order in list_orders(limit=200)['items']}
sorted(customer['name'] for customer in list_customers(limit=200)['items'] if customer['id'] not in ordered)",
    },
    Task {
        question: "How many days does each carrier take on average?",
        searches: &["list delivered shipments by carrier"],
        tools: &["list_shipments"],
        steps: carriers,
        code: "averages = {}
for carrier in ['Nord', 'Express', 'Kurier']:
    days = [shipment['days'] for shipment in list_shipments(carrier=carrier, status='delivered', limit=200)['items']]
    averages[carrier] = round(sum(days) / len(days), 2)
averages",
    },
    Task {
        question: "Comment on every product that is below its reorder level: \"Order again\". How many are there?",
        searches: &["list products with their stock", "comment on a product"],
        tools: &["list_products", "comment_product"],
        steps: reorder,
        code: "count = 0
for product in list_products(limit=200)['items']:
    if product['stock'] < product['reorder_level']:
        comment_product(id=product['id'], text='Order again')
        count += 1
count",
    },
    Task {
        question: "Turnover by department of the shop, paid and shipped orders only.",
        searches: &["list products and their category", "list orders by status"],
        tools: &["list_products", "list_orders"],
        steps: turnover,
        code: "category = {product['id']: product['category'] for product in list_products(limit=200)['items']}
turnover = {}
for status in ['paid', 'shipped']:
    for order in list_orders(status=status, limit=200)['items']:
        name = category[order['product_id']]
        turnover[name] = round(turnover.get(name, 0) + order['total'], 2)
turnover",
    },
    Task {
        question: "Tag our three customers with the highest turnover as key-account, and tell me their names.",
        searches: &["list all orders", "get a customer", "put a tag on a customer"],
        tools: &["list_orders", "get_customer", "tag_customer"],
        steps: key_accounts,
        code: "turnover = {}
for order in list_orders(limit=200)['items']:
    turnover[order['customer_id']] = turnover.get(order['customer_id'], 0) + order['total']
best = sorted(turnover, key=lambda id: (-round(turnover[id], 2), id))[:3]
for id in best:
    tag_customer(id=id, tags=['key-account'])
[get_customer(id=id)['name'] for id in best]",
    },
];

fn items(mut page: Value) -> Vec<Value> {
    match page["items"].take() {
        Value::Array(items) => items,
        other => panic!("there should be items: {other}"),
    }
}

fn text(record: &Value, field: &str) -> String {
    record[field].as_str().expect("a text").to_owned()
}

fn number(record: &Value, field: &str) -> f64 {
    record[field].as_f64().expect("a number")
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn open_orders(call: &mut Call<'_>) -> Value {
    let mut total = 0.0;
    for customer in items(call("list_customers", json!({"city": "Hamburg", "limit": 200}))) {
        let orders = call("list_orders", json!({"customer_id": customer["id"], "status": "open", "limit": 200}));
        total += items(orders).iter().map(|order| number(order, "total")).sum::<f64>();
    }
    json!(rounded(total))
}

fn late_parcels(call: &mut Call<'_>) -> Value {
    let mut emails = BTreeSet::new();
    for shipment in items(call("list_shipments", json!({"status": "late", "limit": 200}))) {
        let order = call("get_order", json!({"id": shipment["order_id"]}));
        emails.insert(text(&call("get_customer", json!({"id": order["customer_id"]})), "email"));
    }
    json!(emails)
}

fn best_sellers(call: &mut Call<'_>) -> Value {
    let mut units: BTreeMap<String, f64> = BTreeMap::new();
    for order in items(call("list_orders", json!({"from": "2026-01-01", "to": "2026-06-30", "limit": 200}))) {
        if order["status"] != "returned" {
            *units.entry(text(&order, "product_id")).or_default() += number(&order, "units");
        }
    }
    json!(first(units, 5).iter().map(|id| text(&call("get_product", json!({"id": id})), "name")).collect::<Vec<_>>())
}

/// The keys of the highest values; among equals, the first by name.
fn first(amounts: BTreeMap<String, f64>, count: usize) -> Vec<String> {
    let mut amounts: Vec<(String, f64)> = amounts.into_iter().map(|(id, amount)| (id, rounded(amount))).collect();
    amounts.sort_by(|one, other| other.1.total_cmp(&one.1));
    amounts.into_iter().take(count).map(|(id, _)| id).collect()
}

fn never_ordered(call: &mut Call<'_>) -> Value {
    let customers = items(call("list_customers", json!({"limit": 200})));
    let ordered: BTreeSet<String> =
        items(call("list_orders", json!({"limit": 200}))).iter().map(|order| text(order, "customer_id")).collect();
    let mut names: Vec<String> = customers
        .iter()
        .filter(|customer| !ordered.contains(&text(customer, "id")))
        .map(|customer| text(customer, "name"))
        .collect();
    names.sort();
    json!(names)
}

fn carriers(call: &mut Call<'_>) -> Value {
    let mut averages = serde_json::Map::new();
    for carrier in ["Nord", "Express", "Kurier"] {
        let shipments = items(call("list_shipments", json!({"carrier": carrier, "status": "delivered", "limit": 200})));
        let days: f64 = shipments.iter().map(|shipment| number(shipment, "days")).sum();
        averages.insert(carrier.to_owned(), json!(rounded(days / shipments.len() as f64)));
    }
    Value::Object(averages)
}

fn reorder(call: &mut Call<'_>) -> Value {
    let mut count = 0;
    for product in items(call("list_products", json!({"limit": 200}))) {
        if number(&product, "stock") < number(&product, "reorder_level") {
            call("comment_product", json!({"id": product["id"], "text": "Order again"}));
            count += 1;
        }
    }
    json!(count)
}

fn turnover(call: &mut Call<'_>) -> Value {
    let products = items(call("list_products", json!({"limit": 200})));
    let category: BTreeMap<String, String> =
        products.iter().map(|product| (text(product, "id"), text(product, "category"))).collect();
    let mut turnover: BTreeMap<String, f64> = BTreeMap::new();
    for status in ["paid", "shipped"] {
        for order in items(call("list_orders", json!({"status": status, "limit": 200}))) {
            let total = turnover.entry(category[&text(&order, "product_id")].clone()).or_default();
            *total = rounded(*total + number(&order, "total"));
        }
    }
    json!(turnover)
}

fn key_accounts(call: &mut Call<'_>) -> Value {
    let mut turnover: BTreeMap<String, f64> = BTreeMap::new();
    for order in items(call("list_orders", json!({"limit": 200}))) {
        *turnover.entry(text(&order, "customer_id")).or_default() += number(&order, "total");
    }
    let best = first(turnover, 3);
    for id in &best {
        call("tag_customer", json!({"id": id, "tags": ["key-account"]}));
    }
    json!(best.iter().map(|id| text(&call("get_customer", json!({"id": id})), "name")).collect::<Vec<_>>())
}
