use skillz_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// Answers each connection with the next of `responses`, and gives the port and what was asked.
async fn serve(responses: Vec<String>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        let mut asked = Vec::new();
        for response in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 16_384];
            let length = stream.read(&mut request).await.unwrap();
            asked.push(String::from_utf8_lossy(&request[..length]).into_owned());
            stream.write_all(response.replace("PORT", &port.to_string()).as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        asked
    });
    (port, served)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-a: 1\r\nx-a: 2\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn redirect(status: u16, target: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn hosts(list: &[&str]) -> NetworkPermission {
    skillz_json::from_value(json!(list)).unwrap()
}

async fn get(network: &NetworkPermission, url: &str) -> Result<Reply, HttpError> {
    request(&HttpClients::default(), "fetch", network, json!({"url": url})).await
}

#[tokio::test]
async fn a_named_host_of_this_machine_is_reached() {
    let (port, served) = serve(vec![ok("hello ü")]).await;
    let params = json!({
        "method": "post", "url": format!("http://127.0.0.1:{port}/path"),
        "headers": {"X-Token": "secret"}, "body": "{}", "json": true,
    });
    let reply = request(&HttpClients::default(), "fetch", &hosts(&["127.0.0.1"]), params).await.unwrap();
    assert_eq!((reply.status, reply.body.as_str(), reply.raw), (200, "hello ü", None));
    assert_eq!(reply.headers["x-a"], "1, 2");
    let asked = served.await.unwrap().remove(0);
    assert!(asked.starts_with("POST /path HTTP/1.1\r\n"), "{asked}");
    for part in ["x-token: secret", "content-type: application/json", "user-agent: skillz/"] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[tokio::test]
async fn what_is_not_granted_is_refused_by_name() {
    for (network, url, part) in [
        (NetworkPermission::All(false), "https://api.example.com/x", "it has no permission for the network"),
        (hosts(&["api.example.com"]), "https://other.example.com/", "allows only api.example.com"),
        (hosts(&["api.example.com:443"]), "http://api.example.com/", "`api.example.com:80`"),
        (NetworkPermission::All(true), "http://127.0.0.1:1/", "this machine or its own network"),
        (NetworkPermission::All(true), "http://[::1]:1/", "this machine or its own network"),
        (NetworkPermission::All(true), "http://2130706433/", "this machine or its own network"),
        (NetworkPermission::All(true), "http://0x7f.1/", "this machine or its own network"),
        (NetworkPermission::All(true), "http://169.254.169.254/latest", "this machine or its own network"),
        (NetworkPermission::All(true), "http://localhost:1/", "this machine or its own network"),
        (hosts(&["*.localhost"]), "http://a.localhost:1/", "this machine or its own network"),
        (NetworkPermission::All(true), "file:///etc/passwd", "neither http nor https"),
    ] {
        let error = get(&network, url).await.unwrap_err();
        // A resolver that does not know names below `localhost` cannot be asked to lead there.
        let unresolved = url.contains("a.localhost") && error.message.contains("could not be reached");
        assert!(error.refused && error.message.contains(part) || unresolved, "{url}: {}", error.message);
    }
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_checked() {
    let network = hosts(&["127.0.0.1"]);
    let (port, served) = serve(vec![redirect(302, "/next"), ok("there")]).await;
    let reply = get(&network, &format!("http://127.0.0.1:{port}/")).await.unwrap();
    assert_eq!(reply.body, "there");
    assert!(served.await.unwrap()[1].starts_with("GET /next "));

    let (port, _served) = serve(vec![redirect(307, "http://localhost:PORT/")]).await;
    let error = get(&network, &format!("http://127.0.0.1:{port}/")).await.unwrap_err();
    assert!(error.refused && error.message.contains("`localhost:"), "{}", error.message);

    let (port, _served) = serve(vec![redirect(301, "/"); MAX_REDIRECTS + 1]).await;
    let error = get(&network, &format!("http://127.0.0.1:{port}/")).await.unwrap_err();
    assert!(error.message.contains("redirects more than"), "{}", error.message);
}

#[tokio::test]
async fn secrets_stay_with_their_host() {
    let (port, served) = serve(vec![redirect(302, "http://localhost:PORT/x"), ok("")]).await;
    let params = json!({
        "method": "POST", "url": format!("http://127.0.0.1:{port}/"), "body": "b",
        "headers": [["Authorization", "secret"], ["X-Other", "kept"]],
    });
    request(&HttpClients::default(), "fetch", &hosts(&["127.0.0.1", "localhost"]), params).await.unwrap();
    let asked = served.await.unwrap();
    assert!(asked[0].contains("authorization: secret"));
    assert!(
        !asked[1].contains("secret") && asked[1].contains("x-other: kept") && asked[1].starts_with("GET /x "),
        "{}",
        asked[1]
    );
}

#[tokio::test]
async fn long_and_binary_bodies() {
    let network = hosts(&["127.0.0.1"]);
    let long = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(MAX_BODY + 1));
    let (port, served) = serve(vec![long]).await;
    let error = get(&network, &format!("http://127.0.0.1:{port}/")).await.unwrap_err();
    assert!(error.message.contains("longer than"), "{}", error.message);
    served.abort();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n\xff\xfe").await;
    });
    let reply = get(&network, &format!("http://127.0.0.1:{port}/")).await.unwrap();
    assert_eq!((reply.status, reply.raw), (404, Some(vec![0xff, 0xfe])));
}

#[tokio::test]
async fn what_cannot_be_reached_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = get(&hosts(&["127.0.0.1"]), &format!("http://127.0.0.1:{port}/")).await.unwrap_err();
    assert!(!error.refused && error.message.contains("`127.0.0.1` could not be reached"), "{}", error.message);
    for (params, part) in [
        (json!({"url": "no url"}), "is no URL"),
        (json!({}), "not valid"),
        (json!({"url": "http://a/", "method": "G E T"}), "no HTTP method"),
        (json!({"url": "http://a/", "headers": {"a\n": "b"}}), "The header"),
    ] {
        let error = request(&HttpClients::default(), "fetch", &NetworkPermission::All(true), params.clone()).await.unwrap_err();
        assert!(error.message.contains(part), "{params}: {}", error.message);
    }
}
