//! The way to the API server.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::error::ClusterError;

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many requests may be under way at once. Each has a connection of its own.
const AT_ONCE: usize = 16;

/// Lets requests through, not too many at once and none for ever. Clones are one and the same.
#[derive(Clone, Debug)]
pub struct Gate {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Default for Gate {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), patience: PATIENCE }
    }
}

impl Gate {
    /// The same way for requests that are not to be waited for as long.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { places: self.places.clone(), patience }
    }

    /// Awaits an answer of the API server.
    ///
    /// # Errors
    ///
    /// When there is none in time, or it is a refusal.
    pub async fn answer<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        // The semaphore is never closed, so there is a place in the end.
        let _place = self.places.acquire().await;
        match timeout(self.patience, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ClusterError::Silent(self.patience)),
        }
    }
}
