//! Access to an API server: its address, its certificate authority, and tokens.

use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

/// The token of an administrator.
pub(crate) const ADMIN_TOKEN: &str = "admin-token";

/// The address and the certificate authority of a server.
#[derive(Clone)]
pub(crate) struct Access {
    port: u16,
    authority: Vec<u8>,
}

impl Access {
    pub(super) fn new(port: u16, authority: Vec<u8>) -> Self {
        Self { port, authority }
    }

    /// A kubeconfig with a token and a namespace.
    pub(crate) fn kubeconfig(&self, token: &str, namespace: &str) -> String {
        let server = format!("https://127.0.0.1:{}", self.port);
        let cluster =
            json!({"server": server, "certificate-authority-data": STANDARD.encode(&self.authority)});
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
            "current-context": "test",
        });
        // JSON is YAML.
        kubeconfig.to_string()
    }

    /// The configuration of a client with a token and a namespace, without the caller's proxy.
    pub(crate) async fn config(&self, token: &str, namespace: &str) -> Config {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig(token, namespace)).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.proxy_url = None;
        config
    }

    /// Returns whether the server accepts requests.
    pub(super) fn is_ready(&self) -> bool {
        self.ask(async |client| {
            let request = Request::get("/readyz").body(Vec::new()).unwrap();
            client.request_text(request).await.is_ok_and(|answer| answer == "ok")
        })
    }

    /// Runs `question` with a client of its own.
    /// It may be called on any thread, inside an async runtime or outside.
    pub(super) fn ask<T: Send>(&self, question: impl AsyncFnOnce(Client) -> T + Send) -> T {
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let config = self.config(ADMIN_TOKEN, "default").await;
                question(Client::try_from(config).unwrap()).await
            })
        };
        std::thread::scope(|scope| {
            scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
