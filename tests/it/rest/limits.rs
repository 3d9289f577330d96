//! Limits of connections and of slow clients.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::openapi;
use super::server::Server;
use super::status::{object, status};

const REQUEST: &[u8] = b"GET /api/v1/clusters HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Sends a request on a connection, and returns the begin of the response.
async fn first_bytes(stream: &mut TcpStream) -> String {
    // The server may have closed the connection.
    let _ = stream.write_all(REQUEST).await;
    let mut bytes = [0; 12];
    match stream.read_exact(&mut bytes).await {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

#[tokio::test]
async fn at_most_256_connections_are_accepted() {
    let server = Server::start("").await;
    let mut streams = Vec::new();
    for _ in 0..256 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        assert_eq!(first_bytes(&mut stream).await, "HTTP/1.1 200");
        streams.push(stream);
    }
    let mut refused = TcpStream::connect(server.address).await.unwrap();
    let mut text = String::new();
    refused.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains(&format!("content-length: {}", body.len())));
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["detail"], "there are too many connections");
    // Any route can get it.
    for path in openapi::paths() {
        openapi::validate_status(path, 503, &problem);
    }
    // The others are served, and a closed one makes place.
    assert!(!streams.is_empty());
    drop(streams.pop());
    let begin = Instant::now();
    loop {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        if first_bytes(&mut stream).await == "HTTP/1.1 200" {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "no place becomes free");
    }
}

/// Waits until the server closes a connection, and returns the time that it took.
async fn closed(mut stream: TcpStream) -> Duration {
    let begin = Instant::now();
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await.expect("it is closed");
    begin.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_and_slow_clients_are_disconnected() {
    let server = Server::start("").await;
    for number in 0..200 {
        let name = format!("app-{number}");
        let components: Vec<(String, &str)> =
            (0..100).map(|number| (format!("Deployment/a/b-{number}"), "installed")).collect();
        let components: Vec<(&str, &str)> =
            components.iter().map(|(name, state)| (name.as_str(), *state)).collect();
        server.put(&object("a", &name, &json!({}), &status(&name, "installed", &components)));
    }
    let connect = async |bytes: &[u8]| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    };
    let silent = connect(b"").await;
    let partial = connect(b"GET / HTTP/1.1\r\nhost:").await;
    let idle = connect(REQUEST).await;
    // It reads nothing of a long response.
    let stuck = connect(b"GET /api/v1/deployments HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let stuck = async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        closed(stuck).await
    };
    let times = tokio::join!(closed(silent), closed(partial), closed(idle), stuck);
    let limits = Duration::from_secs(8)..Duration::from_secs(30);
    assert!(limits.contains(&times.0) && limits.contains(&times.1) && limits.contains(&times.2), "{times:?}");
    assert!(times.3 < Duration::from_secs(5), "the server had closed it: {times:?}");
}

/// The server of HTTP itself refuses these, before any part of ours sees a request.
#[tokio::test]
async fn a_head_that_is_too_long_or_not_http_is_refused() {
    const BUFFER: usize = 16 << 10;
    let server = Server::start("").await;
    let begin = "GET / HTTP/1.1\r\nhost: localhost\r\n";
    let headers: String = (0..150).map(|number| format!("x-{number}: a\r\n")).collect();
    for (head, status) in [
        // Not a byte more than the server reads, so that it closes the connection in order.
        (format!("{begin}x: {}", "x".repeat(BUFFER - begin.len() - 3)), "431 "),
        (format!("{begin}{headers}\r\n"), "431 "),
        ("no request\r\n\r\n".to_owned(), "400 "),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let rest = answer.strip_prefix("HTTP/1.1 ").unwrap_or_default();
        assert!(rest.starts_with(status) && rest.ends_with("\r\n\r\n"), "{answer}");
    }
    assert_eq!(server.get("/api/v1/clusters").await.status, 200);
}
