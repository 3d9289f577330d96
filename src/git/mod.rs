//! Git: names, the one builder of git processes, the ways to remote repositories, and what is kept of them.

mod access;
pub mod checkout;
mod command;
mod configuration;
mod credentials;
pub mod name;
pub mod outcome;
mod percent;
mod private;
mod proxy;
pub mod refspec;
mod scrub;
mod secret_data;
mod ssh;
mod surroundings;
mod url;

pub use access::{Access, AccessError, AccessOptions, Login};
pub use command::{Git, GitError};
pub use configuration::Configuration;
pub use credentials::{
    ClientCertificate, Credentials, CredentialsError, HttpCredentials, HttpLogin, SshCredentials,
    require_app_data,
};
pub use name::{BranchName, CommitId, RefName};
pub use private::{PrivateDirectory, PrivateError, Swept};
pub use proxy::Proxy;
pub use secret_data::SecretData;
pub use ssh::SshAlgorithms;
pub use surroundings::Surroundings;
pub use url::{LocalPaths, RemoteUrl, RemoteUrlError, Transport};
