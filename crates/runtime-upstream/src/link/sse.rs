//! The transport of 2024: one stream of events from the server, whose first names the address for messages to it.

use std::sync::Arc;

use reqwest::{
    Client, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};

use super::{Outgoing, clients, events::EventStream};
use crate::{connection::Connection, error::LinkError};

/// The way to a server whose stream is open.
pub(crate) struct SseLink {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
}

impl SseLink {
    /// Opens the stream and waits for the address.
    pub(crate) async fn open(client: Client, url: Url, headers: HeaderMap) -> Result<(Self, EventStream), LinkError> {
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(clients::failure)?;
        let status = response.status();
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !status.is_success() || !content_type.starts_with("text/event-stream") {
            let text = if status.is_success() { "no stream of events" } else { "" };
            return Err(LinkError::Refused { status: status.as_u16(), text: text.to_owned() });
        }
        let mut stream = EventStream::new(response);
        while let Some(event) = stream.next().await? {
            if event.name != "endpoint" {
                continue;
            }
            let endpoint = url.join(event.data.trim()).ok().filter(|endpoint| endpoint.origin() == url.origin());
            let endpoint =
                endpoint.ok_or_else(|| LinkError::Over("The server names an address for messages on another host".to_owned()))?;
            return Ok((Self { client, endpoint, headers }, stream));
        }
        Err(LinkError::Over("The server ended the stream before it named an address for messages".to_owned()))
    }

    /// Posts a message; the answer comes on the stream.
    pub(crate) async fn carry(&self, message: Outgoing<'_>) -> Result<(), LinkError> {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
        let response = request.header(CONTENT_TYPE, "application/json").body(message.body).send().await;
        match response.map_err(clients::failure)?.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(LinkError::SessionLost),
            status => Err(LinkError::Refused { status: status.as_u16(), text: String::new() }),
        }
    }
}

/// Takes in what comes on the stream, and closes the connection at its end.
pub(crate) async fn follow(mut stream: EventStream, connection: Arc<Connection>) {
    let reason = loop {
        match stream.next().await {
            Ok(Some(event)) => {
                if let Ok(message) = serde_json::from_str(&event.data) {
                    connection.receive(message, None);
                }
            }
            Ok(None) => break LinkError::Over("The server ended the stream".to_owned()),
            Err(error) => break error,
        }
    };
    connection.close(reason);
}
