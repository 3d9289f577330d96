//! Changes as server-sent events.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::Method;
use serde_json::{Value, json};
use tagboat::web::store::ClusterState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::client;
use super::openapi::assert_valid;
use super::server::Server;
use super::status::{object, status};

const PATIENCE: Duration = Duration::from_secs(30);

/// A client that follows changes.
struct Follower {
    chunks: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    read: String,
}

/// An event by its fields.
type Fields = BTreeMap<String, String>;

impl Follower {
    async fn connect(server: &Server, last: Option<&str>) -> Self {
        let client = client();
        let request = client.get(format!("http://{}/api/v1/events", server.address));
        let request = last.iter().fold(request, |request, id| request.header("Last-Event-ID", *id));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let chunks = response.bytes_stream().map(|chunk| chunk.map(|chunk| chunk.to_vec())).boxed();
        Self { chunks, read: String::new() }
    }

    /// The next event.
    async fn next(&mut self) -> Fields {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let fields = event.lines().filter_map(|line| line.split_once(": "));
                let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                self.read = rest.to_owned();
                return fields;
            }
            let chunk = timeout(PATIENCE, self.chunks.next()).await.expect("an event comes");
            self.read.push_str(std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap());
        }
    }

    /// The next event as its name and data.
    async fn change(&mut self) -> (String, Value) {
        let event = self.next().await;
        let data: Value = serde_json::from_str(&event["data"]).unwrap();
        if event["event"] != "reset" {
            assert_valid(&json!({"$ref": "#/components/schemas/ChangedDeployment"}), &data, "an event");
        }
        (event["event"].clone(), data)
    }
}

fn deployment(name: &str, version: u64, state: &str) -> Value {
    let mut object = object("a", name, &json!({}), &status(name, state, &[]));
    object["metadata"]["uid"] = json!(name);
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object
}

fn data(name: &str, state: &str) -> Value {
    json!({"namespace": "a", "name": name, "deploymentId": name, "state": state})
}

#[tokio::test]
async fn every_change_is_an_event() {
    let server = Server::start("edge-1").await;
    server.put(&deployment("web", 1, "pending"));
    let mut follower = Follower::connect(&server, None).await;
    assert_eq!(follower.change().await, ("reset".to_owned(), json!({})));
    server.put(&deployment("web", 2, "installing"));
    assert_eq!(follower.change().await, ("changed".to_owned(), data("web", "installing")));
    // Another version of the same content is no change.
    server.put(&deployment("web", 3, "installing"));
    server.put(&deployment("shop", 4, "pending"));
    assert_eq!(follower.change().await, ("changed".to_owned(), data("shop", "pending")));
    server.delete(&deployment("web", 5, "installing"));
    let deleted = json!({"namespace": "a", "name": "web", "deploymentId": "web"});
    assert_eq!(follower.change().await, ("deleted".to_owned(), deleted));
    // An outage of the cluster changes every deployment.
    let down = ClusterState::Down("2026-11-23T10:00:00Z".parse().unwrap());
    server.stores.set_cluster("edge-1", down);
    assert_eq!(follower.change().await.0, "reset");
    server.stores.set_cluster("edge-2", down);
    server.put(&deployment("shop", 6, "installed"));
    assert_eq!(follower.change().await, ("changed".to_owned(), data("shop", "installed")));
}

#[tokio::test]
async fn a_client_that_connects_again_gets_what_it_has_missed() {
    let server = Server::start("").await;
    let mut follower = Follower::connect(&server, None).await;
    let last = follower.next().await["id"].clone();
    drop(follower);
    server.put(&deployment("web", 1, "pending"));
    server.put(&deployment("web", 2, "installed"));
    let mut follower = Follower::connect(&server, Some(&last)).await;
    assert_eq!(follower.change().await, ("changed".to_owned(), data("web", "pending")));
    let event = follower.next().await;
    assert_eq!(event["data"], data("web", "installed").to_string());
    let mut follower = Follower::connect(&server, Some(&event["id"])).await;
    server.put(&deployment("web", 3, "failed"));
    assert_eq!(follower.change().await, ("changed".to_owned(), data("web", "failed")));
    // The id of another replica, an id that is too old, and a text that is no id.
    for number in 4..1_100 {
        server.put(&deployment("web", number, if number % 2 == 0 { "pending" } else { "installed" }));
    }
    for id in ["1-1", &last, "x", ""] {
        let mut follower = Follower::connect(&server, Some(id)).await;
        assert_eq!(follower.change().await.0, "reset", "{id}");
    }
}

#[tokio::test]
async fn at_most_64_clients_follow_changes() {
    let server = Server::start("").await;
    let mut followers = Vec::new();
    for _ in 0..64 {
        followers.push(Follower::connect(&server, None).await);
    }
    let refused = server.get("/api/v1/events").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "10"));
    assert_eq!(refused.json()["detail"], "64 clients follow the changes, which is the maximum");
    // Other requests are not affected, and a place becomes free.
    assert_eq!(server.get("/api/v1/deployments").await.status, 200);
    followers.pop();
    let head = async || server.ask(Method::HEAD, "/api/v1/events", &[]).await.status;
    timeout(PATIENCE, async { while head().await != 200 {} }).await.expect("a place becomes free");
}

/// The server neither waits for a slow client nor keeps its events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_is_dropped_and_delays_no_other() {
    let server = Server::start("").await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    slow.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut other = Follower::connect(&server, None).await;
    assert_eq!(other.change().await.0, "reset");
    // More than the buffers of both sockets hold: names are long, and each state differs from the one before.
    let name = "n".repeat(250);
    for number in 1..60_000_u64 {
        let state = if number % 2 == 0 { "pending" } else { "installed" };
        server.put(&deployment(&name, number, state));
        if number % 64 == 0 {
            // The other client keeps up.
            for _ in 0..64 {
                other.change().await;
            }
        }
    }
    // The slow client reads what was sent until the server closed the connection.
    let mut rest = Vec::new();
    let read = timeout(Duration::from_secs(60), slow.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "the connection is still open after {} bytes", rest.len());
    let text = String::from_utf8_lossy(&rest);
    assert!(text.matches("event: changed").count() < 59_000, "it was not dropped");
}
