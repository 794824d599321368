//! Schemas of a Rust tool, read from the signature of the function with `#[skillz::tool]` and from the types that
//! are defined beside it. Nothing is compiled or run for it.

mod attributes;
mod case;
mod items;
mod types;

use skillz_json::{Map, Value, json};
use syn::{FnArg, GenericArgument, ItemFn, Pat, PathArguments, ReturnType, Type};

use attributes::{SerdeAttributes, documentation};
use types::{Direction, Reader};

/// What a signature says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Inferred {
    /// The arguments; closed, as the names are all known.
    pub(crate) input: Option<Value>,
    /// The result, where it is a struct whose form is known to the last field.
    pub(crate) output: Option<Value>,
}

/// Reads a tool's code. Code without such a function, or that does not parse, says nothing.
pub(crate) fn of_tool(code: &str) -> Inferred {
    let Ok(file) = syn::parse_file(code) else { return Inferred::default() };
    let Some(function) = functions(&file.items).find(|function| is_tool(function)) else { return Inferred::default() };
    Inferred { input: input(function, &file), output: output(function, &file) }
}

fn functions(items: &[syn::Item]) -> impl Iterator<Item = &ItemFn> {
    items.iter().filter_map(|item| match item {
        syn::Item::Fn(function) => Some(function),
        _ => None,
    })
}

/// Whether a function has `#[skillz::tool]`, or `#[tool]` after an import.
fn is_tool(function: &ItemFn) -> bool {
    function.attrs.iter().any(|attribute| attribute.path().segments.last().is_some_and(|segment| segment.ident == "tool"))
}

fn input(function: &ItemFn, file: &syn::File) -> Option<Value> {
    let mut reader = Reader::new(&file.items, Direction::Read);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in &function.sig.inputs {
        let FnArg::Typed(parameter) = parameter else { return None };
        let Pat::Ident(pattern) = &*parameter.pat else { return None };
        let serde = SerdeAttributes::read(&parameter.attrs);
        let name = serde.renamed(Direction::Read).unwrap_or_else(|| plain_name(&pattern.ident));
        let mut schema = if serde.is_opaque(Direction::Read) { Value::Object(Map::new()) } else { reader.schema(&parameter.ty) };
        describe(&mut schema, documentation(&parameter.attrs));
        if !serde.default && !types::is_option(&parameter.ty) {
            required.push(name.clone());
        }
        properties.insert(name, schema);
    }
    let mut schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if required.is_empty()
        && let Some(schema) = schema.as_object_mut()
    {
        schema.shift_remove("required");
    }
    reader.add_definitions(&mut schema);
    Some(schema)
}

fn output(function: &ItemFn, file: &syn::File) -> Option<Value> {
    let ReturnType::Type(_, kind) = &function.sig.output else { return None };
    let kind = success_type(kind);
    let mut reader = Reader::new(&file.items, Direction::Write);
    if !reader.is_local_struct(kind) {
        return None;
    }
    let mut schema = reader.schema(kind);
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    reader.add_definitions(&mut schema);
    (reader.is_exact() && is_object).then_some(schema)
}

/// `T` of `Result<T, E>`, and any other type as it is.
fn success_type(kind: &Type) -> &Type {
    let Type::Path(path) = kind else { return kind };
    let Some(last) = path.path.segments.last().filter(|segment| segment.ident == "Result") else { return kind };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return kind };
    match arguments.args.first() {
        Some(GenericArgument::Type(success)) => success,
        _ => kind,
    }
}

/// An identifier as serde names it.
fn plain_name(ident: &syn::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or_else(|| name.clone(), str::to_owned)
}

/// Adds a description, if there is one.
fn describe(schema: &mut Value, text: Option<String>) {
    if let (Some(schema), Some(text)) = (schema.as_object_mut(), text) {
        schema.insert("description".to_owned(), Value::String(text));
    }
}

#[cfg(test)]
mod tests;
