//! What can be known about a pipeline before it runs: every fault, all at once.

use skillz_json::{Map, Value};
use skillz_tool::{BUILTIN_NAMES, CompiledSchema};

use crate::{
    catalogue::{Catalogue, CatalogueTool},
    cycle::find_cycle,
    fault::{Fault, Faults},
    model::{Pipeline, Step},
    parse::parse,
    reference::{Reference, Root},
    schema_path::SchemaPart,
    template::Template,
};

/// The only built-in tool that a step may call.
const CALLABLE_BUILTIN: &str = "list_tools";

/// Reads and checks the steps of the pipeline `name` against the tools that are there now.
pub fn check(name: &str, steps: &Value, input_schema: Option<&Value>, catalogue: &dyn Catalogue) -> Result<Pipeline, Faults> {
    let mut faults = Vec::new();
    let pipeline = parse(steps, &mut faults);
    let checker = Checker { pipeline: &pipeline, input_schema, catalogue };
    for (position, step) in pipeline.steps.iter().enumerate().filter(|(_, step)| !step.tool.is_empty()) {
        let step_name = (step.name != format!("step_{}", position + 1)).then_some(step.name.as_str());
        faults.extend(checker.step_faults(step).into_iter().map(|message| Fault::of_step(position, step_name, message)));
    }
    let tools = pipeline.steps.iter().map(|step| step.tool.as_str());
    if let Some(path) = find_cycle(name, tools, catalogue) {
        let path: Vec<String> = path.iter().map(|name| format!("`{name}`")).collect();
        faults.push(Fault::general(format!("The pipeline would contain itself: {}", path.join(" calls "))));
    }
    faults.sort_by_key(|fault| fault.step.is_some());
    if faults.is_empty() { Ok(pipeline) } else { Err(Faults(faults)) }
}

struct Checker<'a> {
    pipeline: &'a Pipeline,
    input_schema: Option<&'a Value>,
    catalogue: &'a dyn Catalogue,
}

impl Checker<'_> {
    fn step_faults(&self, step: &Step) -> Vec<String> {
        let mut faults: Vec<String> =
            step.references().into_iter().filter_map(|reference| self.reference_fault(reference)).collect();
        faults.dedup();
        if BUILTIN_NAMES.contains(&step.tool.as_str()) {
            if step.tool != CALLABLE_BUILTIN {
                faults.push(format!(
                    "`{}` is built in; a step calls tools, and of the built-in ones only `{CALLABLE_BUILTIN}`",
                    step.tool
                ));
            }
            return faults;
        }
        let Some(tool) = self.catalogue.find(&step.tool) else {
            let closest: Vec<String> = self.catalogue.closest(&step.tool).iter().map(|name| format!("`{name}`")).collect();
            let hint = if closest.is_empty() {
                "`list_tools` shows which there are".to_owned()
            } else {
                format!("close to it are {}", closest.join(", "))
            };
            faults.push(format!("There is no tool `{}`; {hint}", step.tool));
            return faults;
        };
        faults.extend(argument_faults(step, CatalogueTool::from(&*tool).input_schema));
        faults
    }

    /// Why a reference can lead nowhere, as far as the schemas tell.
    fn reference_fault(&self, reference: &Reference) -> Option<String> {
        let fault = |problem| format!("`{}` leads nowhere: {problem}", reference.written);
        match reference.root {
            Root::Input => SchemaPart::of(self.input_schema?).problem(&reference.written.path).map(fault),
            Root::Step(position) => {
                let step = self.pipeline.steps.get(position).filter(|step| step.for_each.is_none())?;
                let tool = self.catalogue.find(&step.tool)?;
                let schema = CatalogueTool::from(&*tool).output_schema?;
                SchemaPart::of(schema).problem(&reference.written.path).map(fault)
            }
            Root::Previous | Root::Item | Root::Index => None,
        }
    }
}

/// Faults of a step's arguments: unknown names, missing ones, values that break the tool's schema.
fn argument_faults(step: &Step, schema: &Value) -> Vec<String> {
    let members: Vec<(&str, Option<Value>)> = match &step.arguments {
        Template::Object(members) => members.iter().map(|(name, member)| (name.as_str(), member.literal())).collect(),
        Template::Literal(Value::Object(members)) => {
            members.iter().map(|(name, member)| (name.as_str(), Some(member.clone()))).collect()
        }
        _ => return Vec::new(),
    };
    let part = SchemaPart::of(schema);
    let mut faults = Vec::new();
    let known = part.names();
    if let Some(known) = &known {
        let shown: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let takes = if shown.is_empty() { "takes no arguments".to_owned() } else { format!("takes {}", shown.join(", ")) };
        for (name, _) in members.iter().filter(|(name, _)| !known.contains(name)) {
            faults.push(format!("`{}` takes no argument `{name}`; it {takes}", step.tool));
        }
    }
    for name in part.required().iter().filter(|name| !members.iter().any(|(given, _)| given == *name)) {
        faults.push(format!("`{}` needs the argument `{name}`", step.tool));
    }
    if part.is_plain() {
        let literals = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let literals: Map<String, Value> = literals.filter(|(name, _)| part.member(name).is_some()).collect();
        faults.extend(literal_faults(schema, literals));
    }
    faults
}

/// Faults of the arguments whose values are known, each as if it were the only one given.
fn literal_faults(schema: &Value, literals: Map<String, Value>) -> Vec<String> {
    let Value::Object(mut members) = schema.clone() else { return Vec::new() };
    for about_the_whole in ["required", "additionalProperties", "minProperties", "dependentRequired"] {
        members.shift_remove(about_the_whole);
    }
    let schema = CompiledSchema::new(Value::Object(members));
    let mut literals = Value::Object(literals);
    schema.coerce(&mut literals);
    let violations = schema.violations(&literals).unwrap_or_default();
    violations.into_iter().map(|violation| format!("`args{}`: {}", violation.path.replace('/', "."), violation.message)).collect()
}
