//! Makes an input schema of a JavaScript function's parameters: of TypeScript's types where they are given, else of
//! the names that are taken out of the arguments object.

use oxc_ast::ast::{
    BindingPattern, Declaration, FormalParameters, Program, PropertyKey, Statement, TSLiteral, TSSignature, TSType, TSTypeName,
};
use skillz_json::{Map, Value, json};

/// How deep named types are followed; recursive ones end in a schema that takes anything.
const DEPTH: usize = 8;

/// The schema for a function's arguments object; `None` where its first parameter says nothing.
pub(super) fn input_schema<'a>(parameters: &FormalParameters<'a>, program: &Program<'a>) -> Option<Value> {
    let Some(first) = parameters.items.first() else {
        return parameters.rest.is_none().then(|| json!({"type": "object", "properties": {}}));
    };
    let typed = first.type_annotation.as_ref().and_then(|annotation| {
        let schema = of_type(&annotation.type_annotation, program, 0);
        (schema.get("type").and_then(Value::as_str) == Some("object")).then_some(schema)
    });
    let pattern = match &first.pattern {
        BindingPattern::AssignmentPattern(pattern) => &pattern.left,
        pattern => pattern,
    };
    let BindingPattern::ObjectPattern(pattern) = pattern else { return typed };
    let mut schema = typed.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut)?;
    for property in &pattern.properties {
        let Some(name) = property.key.static_name() else { continue };
        let entry = properties.entry(name.to_string()).or_insert_with(|| json!({}));
        if let (BindingPattern::AssignmentPattern(assignment), Some(entry)) = (&property.value, entry.as_object_mut()) {
            add_default(&assignment.right, entry);
        }
    }
    Some(schema)
}

/// Notes a literal default, and the type that it shows where none is known.
fn add_default(expression: &oxc_ast::ast::Expression<'_>, schema: &mut Map<String, Value>) {
    use oxc_ast::ast::Expression;
    let default = match expression {
        Expression::StringLiteral(literal) => json!(literal.value.as_str()),
        Expression::BooleanLiteral(literal) => json!(literal.value),
        Expression::NumericLiteral(literal) if literal.value.fract() == 0.0 && literal.value.abs() < 9e15 => {
            json!(literal.value as i64)
        }
        Expression::NumericLiteral(literal) => json!(literal.value),
        _ => return,
    };
    if schema.is_empty() {
        let name = match &default {
            Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            _ => "number",
        };
        schema.insert("type".to_owned(), json!(name));
    }
    schema.insert("default".to_owned(), default);
}

fn of_type<'a>(kind: &TSType<'a>, program: &Program<'a>, depth: usize) -> Value {
    if depth > DEPTH {
        return json!({});
    }
    match kind {
        TSType::TSStringKeyword(_) => json!({"type": "string"}),
        TSType::TSNumberKeyword(_) => json!({"type": "number"}),
        TSType::TSBigIntKeyword(_) => json!({"type": "integer"}),
        TSType::TSBooleanKeyword(_) => json!({"type": "boolean"}),
        TSType::TSNullKeyword(_) | TSType::TSUndefinedKeyword(_) => json!({"type": "null"}),
        TSType::TSObjectKeyword(_) => json!({"type": "object"}),
        TSType::TSArrayType(array) => json!({"type": "array", "items": of_type(&array.element_type, program, depth + 1)}),
        TSType::TSParenthesizedType(inner) => of_type(&inner.type_annotation, program, depth),
        TSType::TSTypeOperatorType(inner) => of_type(&inner.type_annotation, program, depth),
        TSType::TSLiteralType(literal) => of_literal(&literal.literal),
        TSType::TSUnionType(union) => of_union(&union.types, program, depth),
        TSType::TSTypeLiteral(literal) => of_members(&literal.members, program, depth),
        TSType::TSTypeReference(reference) => {
            let TSTypeName::IdentifierReference(name) = &reference.type_name else { return json!({}) };
            let first = reference.type_arguments.as_ref().and_then(|arguments| arguments.params.first());
            let second = reference.type_arguments.as_ref().and_then(|arguments| arguments.params.get(1));
            match (name.name.as_str(), first, second) {
                ("Array" | "ReadonlyArray" | "Set", Some(item), _) => {
                    json!({"type": "array", "items": of_type(item, program, depth + 1)})
                }
                ("Record", _, Some(value)) => {
                    json!({"type": "object", "additionalProperties": of_type(value, program, depth + 1)})
                }
                ("Readonly" | "Required", Some(inner), _) => of_type(inner, program, depth + 1),
                ("Partial", Some(inner), _) => {
                    let mut schema = of_type(inner, program, depth + 1);
                    if let Some(schema) = schema.as_object_mut() {
                        schema.shift_remove("required");
                    }
                    schema
                }
                (name, _, _) => of_name(name, program, depth),
            }
        }
        _ => json!({}),
    }
}

