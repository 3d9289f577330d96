//! The cluster that a command reads: its options, as kubectl has them, and a connection.

use std::path::PathBuf;

use clap::Args;
use kube::{Client, Config};
use zeroize::Zeroizing;

use super::{Failure, kubeconfig};
use crate::error::chain;
use crate::objects::cluster::{ClusterError, client};

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
        let client = client(configuration).map_err(|error| {
            Failure::new(format!("the kubeconfig cannot be used: {}", kubeconfig::first_line(&error)))
        })?;
        Ok(Connection { client, namespace, server })
    }

    async fn configuration(&self, advice: &str) -> Result<Config, Failure> {
        let context = self.context.clone().filter(|context| !context.is_empty());
        if let Some(file) = &self.kubeconfig {
            let configuration = kubeconfig::from_file(file, context).await;
            return configuration
                .map_err(|error| Failure::Usage(format!("--kubeconfig {}: {error}", file.display())));
        }
        match context {
            Some(context) => kubeconfig::with_context(&context)
                .await
                .map_err(|error| Failure::Usage(format!("--context {context}: {error}"))),
            None => kubeconfig::infer().await.map_err(|cause| Failure::new(format!("{cause}{advice}"))),
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

/// Returns the failure to read objects of the cluster.
pub(super) fn cannot_read(what: &str, error: &ClusterError) -> Failure {
    Failure::new(format!("cannot read {what}: {}", chain(error)))
}
