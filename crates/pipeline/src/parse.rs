//! From the JSON of `pipeline_steps` to steps, with every fault on the way.

use std::ops::Range;

use skillz_json::{Map, Value};

use crate::{
    condition::Condition,
    fault::Fault,
    model::{OnError, Pipeline, Step},
    reference::{Reference, Root, Written, describe, shortened},
    template::Template,
};

/// More steps than a pipeline should have; longer work belongs into code.
const MOST_STEPS: usize = 100;
/// Most items worked on at once, most repetitions.
const MOST_PARALLEL: u64 = 64;
const MOST_RETRIES: u64 = 10;
/// Repetitions where `on_error` is `retry` and no number is given.
const DEFAULT_RETRIES: u64 = 3;
const LONGEST_NAME: usize = 64;

const FIELDS: [&str; 10] =
    ["name", "tool", "args", "condition", "on_error", "retries", "continue_on_error", "for_each", "parallel", "group"];
/// Names that references use otherwise.
const RESERVED: [&str; 5] = ["input", "prev", "item", "index", "env"];

/// Reads all steps; what is faulty is reported and read as if it were absent.
pub(crate) fn parse(steps: &Value, faults: &mut Vec<Fault>) -> Pipeline {
    let steps = read_list(steps, faults);
    let outlines: Vec<Outline> = steps.iter().enumerate().map(|(position, step)| Outline::read(position, step, faults)).collect();
    check_names(&outlines, faults);
    let blocks = blocks(&outlines);
    let read = |(position, step): (usize, &Value)| {
        let block = blocks.iter().find(|block| block.contains(&position)).cloned().unwrap_or_default();
        StepReader { position, step, outlines: &outlines, block, faults: &mut *faults }.read()
    };
    let steps = steps.iter().enumerate().map(read).collect();
    Pipeline { steps, blocks }
}

fn read_list<'a>(steps: &'a Value, faults: &mut Vec<Fault>) -> &'a [Value] {
    let Some(list) = steps.as_array() else {
        faults.push(Fault::general(format!("`steps` must be an array of steps, not {}", describe(steps))));
        return &[];
    };
    if list.is_empty() {
        faults.push(Fault::general(
            "`steps` is empty; a pipeline has at least one step, such as `{\"tool\": \"name\", \"args\": {}}`",
        ));
    }
    if list.len() > MOST_STEPS {
        faults.push(Fault::general(format!("There are {} steps; a pipeline has at most {MOST_STEPS}", list.len())));
        return list.get(..MOST_STEPS).unwrap_or_default();
    }
    list
}

/// What other steps need to know of a step before it is read in full.
struct Outline {
    name: String,
    is_named: bool,
    group: Option<String>,
}

impl Outline {
    fn read(position: usize, step: &Value, faults: &mut Vec<Fault>) -> Self {
        let given = step.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let group = step.get("group").and_then(Value::as_str).filter(|group| !group.is_empty());
        if let Some(name) = given {
            if RESERVED.contains(&name) {
                faults.push(Fault::of_step(
                    position,
                    None,
                    format!("`{name}` cannot be a step's name: `${name}` means something else"),
                ));
            } else if name.len() > LONGEST_NAME
                || name.chars().any(|part| matches!(part, '$' | '{' | '}' | '.' | '[' | ']' | '"' | '\'') || part.is_whitespace())
            {
                let message = format!(
                    "The name `{}` cannot be referred to; use letters, digits and `_`, at most {LONGEST_NAME}",
                    shortened(name)
                );
                faults.push(Fault::of_step(position, None, message));
            }
        }
        let name = given.map_or_else(|| format!("step_{}", position + 1), str::to_owned);
        Self { name, is_named: given.is_some(), group: group.map(str::to_owned) }
    }
}

fn check_names(outlines: &[Outline], faults: &mut Vec<Fault>) {
    for (position, outline) in outlines.iter().enumerate() {
        if let Some(earlier) = outlines.iter().take(position).position(|earlier| earlier.name == outline.name) {
            let message = format!("The name `{}` belongs to step {} already; names are unique", outline.name, earlier + 1);
            faults.push(Fault::of_step(position, None, message));
        }
    }
}

