//! One list of the pods of an object.

use std::collections::HashSet;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};

use super::requests::Query;
use crate::objects::cluster::{ApiGuard, ClusterError};
use crate::rollout::image::is_any;
use crate::rollout::objects::Pod;
use crate::rollout::pods::{PodList, most_informative};

/// The maximum number of pods of a list; further pages are not requested.
const MAX_PODS: usize = 5_000;

/// The number of pods per page of a list.
const PAGE_SIZE: u32 = 250;

/// The excluded pods: those that have ended.
const FIELDS: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Lists the pods of an object, and returns those that tell most to each policy.
pub(super) async fn list(client: Client, guard: &ApiGuard, query: &Query) -> Result<PodList, ClusterError> {
    let api: Api<Pod> = Api::namespaced(client, &query.namespace);
    let mut parameters = ListParams::default().labels(&query.selector).fields(FIELDS).limit(PAGE_SIZE);
    let (mut kept, mut count, listed_at) = (vec![Vec::new(); query.wanted.len()], 0, Timestamp::now());
    loop {
        let page = guard.send(&query.namespace, api.list(&parameters)).await?;
        count += page.items.len();
        for (kept, wanted) in kept.iter_mut().zip(query.wanted.values()) {
            let pods = std::mem::take(kept).into_iter().chain(page.items.iter().cloned());
            *kept = most_informative(pods, |image| is_any(wanted, image), listed_at);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if count < MAX_PODS => parameters.continue_token = Some(token),
            _ => break,
        }
    }
    let mut names = HashSet::new();
    let pods = kept.into_iter().flatten().filter(|pod| names.insert(pod.metadata.name.clone())).collect();
    Ok(PodList { pods, listed_at })
}
