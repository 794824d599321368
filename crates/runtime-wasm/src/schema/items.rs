//! Schemas of the structs and enums that a tool defines, as serde's derive makes their form.

use skillz_json::{Map, Value, json};
use syn::{Attribute, Field, Fields, Item, ItemEnum, ItemStruct, Variant};

use super::{
    attributes::{SerdeAttributes, derives, documentation},
    case::{rename_field, rename_variant},
    describe, plain_name,
    types::{Direction, Reader, may_be_absent, sequence},
};

/// The schema of a type's definition.
pub(crate) fn schema(reader: &mut Reader<'_>, item: &Item) -> Value {
    match item {
        Item::Struct(item) => of_struct(reader, item),
        Item::Enum(item) => of_enum(reader, item),
        Item::Type(alias) if alias.generics.params.is_empty() => reader.schema(&alias.ty),
        _ => reader.anything(),
    }
}

/// Whether a type's form is the one that its definition shows.
fn is_plain(reader: &Reader<'_>, attributes: &[Attribute], generics: &syn::Generics, serde: &SerdeAttributes) -> bool {
    let derived = match reader.direction {
        Direction::Read => derives(attributes, "Deserialize"),
        Direction::Write => derives(attributes, "Serialize"),
    };
    derived && generics.params.is_empty() && !serde.is_opaque(reader.direction)
}

fn of_struct(reader: &mut Reader<'_>, item: &ItemStruct) -> Value {
    let serde = SerdeAttributes::read(&item.attrs);
    if !is_plain(reader, &item.attrs, &item.generics, &serde) {
        return reader.anything();
    }
    let rule = serde.rule(reader.direction);
    let mut schema = match (&item.fields, serde.transparent) {
        (Fields::Named(fields), true) => match fields.named.first() {
            Some(field) => reader.schema(&field.ty),
            None => reader.anything(),
        },
        _ => of_fields(reader, &item.fields, rule, serde.default),
    };
    describe(&mut schema, documentation(&item.attrs));
    schema
}

/// The schema of a struct's or a variant's fields.
fn of_fields(reader: &mut Reader<'_>, fields: &Fields, rule: Option<&str>, all_optional: bool) -> Value {
    match fields {
        Fields::Unit => json!({"type": "null"}),
        Fields::Unnamed(fields) => {
            let mut parts: Vec<Value> = fields.unnamed.iter().map(|field| of_field(reader, field)).collect();
            match (parts.len(), parts.pop()) {
                (1, Some(only)) => only,
                (_, last) => {
                    parts.extend(last);
                    sequence(&parts)
                }
            }
        }
        Fields::Named(fields) => {
            let mut object = Object::default();
            for field in &fields.named {
                object.add(reader, field, rule, all_optional);
            }
            object.schema()
        }
    }
}

fn of_field(reader: &mut Reader<'_>, field: &Field) -> Value {
    let serde = SerdeAttributes::read(&field.attrs);
    if serde.is_opaque(reader.direction) { reader.anything() } else { reader.schema(&field.ty) }
}

/// An object that is being put together.
#[derive(Default)]
struct Object {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Whether other members may be there, which a flattened map takes.
    open: bool,
}

impl Object {
    fn add(&mut self, reader: &mut Reader<'_>, field: &Field, rule: Option<&str>, all_optional: bool) {
        let serde = SerdeAttributes::read(&field.attrs);
        let direction = reader.direction;
        let Some(ident) = field.ident.as_ref().filter(|_| !serde.is_skipped(direction)) else { return };
        let mut schema = of_field(reader, field);
        if serde.flatten {
            return self.flatten(&schema);
        }
        let plain = plain_name(ident);
        let by_rule = || rule.map_or_else(|| plain.clone(), |rule| rename_field(&plain, rule));
        let name = serde.renamed(direction).unwrap_or_else(by_rule);
        describe(&mut schema, documentation(&field.attrs));
        let optional = match direction {
            Direction::Read => all_optional || may_be_absent(&field.ty, &serde),
            Direction::Write => serde.skip_if,
        };
        if !optional {
            self.required.push(name.clone());
        }
        self.properties.insert(name, schema);
    }

    /// Takes over the members of another object.
    fn flatten(&mut self, schema: &Value) {
        let members = schema.get("properties").and_then(Value::as_object);
        match members {
            Some(members) => self.properties.extend(members.clone()),
            None => self.open = true,
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        self.required.extend(required.filter_map(Value::as_str).map(str::to_owned));
    }

    fn schema(self) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        if !self.open {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        Value::Object(schema)
    }
}

fn of_enum(reader: &mut Reader<'_>, item: &ItemEnum) -> Value {
    let serde = SerdeAttributes::read(&item.attrs);
    if !is_plain(reader, &item.attrs, &item.generics, &serde) {
        return reader.anything();
    }
    let direction = reader.direction;
    let variants: Vec<(&Variant, SerdeAttributes)> = item
        .variants
        .iter()
        .map(|variant| (variant, SerdeAttributes::read(&variant.attrs)))
        .filter(|(_, attributes)| !attributes.is_skipped(direction))
        .collect();
    if variants.iter().any(|(_, attributes)| attributes.other || attributes.is_opaque(direction)) {
        return reader.anything();
    }
    let name = |variant: &Variant, attributes: &SerdeAttributes| {
        let plain = plain_name(&variant.ident);
        let by_rule = || serde.rule(direction).map_or_else(|| plain.clone(), |rule| rename_variant(&plain, rule));
        attributes.renamed(direction).unwrap_or_else(by_rule)
    };
    let plain = serde.tag.is_none() && !serde.untagged;
    let mut schema = if plain && variants.iter().all(|(variant, _)| matches!(variant.fields, Fields::Unit)) {
        let names: Vec<String> = variants.iter().map(|(variant, attributes)| name(variant, attributes)).collect();
        json!({"type": "string", "enum": names})
    } else {
        let parts: Vec<Value> = variants
            .iter()
            .map(|(variant, attributes)| {
                let rule = attributes.rule(direction).or(serde.fields_rule(direction));
                let fields = of_fields(reader, &variant.fields, rule, false);
                let mut schema = tagged(&serde, variant, &name(variant, attributes), fields);
                describe(&mut schema, documentation(&variant.attrs));
                schema
            })
            .collect();
        json!({"anyOf": parts})
    };
    describe(&mut schema, documentation(&item.attrs));
    schema
}

/// One variant in the form that the enum's attributes choose.
fn tagged(serde: &SerdeAttributes, variant: &Variant, name: &str, fields: Value) -> Value {
    let is_unit = matches!(variant.fields, Fields::Unit);
    match (&serde.tag, &serde.content) {
        _ if serde.untagged => fields,
        (None, _) if is_unit => json!({"const": name}),
        (None, _) => json!({"type": "object", "properties": {name: fields}, "required": [name], "additionalProperties": false}),
        (Some(tag), Some(content)) if !is_unit => json!({
            "type": "object",
            "properties": {tag: {"const": name}, content: fields},
            "required": [tag, content],
            "additionalProperties": false,
        }),
        (Some(tag), _) => {
            let mut object =
                if is_unit { json!({"type": "object", "properties": {}, "additionalProperties": false}) } else { fields };
            if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
                properties.insert(tag.clone(), json!({"const": name}));
            }
            let mut required = vec![json!(tag)];
            required.extend(object.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
            if let Some(object) = object.as_object_mut() {
                object.insert("required".to_owned(), Value::Array(required));
            }
            object
        }
    }
}
