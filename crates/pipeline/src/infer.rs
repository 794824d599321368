//! An input schema for a pipeline that was given none, from what its steps ask of `$input`.

use skillz_json::{Map, Value, json};

use crate::{
    catalogue::{Catalogue, CatalogueTool},
    model::{Pipeline, Step},
    reference::{Root, Segment, Written},
    schema_path::SchemaPart,
    template::Template,
};

/// The schema: a property for each member of `$input` that is referred to, required where a step cannot do without.
/// `None` where the whole of `$input` is passed on, so that nothing is known of its members.
pub(crate) fn input_schema(pipeline: &Pipeline, catalogue: &dyn Catalogue) -> Option<Value> {
    let mut properties: Map<String, Value> = Map::new();
    let mut required: Vec<String> = Vec::new();
    for step in &pipeline.steps {
        for reference in step.references().into_iter().filter(|reference| reference.root == Root::Input) {
            let name = first_key(&reference.written)?;
            properties.entry(name).or_insert_with(|| json!({}));
        }
        for (name, schema) in passed_on(step, catalogue) {
            if let Some(property) = properties.get_mut(&name).filter(|property| *property == &json!({})) {
                *property = schema;
            }
        }
        let needed = if step.condition.is_none() { step.arguments.references() } else { Vec::new() };
        let needed = needed.into_iter().chain(step.for_each.iter().flat_map(Template::references));
        for name in needed.filter(|reference| reference.root == Root::Input).filter_map(|reference| first_key(&reference.written))
        {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if let (false, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.insert("required".to_owned(), json!(required));
    }
    Some(schema)
}

fn first_key(written: &Written) -> Option<String> {
    match written.path.first() {
        Some(Segment::Key(key)) => Some(key.clone()),
        _ => None,
    }
}

/// Members of `$input` that are an argument of the step's tool as they are, with that argument's schema.
fn passed_on(step: &Step, catalogue: &dyn Catalogue) -> Vec<(String, Value)> {
    let (Some(tool), Template::Object(members)) = (catalogue.find(&step.tool), &step.arguments) else { return Vec::new() };
    let schema = SchemaPart::of(CatalogueTool::from(&*tool).input_schema);
    let passed = members.iter().filter_map(|(argument, member)| {
        let Template::Reference(reference) = member else { return None };
        let whole = reference.root == Root::Input && reference.written.path.len() == 1;
        let argument = schema.member(argument).filter(|_| whole)?;
        let text = argument.as_value().to_string();
        // A schema with references would lose what they point to.
        (!text.contains("\"$ref\"")).then_some((first_key(&reference.written)?, argument.as_value().clone()))
    });
    passed.collect()
}
