//! Commits that GitHub signs.
//!
//! GitHub signs a commit that is made by an App without author, committer and signature. The commit is a loose object
//! at GitHub until it is pushed.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::graphql;
use super::repository::GithubRepository;
use crate::forge::error::ForgeError;
use crate::forge::exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
use crate::forge::http::{Call, refusal};
use crate::forge::reading::{commit, flag, one_line, text};
use crate::git::{ChangedFile, CommitId, CommitSigner, ForgeCommit, SignerError, UnsignedCommit};

/// The maximum size in bytes of a file within a tree; others are uploaded.
const MAX_INLINE: usize = 1024 * 1024;

/// The maximum size in bytes of all files within one tree.
const MAX_TREE: usize = 8 * 1024 * 1024;

/// The maximum number of files within one tree.
const MAX_FILES: usize = 1_000;

const TREE: &str = "make the tree of a commit";
const BLOB: &str = "upload a file of a commit";
const COMMIT: &str = "sign a commit";
const AUTHOR: &str = "ask for which App it signs";

/// Has commits signed by GitHub.
pub struct GithubSigner<T> {
    /// Sends requests to the REST API.
    rest: T,
    /// Sends requests to the GraphQL API.
    graphql: T,
    repository: GithubRepository,
    host: String,
    /// The object that has the credentials.
    owner: String,
}

/// The error of a commit that GitHub did not sign.
#[derive(Debug, thiserror::Error)]
enum SigningFailure {
    /// A call failed.
    #[error(transparent)]
    Call(#[from] ForgeError),
    /// A file cannot be read from the mirror.
    #[error("cannot read a changed file from the mirror")]
    File(#[from] git2::Error),
    /// The tree differs.
    #[error(
        "{host} made the tree {theirs} of our files, and not {ours}: no file mode or name may be unusual"
    )]
    OtherTree { host: String, ours: CommitId, theirs: CommitId },
    /// The commit is not verified.
    #[error(
        "{host} did not sign the commit ({reason}): it signs for the token of a GitHub App or of GitHub Actions only; the \
         credentials are those of {owner}"
    )]
    NotVerified { host: String, reason: String, owner: String },
}

impl SigningFailure {
    fn is_of_commit(&self) -> bool {
        match self {
            Self::Call(error) => matches!(error, ForgeError::Refused { .. } | ForgeError::Malformed { .. }),
            Self::File(_) | Self::OtherTree { .. } => true,
            Self::NotVerified { .. } => false,
        }
    }
}

impl<T> fmt::Debug for GithubSigner<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GithubSigner").field("repository", &self.repository).finish_non_exhaustive()
    }
}

impl<T: Transport> GithubSigner<T> {
    /// Makes it from transports for both APIs; `owner` is the object that has the credentials.
    pub fn new((rest, graphql): (T, T), repository: GithubRepository, host: String, owner: String) -> Self {
        Self { rest, graphql, repository, host, owner }
    }

    async fn post(
        &self,
        resource: &[&str],
        body: Value,
        operation: &'static str,
    ) -> Result<Value, ForgeError> {
        let request: ApiRequest =
            self.repository.request((Method::Post, Cost::Essential), resource, Some(body), operation);
        let response: ApiResponse = self.rest.send(request).await?;
        if response.status == 201 {
            return Ok(response.body);
        }
        Err(refusal(Call { host: &self.host, owner: &self.owner, operation }, &response))
    }

    fn malformed(&self, operation: &'static str, detail: &str) -> ForgeError {
        ForgeError::Malformed { host: self.host.clone(), operation, detail: detail.to_owned() }
    }

    /// Returns the id in a response.
    fn id(&self, made: &Value, operation: &'static str, name: &str) -> Result<CommitId, ForgeError> {
        let defect = match text(made, "/sha") {
            Some(_) => "a response with a malformed id".to_owned(),
            None => format!("a response without {name}"),
        };
        commit(made, "/sha").ok_or_else(|| self.malformed(operation, &defect))
    }

    /// Returns a text of the verification of a commit.
    fn verified(&self, made: &Value, pointer: &str, name: &str) -> Result<String, ForgeError> {
        let missing = || self.malformed(COMMIT, &format!("a response without {name}"));
        text(made, pointer).map(str::to_owned).ok_or_else(missing)
    }

