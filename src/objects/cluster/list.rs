//! Lists the objects of one kind, page by page.

use std::fmt::Debug;

use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;

use super::api_guard::ApiGuard;
use super::error::ClusterError;

/// The number of objects per page of a list.
///
/// A page of the largest objects (1.5 MiB each) takes 75 MiB.
pub(super) const PAGE_SIZE: u32 = 50;

/// Lists the matching objects, page by page.
///
/// # Errors
///
/// If a page cannot be read.
pub async fn list<K: Clone + DeserializeOwned + Debug>(
    api: &Api<K>,
    guard: &ApiGuard,
    parameters: ListParams,
) -> Result<Vec<K>, ClusterError> {
    let mut parameters = parameters.limit(PAGE_SIZE);
    let mut found = Vec::new();
    loop {
        let page = guard.send("", api.list(&parameters)).await?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(found),
        }
    }
}
