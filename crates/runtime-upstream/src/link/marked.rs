//! Headers that name what a stateless message is about, so that whoever stands between can route it: its method, the
//! tool, and those arguments that a tool's schema marks with `x-mcp-header`.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use skillz_json::{Map, Value};

use crate::known::KnownTool;

/// An argument, by the names that lead to it, and its header.
type Marked = (Vec<String>, HeaderName);

/// The marked arguments of a server's tools.
#[derive(Debug, Default)]
pub(crate) struct MarkedArguments(Mutex<HashMap<String, Vec<Marked>>>);

impl MarkedArguments {
    /// Reads the schemas of tools.
    pub(crate) fn learn(&self, tools: &[KnownTool]) {
        let marked = tools.iter().filter_map(|tool| {
            let mut found = Vec::new();
            collect(tool.definition.get("inputSchema")?, &mut Vec::new(), &mut found);
            (!found.is_empty()).then(|| (tool.name.clone(), found))
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = marked.collect();
    }

    /// The headers of a request.
    pub(crate) fn headers(&self, method: &str, params: &Map<String, Value>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(&encoded(text)) {
                headers.insert(name, value);
            }
        };
        add(HeaderName::from_static("mcp-method"), method);
        let Some(name) = params.get("name").and_then(Value::as_str) else { return headers };
        add(HeaderName::from_static("mcp-name"), name);
        let marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, header) in marked.get(name).into_iter().flatten() {
            let start = params.get("arguments");
            match path.iter().fold(start, |value, member| value?.get(member)) {
                Some(Value::String(text)) => add(header.clone(), text),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => add(header.clone(), &value.to_string()),
                _ => {}
            }
        }
        headers
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Marked>) {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        if let Some(header) = header.and_then(|header| HeaderName::from_bytes(format!("mcp-param-{header}").as_bytes()).ok()) {
            found.push((path.clone(), header));
        }
        collect(property, path, found);
        path.pop();
    }
}

/// A text as a header may hold it.
fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "plain": {"type": "string"},
        }});
        let marked = MarkedArguments::default();
        marked.learn(&[KnownTool::read(json!({"name": "größe", "inputSchema": schema})).expect("has a name")]);
        let params = json!({"name": "größe", "arguments": {"region": " eu", "inner": {"count": 5}, "plain": "x"}});
        let headers = marked.headers("tools/call", params.as_object().expect("an object"));
        let mut shown: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("ASCII"))).collect();
        shown.sort_unstable();
        let expected = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDtsOfZQ==?="),
            ("mcp-param-count", "5"),
            ("mcp-param-region", "=?base64?IGV1?="),
        ];
        assert_eq!(shown, expected);
    }
}
