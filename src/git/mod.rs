//! Git: mirrors of remote repositories, commits made without a work tree, and pushes that lose nothing.
//!
//! A [`Writer`] takes proposals for remotes. For each remote it opens a [`mirror`] and carries out one [`transaction`]
//! a branch: an [`attempt`] lists the [`remote`], finds what is checked out ([`source`]), fetches it, lets each proposer
//! look at the [`tree`], makes the [`commit`]s, with a [`signature`] where one is asked for, and makes one [`push`]. What has to be known of a remote beyond its objects stands in the
//! [`ledger`]. Objects are read and written through libgit2; everything that goes over the network is done by the git
//! program ([`command`], [`process`]), which reaches a remote by an [`access`] made of [`credentials`].

mod access;
mod attempt;
pub mod author;
mod blocking;
mod boot_time;
mod cancellation;
pub mod checkout;
mod command;
mod commit;
mod commit_error;
mod commit_time;
mod configuration;
mod context;
mod credentials;
mod diagnosis;
mod difference;
mod edited_tree;
mod error;
mod ledger;
mod listing;
mod lookup;
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
mod percent;
mod private;
mod private_file;
mod process;
mod process_memory;
mod proposal;
mod proxy;
mod push;
mod redirect;
pub mod refspec;
mod remote;
mod remote_error;
mod scrub;
mod secret_data;
mod signature;
mod slots;
mod source;
mod ssh;
mod stop;
mod surroundings;
mod transaction;
mod tree;
mod tree_entries;
mod url;
mod waits;
mod words;
mod writer;

pub use access::{Access, AccessError, AccessOptions, AccessPlan, Login, LoginOwner};
pub use author::Author;
pub use boot_time::BootTime;
pub use cancellation::Cancellation;
pub use command::{Call, Git, GitError, Printed};
pub use commit::CommitDraft;
pub use commit_error::CommitError;
pub use commit_time::CommitTime;
pub use configuration::Configuration;
pub use context::WriterContext;
pub use credentials::{
    ClientCertificate, Credentials, CredentialsError, HttpCredentials, HttpLogin, SshCredentials,
    has_known_host, require_app_data,
};
pub use diagnosis::Trouble;
pub use difference::difference;
pub use error::SyncError;
pub use listing::ListingError;
pub use lookup::{LookupError, Pin, Server, addresses};
pub use mirror_error::MirrorError;
pub use mirror_key::MirrorKey;
pub use mirror_store::MirrorStore;
pub use name::{BranchName, CommitId, RefName};
pub use object::{ObjectError, ObjectTooLarge};
pub use options::WriterOptions;
pub use private::{PrivateDirectory, PrivateError, Swept};
pub use private_file::{PrivateFile, PrivateFiles};
pub use proposal::{Answer, Failure, Freshness, Known, Proposal, Proposer};
pub use proxy::Proxy;
pub use redirect::Redirect;
pub use remote::{Remote, RemotePlan};
pub use remote_error::{Doing, RemoteError};
pub use scrub::Scrubber;
pub use secret_data::{SecretData, data_size};
pub use signature::{
    Fault, FaultyPart, Keyring, OpenPgpFlaw, SigningError, SigningKey, SigningKeyError, SigningKeyKind,
    SshFlaw, Unusable, unlock_signing_key,
};
pub use slots::{RouteKey, TransactionSlots};
pub use ssh::SshAlgorithms;
pub use stop::StopSignal;
pub use surroundings::Surroundings;
pub use tree::GitTree;
pub use tree_entries::{MalformedTree, TreeEntries, TreeEntry, TreeEntryKind, encode_entry};
pub use url::{LocalPaths, RemoteUrl, RemoteUrlError, Transport, redact};
pub use words::Words;
pub use writer::{Request, Writer};
