//! A server on a free port, and a client that speaks plain HTTP over a socket.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig},
    service::RequestContext,
};
use serde_json::{Value, json};
use skillz_transport::{BoundHttp, HttpSettings};
use tokio_util::sync::CancellationToken;

/// Longest wait for something that must happen.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Echoes, or waits until it is cancelled.
#[derive(Clone, Default)]
pub(crate) struct Echo {
    waiting: Arc<AtomicUsize>,
}

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "wait" {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _waiting = Waiting(Arc::clone(&self.waiting));
            cx.ct.cancelled().await;
            return Err(ErrorData::internal_error("cancelled", None));
        }
        let arguments = request.arguments.unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(Value::Object(arguments).to_string())]).into())
    }
}

pub(crate) struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<thread::JoinHandle<()>>,
    waiting: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut HttpSettings)) -> Self {
        let mut settings = HttpSettings::default();
        change(&mut settings);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let bound = runtime.block_on(BoundHttp::bind(settings)).expect("a free port");
        let (address, stop) = (bound.address(), CancellationToken::new());
        let waiting = Arc::new(AtomicUsize::new(0));
        let echo = Echo { waiting: Arc::clone(&waiting) };
        let stopped = stop.clone();
        let thread = thread::spawn(move || runtime.block_on(bound.serve(move || echo.clone(), stopped)));
        Self { address, stop, thread: Some(thread), waiting }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many calls wait to be cancelled.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn until(&self, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !holds() {
            assert!(Instant::now() < deadline, "it did not come about in time");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the server, waits for its end, and gives how many calls still wait then.
    pub(crate) fn stop(mut self) -> usize {
        self.stop.cancel();
        self.thread.take().expect("running").join().expect("the server ends cleanly");
        self.waiting()
    }

    /// Sends bytes and nothing more.
    pub(crate) fn raw(&self, bytes: &[u8]) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).expect("the server listens");
        connection.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let _ = connection.write_all(bytes);
        connection
    }

    /// Sends a request and gives the connection.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            write!(head, "host: {}\r\n", self.address).expect("a string takes all");
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").expect("a string takes all");
        }
        self.raw(format!("{head}\r\n{body}").as_bytes())
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        Answer::read(self.send(method, path, headers, body))
    }

    pub(crate) fn json_headers<'a>(headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut all = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        all.extend_from_slice(headers);
        all
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.post_text(path, headers, &message.to_string())
    }

    pub(crate) fn post_text(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.request("POST", path, &Self::json_headers(headers), body)
    }

    pub(crate) fn modern_headers<'a>(&self, method: &'a str, headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut all = Self::json_headers(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)]);
        all.extend_from_slice(headers);
        all
    }

    /// A request of the stateless protocol.
    pub(crate) fn modern(&self, method: &str, mut params: Value, headers: &[(&str, &str)]) -> Answer {
        params["_meta"] = modern_meta();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.request("POST", "/mcp", &self.modern_headers(method, headers), &body)
    }

    /// Opens a session of an older protocol and gives its id.
    pub(crate) fn open(&self, version: &str) -> String {
        let answer = self.post("/mcp", &[], &initialize(version));
        assert_eq!(answer.event()["result"]["protocolVersion"], version);
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        assert_eq!(self.post("/mcp", &headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status, 202);
        session
    }

    pub(crate) fn stream(&self, path: &str, headers: &[(&str, &str)]) -> EventStream {
        let mut reader = BufReader::new(self.send("GET", path, headers, ""));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a status line");
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        EventStream { reader }
    }

    /// A line of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.request("GET", "/metrics", &[], "").body;
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.expect("there is such a metric").parse().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    fn read(mut connection: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = connection.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { unchunked(body) } else { body.to_owned() };
        Self { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("the body is no JSON ({error}): {self:?}"))
    }

    /// The last message in a stream of events.
    pub(crate) fn event(&self) -> Value {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).rfind(|data| !data.is_empty());
        let data = data.unwrap_or_else(|| panic!("no event came: {self:?}"));
        serde_json::from_str(data).expect("an event holds JSON")
    }
}

fn unchunked(body: &str) -> String {
    let mut rest = body;
    let mut whole = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || tail.len() < size {
            break;
        }
        whole.push_str(&tail[..size]);
        rest = tail[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(crate) struct EventStream {
    reader: BufReader<TcpStream>,
}

impl EventStream {
    /// The data of the next event of that name.
    pub(crate) fn next_event(&mut self, name: &str) -> String {
        let wanted = format!("event: {name}");
        let mut found = false;
        loop {
            let mut line = String::new();
            assert_ne!(self.reader.read_line(&mut line).expect("the stream is open"), 0, "the stream ended");
            let line = line.trim_end();
            if line == wanted {
                found = true;
            } else if let (true, Some(data)) = (found, line.strip_prefix("data: ")) {
                return data.to_owned();
            }
        }
    }

    pub(crate) fn next_message(&mut self) -> Value {
        serde_json::from_str(&self.next_event("message")).expect("JSON")
    }
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

pub(crate) fn call(id: i64, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {"id": id}}})
}

pub(crate) fn modern_meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}
