//! One line that shows how a tool is called from code, made from its schemas.

use skillz_json::{Map, Value};
use skillz_tool::Tool;

/// How deep nested objects are spelled out.
const DEEPEST: usize = 4;
/// Most alternatives of an enum that are spelled out.
const MOST_ALTERNATIVES: usize = 12;

/// `word_count(text: str, limit: int = 10) -> {words: int}  # Counts words.`
pub(crate) fn python(tool: &Tool) -> String {
    let language = Language::Python;
    let schema = tool.input_schema.as_value();
    let (mut named, mut by_key) = (Vec::new(), Vec::new());
    for parameter in parameters(schema) {
        let kind = language.spell(schema, parameter.schema, 0);
        let default = match (parameter.required, parameter.schema.get("default")) {
            (true, _) => String::new(),
            (false, Some(default)) if !default.is_null() => format!(" = {}", python_literal(default)),
            (false, _) => " = None".to_owned(),
        };
        if is_identifier(parameter.name) && !PYTHON_KEYWORDS.contains(&parameter.name) {
            named.push(format!("{}: {kind}{default}", parameter.name));
        } else {
            by_key.push(format!("{}: {kind}", Value::from(parameter.name)));
        }
    }
    if !by_key.is_empty() {
        named.push(format!("**{{{}}}", by_key.join(", ")));
    }
    let name = tool.name.as_str();
    // A name of Python's own means that, in every program.
    let is_taken = PYTHON_KEYWORDS.contains(&name) || PYTHON_BUILTINS.contains(&name);
    let call = if is_identifier(name) && !is_taken {
        format!("{name}({})", named.join(", "))
    } else {
        format!("call({}, {})", Value::from(name), language.spell(schema, schema, 0))
    };
    let result = tool.manifest.output_schema.as_ref().map(|output| format!(" -> {}", language.spell(output, output, 0)));
    format!("{call}{}{}", result.unwrap_or_default(), remark(tool, "#"))
}

/// `word_count(args: {text: string, limit?: number}): Promise<{words: number}>  // Counts words.`
pub(crate) fn typescript(tool: &Tool) -> String {
    let language = Language::TypeScript;
    let schema = tool.input_schema.as_value();
    let name = tool.name.as_str();
    let arguments = language.spell(schema, schema, 0);
    let optional = if parameters(schema).any(|parameter| parameter.required) { "" } else { "?" };
    let call = if is_identifier(name) && !TYPESCRIPT_KEYWORDS.contains(&name) {
        format!("{name}(args{optional}: {arguments})")
    } else {
        format!("call({}, {arguments})", Value::from(name))
    };
    let result =
        tool.manifest.output_schema.as_ref().map_or_else(|| "any".to_owned(), |output| language.spell(output, output, 0));
    format!("{call}: Promise<{result}>{}", remark(tool, "//"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    TypeScript,
}

struct Parameter<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

/// The properties of an object schema, required ones first.
fn parameters(schema: &Value) -> impl Iterator<Item = Parameter<'_>> {
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let read = move |wanted: bool| {
        properties.into_iter().flatten().filter_map(move |(name, schema)| {
            let required = required.iter().any(|required| required == name);
            (required == wanted).then_some(Parameter { name, schema, required })
        })
    };
    read(true).chain(read(false))
}

impl Language {
    /// The type that a schema describes; `root` resolves its references.
    fn spell(self, root: &Value, schema: &Value, depth: usize) -> String {
        if depth > DEEPEST {
            return self.any().to_owned();
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return target.map_or_else(|| self.any().to_owned(), |target| self.spell(root, target, depth + 1));
        }
        if let Some(constant) = schema.get("const") {
            return self.alternatives(std::slice::from_ref(constant));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return self.alternatives(values);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                return union(branches.iter().map(|branch| self.spell(root, branch, depth + 1)));
            }
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.spell_type(root, schema, kind, depth),
            Some(Value::Array(kinds)) => {
                union(kinds.iter().filter_map(Value::as_str).map(|kind| self.spell_type(root, schema, kind, depth)))
            }
            _ if schema.get("properties").is_some() => self.spell_type(root, schema, "object", depth),
            _ => self.any().to_owned(),
        }
    }

    fn spell_type(self, root: &Value, schema: &Value, kind: &str, depth: usize) -> String {
        let python = self == Self::Python;
        let name = match kind {
            "string" if python => "str",
            "integer" if python => "int",
            "number" if python => "float",
            "boolean" if python => "bool",
            "null" if python => "None",
            "string" | "boolean" | "null" => kind,
            "integer" | "number" => "number",
            "array" => {
                let items = schema.get("items").map(|items| self.spell(root, items, depth + 1));
                let items = items.unwrap_or_else(|| self.any().to_owned());
                return if python { format!("list[{items}]") } else { format!("Array<{items}>") };
            }
            "object" => return self.spell_object(root, schema, depth),
            _ => self.any(),
        };
        name.to_owned()
    }

    fn spell_object(self, root: &Value, schema: &Value, depth: usize) -> String {
        let members: Vec<String> = parameters(schema)
            .map(|member| {
                let name = if is_identifier(member.name) { member.name.to_owned() } else { Value::from(member.name).to_string() };
                let mark = if member.required { "" } else { "?" };
                format!("{name}{mark}: {}", self.spell(root, member.schema, depth + 1))
            })
            .collect();
        if !members.is_empty() {
            return format!("{{{}}}", members.join(", "));
        }
        let values = schema
            .get("additionalProperties")
            .filter(|values| values.as_object().is_some_and(|values: &Map<_, _>| !values.is_empty()));
        match (self, values.map(|values| self.spell(root, values, depth + 1))) {
            (Self::Python, None) => "dict".to_owned(),
            (Self::Python, Some(values)) => format!("dict[str, {values}]"),
            (Self::TypeScript, None) => "object".to_owned(),
            (Self::TypeScript, Some(values)) => format!("Record<string, {values}>"),
        }
    }

    fn alternatives(self, values: &[Value]) -> String {
        let mut spelled: Vec<String> = values
            .iter()
            .take(MOST_ALTERNATIVES)
            .map(|value| if self == Self::Python { python_literal(value) } else { value.to_string() })
            .collect();
        if values.len() > MOST_ALTERNATIVES {
            spelled.push("...".to_owned());
        }
        match self {
            Self::Python => format!("Literal[{}]", spelled.join(", ")),
            Self::TypeScript => spelled.join(" | "),
        }
    }

    fn any(self) -> &'static str {
        match self {
            Self::Python => "Any",
            Self::TypeScript => "any",
        }
    }
}

