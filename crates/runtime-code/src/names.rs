//! From the names in a program to tools, and from the values of a call to its arguments.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use skillz_json::{Map, Value, json};
use skillz_tool::Tool;

use crate::message::Call;

/// Words that cannot be names in one of the languages; a tool so called is reached with `_` behind it, or by `call`.
const KEYWORDS: &str = "False None True and as assert async await break case catch class const continue debugger def default del delete do elif \
    else enum except export extends false finally for from function global if import in instanceof interface is lambda let new nonlocal not null \
    or package pass private protected public raise return static super switch this throw true try typeof var void while with yield";

/// The one built-in that programs may call.
const LIST_TOOLS: &str = "list_tools";
/// Its parameters that may be given without a name.
const LIST_TOOLS_PARAMETERS: [&str; 1] = ["query"];

/// The tools that a program names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tools: HashMap<String, Arc<Tool>>,
    /// Whether it names [`LIST_TOOLS`].
    lists_tools: bool,
}

impl Names {
    /// Finds the tools among the words of a program: by their names, and, where a name is no identifier, by what it
    /// becomes when its other characters are `_`. An exact name always wins.
    pub(crate) fn in_program(code: &str, tools: &[Arc<Tool>]) -> Self {
        let words: HashSet<&str> = code.split(|part: char| !is_part(part)).filter(|word| !word.is_empty()).collect();
        let mut found: HashMap<String, Arc<Tool>> = HashMap::new();
        let mut cleaned: Vec<(String, &Arc<Tool>)> = Vec::new();
        for tool in tools {
            let name = tool.name.as_str();
            if is_identifier(name) {
                if words.contains(name) {
                    found.insert(name.to_owned(), Arc::clone(tool));
                }
            } else {
                let identifier = to_identifier(name);
                if words.contains(identifier.as_str()) {
                    cleaned.push((identifier, tool));
                }
            }
        }
        // Of several names that become the same one none is meant for certain; `call` reaches each.
        for (identifier, tool) in &cleaned {
            let is_only = cleaned.iter().filter(|(other, _)| other == identifier).count() == 1;
            let is_taken = tools.iter().any(|other| other.name.as_str() == identifier);
            if is_only && !is_taken {
                found.insert(identifier.clone(), Arc::clone(tool));
            }
        }
        Self { tools: found, lists_tools: words.contains(LIST_TOOLS) }
    }

    /// The identifiers, sorted.
    pub(crate) fn identifiers(&self) -> Vec<String> {
        let mut names: Vec<String> = self.tools.keys().cloned().collect();
        names.extend(self.lists_tools.then(|| LIST_TOOLS.to_owned()));
        names.sort_unstable();
        names
    }

    /// For a kit: each identifier with the tool's own name and the names of its parameters, in the order of their values
    /// where they are given without names.
    pub(crate) fn parameters(&self) -> Value {
        let tools = self.tools.iter().map(|(identifier, tool)| (identifier.clone(), json!([tool.name, parameters(tool)])));
        let mut all: Map<String, Value> = tools.collect();
        if self.lists_tools {
            all.insert(LIST_TOOLS.to_owned(), json!([LIST_TOOLS, LIST_TOOLS_PARAMETERS]));
        }
        Value::Object(all)
    }

    /// The tool's own name and the arguments of a call.
    pub(crate) fn bind(&self, call: Call) -> Result<(String, Map<String, Value>), String> {
        let tool = self.tools.get(&call.name);
        let name = tool.map_or(call.name.as_str(), |tool| tool.name.as_str()).to_owned();
        let mut arguments = call.named;
        if call.positional.is_empty() {
            return Ok((name, arguments));
        }
        let parameters = match tool {
            Some(tool) => parameters(tool),
            None if name == LIST_TOOLS => LIST_TOOLS_PARAMETERS.to_vec(),
            None => Vec::new(),
        };
        if call.positional.len() > parameters.len() {
            let known = if parameters.is_empty() { "none".to_owned() } else { parameters.join(", ") };
            return Err(format!("`{name}` takes its arguments by name ({known}), and got {} without one", call.positional.len()));
        }
        for (parameter, value) in parameters.into_iter().zip(call.positional) {
            if arguments.insert(parameter.to_owned(), value).is_some() {
                return Err(format!("`{name}` got the argument `{parameter}` twice"));
            }
        }
        Ok((name, arguments))
    }
}

/// The names of a tool's parameters, required ones first, as its signature shows them.
fn parameters(tool: &Tool) -> Vec<&str> {
    let schema = tool.input_schema.as_value();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let all = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|properties| properties.keys().map(String::as_str));
    let (first, rest): (Vec<&str>, Vec<&str>) = all.partition(|name| required.contains(name));
    first.into_iter().chain(rest).collect()
}