    async fn sign_commit(&self, commit: &UnsignedCommit<'_>) -> Result<ForgeCommit, SigningFailure> {
        let tree = self.make_tree(commit).await?;
        if tree != commit.tree {
            return Err(SigningFailure::OtherTree {
                host: self.host.clone(),
                ours: commit.tree,
                theirs: tree,
            });
        }
        let body = json!({
            "message": commit.message,
            "tree": tree.to_string(),
            "parents": [commit.parent.to_string()],
        });
        let made = self.post(&["git", "commits"], body, COMMIT).await?;
        if !flag(&made, "/verification/verified") {
            let reason = text(&made, "/verification/reason").unwrap_or("no reason");
            let reason = one_line(&self.rest.redact(reason));
            let (host, owner) = (self.host.clone(), self.owner.clone());
            return Err(SigningFailure::NotVerified { host, reason, owner });
        }
        Ok(ForgeCommit {
            id: self.id(&made, COMMIT, "the id of the commit")?,
            payload: self.verified(&made, "/verification/payload", "the signed text")?,
            signature: self.verified(&made, "/verification/signature", "the signature")?,
        })
    }

    /// Returns the login that the token belongs to, which is the name of the author.
    async fn login(&self) -> Result<String, ForgeError> {
        let response = self.graphql.send(graphql::viewer(AUTHOR)).await?;
        if response.status != 200 {
            return Err(refusal(Call { host: &self.host, owner: &self.owner, operation: AUTHOR }, &response));
        }
        let login = text(&response.body, "/data/viewer/login").map(str::to_owned);
        login.ok_or_else(|| {
            let errors = graphql::errors(&response.body);
            self.malformed(AUTHOR, errors.as_deref().unwrap_or("a response without the login"))
        })
    }

    /// Makes the tree of a commit at GitHub, and returns its id.
    async fn make_tree(&self, commit: &UnsignedCommit<'_>) -> Result<CommitId, SigningFailure> {
        let mut base = commit.base_tree;
        let (mut entries, mut size) = (Vec::new(), 0);
        for file in &commit.files {
            let entry = self.entry(file, (commit.read)(file)?).await?;
            let inline = entry["content"].as_str().map_or(0, str::len);
            if !entries.is_empty() && (size + inline > MAX_TREE || entries.len() == MAX_FILES) {
                base = self.post_tree(base, std::mem::take(&mut entries)).await?;
                size = 0;
            }
            size += inline;
            entries.push(entry);
        }
        if entries.is_empty() { Ok(base) } else { Ok(self.post_tree(base, entries).await?) }
    }

    async fn post_tree(&self, base: CommitId, entries: Vec<Value>) -> Result<CommitId, ForgeError> {
        let body = json!({"base_tree": base.to_string(), "tree": entries});
        let made = self.post(&["git", "trees"], body, TREE).await?;
        self.id(&made, TREE, "the id of the tree")
    }

    /// Makes the entry of a file; a large one, or no text, is uploaded.
    async fn entry(&self, file: &ChangedFile, content: Vec<u8>) -> Result<Value, ForgeError> {
        let mode = if file.is_executable { "100755" } else { "100644" };
        let mut entry = json!({"path": file.path, "mode": mode, "type": "blob"});
        let content = match String::from_utf8(content) {
            Ok(text) if text.len() <= MAX_INLINE => {
                entry["content"] = text.into();
                return Ok(entry);
            }
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let body = json!({"content": STANDARD.encode(content), "encoding": "base64"});
        let made = self.post(&["git", "blobs"], body, BLOB).await?;
        if self.id(&made, BLOB, "the id of the file")? != file.blob {
            return Err(self.malformed(BLOB, "another id than that of the file"));
        }
        entry["sha"] = file.blob.to_string().into();
        Ok(entry)
    }
}

impl<T: Transport> CommitSigner for GithubSigner<T> {
    fn sign<'a>(
        &'a self,
        commit: &'a UnsignedCommit<'a>,
    ) -> LocalBoxFuture<'a, Result<ForgeCommit, SignerError>> {
        let signed = self.sign_commit(commit).map(|signed| {
            signed.map_err(|failure| SignerError {
                is_of_commit: failure.is_of_commit(),
                cause: Arc::new(failure),
            })
        });
        signed.boxed_local()
    }

    fn author(&self) -> LocalBoxFuture<'_, Result<String, SignerError>> {
        let failed = |error| SignerError { is_of_commit: false, cause: Arc::new(error) };
        self.login().map(move |login| login.map_err(failed)).boxed_local()
    }
}
