//! Who may talk to the server: Host and Origin against web pages that reach for local servers, the bearer token
//! against everybody else, and CORS for the web apps that are let in.

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, uri::Authority};

use super::reply::{self, Reply};

/// Headers that browsers must let web apps read.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate";
/// Headers that web apps may send where the browser does not say which it wants to.
const SENDABLE: &str = "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id";

/// The rules.
#[derive(Debug)]
pub(crate) struct Access {
    token: Option<String>,
    /// Origins that are let in, normalised.
    origins: Vec<String>,
    /// Host names that are let in; all where absent.
    hosts: Option<Vec<String>>,
}

impl Access {
    /// Rules for a server at `port`. `loopback_only` where only this machine can reach it: then a request for another
    /// host is a page's trick.
    pub(crate) fn new(token: Option<String>, allowed_origins: &[String], port: u16, loopback_only: bool) -> Self {
        let local = ["localhost", "127.0.0.1", "[::1]"];
        let mut origins: Vec<String> = local.iter().map(|host| format!("http://{host}:{port}")).collect();
        origins.extend(allowed_origins.iter().filter_map(|origin| normal_origin(origin)));
        let hosts = loopback_only.then(|| {
            let mut hosts: Vec<String> = local.iter().map(|host| (*host).to_owned()).collect();
            // A proxy for an allowed web app passes on the app's own host.
            hosts.extend(origins.iter().filter_map(|origin| host_of(origin.split_once("://")?.1)));
            hosts
        });
        Self { token, origins, hosts }
    }

    /// The response that turns a request away, or answers a browser's question whether it may come.
    pub(crate) fn turn_away<B>(&self, request: &Request<B>) -> Option<Reply> {
        let headers = request.headers();
        if !self.host_is_allowed(request) {
            return Some(reply::text(StatusCode::FORBIDDEN, "The Host header names a host that this server is not"));
        }
        if !self.origin_is_allowed(headers) {
            return Some(reply::text(StatusCode::FORBIDDEN, "This origin is not among the server's `allowed_origins`"));
        }
        if request.method() == Method::OPTIONS {
            return Some(preflight(headers));
        }
        if request.uri().path() != "/health" && !self.token_is_right(headers) {
            let mut refusal = reply::text(StatusCode::UNAUTHORIZED, "A bearer token is needed: `Authorization: Bearer <token>`");
            refusal.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"skillz\""));
            return Some(refusal);
        }
        None
    }

    /// Adds what a browser needs to let an allowed web app read the response.
    pub(crate) fn admit(&self, origin: Option<&HeaderValue>, reply: &mut Reply) {
        let Some(origin) = origin.filter(|origin| self.is_allowed(origin)) else { return };
        let headers = reply.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }

    fn host_is_allowed<B>(&self, request: &Request<B>) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let mut named = request.headers().get_all(header::HOST).iter();
        let host = match (named.next(), named.next()) {
            (Some(host), None) => host.to_str().ok().and_then(host_of),
            (None, _) => request.uri().authority().and_then(|authority| host_of(authority.as_str())),
            (Some(_), Some(_)) => None,
        };
        host.is_some_and(|host| hosts.contains(&host))
    }

    fn origin_is_allowed(&self, headers: &HeaderMap) -> bool {
        headers.get_all(header::ORIGIN).iter().all(|origin| self.is_allowed(origin))
    }

    fn is_allowed(&self, origin: &HeaderValue) -> bool {
        origin.to_str().ok().and_then(normal_origin).is_some_and(|origin| self.origins.contains(&origin))
    }

    fn token_is_right(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let mut sent = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return false };
        let Some((scheme, given)) = sent.to_str().ok().and_then(|sent| sent.split_once(' ')) else { return false };
        scheme.eq_ignore_ascii_case("bearer") && same(token.as_bytes(), given.trim().as_bytes())
    }
}

/// Compares without telling by its duration where the difference is.
fn same(expected: &[u8], given: &[u8]) -> bool {
    let differs = expected.iter().zip(given).fold(0, |differs, (left, right)| differs | (left ^ right));
    std::hint::black_box(differs) == 0 && expected.len() == given.len()
}

/// The answer to a browser that asks whether it may send a request. The origin was checked before.
fn preflight(headers: &HeaderMap) -> Reply {
    let mut answer = reply::text(StatusCode::NO_CONTENT, "");
    let wanted = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let set = answer.headers_mut();
    set.remove(header::CONTENT_TYPE);
    set.insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    set.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    set.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.unwrap_or(HeaderValue::from_static(SENDABLE)));
    set.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    answer
}

