//! The staging that is in progress.

use std::future::pending;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use crate::host::{Host, HostError};

/// The staging of an image on the host.
pub(super) enum Staging {
    /// An earlier agent, or a failed staging, may have left one on the host.
    Unknown,
    /// There is none.
    None,
    /// An image is being staged.
    InProgress {
        /// The reference of the image.
        image: String,
        /// The work, which ends with the staging.
        work: BoxFuture<'static, Result<(), HostError>>,
    },
}

impl Staging {
    /// Begins to stage an image.
    pub(super) fn begin(host: Arc<dyn Host>, image: String) -> Self {
        let reference = image.clone();
        let work = async move { host.stage(&reference).await }.boxed();
        Self::InProgress { image, work }
    }

    /// Returns the image that is being staged.
    pub(super) fn image(&self) -> Option<&str> {
        match self {
            Self::InProgress { image, .. } => Some(image),
            Self::Unknown | Self::None => None,
        }
    }

    /// Waits for the end of the staging; it never ends if there is none.
    pub(super) async fn end(&mut self) -> Result<(), HostError> {
        match self {
            Self::InProgress { work, .. } => work.await,
            Self::Unknown | Self::None => pending().await,
        }
    }
}
