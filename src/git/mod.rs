//! Git: mirrors of remote repositories, commits without a work tree, and pushes that lose nothing.
//!
//! A [`Writer`] takes proposals for remotes and answers each with an [`outcome`] or an error. It reads and writes
//! objects through libgit2; git processes do everything that goes over the network.
//!
//! | files | contents |
//! |---|---|
//! | `name`, `checkout`, `refspec`, `author`, `url` | names and addresses, parsed once at the edge |
//! | `proposal`, `outcome`, `error` | a proposal and its answer |
//! | `writer`, `options`, `context` | a queue and a task for each mirror with work |
//! | `slots` | limits of concurrent transactions, by namespace and route |
//! | `server_deadline` | waits of a transaction for memory and threads, which suspend its deadlines |
//! | `transaction`, `attempts` | proposals with retries after lost races; the outcomes of attempts |
//! | `attempt` | one attempt at the proposals for one branch |
//! | `branches` | one attempt at branches of proposals' own |
//! | `source` | the commit to check out, found in a listing |
//! | `baseline` | the commit that the last run of a proposal left |
//! | `mirror`, `mirror_error`, `mirror_key` | the bare repository that caches fetched objects, its errors and name |
//! | `mirror_files`, `mirror_packing` | its lock, configuration, leftover files and size; packing |
//! | `mirror_store`, `mirror_eviction` | the maximum size of all mirrors; eviction |
//! | `push_journal`, `unreadable_tips` | the push journal, and the state of the remote after the last run; tips that cannot be read |
//! | `tree`, `commit`, `commit_time`, `commit_error`, `edited_tree` | the tree of a commit; commits of edits |
//! | `commit_signer` | the trait of forges that sign commits |
//! | `object`, `tree_entries`, `pack` | objects with a size limit; the bytes of a tree; packs of new objects |
//! | `signature` | signing keys from Secrets, and the keyring that caches them |
//! | `remote`, `remote_error`, `listing`, `push`, `redirect` | listing, fetch, push, the replies, and redirects |
//! | `command`, `process`, `process_memory` | the one builder for git processes; deadlines and memory limits |
//! | `failure_kind`, `git_output` | the classification of git's output, and its redaction |
//! | `diff` | unified diffs |
//! | `history` | the history of marked values in a local clone |
//! | `access` | the access to a remote: a plan in memory, and private files while git runs |
//! | `credentials`, `ssh`, `configuration`, `process_env` | logins, ssh, git's configuration, our environment |
//! | `private`, `private_file` | private directories; files shared by content |

mod access;
mod attempt;
mod attempts;
pub mod author;
mod baseline;
mod branches;
pub mod checkout;
mod command;
mod commit;
mod commit_error;
mod commit_signer;
mod commit_time;
mod configuration;
mod context;
mod credentials;
mod diff;
mod edited_tree;
mod error;
mod failure_kind;
mod git_output;
pub mod history;
mod listing;
mod mirror;
mod mirror_error;
mod mirror_eviction;
mod mirror_files;
mod mirror_key;
mod mirror_packing;
mod mirror_store;
pub mod name;
mod object;
mod options;
pub mod outcome;
mod pack;
mod private;
mod private_file;
mod process;
mod process_env;
mod process_memory;
mod proposal;
mod push;
mod push_journal;
mod redirect;
pub mod refspec;
mod remote;
mod remote_error;
mod server_deadline;
mod signature;
mod slots;
mod source;
mod ssh;
mod transaction;
mod tree;
mod tree_entries;
mod unreadable_tips;
mod url;
mod writer;

pub use access::{Access, AccessError, AccessOptions, AccessPlan, Login, LoginOwner};
pub use author::Author;
pub use baseline::{Baseline, BaselineTree, ProposalTrees};
pub use branches::{
    Absence, Authorship, BranchAction, BranchDraft, BranchFacts, BranchOutcome, ClosedProposal, CommitPeople,
    DropReason, DroppedCommit, FileChange, LeftReason, PushDelay, Refresh,
};
pub use command::{Call, Git, GitError, Output};
pub use commit::CommitDraft;
pub use commit_error::CommitError;
pub use commit_signer::{
    ChangedFile, CommitSigner, ForgeCommit, ForgeSigning, ForgeSigningError, MAX_SIGNED_COMMITS, SignerError,
    UnsignedCommit,
};
pub use commit_time::CommitTime;
pub use configuration::Configuration;
pub use context::WriterContext;
pub use credentials::{
    ClientCertificate, Credentials, CredentialsError, HttpCredentials, HttpLogin, SshCredentials,
    has_known_host,
};
pub use diff::unified_diff;
pub use error::SyncError;
pub use failure_kind::FailureKind;
pub use git_output::GitOutput;
pub use listing::ListingError;
pub use mirror_error::MirrorError;
pub use mirror_key::MirrorKey;
pub use mirror_store::MirrorStore;
pub use name::{BranchName, CommitId, RefName};
pub use object::{ObjectError, ObjectTooLarge};
pub use options::WriterOptions;
pub use private::{PrivateDirectory, PrivateError};
pub use private_file::{PrivateFile, PrivateFiles};
pub use process_env::ProcessEnv;
pub use proposal::{Answer, Failure, Freshness, Known, Proposal, Proposer, object_of};
pub use redirect::Redirect;
pub use remote::{Remote, RemotePlan};
pub use remote_error::{RemoteError, RemoteOperation};
pub use signature::{
    DefectivePart, Keyring, NoSigningPart, OpenPgpKeyDefect, PartDefect, SigningError, SigningKey,
    SigningKeyError, SigningKeyKind, SshKeyDefect, unlock_signing_key,
};
pub use slots::{RouteKey, TransactionSlots};
pub use ssh::SshAlgorithms;
pub use tree::GitTree;
pub use tree_entries::{MalformedTree, TreeEntries, TreeEntry, TreeEntryKind, encode_entry};
pub use url::{LocalPaths, RemoteUrl, RemoteUrlError, Transport};
pub use writer::{Request, Writer};
