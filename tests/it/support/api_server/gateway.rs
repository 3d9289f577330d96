//! An HTTP gateway to the API server, with faults, for a program.
//! Requests are forwarded as the administrator's, or as those of a token.

use std::io;
use std::path::PathBuf;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, header};
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;

use super::cluster::Cluster;
use super::fault::Faults;

impl Cluster {
    /// A kubeconfig of a gateway with faults, which runs as long as the test's runtime.
    pub(crate) async fn faulty_kubeconfig(&self, faults: &Faults) -> PathBuf {
        self.gateway_to(self.faulty_client(faults)).await
    }

    /// A kubeconfig of a gateway with faults, whose requests have the permissions of a token.
    pub(crate) async fn faulty_kubeconfig_of(&self, faults: &Faults, token: &str) -> PathBuf {
        let client = faults.client(self.client_of(token).await, self.namespace());
        self.gateway_to(client).await
    }

    async fn gateway_to(&self, client: Client) -> PathBuf {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let forward = move |request: Request<Body>| {
            let client = client.clone();
            async move { forward(client, request).await }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(forward)).await });
        self.write_kubeconfig(
            &json!({
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
                "users": [{"name": "test", "user": {}}],
                "contexts": [{"name": "test", "context": {
                    "cluster": "test", "user": "test", "namespace": self.namespace(),
                }}],
                "current-context": "test",
            })
            .to_string(),
        )
    }
}

async fn forward(client: Client, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let content = to_bytes(body, usize::MAX).await.unwrap();
    let mut forwarded = Request::builder().method(parts.method).uri(parts.uri);
    for name in [header::ACCEPT, header::CONTENT_TYPE] {
        if let Some(value) = parts.headers.get(&name) {
            forwarded = forwarded.header(name, value);
        }
    }
    let forwarded = forwarded.body(kube::client::Body::from(content.to_vec())).unwrap();
    match client.send(forwarded).await {
        Ok(answer) => answer.map(Body::new),
        // A server can imitate a failing connection only by an answer that breaks off.
        Err(_) => {
            let lost = io::Error::from(io::ErrorKind::ConnectionReset);
            Response::new(Body::from_stream(futures::stream::once(async { Err::<Vec<u8>, _>(lost) })))
        }
    }
}
