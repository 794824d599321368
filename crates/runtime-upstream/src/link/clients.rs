//! The HTTP client for remote servers: made once, when the first one is imported.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, NoProxy, Proxy, header::HeaderMap, redirect::Policy};

use crate::{definition::UNFIT_HEADER, error::LinkError};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Redirects followed, and only on the same host: headers hold secrets.
const MOST_REDIRECTS: usize = 3;
/// Bytes of an error page that are shown.
const SHOWN_BODY: usize = 500;

/// Where no proxy is asked, whatever the variables say.
const NEAR: &str = "localhost,127.0.0.0/8,::1";

/// The client, shared by all servers.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Arc<OnceLock<Result<Client, String>>>,
    variables: Arc<BTreeMap<String, String>>,
}

impl HttpClient {
    /// A client that goes through the proxies that these variables name.
    pub(crate) fn new(variables: &BTreeMap<String, String>) -> Self {
        let of_proxies = variables.iter().filter(|(name, _)| name.to_ascii_lowercase().ends_with("_proxy"));
        let variables = of_proxies.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        Self { client: Arc::default(), variables: Arc::new(variables) }
    }

    pub(crate) fn get(&self) -> Result<&Client, LinkError> {
        let client = self.client.get_or_init(|| make(&self.variables));
        client.as_ref().map_err(|reason| LinkError::Over(reason.clone()))
    }
}

fn make(variables: &BTreeMap<String, String>) -> Result<Client, String> {
    let near = variables.get("no_proxy").map_or_else(|| NEAR.to_owned(), |given| format!("{given},{NEAR}"));
    let mut builder = Client::builder().no_proxy();
    for (name, proxy) in
        [("http_proxy", Proxy::http as fn(String) -> _), ("https_proxy", Proxy::https), ("all_proxy", Proxy::all)]
    {
        let Some(address) = variables.get(name).filter(|address| !address.is_empty()) else { continue };
        // The address may hold a password.
        let proxy = proxy(address.clone()).map_err(|_| format!("The variable `{name}` names no proxy"))?;
        builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(&near)));
    }
    builder
        .tls_backend_preconfigured(skillz_tls::client_config()?)
        .user_agent(concat!("skillz/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(|attempt| {
            let same_host = attempt.previous().last().is_some_and(|before| {
                before.host_str() == attempt.url().host_str()
                    && before.port_or_known_default() == attempt.url().port_or_known_default()
                    && before.scheme() == attempt.url().scheme()
            });
            if !same_host || attempt.previous().len() > MOST_REDIRECTS { attempt.stop() } else { attempt.follow() }
        }))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| format!("The HTTP client could not be made: {error}"))
}

/// What went wrong with a request, in words and without the address, which may hold a secret.
pub(crate) fn failure(error: reqwest::Error) -> LinkError {
    let is_connect = error.is_connect();
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !reason.contains(&inner_text) {
            reason.push_str(": ");
            reason.push_str(&inner_text);
        }
        source = inner.source();
    }
    if is_connect {
        LinkError::Unsent(format!("The server cannot be reached: {reason}"))
    } else {
        LinkError::Over(format!("The connection to the server broke: {reason}"))
    }
}

/// The failure for a status that is no success.
pub(crate) fn refused(status: u16, body: &[u8]) -> LinkError {
    let text = String::from_utf8_lossy(body.get(..body.len().min(SHOWN_BODY)).unwrap_or_default());
    // Pages for browsers say nothing to a reader of errors.
    let text = if text.trim_start().starts_with('<') { String::new() } else { text.into_owned() };
    LinkError::Refused { status, text }
}

/// Headers as a definition has them, with what stands for variables put in. One that cannot be sent fails, since a server
/// that lacks it would fail in a way that nobody understands.
pub(crate) fn headers<'a>(given: impl Iterator<Item = (&'a String, &'a String)>) -> Result<HeaderMap, LinkError> {
    let parsed = given.map(|(name, value)| {
        let unfit = || LinkError::Over(format!("The header `{name}` cannot be sent: {UNFIT_HEADER}"));
        let mut value = reqwest::header::HeaderValue::from_str(value.trim()).map_err(|_| unfit())?;
        value.set_sensitive(true);
        Ok((reqwest::header::HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?, value))
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let of = |value: &str| headers([("X-Key".to_owned(), value.to_owned())].iter().map(|(name, value)| (name, value)));
        assert_eq!(of(" abc\n").expect("is sent").get("x-key").map(|value| value.as_bytes().to_vec()), Some(b"abc".to_vec()));
        let reason = of("top\nsecret").expect_err("cannot be sent").to_string();
        assert!(reason.contains("`X-Key`") && !reason.contains("secret"), "{reason}");
    }
}
