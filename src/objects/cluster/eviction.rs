//! Evicts pods through the Eviction API, which respects disruption budgets.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction as Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::PostParams;
use kube::core::Status;
use kube::{Api, Client};

use super::api_guard::ApiGuard;
use super::error::ClusterError;

/// The time after which a refused eviction is tried again, by default.
const RETRY: Duration = Duration::from_secs(5);

/// The longest time that the API server may ask for.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// A pod to evict.
#[derive(Clone, Copy, Debug)]
pub struct EvictionTarget<'p> {
    /// The namespace.
    pub namespace: &'p str,
    /// The name.
    pub name: &'p str,
    /// The uid: a later pod of the same name is not evicted.
    pub uid: &'p str,
    /// The time to end in place of that of the pod, in seconds.
    pub grace_period: Option<u32>,
}

/// The answer to an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The pod is being deleted, or is gone.
    Accepted,
    /// A disruption budget does not allow it now.
    Blocked {
        /// The sentence of the API server, with the name and the counts of the budget.
        message: String,
        /// The time after which it can be tried again.
        retry_after: Duration,
    },
}

/// Evicts a pod.
///
/// The client must not retry by itself: a budget would hold a slot of the guard, until it times out. `Api::evict` of
/// kube 5.0 is not used, because it names the options `delete_options`, which the API server ignores.
///
/// # Errors
///
/// The API server refuses it for another reason than a budget, such as two budgets for one pod, or does not answer.
pub async fn evict(
    client: Client,
    guard: &ApiGuard,
    target: EvictionTarget<'_>,
) -> Result<Eviction, ClusterError> {
    let EvictionTarget { namespace, name, uid, grace_period } = target;
    let api: Api<Pod> = Api::namespaced(client, namespace);
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let delete = DeleteOptions {
        grace_period_seconds: grace_period.map(i64::from),
        preconditions: Some(preconditions),
        ..DeleteOptions::default()
    };
    let request = Request {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        delete_options: Some(delete),
    };
    let parameters = PostParams::default();
    let answer = api.create_subresource::<_, Status>("eviction", name, &parameters, &request);
    match guard.send(namespace, answer).await {
        Ok(_) => Ok(Eviction::Accepted),
        // A conflict is another pod of the same name: this one is gone.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(Eviction::Accepted),
        Err(ClusterError::Rejected(status)) if status.code == 429 => Ok(blocked(&status)),
        Err(error) => Err(error),
    }
}

/// Returns the answer for a status of too many requests.
///
/// It has a cause for a budget. Without one, the API server itself is overloaded.
fn blocked(status: &Status) -> Eviction {
    let details = status.details.as_ref();
    let causes = details.map(|details| &details.causes[..]).unwrap_or_default();
    let budget = causes.iter().find(|cause| cause.reason == "DisruptionBudget");
    let message = budget.map_or(&status.message, |cause| &cause.message).clone();
    let seconds = details.map_or(0, |details| details.retry_after_seconds);
    let asked = Duration::from_secs(seconds.into());
    let retry_after = if asked.is_zero() { RETRY } else { asked.min(MAX_RETRY) };
    Eviction::Blocked { message, retry_after }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(details: &Value) -> Eviction {
        let status = json!({
            "status": "Failure", "reason": "TooManyRequests", "code": 429,
            "message": "Cannot evict pod as it would violate the pod's disruption budget.", "details": details,
        });
        blocked(&serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_refusal_names_the_budget_and_the_time_of_the_retry() {
        let cause = json!({"reason": "DisruptionBudget", "message": "The disruption budget db needs 3 healthy pods and has 3 currently"});
        let message = "The disruption budget db needs 3 healthy pods and has 3 currently".to_owned();
        assert_eq!(
            answer(&json!({"causes": [cause]})),
            Eviction::Blocked { message: message.clone(), retry_after: RETRY }
        );
        for (asked, expected) in [(10, 10), (3_600, 60)] {
            let expected = Duration::from_secs(expected);
            assert_eq!(
                answer(&json!({"causes": [cause], "retryAfterSeconds": asked})),
                Eviction::Blocked { message: message.clone(), retry_after: expected }
            );
        }
    }

    #[test]
    fn a_refusal_without_a_cause_has_the_message_of_the_server() {
        let Eviction::Blocked { message, retry_after } = answer(&Value::Null) else { panic!() };
        assert!(message.starts_with("Cannot evict pod") && retry_after == RETRY);
    }
}
