//! The server in this process, on stores that a test fills.

use std::net::SocketAddr;

use kube::runtime::watcher::Event;
use reqwest::Method;
use serde_json::Value;
use tagboat::web::store::{Observed, Stores};
use tagboat::web::{Hosts, serve_status};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::answer::Answer;

/// A running server, which ends with the value.
pub(crate) struct Server {
    pub(crate) stores: Stores,
    pub(crate) address: SocketAddr,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// Serves the deployments of a cluster, of which there are none yet.
    pub(crate) async fn start(cluster: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stores = Stores::new(cluster);
        stores.deployments.cache().observe(Event::Init);
        stores.deployments.cache().observe(Event::InitDone);
        stores.deployments.set_known();
        let hosts = Hosts::new(["status.example.com".to_owned()]);
        let task = tokio::spawn(serve_status(listener, stores.clone(), hosts));
        Self { stores, address, task }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Writes an object, as its watch would.
    pub(crate) fn put(&self, object: &Value) {
        self.observe(Event::Apply(serde_json::from_value(object.clone()).unwrap()));
    }

    /// Deletes an object, as its watch would.
    pub(crate) fn delete(&self, object: &Value) {
        self.observe(Event::Delete(serde_json::from_value(object.clone()).unwrap()));
    }

    fn observe(&self, event: Event<tagboat_api::DeploymentStatus>) {
        let changes = self.stores.deployments.cache().observe(event);
        changes.iter().for_each(|change| self.stores.deployments.record(change));
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[]).await
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        Answer::of(method, &self.address.to_string(), path, headers).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
