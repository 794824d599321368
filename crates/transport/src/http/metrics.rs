//! Counters for operators, in Prometheus' text format.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What the transport counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    connections: Arc<AtomicUsize>,
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

/// One open connection; counted for as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<AtomicUsize>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn connection(&self) -> OpenConnection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.connections))
    }

    /// Counts a request by its route and status.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry((route, status)).or_default() += 1;
    }

    /// Everything as text. `sessions` are those of `/mcp` and of `/sse`.
    pub(crate) fn render(&self, sessions: (usize, usize)) -> String {
        let mut lines = vec![
            "# HELP skillz_http_connections Open connections.".to_owned(),
            "# TYPE skillz_http_connections gauge".to_owned(),
            format!("skillz_http_connections {}", self.connections.load(Ordering::Relaxed)),
            "# HELP skillz_http_sessions Sessions of the older protocols.".to_owned(),
            "# TYPE skillz_http_sessions gauge".to_owned(),
            format!("skillz_http_sessions{{route=\"/mcp\"}} {}", sessions.0),
            format!("skillz_http_sessions{{route=\"/sse\"}} {}", sessions.1),
            "# HELP skillz_http_requests_total Requests answered.".to_owned(),
            "# TYPE skillz_http_requests_total counter".to_owned(),
        ];
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(requests.iter().map(|((route, status), count)| {
            format!("skillz_http_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}")
        }));
        drop(requests);
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_in_prometheus_form() {
        let metrics = Metrics::default();
        let open = metrics.connection();
        metrics.answered("/mcp", 200);
        metrics.answered("/mcp", 200);
        metrics.answered("other", 404);
        let text = metrics.render((3, 1));
        for line in [
            "skillz_http_connections 1",
            "skillz_http_sessions{route=\"/mcp\"} 3",
            "skillz_http_requests_total{route=\"/mcp\",status=\"200\"} 2",
            "skillz_http_requests_total{route=\"other\",status=\"404\"} 1",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in {text}");
        }
        assert!(text.ends_with('\n'));
        drop(open);
        assert!(metrics.render((0, 0)).contains("skillz_http_connections 0"));
    }
}