/// The schema of an interface or alias that stands in the same file.
fn of_name(name: &str, program: &Program<'_>, depth: usize) -> Value {
    for statement in &program.body {
        let declaration = match statement {
            Statement::ExportDeclaration(export) => Some(&export.declaration),
            other => other.as_declaration(),
        };
        match declaration {
            Some(Declaration::TSInterfaceDeclaration(interface)) if interface.id.name == name => {
                return of_members(&interface.body.body, program, depth + 1);
            }
            Some(Declaration::TSTypeAliasDeclaration(alias)) if alias.id.name == name => {
                return of_type(&alias.type_annotation, program, depth + 1);
            }
            _ => {}
        }
    }
    json!({})
}

fn of_members<'a>(members: &[TSSignature<'a>], program: &Program<'a>, depth: usize) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for member in members {
        let TSSignature::TSPropertySignature(property) = member else { continue };
        let Some(name) = property_name(&property.key) else { continue };
        let schema = property
            .type_annotation
            .as_ref()
            .map_or_else(|| json!({}), |annotation| of_type(&annotation.type_annotation, program, depth + 1));
        if !property.optional {
            required.push(json!(name));
        }
        properties.insert(name, schema);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if let (false, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema
}

fn property_name(key: &PropertyKey<'_>) -> Option<String> {
    key.static_name().map(|name| name.to_string())
}

fn of_literal(literal: &TSLiteral<'_>) -> Value {
    match literal {
        TSLiteral::StringLiteral(literal) => json!({"type": "string", "enum": [literal.value.as_str()]}),
        TSLiteral::BooleanLiteral(literal) => json!({"type": "boolean", "enum": [literal.value]}),
        TSLiteral::NumericLiteral(literal) => json!({"type": "number", "enum": [literal.value]}),
        _ => json!({}),
    }
}

/// A union of literals of one type is an `enum`; any other is an `anyOf`, without `undefined`.
fn of_union<'a>(types: &[TSType<'a>], program: &Program<'a>, depth: usize) -> Value {
    let types = types.iter().filter(|kind| !matches!(kind, TSType::TSUndefinedKeyword(_)));
    let mut schemas: Vec<Value> = types.map(|kind| of_type(kind, program, depth + 1)).collect();
    if schemas.len() == 1 {
        return schemas.remove(0);
    }
    let name = schemas.first().and_then(|schema| schema.get("type")).cloned();
    let same = schemas.iter().all(|schema| schema.get("type") == name.as_ref() && schema.get("enum").is_some());
    if same {
        let values: Vec<Value> = schemas.iter().filter_map(|schema| schema.get("enum")?.as_array()).flatten().cloned().collect();
        return json!({"type": name, "enum": values});
    }
    json!({"anyOf": schemas})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::javascript::facts;

    fn schema(source: &str, typescript: bool) -> Value {
        facts(source, typescript).expect(source).input_schema.unwrap_or(Value::Null)
    }

    #[test]
    fn types_make_a_schema() {
        let source = "type Mode = 'fast' | 'slow';\nexport interface Options { text: string; limit?: number; mode?: Mode; tags: string[];\n\
                      more: Record<string, boolean>; any: unknown; either: string | number | undefined }\n\
                      export async function run({ text, limit = 10 }: Options) {}";
        let expected = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"}, "limit": {"type": "number", "default": 10},
                "mode": {"type": "string", "enum": ["fast", "slow"]}, "tags": {"type": "array", "items": {"type": "string"}},
                "more": {"type": "object", "additionalProperties": {"type": "boolean"}}, "any": {},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            },
            "required": ["text", "tags", "more", "any", "either"],
        });
        assert_eq!(schema(source, true), expected);
        let recursive = "interface N { n?: N }\nexport default (n: N) => 1";
        assert_eq!(schema(recursive, true)["type"], "object");
    }

    #[test]
    fn names_alone_make_an_open_schema() {
        let source = "export const run = ({ text, limit = 3, loud = false, ...rest }) => text";
        let expected = json!({"type": "object", "properties": {
            "text": {}, "limit": {"type": "number", "default": 3}, "loud": {"type": "boolean", "default": false},
        }});
        assert_eq!(schema(source, false), expected);
        assert_eq!(schema("export function run(input) {}", false), Value::Null);
        assert_eq!(schema("export function run() {}", false), json!({"type": "object", "properties": {}}));
        assert_eq!(schema("module.exports = ({a} = {}) => a", false), json!({"type": "object", "properties": {"a": {}}}));
    }
}
