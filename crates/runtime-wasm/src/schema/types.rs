//! Schemas of types.

use std::collections::HashMap;

use skillz_json::{Map, Value, json};
use syn::{Expr, ExprLit, GenericArgument, Item, Lit, PathArguments, Type, TypePath};

use super::{attributes::SerdeAttributes, items};

/// Whether values are read from JSON or written to it; serde lets the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Turns types into schemas, with the definitions of one file at hand.
pub(crate) struct Reader<'a> {
    pub(crate) direction: Direction,
    items: HashMap<String, &'a Item>,
    /// Types that are being read, to find those that contain themselves.
    open: Vec<String>,
    /// Schemas of types that contain themselves; `None` until they are complete.
    definitions: Map<String, Value>,
    exact: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(items: &'a [Item], direction: Direction) -> Self {
        let mut known = HashMap::new();
        collect(items, &mut known);
        Self { direction, items: known, open: Vec::new(), definitions: Map::new(), exact: true }
    }

    /// Whether every type met so far is known to the last field.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Anything: of a type that is not known here, the tool itself finds out at the call.
    pub(crate) fn anything(&mut self) -> Value {
        self.exact = false;
        Value::Object(Map::new())
    }

    /// Whether a type is a struct defined in this file.
    pub(crate) fn is_local_struct(&self, kind: &Type) -> bool {
        let Type::Path(path) = kind else { return false };
        path.path.get_ident().is_some_and(|name| matches!(self.items.get(&name.to_string()), Some(Item::Struct(_))))
    }

    /// Adds the definitions that a schema refers to.
    pub(crate) fn add_definitions(&mut self, schema: &mut Value) {
        let definitions = std::mem::take(&mut self.definitions);
        if let Some(schema) = schema.as_object_mut()
            && !definitions.is_empty()
        {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }

    /// The schema of a type.
    pub(crate) fn schema(&mut self, kind: &Type) -> Value {
        match kind {
            Type::Path(path) => self.path(path),
            Type::Reference(reference) => self.schema(&reference.elem),
            Type::Paren(inner) => self.schema(&inner.elem),
            Type::Group(inner) => self.schema(&inner.elem),
            Type::Slice(slice) => json!({"type": "array", "items": self.schema(&slice.elem)}),
            Type::Array(array) => {
                let items = self.schema(&array.elem);
                if let Some(length) = length(&array.len) {
                    return json!({"type": "array", "items": items, "minItems": length, "maxItems": length});
                }
                self.exact = false;
                json!({"type": "array", "items": items})
            }
            Type::Tuple(tuple) if tuple.elems.is_empty() => json!({"type": "null"}),
            Type::Tuple(tuple) => {
                let parts: Vec<Value> = tuple.elems.iter().map(|part| self.schema(part)).collect();
                sequence(&parts)
            }
            _ => self.anything(),
        }
    }

    fn path(&mut self, path: &TypePath) -> Value {
        let Some(last) = path.path.segments.last() else { return self.anything() };
        let name = last.ident.to_string();
        let arguments = type_arguments(&last.arguments);
        // A type of this file hides a standard one of the same name.
        if arguments.is_empty() && self.items.contains_key(&name) {
            return self.named(&name);
        }
        match (name.as_str(), arguments.as_slice()) {
            ("String" | "str" | "PathBuf" | "Path" | "OsString", []) => json!({"type": "string"}),
            ("char", []) => json!({"type": "string", "minLength": 1, "maxLength": 1}),
            ("bool", []) => json!({"type": "boolean"}),
            ("f32" | "f64", []) => json!({"type": "number"}),
            ("Value" | "Json" | "RawValue", []) => Value::Object(Map::new()),
            ("Map", []) => json!({"type": "object"}),
            ("Map", [_, value]) | ("HashMap" | "BTreeMap" | "IndexMap", [_, value, ..]) => {
                json!({"type": "object", "additionalProperties": self.schema(value)})
            }
            ("Option", [inner]) => nullable(self.schema(inner)),
            ("Vec" | "VecDeque" | "LinkedList" | "HashSet" | "BTreeSet" | "BinaryHeap" | "IndexSet", [item, ..]) => {
                json!({"type": "array", "items": self.schema(item)})
            }
            ("Box" | "Rc" | "Arc" | "Cow" | "Cell" | "RefCell" | "Mutex", [inner]) => self.schema(inner),
            (name, []) => integer(name).unwrap_or_else(|| self.anything()),
            _ => self.anything(),
        }
    }

    /// The schema of a type that is defined in this file.
    fn named(&mut self, name: &str) -> Value {
        let reference = || json!({"$ref": format!("#/$defs/{name}")});
        if self.open.iter().any(|open| open == name) {
            self.definitions.insert(name.to_owned(), Value::Null);
            return reference();
        }
        let Some(item) = self.items.get(name).copied() else { return self.anything() };
        self.open.push(name.to_owned());
        let schema = items::schema(self, item);
        self.open.pop();
        if self.definitions.contains_key(name) {
            self.definitions.insert(name.to_owned(), schema);
            return reference();
        }
        schema
    }
}