/// Runs of neighbours of one group, and single steps.
fn blocks(outlines: &[Outline]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut previous: Option<&str> = None;
    for (position, outline) in outlines.iter().enumerate() {
        let group = outline.group.as_deref();
        match blocks.last_mut() {
            Some(block) if group.is_some() && group == previous => block.end = position + 1,
            _ => blocks.push(position..position + 1),
        }
        previous = group;
    }
    blocks
}

struct StepReader<'a> {
    position: usize,
    step: &'a Value,
    outlines: &'a [Outline],
    /// The steps that run together with this one.
    block: Range<usize>,
    faults: &'a mut Vec<Fault>,
}

impl StepReader<'_> {
    fn read(mut self) -> Step {
        let empty = Map::new();
        let fields = self.step.as_object().unwrap_or(&empty);
        if !self.step.is_object() {
            self.fault(format!("A step is an object with `tool` and `args`, not {}", describe(self.step)));
        }
        self.check_field_names(fields);
        let tool = self.text(fields, "tool").unwrap_or_default();
        if tool.is_empty() && self.step.is_object() {
            self.fault("The field `tool` is missing: the name of the tool to call");
        }
        self.text(fields, "name");
        let group = self.text(fields, "group").filter(|group| !group.is_empty());
        let for_each = present(fields, "for_each").map(|items| self.items(items));
        let arguments = self.arguments(fields, for_each.is_some());
        let condition = self.text(fields, "condition").filter(|text| !text.trim().is_empty());
        let condition = condition.and_then(|text| self.read_condition(&text, for_each.is_some()));
        let parallel = self.number(fields, "parallel", MOST_PARALLEL);
        if parallel.is_some() && for_each.is_none() {
            self.fault("`parallel` says how many items of `for_each` are worked on at once, and there is no `for_each`. To run steps together give them one `group`");
        }
        if parallel == Some(0) {
            self.fault("`parallel` must be at least 1");
        }
        let on_error = self.on_error(fields);
        let name = self.outlines.get(self.position).map(|outline| outline.name.clone()).unwrap_or_default();
        let parallel = parallel.and_then(|parallel| usize::try_from(parallel).ok()).unwrap_or(1).max(1);
        Step { name, tool, on_error, group, parallel, arguments, condition, for_each }
    }

    fn check_field_names(&mut self, fields: &Map<String, Value>) {
        for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            let meant = match name.as_str() {
                "arguments" | "params" | "input" | "inputs" | "with" => Some("args"),
                "if" | "when" => Some("condition"),
                "tool_name" => Some("tool"),
                "id" => Some("name"),
                "foreach" | "forEach" | "loop" => Some("for_each"),
                "retry" => Some("retries"),
                _ => None,
            };
            let hint = meant.map_or_else(|| format!("a step has {}", FIELDS.join(", ")), |meant| format!("`{meant}` is meant"));
            self.fault(format!("The field `{}` is unknown; {hint}", shortened(name)));
        }
    }

    fn arguments(&mut self, fields: &Map<String, Value>, per_item: bool) -> Template {
        let nothing = Template::Literal(Value::Object(Map::new()));
        let Some(arguments) = present(fields, "args") else { return nothing };
        let template = self.template(arguments, per_item);
        match template {
            Template::Object(_) | Template::Reference(_) | Template::Literal(Value::Object(_)) => template,
            _ => {
                self.fault(format!(
                    "`args` must be an object of arguments, or one reference to an object, not {}",
                    describe(arguments)
                ));
                nothing
            }
        }
    }

    fn items(&mut self, items: &Value) -> Template {
        let template = self.template(items, false);
        if !matches!(template, Template::Reference(_) | Template::Array(_) | Template::Literal(Value::Array(_))) {
            self.fault(format!(
                "`for_each` must be an array, or one reference to an array such as `$input.items`, not {}",
                describe(items)
            ));
        }
        template
    }

    fn template(&mut self, value: &Value, per_item: bool) -> Template {
        let mut faults = Vec::new();
        let template = Template::read(value, &|written| self.bind(written, per_item), &mut faults);
        for fault in faults {
            self.fault(fault);
        }
        template
    }

    fn read_condition(&mut self, text: &str, per_item: bool) -> Option<Condition> {
        let mut faults = Vec::new();
        let condition = Condition::read(text, &|written| self.bind(written, per_item), &mut faults);
        for fault in faults {
            self.fault(fault);
        }
        condition
    }

    /// Ties a reference to what it means in this step.
    fn bind(&self, written: Written, per_item: bool) -> Result<Reference, String> {
        let root = match written.root.as_str() {
            "input" => Root::Input,
            "prev" if self.block.start == 0 => {
                return Err(format!("`{written}`: no step is before this one; the pipeline's arguments are `$input`"));
            }
            "prev" => Root::Previous,
            "item" | "index" if !per_item => return Err(format!("`{written}` has a value only inside a step with `for_each`")),
            "item" => Root::Item,
            "index" => Root::Index,
            "env" => {
                return Err(format!("`{written}`: pipelines cannot read environment variables. Write `$$` for a dollar sign"));
            }
            name => Root::Step(self.find_step(&written, name)?),
        };
        Ok(Reference { root, written })
    }

    fn find_step(&self, written: &Written, name: &str) -> Result<usize, String> {
        let Some(position) = self.outlines.iter().position(|outline| outline.name == name) else {
            let earlier: Vec<String> =
                self.outlines.iter().take(self.block.start).map(|outline| format!("`${}`", outline.name)).collect();
            let known = if earlier.is_empty() { String::new() } else { format!(", {}", earlier.join(", ")) };
            let longer = self.outlines.iter().find(|outline| outline.is_named && outline.name.starts_with(name));
            let hint = longer.map_or_else(String::new, |outline| format!(" For the step `{0}` write `${{{0}}}`.", outline.name));
            return Err(format!(
                "`{written}` refers to no step. There are `$input`, `$prev`{known}.{hint} Write `$$` for a dollar sign"
            ));
        };
        if position == self.position {
            return Err(format!("`{written}` refers to the step itself"));
        }
        if self.block.contains(&position) {
            return Err(format!("`{written}` refers to a step of the same group, which runs at the same time"));
        }
        if position > self.position {
            return Err(format!("`{written}` refers to a later step; only earlier ones have a result"));
        }
        Ok(position)
    }

    fn on_error(&mut self, fields: &Map<String, Value>) -> OnError {
        let retries = self.number(fields, "retries", MOST_RETRIES);
        let continue_on_error = match present(fields, "continue_on_error") {
            None => false,
            Some(Value::Bool(value)) => *value,
            Some(other) => {
                self.fault(format!("`continue_on_error` must be true or false, not {}", describe(other)));
                false
            }
        };
        let choice = self.text(fields, "on_error");
        match choice.as_deref() {
            None | Some("stop" | "continue" | "retry") => {}
            Some(other) => self.fault(format!("`on_error` is `stop`, `continue` or `retry`, not `{}`", shortened(other))),
        }
        if choice.as_deref() == Some("stop") && continue_on_error {
            self.fault("`on_error` is `stop`, and `continue_on_error` says the opposite");
        }
        let retries = if choice.as_deref() == Some("retry") { retries.or(Some(DEFAULT_RETRIES)) } else { retries };
        OnError {
            retries: retries.and_then(|retries| u32::try_from(retries).ok()).unwrap_or(0),
            go_on: continue_on_error || choice.as_deref() == Some("continue"),
        }
    }

    fn text(&mut self, fields: &Map<String, Value>, field: &str) -> Option<String> {
        match present(fields, field)? {
            Value::String(text) => Some(text.clone()),
            // A condition may be a plain JSON literal too.
            Value::Bool(value) if field == "condition" => Some(value.to_string()),
            other => {
                self.fault(format!("`{field}` must be a text, not {}", describe(other)));
                None
            }
        }
    }

    fn number(&mut self, fields: &Map<String, Value>, field: &str, most: u64) -> Option<u64> {
        let value = present(fields, field)?;
        let number = value.as_u64().filter(|number| *number <= most);
        if number.is_none() {
            let given = if value.is_number() { value.to_string() } else { describe(value) };
            self.fault(format!("`{field}` must be a whole number of at most {most}, not {given}"));
        }
        number
    }

    fn fault(&mut self, message: impl Into<String>) {
        let outline = self.outlines.get(self.position).filter(|outline| outline.is_named);
        self.faults.push(Fault::of_step(self.position, outline.map(|outline| outline.name.as_str()), message));
    }
}

/// A field that is there and not null.
fn present<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    fields.get(field).filter(|value| !value.is_null())
}