/// An origin in lower case, with its port only where it is not the scheme's own. `None` for anything else, `null` too.
fn normal_origin(origin: &str) -> Option<String> {
    let origin = origin.trim().to_ascii_lowercase();
    let (scheme, authority) = origin.split_once("://")?;
    let authority: Authority = authority.trim_end_matches('/').parse().ok()?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return None;
    }
    let own_port = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    match authority.port_u16().filter(|port| Some(*port) != own_port) {
        Some(port) => Some(format!("{scheme}://{}:{port}", authority.host())),
        None => Some(format!("{scheme}://{}", authority.host())),
    }
}

/// The host of an authority, in lower case, without its port.
fn host_of(authority: &str) -> Option<String> {
    let authority: Authority = authority.parse().ok()?;
    (!authority.as_str().contains('@')).then(|| authority.host().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(access: &Access, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        access.turn_away(&request.body(()).expect("valid")).map_or(200, |reply| reply.status().as_u16())
    }

    #[test]
    fn pages_cannot_reach_a_local_server_by_another_name() {
        let access = Access::new(None, &["https://app.example.com".to_owned()], 8080, true);
        let host = ("host", "127.0.0.1:8080");
        for (headers, expected) in [
            (vec![host], 200),
            (vec![("host", "localhost")], 200),
            (vec![("host", "LOCALHOST:1")], 200),
            (vec![("host", "[::1]:8080")], 200),
            (vec![("host", "evil.test")], 403),
            (vec![("host", "localhost.evil")], 403),
            (vec![("host", "127.0.0.1@evil.test")], 403),
            (vec![("host", "localhost"), ("host", "evil.test")], 403),
            (vec![("host", "")], 403),
            (vec![], 403),
            (vec![host, ("origin", "http://localhost:8080")], 200),
            (vec![host, ("origin", "http://127.0.0.1:8080")], 200),
            (vec![host, ("origin", "http://localhost:3000")], 403),
            (vec![host, ("origin", "http://localhost.evil")], 403),
            (vec![host, ("origin", "http://localhost:8080@evil.test")], 403),
            (vec![host, ("origin", "null")], 403),
            (vec![host, ("origin", "")], 403),
            (vec![host, ("origin", "https://app.example.com")], 200),
            (vec![host, ("origin", "https://APP.example.com:443")], 200),
            (vec![host, ("origin", "http://app.example.com")], 403),
            (vec![host, ("origin", "https://app.example.com.evil.test")], 403),
            (vec![host, ("origin", "https://app.example.com"), ("origin", "https://evil.test")], 403),
        ] {
            assert_eq!(status(&access, "/mcp", &headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_token_guards_all_but_health() {
        let access = Access::new(Some("s3cret".to_owned()), &[], 8080, false);
        for (headers, expected) in [
            (vec![], 401),
            (vec![("authorization", "Bearer s3cret")], 200),
            (vec![("authorization", "bearer s3cret")], 200),
            (vec![("authorization", "Bearer s3cre")], 401),
            (vec![("authorization", "Bearer s3cret2")], 401),
            (vec![("authorization", "Basic s3cret")], 401),
            (vec![("authorization", "s3cret")], 401),
            (vec![("authorization", "Bearer s3cret"), ("authorization", "Bearer x")], 401),
            (vec![("host", "anything.example"), ("authorization", "Bearer s3cret")], 200),
        ] {
            assert_eq!(status(&access, "/mcp", &headers), expected, "{headers:?}");
            assert_eq!(status(&access, "/health", &headers), 200);
            assert_eq!(status(&access, "/metrics", &headers), expected);
        }
    }

    #[test]
    fn browsers_are_told_what_an_allowed_app_may_do() {
        let access = Access::new(Some("t".to_owned()), &["https://app.example.com".to_owned()], 1, true);
        let request = Request::builder()
            .method(Method::OPTIONS)
            .uri("/mcp")
            .header("host", "localhost")
            .header("origin", "https://app.example.com")
            .header("access-control-request-headers", "authorization, mcp-param-x")
            .body(())
            .expect("valid");
        let mut answer = access.turn_away(&request).expect("answered without a token");
        access.admit(request.headers().get("origin"), &mut answer);
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example.com");
        assert_eq!(answer.headers()["access-control-allow-headers"], "authorization, mcp-param-x");
        let mut other = reply::text(StatusCode::OK, "");
        access.admit(Some(&HeaderValue::from_static("https://evil.test")), &mut other);
        assert!(other.headers().is_empty() || other.headers().get("access-control-allow-origin").is_none());
    }
}