fn union(types: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for name in types {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct.join(" | ")
}

fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(python_literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), python_literal(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The description's first sentence, as a comment.
fn remark(tool: &Tool, mark: &str) -> String {
    let line = tool.manifest.description.trim().lines().next().unwrap_or_default();
    let sentence = line.find(". ").and_then(|end| line.get(..=end)).unwrap_or(line);
    if sentence.is_empty() { String::new() } else { format!("  {mark} {sentence}") }
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

const PYTHON_KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

const PYTHON_BUILTINS: [&str; 58] = [
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "bool",
    "bytearray",
    "bytes",
    "call",
    "callable",
    "chr",
    "compile",
    "complex",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "iter",
    "len",
    "list",
    "locals",
    "map",
    "max",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "skillz",
    "slice",
    "sorted",
    "str",
    "sum",
    "type",
    "zip",
];

const TYPESCRIPT_KEYWORDS: [&str; 45] = [
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
];

#[cfg(test)]
mod tests {
    use skillz_json::json;
    use skillz_tool::{Manifest, ToolKind, ToolName, Version};

    use super::*;

    fn tool(name: &str, description: &str, input: Value, output: Option<Value>) -> Tool {
        let mut manifest = Manifest::new(name, description, ToolKind::Script);
        manifest.input_schema = Some(input);
        manifest.output_schema = output;
        Tool::new(ToolName::for_existing(name).expect("valid"), Version::FIRST, "/nowhere".into(), manifest, "hash".into())
    }

    #[test]
    fn types_defaults_and_results_are_spelled_out() {
        let schema = json!({"type": "object", "required": ["text"], "properties": {
            "limit": {"type": "integer", "default": 10}, "text": {"type": "string"}, "mode": {"enum": ["fast", "slow"]},
            "tags": {"type": "array", "items": {"type": "string"}}, "or": {"type": ["number", "null"]},
        }});
        let output = json!({"type": "object", "required": ["words"], "properties": {"words": {"type": "integer"}, "note": {"type": "string"}}});
        let tool = tool("word_count", "Counts words. And more.", schema, Some(output));
        assert_eq!(
            python(&tool),
            "word_count(text: str, limit: int = 10, mode: Literal[\"fast\", \"slow\"] = None, tags: list[str] = None, \
             **{\"or\": float | None}) -> {words: int, note?: str}  # Counts words."
        );
        assert_eq!(
            typescript(&tool),
            "word_count(args: {text: string, limit?: number, mode?: \"fast\" | \"slow\", tags?: Array<string>, or?: number | null}): \
             Promise<{words: number, note?: string}>  // Counts words."
        );
    }

    #[test]
    fn references_are_followed_and_circles_cut() {
        let schema = json!({"type": "object", "properties": {"node": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}});
        assert_eq!(python(&tool("walk", "Walks", schema, None)), "walk(node: {next?: {next?: Any}} = None)  # Walks");
    }

    #[test]
    fn names_that_no_language_takes_are_called_by_text() {
        let schema = json!({"type": "object", "required": ["a-b"], "properties": {"a-b": {"type": "boolean"}}});
        assert_eq!(python(&tool("my-tool", "Does", schema.clone(), None)), "call(\"my-tool\", {\"a-b\": bool})  # Does");
        assert_eq!(python(&tool("plain", "Does", schema, None)), "plain(**{\"a-b\": bool})  # Does");
        assert_eq!(python(&tool("sum", "Does", json!({}), None)), "call(\"sum\", Any)  # Does");
        assert_eq!(typescript(&tool("delete", "Does", json!({}), None)), "call(\"delete\", any): Promise<any>  // Does");
    }
}
