//! HTTP for guests, which have no sockets: made here, on the host, and only to hosts that the call grants. Each hop
//! of a redirect is checked like the first request, and so is each address that a name resolves to.

mod address;
mod client;

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use reqwest::{Method, Response, StatusCode, Url, header};
use serde::{Deserialize, Serialize};
use skillz_json::Value;
use skillz_tool::NetworkPermission;

pub(crate) use client::HttpClients;
use client::{NoPublicAddress, Reach};

/// Redirects followed.
const MAX_REDIRECTS: usize = 10;
/// Longest body taken, in bytes. It becomes JSON, and then lies in the guest's memory.
const MAX_BODY: usize = 10 << 20;
/// Longest wait for one request; the call's own limit usually ends it earlier.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) struct HttpError {
    pub(crate) message: String,
    /// Whether it was refused, rather than tried.
    pub(crate) refused: bool,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: Headers,
    /// A text.
    #[serde(default)]
    body: Option<String>,
    /// Bytes, instead of a text.
    #[serde(default)]
    bytes: Option<Vec<u8>>,
    /// Whether the text is JSON, which then is its content type.
    #[serde(default)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Headers {
    Pairs(Vec<(String, String)>),
    Object(serde_json::Map<String, serde_json::Value>),
}

impl Default for Headers {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

/// What came back.
#[derive(Debug, Serialize)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// The bytes, where they are no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<Vec<u8>>,
}

/// One hop: everything that a redirect may change.
struct Hop {
    method: Method,
    url: Url,
    headers: header::HeaderMap,
    body: Option<Vec<u8>>,
}

/// Makes one request in a tool's name.
pub(crate) async fn request(
    clients: &HttpClients,
    tool: &str,
    network: &NetworkPermission,
    params: Value,
) -> Result<Reply, HttpError> {
    let mut hop = read(params)?;
    for _ in 0..=MAX_REDIRECTS {
        let reach = check(tool, network, &hop.url)?;
        let client = clients.get(reach).map_err(failed)?;
        let mut request = client.request(hop.method.clone(), hop.url.clone()).headers(hop.headers.clone()).timeout(TIMEOUT);
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| explain(tool, &hop.url, &error))?;
        match next_hop(&hop, &response) {
            Some(next) => hop = next?,
            None => return reply(response).await,
        }
    }
    Err(failed(format!("`{}` redirects more than {MAX_REDIRECTS} times", hop.url)))
}

fn read(params: Value) -> Result<Hop, HttpError> {
    let request: Request =
        skillz_json::from_value(params).map_err(|error| failed(format!("The request is not valid: {error}")))?;
    let method = request.method.unwrap_or_else(|| "GET".to_owned()).to_uppercase();
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| failed(format!("`{method}` is no HTTP method")))?;
    let url = Url::parse(&request.url).map_err(|error| failed(format!("`{}` is no URL: {error}", request.url)))?;
    let pairs = match request.headers {
        Headers::Pairs(pairs) => pairs,
        Headers::Object(object) => object
            .into_iter()
            .map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect(),
    };
    let mut headers = header::HeaderMap::new();
    for (name, value) in pairs {
        let parsed = (header::HeaderName::from_bytes(name.as_bytes()), header::HeaderValue::from_str(&value));
        let (Ok(parsed_name), Ok(value)) = parsed else {
            return Err(failed(format!("The header `{name}` has a name or value that HTTP does not allow")));
        };
        headers.append(parsed_name, value);
    }
    if request.json && !headers.contains_key(header::CONTENT_TYPE) {
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    }
    let body = request.bytes.or_else(|| request.body.map(String::into_bytes));
    Ok(Hop { method, url, headers, body })
}

