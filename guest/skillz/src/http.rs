//! HTTP, made by the server: only to hosts that the tool's `permissions.network` lists.

use std::collections::{BTreeMap, HashMap};

use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::{json, Value};

use crate::{host, reader, Error, Json, Result};

/// What came back, whatever its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The status code; 404 and the like are no errors.
    pub status: u16,
    /// Headers, with names in lower case; several of one name are joined by `, `.
    pub headers: BTreeMap<String, String>,
    /// The body as text. Where it is not UTF-8, see [`Response::bytes`].
    pub body: String,
    /// The bytes of a body that is not UTF-8.
    #[serde(default, skip_serializing)]
    raw: Option<Vec<u8>>,
}

impl Response {
    /// Whether the status is one of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        &self.body
    }

    /// The body as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.raw.as_deref().unwrap_or(self.body.as_bytes())
    }

    /// The body read as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let text = std::str::from_utf8(self.bytes()).map_err(|_| Error::new("The body is not UTF-8, and so no JSON"))?;
        reader::read(text).map_err(|fault| Error::new(format!("The body is not the JSON expected: {fault}")))
    }
}

/// Gets a page.
pub fn get(url: impl AsRef<str>) -> Result<Response> {
    request("GET", url, (), ())
}

/// Makes a request. Headers are pairs of names and values, or `()`; the body is text, bytes, a JSON value, or `()`.
pub fn request(method: &str, url: impl AsRef<str>, headers: impl Headers, body: impl Body) -> Result<Response> {
    send(method, url.as_ref(), headers.pairs(), body.content())
}

fn send(method: &str, url: &str, headers: Vec<(String, String)>, body: Content) -> Result<Response> {
    let mut params = json!({ "method": method, "url": url, "headers": headers });
    match body {
        Content::None => {}
        Content::Text(text) => params["body"] = Value::String(text),
        Content::Bytes(bytes) => params["bytes"] = json!(bytes),
        Content::Json(text) => {
            params["body"] = Value::String(text);
            params["json"] = Value::Bool(true);
        }
    }
    host::request_as("http/request", params)
}

/// Headers of a request.
pub trait Headers {
    /// Names and values.
    fn pairs(self) -> Vec<(String, String)>;
}

impl Headers for () {
    fn pairs(self) -> Vec<(String, String)> {
        Vec::new()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Headers for &[(K, V)] {
    fn pairs(self) -> Vec<(String, String)> {
        self.iter().map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned())).collect()
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> Headers for &[(K, V); N] {
    fn pairs(self) -> Vec<(String, String)> {
        self.as_slice().pairs()
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> Headers for [(K, V); N] {
    fn pairs(self) -> Vec<(String, String)> {
        self.as_slice().pairs()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Headers for Vec<(K, V)> {
    fn pairs(self) -> Vec<(String, String)> {
        self.as_slice().pairs()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Headers for &Vec<(K, V)> {
    fn pairs(self) -> Vec<(String, String)> {
        self.as_slice().pairs()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Headers for HashMap<K, V> {
    fn pairs(self) -> Vec<(String, String)> {
        (&self).pairs()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Headers for &HashMap<K, V> {
    fn pairs(self) -> Vec<(String, String)> {
        self.iter().map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned())).collect()
    }
}

impl Headers for &Value {
    fn pairs(self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = self.as_object().into_iter().flatten();
        pairs.map(|(name, value)| (name.clone(), text(value))).collect()
    }
}

impl Headers for Value {
    fn pairs(self) -> Vec<(String, String)> {
        (&self).pairs()
    }
}

/// A body in the form it is sent.
#[doc(hidden)]
pub enum Content {
    None,
    Text(String),
    Bytes(Vec<u8>),
    Json(String),
}

/// The body of a request.
pub trait Body {
    /// What is sent.
    #[doc(hidden)]
    fn content(self) -> Content;
}

impl Body for () {
    fn content(self) -> Content {
        Content::None
    }
}

impl Body for &str {
    fn content(self) -> Content {
        Content::Text(self.to_owned())
    }
}

impl Body for String {
    fn content(self) -> Content {
        Content::Text(self)
    }
}

impl Body for &String {
    fn content(self) -> Content {
        Content::Text(self.clone())
    }
}

impl Body for &[u8] {
    fn content(self) -> Content {
        Content::Bytes(self.to_vec())
    }
}

impl Body for Vec<u8> {
    fn content(self) -> Content {
        Content::Bytes(self)
    }
}

impl Body for &Vec<u8> {
    fn content(self) -> Content {
        Content::Bytes(self.clone())
    }
}

impl<const N: usize> Body for &[u8; N] {
    fn content(self) -> Content {
        Content::Bytes(self.to_vec())
    }
}

impl Body for Value {
    fn content(self) -> Content {
        Content::Json(self.to_string())
    }
}

impl Body for &Value {
    fn content(self) -> Content {
        Content::Json(self.to_string())
    }
}

impl Body for &Json {
    fn content(self) -> Content {
        Content::Json(self.to_string())
    }
}

impl Body for Option<&str> {
    fn content(self) -> Content {
        self.map_or(Content::None, Body::content)
    }
}
