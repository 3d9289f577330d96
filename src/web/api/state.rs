//! The state that the routes of the API share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::web::store::Stores;

/// The maximum number of clients that follow changes.
pub(super) const MAX_FOLLOWERS: usize = 64;

/// The state of the API. Clones share it.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) stores: Stores,
    /// The free places of clients that follow changes.
    pub(super) followers: Arc<Semaphore>,
}

impl Api {
    pub(super) fn new(stores: Stores) -> Self {
        Self { stores, followers: Arc::new(Semaphore::new(MAX_FOLLOWERS)) }
    }
}