/// The schema of a type that counts, with its bounds. A `usize` has 32 bits where tools run.
fn integer(name: &str) -> Option<Value> {
    let non_zero = name.strip_prefix("NonZero").map(str::to_ascii_lowercase);
    let (lowest, highest) = match non_zero.as_deref().unwrap_or(name) {
        "i8" => (i8::MIN.into(), i8::MAX.unsigned_abs().into()),
        "i16" => (i16::MIN.into(), i16::MAX.unsigned_abs().into()),
        "i32" | "isize" => (i32::MIN.into(), i32::MAX.unsigned_abs().into()),
        "i64" => (i64::MIN.into(), i64::MAX.unsigned_abs().into()),
        "i128" => (i128::MIN, i128::MAX.unsigned_abs()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" | "usize" => (0, u32::MAX.into()),
        "u64" => (0, u64::MAX.into()),
        "u128" => (0, u128::MAX),
        _ => return None,
    };
    let lowest = if lowest == 0 && non_zero.is_some() { 1 } else { lowest };
    // As text, which holds every digit of 128 bits.
    serde_json::from_str(&format!(r#"{{"type": "integer", "minimum": {lowest}, "maximum": {highest}}}"#)).ok()
}

/// A schema that takes `null` too.
pub(crate) fn nullable(schema: Value) -> Value {
    let Value::Object(mut object) = schema else { return schema };
    if object.is_empty() {
        return Value::Object(object);
    }
    match object.get("type").cloned() {
        Some(kind) if kind.as_str().is_some_and(|kind| kind != "null") => {
            object.insert("type".to_owned(), json!([kind, "null"]));
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        Some(_) => {}
        None => match object.get_mut("anyOf") {
            Some(Value::Array(alternatives)) => alternatives.push(json!({"type": "null"})),
            _ => return json!({"anyOf": [object, {"type": "null"}]}),
        },
    }
    Value::Object(object)
}

/// An array of as many items as there are schemas.
pub(crate) fn sequence(parts: &[Value]) -> Value {
    let length = parts.len();
    json!({"type": "array", "prefixItems": parts, "items": false, "minItems": length, "maxItems": length})
}

/// Whether a type is `Option<_>`, and so may be left out.
pub(crate) fn is_option(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == "Option"))
}

/// The types defined in a file, those of its modules included.
fn collect<'a>(items: &'a [Item], known: &mut HashMap<String, &'a Item>) {
    for item in items {
        let name = match item {
            Item::Struct(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    collect(items, known);
                }
                continue;
            }
            _ => continue,
        };
        known.entry(name.to_string()).or_insert(item);
    }
}

fn type_arguments(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return Vec::new() };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    });
    types.collect()
}

fn length(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    }
}

/// Whether a field may be absent when it is read.
pub(crate) fn may_be_absent(kind: &Type, serde: &SerdeAttributes) -> bool {
    serde.default || is_option(kind)
}
