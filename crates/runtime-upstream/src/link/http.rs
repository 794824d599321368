//! Streamable HTTP, with sessions (until 2025-11-25) and without (since 2026-07-28): each message is a POST, its answer
//! comes as JSON or as a stream of events.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use skillz_json::Value;

use super::{MESSAGE_LENGTH, Outgoing, clients, events::EventStream, marked::MarkedArguments};
use crate::{
    connection::{Connection, Era},
    error::LinkError,
};

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// How long a broken stream is left alone where the server does not say.
const RETRY: Duration = Duration::from_secs(1);
/// Longest pause that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// How often one answer's stream is taken up again.
const MOST_RESUMES: usize = 50;
/// Bytes of an error page that are read.
const ERROR_BODY: usize = 64 * 1024;

/// The way to one address.
pub(crate) struct HttpLink {
    client: Client,
    url: Url,
    headers: HeaderMap,
    session: OnceLock<HeaderValue>,
    pub(super) marked: MarkedArguments,
}

impl HttpLink {
    pub(crate) fn new(client: Client, url: Url, headers: HeaderMap) -> Self {
        Self { client, url, headers, session: OnceLock::new(), marked: MarkedArguments::default() }
    }

    /// Posts a message, and takes in what comes back.
    pub(crate) async fn carry(&self, connection: &Arc<Connection>, message: Outgoing<'_>) -> Result<(), LinkError> {
        let id = message.id;
        let request = self.prepare(self.client.post(self.url.clone()), connection);
        let about = message.about.filter(|_| matches!(connection.era(), Some(Era::Stateless(_))));
        let request = request
            .headers(about.map(|(method, params)| self.marked.headers(method, params)).unwrap_or_default())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(message.body);
        let response = request.send().await.map_err(clients::failure)?;
        if let Some(session) = response.headers().get(SESSION) {
            let _ = self.session.set(session.clone());
        }
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.session.get().is_some() {
            return Err(LinkError::SessionLost);
        }
        let is_stream = content_type(&response).starts_with("text/event-stream");
        if !status.is_success() {
            return self.take_refusal(connection, response, id).await;
        }
        match id {
            None => Ok(()),
            Some(id) if is_stream => self.take_stream(connection, response, id).await,
            Some(_) if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT => Ok(()),
            Some(id) => {
                let body = body(response, MESSAGE_LENGTH).await?;
                let message = serde_json::from_slice(&body).map_err(|_| clients::refused(status.as_u16(), &body))?;
                connection.receive(message, Some(id));
                Ok(())
            }
        }
    }

    /// Takes in what the server says of its own accord, for as long as it offers a stream for that. Returns at once where
    /// it offers none.
    pub(crate) async fn listen(&self, connection: &Arc<Connection>) {
        let mut last_id: Option<String> = None;
        loop {
            let pause = match self.open_stream(connection, last_id.as_deref()).await {
                Ok(Some(mut stream)) => {
                    while let Ok(Some(event)) = stream.next().await {
                        take_event(connection, &event.data, None);
                    }
                    last_id = stream.last_id().map(str::to_owned).or(last_id);
                    stream.retry().unwrap_or(RETRY).clamp(RETRY, LONGEST_RETRY)
                }
                Ok(None) => return,
                Err(error) => {
                    connection.close(error);
                    return;
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Ends the session, so that the server need not wait for it to time out.
    pub(crate) async fn end(&self, connection: &Arc<Connection>) {
        if self.session.get().is_some() {
            let _ = self.prepare(self.client.delete(self.url.clone()), connection).send().await;
        }
    }

    fn prepare(&self, request: RequestBuilder, connection: &Connection) -> RequestBuilder {
        let mut request = request.headers(self.headers.clone());
        if let Some(session) = self.session.get() {
            request = request.header(SESSION, session.clone());
        }
        match connection.era() {
            Some(Era::Handshake(version) | Era::Stateless(version)) => request.header("mcp-protocol-version", version.as_str()),
            None => request,
        }
    }

    /// A status that is no success may still carry the server's own error.
    async fn take_refusal(&self, connection: &Arc<Connection>, response: Response, id: Option<u64>) -> Result<(), LinkError> {
        let status = response.status().as_u16();
        let body = body(response, ERROR_BODY).await.unwrap_or_default();
        if let (Some(id), Ok(message)) = (id, serde_json::from_slice::<Value>(&body))
            && message.get("jsonrpc").is_some()
            && message.get("error").is_some_and(Value::is_object)
        {
            connection.receive(message, Some(id));
            return Ok(());
        }
        Err(clients::refused(status, &body))
    }

    /// Takes in a stream until the answer has come. One that ends before is taken up again where it can be.
    async fn take_stream(&self, connection: &Arc<Connection>, response: Response, id: u64) -> Result<(), LinkError> {
        let mut stream = EventStream::new(response);
        for _ in 0..MOST_RESUMES {
            let broken = loop {
                match stream.next().await {
                    Ok(Some(event)) => take_event(connection, &event.data, Some(id)),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
                if !connection.waits_for(id) {
                    return Ok(());
                }
            };
            let ended = || LinkError::Over("The server ended the stream before it answered".to_owned());
            let Some(last_id) = stream.last_id().filter(|last_id| !last_id.is_empty()).map(str::to_owned) else {
                return Err(broken.unwrap_or_else(ended));
            };
            tokio::time::sleep(stream.retry().unwrap_or(RETRY).min(LONGEST_RETRY)).await;
            stream = self.open_stream(connection, Some(&last_id)).await?.ok_or_else(ended)?;
        }
        Err(LinkError::Over("The server broke the stream off again and again before it answered".to_owned()))
    }

    /// Opens the stream of what the server says; `None` where there is no such stream.
    async fn open_stream(&self, connection: &Connection, last_id: Option<&str>) -> Result<Option<EventStream>, LinkError> {
        let mut request = self.prepare(self.client.get(self.url.clone()), connection).header(ACCEPT, "text/event-stream");
        if let Some(last_id) = last_id {
            request = request.header(LAST_EVENT, last_id);
        }
        let response = request.send().await.map_err(clients::failure)?;
        if response.status() == StatusCode::NOT_FOUND && self.session.get().is_some() {
            return Err(LinkError::SessionLost);
        }
        let offers = response.status().is_success() && content_type(&response).starts_with("text/event-stream");
        Ok(offers.then(|| EventStream::new(response)))
    }
}

fn take_event(connection: &Arc<Connection>, data: &str, carrier: Option<u64>) {
    // Events without data only mark a place in the stream.
    if let Ok(message) = serde_json::from_str(data) {
        connection.receive(message, carrier);
    }
}

fn content_type(response: &Response) -> &str {
    response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The body, up to a bound.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, LinkError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(clients::failure)? {
        if body.len() + chunk.len() > most {
            return Err(LinkError::Over(format!("The server answered with more than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
