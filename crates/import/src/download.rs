//! Downloads over http and https: a few redirects, a limit on bytes, and nothing that an address could betray.

use std::{ffi::OsString, fs::File, io::Write, path::Path, sync::OnceLock, time::Duration};

use futures::StreamExt;
use reqwest::{Client, NoProxy, Proxy, Response, Url, header, redirect::Policy};
use sha2::{Digest, Sha256};
use skillz_tool::{ErrorKind, ToolError};

use crate::{
    error::{refused, too_large},
    limits,
    source::shown_url,
};

/// Redirects followed.
const REDIRECTS: usize = 5;
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest silence of a server that sends.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Fetches from web servers; the client is made at the first use, since reading the system's certificates takes a while.
#[derive(Debug)]
pub(crate) struct Downloader {
    /// Proxies, as the environment names them.
    variables: Vec<(OsString, OsString)>,
    client: OnceLock<Result<Client, String>>,
}

impl Downloader {
    pub(crate) fn new(variables: Vec<(OsString, OsString)>) -> Self {
        Self { variables, client: OnceLock::new() }
    }

    /// Downloads into a new file; gives its SHA-256 in hexadecimal.
    pub(crate) async fn save(&self, url: &Url, file: &Path) -> Result<String, ToolError> {
        let response = self.get(url, None).await?;
        let failed = |error: std::io::Error| ToolError::internal(format!("The download cannot be written: {error}"));
        let mut written = File::create_new(file).map_err(failed)?;
        let mut hasher = Sha256::new();
        self.read(url, response, |chunk| {
            hasher.update(chunk);
            written.write_all(chunk).map_err(failed)
        })
        .await?;
        Ok(hexadecimal(&hasher.finalize()))
    }

    /// Downloads into memory.
    pub(crate) async fn bytes(&self, url: &Url, accept: Option<&str>) -> Result<Vec<u8>, ToolError> {
        let response = self.get(url, accept).await?;
        let mut bytes = Vec::new();
        self.read(url, response, |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })
        .await?;
        Ok(bytes)
    }

    async fn read(
        &self,
        url: &Url,
        response: Response,
        mut take: impl FnMut(&[u8]) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        if response.content_length().is_some_and(|length| length > limits::BYTES) {
            return Err(too_large(&format!("`{}`", shown_url(url.as_str()))));
        }
        let mut taken = 0;
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| unreachable_server(url, error))?;
            taken += chunk.len() as u64;
            if taken > limits::BYTES {
                return Err(too_large(&format!("`{}`", shown_url(url.as_str()))));
            }
            take(&chunk)?;
        }
        Ok(())
    }

    /// Asks until the answer is no redirect. User and password go to the first host only.
    async fn get(&self, url: &Url, accept: Option<&str>) -> Result<Response, ToolError> {
        let client = self.client.get_or_init(|| client(&self.variables)).as_ref().map_err(ToolError::internal)?;
        let mut here = url.clone();
        for _ in 0..=REDIRECTS {
            let mut request = client.get(here.clone());
            if let Some(accept) = accept {
                request = request.header(header::ACCEPT, accept);
            }
            let response = request.send().await.map_err(|error| unreachable_server(&here, error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let shown = shown_url(here.as_str());
            let Some(next) = response.headers().get(header::LOCATION).filter(|_| status.is_redirection()) else {
                let kind = if status.as_u16() == 404 { ErrorKind::NotFound } else { ErrorKind::Unavailable };
                let message = format!("`{shown}` answered with status {}", status.as_u16());
                return Err(ToolError::new(kind, message).with_hint("Look at the address, and whether it needs a login"));
            };
            let next = next.to_str().ok().and_then(|next| here.join(next).ok());
            let next = next.ok_or_else(|| refused(format!("`{shown}` redirects to what is no address")))?;
            check_redirect(&here, &next)?;
            here = next;
        }
        Err(refused(format!("`{}` redirects more than {REDIRECTS} times", shown_url(url.as_str()))))
    }
}

/// Never to another scheme than the web's, and never from encrypted to plain.
fn check_redirect(from: &Url, to: &Url) -> Result<(), ToolError> {
    let allowed = to.scheme() == "https" || (to.scheme() == "http" && from.scheme() == "http");
    if allowed {
        return Ok(());
    }
    Err(refused(format!(
        "`{}` redirects to `{}`, which is not followed: redirects go to https only, or from http to http",
        shown_url(from.as_str()),
        shown_url(to.as_str())
    )))
}

fn unreachable_server(url: &Url, error: reqwest::Error) -> ToolError {
    // Its text would hold the whole address.
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    ToolError::new(ErrorKind::Unavailable, format!("`{}` could not be fetched: {reason}", shown_url(url.as_str())))
        .with_hint("Look at the address and the network; proxies come from `HTTPS_PROXY` and `NO_PROXY`")
}

fn client(variables: &[(OsString, OsString)]) -> Result<Client, String> {
    let failed = |error: reqwest::Error| format!("The HTTP client could not be made: {error}");
    let mut builder = Client::builder()
        .tls_backend_preconfigured(skillz_tls::client_config()?)
        .user_agent(concat!("skillz/", env!("CARGO_PKG_VERSION")))
        // Each hop is checked here.
        .redirect(Policy::none())
        // What the environment says comes from the settings, as everything else.
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT);
    let variable = |name: &str| {
        let is_meant = |known: &OsString| known.eq_ignore_ascii_case(name);
        variables
            .iter()
            .find(|(known, _)| is_meant(known))
            .and_then(|(_, value)| value.to_str())
            .filter(|value| !value.is_empty())
    };
    let exceptions = variable("NO_PROXY").and_then(NoProxy::from_string);
    let proxies = [
        variable("HTTPS_PROXY").map(Proxy::https),
        variable("HTTP_PROXY").map(Proxy::http),
        variable("ALL_PROXY").map(Proxy::all),
    ];
    for proxy in proxies.into_iter().flatten() {
        builder = builder.proxy(proxy.map_err(failed)?.no_proxy(exceptions.clone()));
    }
    builder.build().map_err(failed)
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_the_web_and_never_drop_encryption() {
        for (from, to, allowed) in [
            ("https://a/x", "https://b/y", true),
            ("http://a/x", "https://b/y", true),
            ("http://a/x", "http://b/y", true),
            ("https://a/x", "http://a/y", false),
            ("https://a/x", "file:///etc/passwd", false),
            ("http://a/x", "gopher://a", false),
        ] {
            let outcome = check_redirect(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
            assert_eq!(outcome.is_ok(), allowed, "{from} -> {to}");
        }
    }
}
