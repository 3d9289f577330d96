//! The cluster that a command reads: its options, as kubectl has them, and a connection.

use std::path::PathBuf;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use zeroize::Zeroizing;

use super::Failure;
use crate::error::chain;
use crate::objects::cluster::{ClusterError, check_token};

/// The selection of a cluster.
#[derive(Debug, Args)]
pub(super) struct ClusterArguments {
    /// The kubeconfig of the cluster; otherwise $KUBECONFIG, ~/.kube/config or the service account of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig; otherwise its current context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A connection to a cluster.
pub(super) struct Connection {
    pub(super) client: Client,
    /// The namespace of the kubeconfig's context.
    pub(super) namespace: String,
    /// The address of the API server, without user info.
    pub(super) server: String,
}

impl ClusterArguments {
    /// Prepares a connection; no request is sent.
    ///
    /// `advice` ends the sentence that says that there is no cluster; it may be empty.
    pub(super) async fn connect(&self, advice: &str) -> Result<Connection, Failure> {
        // Fails if there is one already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut configuration = self.configuration(advice).await?;
        trim_token_file(&mut configuration);
        let namespace = configuration.default_namespace.clone();
        let server = address(&configuration);
        check_token(&configuration)
            .map_err(|error| Failure::new(format!("the kubeconfig cannot be used: {error}")))?;
        let client = Client::try_from(configuration);
        let client = client.map_err(|error| Failure::new(format!("cannot reach the cluster: {error}")))?;
        Ok(Connection { client, namespace, server })
    }

    async fn configuration(&self, advice: &str) -> Result<Config, Failure> {
        let context = self.context.clone().filter(|context| !context.is_empty());
        let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
        if let Some(file) = &self.kubeconfig {
            let failed =
                |error| Failure::Usage(format!("--kubeconfig {}: {}", file.display(), first_line(&error)));
            let kubeconfig = Kubeconfig::read_from(file).map_err(failed)?;
            let configuration = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            return configuration.map_err(failed);
        }
        match context {
            Some(context) => Config::from_kubeconfig(&options)
                .await
                .map_err(|error| Failure::Usage(format!("--context {context}: {}", first_line(&error)))),
            None => Config::infer().await.map_err(|error| {
                let cause = first_line(&error);
                Failure::new(format!("there is no kubeconfig or in-cluster configuration ({cause}){advice}"))
            }),
        }
    }
}

/// Takes the token of a `tokenFile` that ends with a line break, as kubectl does.
///
/// The crate would send the line break, too. A file that cannot be read is reported by the client.
fn trim_token_file(configuration: &mut Config) {
    let login = &mut configuration.auth_info;
    let Some(file) = login.token_file.as_ref().filter(|_| login.token.is_none()) else { return };
    let Ok(text) = std::fs::read_to_string(file).map(Zeroizing::new) else { return };
    if text.trim() != text.as_str() {
        login.token = Some(text.trim().into());
        login.token_file = None;
    }
}

/// Returns the scheme, host and port of the API server.
fn address(configuration: &Config) -> String {
    let url = &configuration.cluster_url;
    let scheme = url.scheme_str().unwrap_or("https");
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{}{port}", url.host().unwrap_or_default())
}

/// Returns the first line of an error of a kubeconfig.
///
/// Further lines quote the file, which may hold a token. The crate puts a path in two kinds of quotes.
fn first_line(error: &impl std::fmt::Display) -> String {
    let line = error.to_string().lines().next().unwrap_or_default().to_owned();
    line.replace("'\"", "'").replace("\"'", "'")
}

/// Returns the failure to read objects of the cluster.
pub(super) fn cannot_read(what: &str, error: &ClusterError) -> Failure {
    Failure::new(format!("cannot read {what}: {}", chain(error)))
}
