//! The errors of finding the access to a registry.

use tagboat_api::duration::DurationError;

use crate::cloud::IdentityError;
use crate::objects::ObjectsError;
use crate::reference::AddressError;
use crate::registry::{DockerConfigError, TlsError};
use crate::secrets::SecretDataError;

/// The error of an ImageRepository whose registry cannot be accessed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The image is not a valid address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The time that a scan may take cannot be read.
    #[error(transparent)]
    Timeout(#[from] DurationError),
    /// The secret does not exist.
    #[error("{0}")]
    NoSecret(String),
    /// The secrets cannot be read.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The proxy's secret cannot be used.
    #[error(transparent)]
    Proxy(#[from] SecretDataError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A login cannot be used.
    #[error("secret '{secret}' cannot be used")]
    Login {
        /// The secret.
        secret: String,
        /// The cause.
        #[source]
        cause: DockerConfigError,
    },
    /// A secret that a service account names is not there.
    #[error("failed to get image pull secret for serviceaccount '{account}'")]
    PullSecret {
        /// Namespace and name of the service account.
        account: String,
        /// The missing object.
        #[source]
        cause: Box<ObjectsError>,
    },
    /// No cluster can issue the token for a cloud login as a service account.
    #[error(
        "spec.serviceAccountName with spec.provider needs a token that only a cluster issues, so only the controller \
         supports it: log in as yourself with --registry-login user"
    )]
    Identity,
    /// The service account that must log in at the cloud cannot do so.
    #[error(transparent)]
    Account(#[from] IdentityError),
    /// The object's proxy could read the login: the object's authority would make its certificate valid.
    #[error(
        "spec.proxySecretRef and a 'ca.crt' of spec.certSecretRef would let the proxy read the controller's cloud \
         credentials: use only one of the two with spec.provider"
    )]
    Listener,
    /// The cloud is unknown, in Flux's words.
    #[error("provider '{provider}' not implemented")]
    Provider {
        /// The cloud.
        provider: String,
    },
}

impl AccessError {
    /// Returns whether Flux reports this as an error of the scan.
    ///
    /// The reason is that Flux reads the account only when the registry asks for a login.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Account(_))
    }
}
