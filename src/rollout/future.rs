//! Times of a stored status that are in the future.
//!
//! Another client has written them, or the clock was ahead then. They would stay until the state changes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::DeploymentStatusStatus;

use super::bounds::whole_seconds;

/// Returns a status whose times after `now` are replaced by it.
#[must_use]
pub fn without_future(status: &DeploymentStatusStatus, now: Timestamp) -> DeploymentStatusStatus {
    let mut status = status.clone();
    let now = whole_seconds(now);
    let report = &mut status.report;
    let components = report.components.iter_mut().flat_map(|component| {
        let optional = [&mut component.last_deployed, &mut component.complete_since];
        optional.into_iter().flatten().chain([&mut component.since])
    });
    let times = [&mut status.time_stamp, &mut report.since].into_iter();
    let times = times.chain(report.commit.iter_mut().map(|commit| &mut commit.time));
    let times = times.chain(report.deploy_history.iter_mut().map(|entry| &mut entry.last_deployed));
    let conditions = report.conditions.iter_mut().map(|condition| &mut condition.last_transition_time);
    let replace = |time: &mut Time| {
        if *time > now {
            time.clone_from(&now);
        }
    };
    times.chain(conditions).chain(components).for_each(replace);
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_time_in_the_future_is_replaced_by_now() {
        let status = |future: &str| -> DeploymentStatusStatus {
            let past = "2026-01-01T00:00:00Z";
            let component = |name: &str, time: &str| json!({"name": name, "state": "failed", "since": time, "lastDeployed": time, "completeSince": time});
            let condition = |type_: &str, time: &str| json!({"type": type_, "status": "True", "reason": "A", "message": "", "lastTransitionTime": time});
            let entry =
                |digest: &str, time: &str| json!({"digest": digest, "objectCount": 1, "lastDeployed": time});
            serde_json::from_value(json!({
                "deploymentId": "1", "timeStamp": future, "state": "failed", "progress": "", "since": future,
                "summary": {}, "commit": {"id": "1", "branch": "main", "time": future, "automation": "fleet"},
                "components": [component("a", future), component("b", past)],
                "conditions": [condition("Stalled", future), condition("Other", past)],
                "deployHistory": [entry("1", future), entry("2", past)],
            }))
            .unwrap()
        };
        let found =
            without_future(&status("2026-01-03T00:00:00Z"), "2026-01-02T00:00:00.5Z".parse().unwrap());
        assert_eq!(found, status("2026-01-02T00:00:00Z"));
    }
}
