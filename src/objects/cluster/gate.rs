//! The way to the API server.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::error::ClusterError;
use crate::git::StopSignal;

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many requests may be under way at once. Each has a connection of its own.
const AT_ONCE: usize = 16;

/// Lets requests through, not too many at once and none for ever, as long as we are the ones who write. Clones are one
/// and the same.
#[derive(Clone, Debug)]
pub struct Gate {
    places: Arc<Semaphore>,
    patience: Duration,
    /// Tells that another may be the one who writes.
    deposed: StopSignal,
}

impl Default for Gate {
    fn default() -> Self {
        Self::until(StopSignal::default())
    }
}

impl Gate {
    /// A way that is closed as soon as `deposed` is given.
    pub fn until(deposed: StopSignal) -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), patience: PATIENCE, deposed }
    }

    /// The same way for requests that are not to be waited for as long.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Awaits an answer of the API server.
    ///
    /// # Errors
    ///
    /// When there is none in time, it is a refusal, or the way is closed.
    pub async fn answer<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        // The semaphore is never closed, so there is a place in the end.
        let _place = self.places.acquire().await;
        if self.deposed.is_given() {
            return Err(ClusterError::Deposed);
        }
        match timeout(self.patience, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ClusterError::Silent(self.patience)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_gets_through_once_another_may_be_the_leader() {
        let permit = StopSignal::default();
        let gate = Gate::until(permit.clone());
        let brief = gate.with_patience(Duration::from_secs(1));
        assert!(matches!(gate.answer(async { Ok(1) }).await, Ok(1)));
        permit.give();
        for gate in [gate, brief] {
            let answer = gate.answer(async { panic!("nobody asks") as Result<(), kube::Error> }).await;
            assert!(matches!(answer, Err(ClusterError::Deposed)));
        }
    }
}
