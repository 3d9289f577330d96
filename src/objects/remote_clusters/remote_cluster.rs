//! A cluster with a kubeconfig.

use std::fmt;

use jiff::Timestamp;
use kube::Client;

use super::answers::Answers;
use super::kubeconfig;
use crate::error::chain;
use crate::objects::SmallFileError;
use crate::objects::cluster::client;
use crate::secrets::{Fingerprint, Secret};

/// A cluster with a kubeconfig. Clones share its client and its answers.
#[derive(Clone)]
pub struct RemoteCluster {
    /// The kubeconfig, by which a change is noticed.
    pub(super) kubeconfig: Fingerprint,
    access: Result<Client, String>,
    answers: Answers,
    down_since: Option<Timestamp>,
}

impl RemoteCluster {
    /// Creates the cluster of a kubeconfig, which counts as available until its first probes.
    ///
    /// It parses the text. A kubeconfig that cannot be used makes a cluster that is down.
    pub(super) fn new(file: Result<Secret, SmallFileError>, now: Timestamp) -> Self {
        let kubeconfig = fingerprint(&file);
        let unread = |error| format!("its kubeconfig cannot be read: {}", chain(&error));
        let access = file.map_err(unread).and_then(|text| {
            let config = kubeconfig::parse(text.expose()).map_err(|error| chain(&error))?;
            client(config).map_err(|error| format!("its kubeconfig cannot be used: {error}"))
        });
        let down_since = access.is_err().then_some(now);
        Self { kubeconfig, access, answers: Answers::default(), down_since }
    }

    /// Returns the client.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be used, with the reason.
    pub fn client(&self) -> Result<&Client, &str> {
        self.access.as_ref().map_err(String::as_str)
    }

    /// Returns the number of its answers to probes.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the time since which the cluster is down.
    ///
    /// It has not answered since then, for at least a minute. Without a usable kubeconfig, it is the time at which the
    /// file was read.
    pub fn down_since(&self) -> Option<Timestamp> {
        self.down_since
    }

    /// Returns true if both have the same kubeconfig.
    pub fn has_same_kubeconfig(&self, other: &Self) -> bool {
        self.kubeconfig == other.kubeconfig
    }

    /// Sets the time since which the cluster is down, and returns true if that changed.
    pub(super) fn set_down(&mut self, since: Option<Timestamp>) -> bool {
        std::mem::replace(&mut self.down_since, since) != since
    }
}

/// Returns the fingerprint of a file, or of the reason why it cannot be read.
pub(super) fn fingerprint(file: &Result<Secret, SmallFileError>) -> Fingerprint {
    match file {
        Ok(text) => Fingerprint::of([text.expose()]),
        Err(error) => Fingerprint::of(["error", &chain(error)]),
    }
}

/// Omits the client, which has credentials.
impl fmt::Debug for RemoteCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = self.access.as_ref().err();
        let mut debug = formatter.debug_struct("RemoteCluster");
        debug.field("refusal", &refusal).field("down_since", &self.down_since).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client panics at such a token, which ended the watch of all clusters.
    #[test]
    fn a_token_with_a_line_break_is_refused() {
        for token in [r#""s3cret\n""#, r#""s3\ncret""#] {
            let text = format!(
                "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
                 clusters: [{{name: a, cluster: {{server: 'https://edge.example'}}}}]\n\
                 users: [{{name: a, user: {{token: {token}}}}}]\n"
            );
            let cluster = RemoteCluster::new(Ok(Secret::new(text)), Timestamp::UNIX_EPOCH);
            let problem = cluster.client().map(drop).unwrap_err();
            assert!(problem.contains("token has a line break") && !problem.contains("s3"), "{problem}");
        }
    }
}