/// Tools whose names resemble a word, the closest first.
pub(crate) fn closest<'a>(word: &str, tools: &'a [Arc<Tool>]) -> Vec<&'a str> {
    let plain = |name: &str| {
        name.chars().filter(char::is_ascii_alphanumeric).map(|part| part.to_ascii_lowercase()).collect::<Vec<char>>()
    };
    let word = plain(word);
    let most = word.len() / 3 + 1;
    let mut near: Vec<(usize, &str)> = tools
        .iter()
        .map(|tool| tool.name.as_str())
        .filter(|name| name.len().abs_diff(word.len()) <= most + 2)
        .map(|name| (distance(&word, &plain(name)), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many letters differ.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.iter().enumerate() {
        let mut diagonal = index;
        let mut beside = index + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(right) {
            let above = *cell;
            beside = (above + 1).min(beside + 1).min(diagonal + usize::from(letter != other));
            diagonal = above;
            *cell = beside;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !KEYWORDS.split_ascii_whitespace().any(|keyword| keyword == name)
}

/// What a tool is called in programs.
pub(crate) fn identifier_of(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { to_identifier(name) }
}

/// A name as an identifier.
fn to_identifier(name: &str) -> String {
    let mut identifier: String = name.chars().map(|part| if part.is_ascii_alphanumeric() { part } else { '_' }).collect();
    if identifier.starts_with(|first: char| first.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    if KEYWORDS.split_ascii_whitespace().any(|keyword| keyword == identifier) {
        identifier.push('_');
    }
    identifier
}

#[cfg(test)]
mod tests {
    use skillz_tool::{Manifest, ToolKind, ToolName, Version};

    use super::*;

    fn tools(names: &[&str]) -> Vec<Arc<Tool>> {
        let tool = |name: &&str| {
            let mut manifest = Manifest::new(*name, "A tool", ToolKind::Script);
            manifest.input_schema = Some(json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {}, "c": {}}}));
            Arc::new(Tool::new(
                ToolName::for_existing(name).expect("valid"),
                Version::FIRST,
                "/nowhere".into(),
                manifest,
                "h".into(),
            ))
        };
        names.iter().map(tool).collect()
    }

    #[test]
    fn programs_name_tools_as_identifiers() {
        let tools = tools(&["word_count", "my-tool", "a-b", "a_b", "p-q_r", "p_q-r", "2fast", "class", "unused"]);
        let identifiers = |code: &str| Names::in_program(code, &tools).identifiers();
        assert_eq!(identifiers("word_count(text=my_tool())"), ["my_tool", "word_count"]);
        assert_eq!(identifiers("a_b() + _2fast() + class_()"), ["_2fast", "a_b", "class_"]);
        assert_eq!(identifiers("p_q_r()"), Vec::<String>::new(), "one of two is not guessed");
        assert_eq!(identifiers("word_counts xword_count"), Vec::<String>::new());
        let names = Names::in_program("my_tool a_b", &tools);
        let call = |name: &str| Call { name: name.to_owned(), positional: Vec::new(), named: Map::new() };
        assert_eq!(names.bind(call("my_tool")).expect("known").0, "my-tool");
        assert_eq!(names.bind(call("a_b")).expect("known").0, "a_b");
        assert_eq!(names.bind(call("anything")).expect("left to the host").0, "anything");
    }

    #[test]
    fn values_without_names_follow_the_signature() {
        let tools = tools(&["t"]);
        let names = Names::in_program("t", &tools);
        let bind = |positional: Value, named: Value| {
            let positional = positional.as_array().cloned().expect("an array");
            names
                .bind(Call { name: "t".to_owned(), positional, named: named.as_object().cloned().expect("an object") })
                .map(|(_, arguments)| Value::Object(arguments))
        };
        assert_eq!(bind(json!([1]), json!({})), Ok(json!({"b": 1})));
        assert_eq!(bind(json!([1, 2]), json!({"c": 3})), Ok(json!({"b": 1, "a": 2, "c": 3})));
        assert!(bind(json!([1, 2, 3, 4]), json!({})).expect_err("too many").contains("by name (b, a, c), and got 4"));
        assert!(bind(json!([1]), json!({"b": 2})).expect_err("twice").contains("`b` twice"));
    }

    #[test]
    fn near_names_are_suggested() {
        let tools = tools(&["word_count", "count_words", "weather"]);
        assert_eq!(closest("wordcount", &tools), ["word_count"]);
        assert_eq!(closest("wether", &tools), ["weather"]);
        assert!(closest("zzz", &tools).is_empty());
    }
}