/// Whether a tool may reach a URL, and which addresses count.
fn check(tool: &str, network: &NetworkPermission, url: &Url) -> Result<Reach, HttpError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!("`{url}` is neither http nor https")));
    }
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(failed(format!("`{url}` names no host")));
    };
    if !network.allows(host, port) {
        let listed = match network {
            NetworkPermission::Hosts(hosts) if !hosts.is_empty() => {
                let hosts: Vec<String> = hosts.iter().cloned().map(String::from).collect();
                format!("its `permissions.network` allows only {}", hosts.join(", "))
            }
            _ => "it has no permission for the network".to_owned(),
        };
        return Err(refused(format!(
            "`{tool}` may not reach `{host}:{port}`: {listed}. Build it again with `\"permissions\": {{\"network\": [\"{host}\"]}}`"
        )));
    }
    if is_named(network, host, port) {
        return Ok(Reach::Anywhere);
    }
    let literal: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    match literal {
        Some(address) if !address::is_public(address) => Err(refused(private(tool, host))),
        _ => Ok(Reach::Public),
    }
}

/// Whether a host is in the list by its whole name. Only then may it be one of this machine or its network.
fn is_named(network: &NetworkPermission, host: &str, port: u16) -> bool {
    let NetworkPermission::Hosts(hosts) = network else { return false };
    hosts.iter().any(|pattern| pattern.matches(host, port) && !String::from(pattern.clone()).starts_with('*'))
}

fn private(tool: &str, host: &str) -> String {
    format!(
        "`{tool}` may not reach `{host}`, which is an address of this machine or its own network. Only a host that \
         `permissions.network` lists by its whole name may be one, such as `\"network\": [\"{host}\"]`"
    )
}

/// Where a redirect leads; `None` if the response is no redirect.
fn next_hop(hop: &Hop, response: &Response) -> Option<Result<Hop, HttpError>> {
    let status = response.status();
    let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(header::LOCATION).filter(|_| is_redirect)?;
    let target = location.to_str().ok().and_then(|location| hop.url.join(location).ok());
    let Some(url) = target else { return Some(Err(failed(format!("`{}` redirects to something that is no URL", hop.url)))) };
    let mut headers = hop.headers.clone();
    if url.origin() != hop.url.origin() {
        for secret in [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION] {
            headers.remove(secret);
        }
    }
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
        || matches!(hop.method, Method::GET | Method::HEAD);
    if keeps_method {
        return Some(Ok(Hop { method: hop.method.clone(), url, headers, body: hop.body.clone() }));
    }
    for about_body in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
        headers.remove(about_body);
    }
    Some(Ok(Hop { method: Method::GET, url, headers, body: None }))
}

/// Reads the body, up to its limit.
async fn reply(mut response: Response) -> Result<Reply, HttpError> {
    let status = response.status().as_u16();
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in response.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        let joined = headers.entry(name.as_str().to_owned()).or_default();
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(&value);
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| failed(format!("The response broke off: {}", error.without_url())))?;
        let Some(chunk) = chunk else { break };
        if bytes.len() + chunk.len() > MAX_BODY {
            return Err(failed(format!("The response is longer than {MAX_BODY} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(body) => Reply { status, headers, body, raw: None },
        Err(error) => {
            let body = String::from_utf8_lossy(error.as_bytes()).into_owned();
            Reply { status, headers, body, raw: Some(error.into_bytes()) }
        }
    })
}

/// Says why a request failed, in one sentence.
fn explain(tool: &str, url: &Url, error: &reqwest::Error) -> HttpError {
    let host = url.host_str().unwrap_or_default();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    let mut last = String::new();
    while let Some(error) = cause {
        if error.is::<NoPublicAddress>() {
            return refused(private(tool, host));
        }
        last = error.to_string();
        cause = error.source();
    }
    let what = if error.is_timeout() {
        "did not answer in time"
    } else if error.is_connect() {
        "could not be reached"
    } else {
        "did not answer properly"
    };
    failed(format!("`{host}` {what}: {last}"))
}

fn failed(message: String) -> HttpError {
    HttpError { message, refused: false }
}

fn refused(message: String) -> HttpError {
    HttpError { message, refused: true }
}

#[cfg(test)]
mod tests;
