//! The part of an API server that one test uses: a namespace, and clients.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Config};
use serde_json::json;
use tempfile::TempDir;

use super::access::ADMIN_TOKEN;
use super::audit::Audited;
use super::fault::Faults;
use super::server::ApiServer;

/// A namespace of a test's own, with clients and kubeconfigs.
pub(crate) struct Cluster {
    server: Arc<ApiServer>,
    namespace: String,
    administrator: Config,
    directory: TempDir,
}

impl Cluster {
    /// Creates a namespace on the server that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(ApiServer::shared()).await
    }

    /// Creates a namespace on a server of the test's own.
    pub(crate) async fn on(server: Arc<ApiServer>) -> Self {
        Self::named(server, new_name()).await
    }

    /// Creates a namespace with a name that another server has, too.
    pub(crate) async fn named(server: Arc<ApiServer>, namespace: String) -> Self {
        let administrator = server.access().config(ADMIN_TOKEN, &namespace).await;
        let cluster = Self { server, namespace, administrator, directory: tempfile::tempdir().unwrap() };
        cluster.make(&cluster.namespace).await;
        cluster
    }

    /// The namespace's name, which begins with that of the test.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Creates a second namespace, and returns its name.
    pub(crate) async fn another_namespace(&self) -> String {
        let name = new_name();
        self.make(&name).await;
        name
    }

    /// A client of the administrator.
    pub(crate) fn client(&self) -> Client {
        Client::try_from(self.administrator.clone()).unwrap()
    }

    /// A client of the administrator, through faults.
    pub(crate) fn faulty_client(&self, faults: &Faults) -> Client {
        // The retries of kube are outside the faults, so that a fault is retried like an error of the server.
        faults.client(self.client_without_retries(), &self.namespace)
    }

    /// A client of the administrator that does not retry by itself.
    pub(crate) fn client_without_retries(&self) -> Client {
        let mut config = self.administrator.clone();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// A client with the permissions of a token, which does not retry by itself.
    pub(super) async fn client_of(&self, token: &str) -> Client {
        let mut config = self.server.access().config(token, &self.namespace).await;
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// A client with the permissions of a user: `bot`, or `system:serviceaccount:NAMESPACE:NAME`.
    pub(crate) fn client_as(&self, user: &str) -> Client {
        let mut config = self.administrator.clone();
        config.headers.push(("impersonate-user".parse().unwrap(), user.parse().unwrap()));
        Client::try_from(config).unwrap()
    }

    /// Returns a token of a service account in the test's namespace.
    /// The account is created if it does not exist.
    pub(crate) async fn token(&self, account: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::default_namespaced(self.client());
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
        accounts.patch(account, &PatchParams::apply("tests"), &Patch::Apply(object)).await.unwrap();
        let spec = TokenRequestSpec { audiences: Vec::new(), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        answer.status.expect("a token request is answered with a token").token
    }

    /// A client with a token.
    pub(crate) async fn client_with(&self, token: &str) -> Client {
        Client::try_from(self.server.access().config(token, &self.namespace).await).unwrap()
    }

    /// A kubeconfig with a token, for the program; the file lives as long as this.
    pub(crate) fn kubeconfig(&self, token: &str) -> PathBuf {
        self.write_kubeconfig(&self.server.access().kubeconfig(token, &self.namespace))
    }

    /// A kubeconfig of the administrator, for the program.
    pub(crate) fn administrators_kubeconfig(&self) -> PathBuf {
        self.kubeconfig(ADMIN_TOKEN)
    }

    pub(super) fn write_kubeconfig(&self, content: &str) -> PathBuf {
        let file = tempfile::NamedTempFile::new_in(self.directory.path()).unwrap();
        std::fs::write(&file, content).unwrap();
        // The file is removed with the directory.
        file.keep().unwrap().1
    }

    /// Returns the answered requests of a service account of the test's namespace, in order.
    /// A watch is logged when it ends.
    pub(crate) fn audit(&self, account: &str) -> Vec<Audited> {
        let user = format!("system:serviceaccount:{}:{account}", self.namespace);
        self.server.audit().into_iter().filter(|request| request.user == user).collect()
    }

    async fn make(&self, namespace: &str) {
        let metadata = ObjectMeta { name: Some(namespace.to_owned()), ..ObjectMeta::default() };
        let object = Namespace { metadata, ..Namespace::default() };
        Api::all(self.client()).create(&PostParams::default(), &object).await.unwrap();
    }
}

/// A name for a namespace, from the name of the test.
fn new_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // The test runner names each thread for its test.
    let thread = std::thread::current();
    let test = thread.name().and_then(|path| path.rsplit("::").next()).unwrap_or("test");
    let letters = test
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let name: String = letters.take(50).collect();
    format!("{}-{number}", name.trim_matches('-'))
}
