use serde_json::{Value, json};

use super::*;
use crate::rollout::outage::Outage;

/// Returns a status with components, and with further members.
fn status(components: &Value, members: &Value) -> DeploymentStatusStatus {
    let mut status = json!({
        "deploymentId": "1",
        "timeStamp": "2026-01-03T00:00:00Z",
        "state": "pending",
        "since": "2026-01-02T00:00:00Z",
        "target": {"name": "ghcr.io/a/b", "tag": "2"},
        "summary": {"total": 2, "pending": 1},
        "progress": "1/2",
        "components": components,
    });
    status.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    serde_json::from_value(status).unwrap()
}

fn component(state: &str, members: &Value) -> Value {
    let mut component = json!({"name": "Job/a/b", "state": state, "since": "2026-01-01T00:00:00Z"});
    component.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    component
}

fn progress(status: &DeploymentStatusStatus) -> [StepProgress; 4] {
    steps(status).map(|step| step.progress)
}

/// Returns the times of steps as texts, such as `by 2026-01-01`.
fn times(status: &DeploymentStatusStatus) -> [String; 4] {
    times_of(&steps(status))
}

fn times_of(steps: &[Step; 4]) -> [String; 4] {
    let day = |time: &Time| time.0.strftime("%F").to_string();
    steps.each_ref().map(|step| match &step.time {
        None => String::new(),
        Some(StepTime::At(time)) => format!("at {}", day(time)),
        Some(StepTime::By(time)) => format!("by {}", day(time)),
        Some(StepTime::Since(time)) => format!("since {}", day(time)),
    })
}

#[test]
fn the_earliest_step_of_any_component_is_the_current_one() {
    use StepProgress::{Blocked, Done, Failed, InProgress, Waiting};
    let none = json!({});
    let reason = |reason: &str| component("pending", &json!({"reason": reason}));
    let failed = |source: &str| {
        let error = json!({"code": "A", "source": source, "message": "m"});
        component("failed", &json!({"applier": "Kustomization/a/b", "error": error}))
    };
    for (components, expected) in [
        (json!([]), [Done, Done, InProgress, Waiting]),
        (json!([reason("NotChosen")]), [Blocked, Waiting, Waiting, Waiting]),
        (json!([reason("NotCommitted")]), [Done, Blocked, Waiting, Waiting]),
        (json!([reason("AwaitingMerge")]), [Done, Blocked, Waiting, Waiting]),
        (json!([reason("NotApplied")]), [Done, Done, Blocked, Waiting]),
        (json!([reason("NotFound")]), [Done, Done, Blocked, Waiting]),
        (json!([component("pending", &none)]), [Done, Done, InProgress, Waiting]),
        (json!([component("installing", &none)]), [Done, Done, Done, InProgress]),
        (json!([component("removing", &none)]), [Done, Done, Done, InProgress]),
        (json!([failed("Job/a/b")]), [Done, Done, Done, Failed]),
        (json!([failed("Kustomization/a/b")]), [Done, Done, Failed, Waiting]),
        (json!([failed("Job/a/b"), reason("NotApplied")]), [Done, Done, Blocked, Failed]),
        (json!([component("installed", &none), reason("NotFound")]), [Done, Done, Blocked, Waiting]),
        (
            json!([component("installing", &none), reason("NotCommitted"), reason("NotFound")]),
            [Done, Blocked, Blocked, InProgress],
        ),
    ] {
        assert_eq!(progress(&status(&components, &none)), expected, "{components}");
    }
    let installed = status(&json!([component("installed", &none)]), &json!({"state": "installed"}));
    assert_eq!(progress(&installed), [Done; 4]);
    let unchosen = status(&json!([]), &json!({"target": null}));
    assert_eq!(progress(&unchosen), [Blocked, Waiting, Waiting, Waiting]);
    assert_eq!(steps(&unchosen)[0].detail, "The policy has selected no image.");
}

#[test]
fn an_error_before_the_rollout_fails_its_step() {
    use StepProgress::{Done, Failed, Waiting};
    for (code, expected) in [
        ("PolicyNotReady", [Failed, Waiting, Waiting, Waiting]),
        ("GitCheckoutFailed", [Done, Failed, Waiting, Waiting]),
        ("TemplateInvalid", [Done, Failed, Waiting, Waiting]),
        ("UpdateFailed", [Done, Failed, Waiting, Waiting]),
        ("GitPushRejected", [Done, Failed, Waiting, Waiting]),
        ("HostUnavailable", [Done, Done, Failed, Waiting]),
    ] {
        let error = json!({"error": {"code": code, "source": "s", "message": "denied"}, "state": "failed"});
        let status = status(&json!([]), &error);
        assert_eq!(progress(&status), expected, "{code}");
        let failed = steps(&status).into_iter().find(|step| step.progress == Failed).unwrap();
        assert_eq!(failed.detail, format!("{code}: denied"));
        assert!(failed.time.is_some());
    }
}

#[test]
fn a_step_shows_the_cause_and_the_time_of_the_component_that_is_at_it() {
    // The deployment has the message of the failed component, which is the worst.
    let members =
        json!({"state": "failed", "message": "Job/apps/a: exit code 1", "since": "2026-01-04T00:00:00Z"});
    let error = json!({"code": "CrashLoopBackOff", "source": "Job/apps/a", "message": "exit code 1"});
    let failed =
        json!({"name": "Job/apps/a", "state": "failed", "since": "2026-01-04T00:00:00Z", "error": error});
    let suspended = json!({
        "name": "Deployment/apps/b", "state": "pending", "since": "2026-01-01T00:00:00Z",
        "reason": "NotApplied", "message": "Kustomization/apps/b is suspended",
    });
    let status = status(&json!([failed, suspended]), &members);
    let [.., applied, running] = steps(&status);
    let advice = "The applier is at another revision, is suspended, or does not synchronize automatically.";
    assert_eq!(
        (applied.progress, applied.detail),
        (StepProgress::Blocked, format!("{advice} (Deployment/apps/b: Kustomization/apps/b is suspended)"))
    );
    assert_eq!(
        (running.progress, &*running.detail),
        (StepProgress::Failed, "Job/apps/a: CrashLoopBackOff: exit code 1")
    );
    assert_eq!(times(&status)[2..], ["since 2026-01-01", "since 2026-01-04"]);
}

#[test]
fn every_step_that_does_not_wait_has_a_time() {
    let commit = json!({"commit": {
        "id": "0123456789", "branch": "main", "time": "2025-12-30T00:00:00Z", "automation": "fleet",
    }});
    let user = json!({});
    let installed = json!({"state": "installed"});
    let both = json!({"state": "installed", "commit": commit["commit"]});
    let blocked = json!([component("pending", &json!({"reason": "NotApplied"}))]);
    let installing = json!([component("installing", &json!({}))]);
    let since = |day: &str| json!({"since": format!("2026-01-{day}T00:00:00Z")});
    let late = json!({"since": "2026-01-09T00:00:00Z", "lastDeployed": "2025-12-31T00:00:00Z"});
    let two = json!([component("installed", &since("02")), component("installed", &late)]);
    let none = "";
    for (components, members, expected) in [
        // The last change of the status is the only time after the commit of a user.
        (&blocked, &user, ["by 2026-01-03", "by 2026-01-03", "since 2026-01-01", none]),
        (&blocked, &commit, ["by 2025-12-30", "at 2025-12-30", "since 2026-01-01", none]),
        (&installing, &user, ["by 2026-01-01", "by 2026-01-01", "by 2026-01-01", "since 2026-01-01"]),
        (&two, &installed, ["by 2026-01-02", "by 2026-01-02", "by 2026-01-02", "since 2026-01-02"]),
        (&two, &both, ["by 2025-12-30", "at 2025-12-30", "by 2026-01-02", "since 2026-01-02"]),
    ] {
        assert_eq!(times(&status(components, members)), expected, "{components} {members}");
    }
}

#[test]
fn steps_that_are_done_have_their_result() {
    let members = json!({
        "commit": {"id": "0123456789", "branch": "main", "time": "2026-01-01T01:00:00Z", "automation": "fleet"},
    });
    let blocked = json!([component("pending", &json!({"reason": "NotApplied"}))]);
    let [chosen, committed, applied, _] = steps(&status(&blocked, &members));
    assert_eq!(chosen.detail, "ghcr.io/a/b:2");
    assert_eq!(committed.detail, "0123456 on main by fleet");
    assert!(applied.detail.ends_with("automatically. (Job/a/b)"), "{}", applied.detail);
    let installing = json!([component("installing", &json!({"appliedRevision": "main@sha1:0"}))]);
    let [_, committed, applied, running] = steps(&status(&installing, &json!({"revision": "main@sha1:1"})));
    assert_eq!((&*committed.detail, &*applied.detail), ("main@sha1:1", "main@sha1:0"));
    assert_eq!(running.detail, "1/2 pods are ready");
}

/// A step was done, and its text said that no object had the image.
#[test]
fn during_an_outage_nothing_is_said_about_what_is_applied() {
    use StepProgress::{Blocked, Done, Failed, Waiting};
    let revision = json!({"appliedRevision": "main@sha1:0"});
    for (component, expected) in [
        (component("installed", &revision), [Done, Done, Failed, Waiting]),
        (component("installing", &revision), [Done, Done, Failed, Waiting]),
        (component("pending", &json!({"reason": "NotApplied"})), [Done, Done, Failed, Waiting]),
        // What was not in git does not depend on the objects.
        (component("pending", &json!({"reason": "NotCommitted"})), [Done, Blocked, Failed, Waiting]),
        (component("pending", &json!({"reason": "NotChosen"})), [Blocked, Waiting, Failed, Waiting]),
    ] {
        let object: tagboat_api::DeploymentStatus = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"policyRef": {"name": "web"}},
            "status": status(&json!([component]), &json!({})),
        }))
        .unwrap();
        let since = "2026-01-05T00:00:00Z".parse().unwrap();
        let shown = Outage { cluster: "own".to_owned(), since }.applied_to(&object).status.unwrap();
        assert_eq!(progress(&shown), expected, "{component}");
        let [.., applied, running] = steps(&shown);
        let cause = "HostUnavailable: the cluster has not answered since 2026-01-05T00:00:00Z";
        assert_eq!((&*applied.detail, &*running.detail), (cause, ""));
        assert_eq!(times(&shown)[2..], ["since 2026-01-05", ""]);
    }
}

/// Formerly, it was done by the beginning of the outage.
#[test]
fn during_an_outage_a_step_that_is_done_keeps_its_time() {
    let blocked = |reason: &str| component("pending", &json!({"reason": reason}));
    for (component, expected) in [
        (component("installed", &json!({})), ["by 2026-01-01", "by 2026-01-01"]),
        (blocked("NotApplied"), ["by 2026-01-03", "by 2026-01-03"]),
        (blocked("NotCommitted"), ["by 2026-01-03", "since 2026-01-01"]),
    ] {
        let state = json!({"state": component["state"]});
        let stored = status(&json!([component]), &state);
        let object: tagboat_api::DeploymentStatus = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"policyRef": {"name": "web"}}, "status": stored,
        }))
        .unwrap();
        let since = "2026-01-05T00:00:00Z".parse().unwrap();
        let shown = Outage { cluster: "own".to_owned(), since }.applied_to(&object).status.unwrap();
        let found = shown_steps(&stored, &shown);
        assert_eq!(times_of(&found)[..2], expected, "{component}");
        assert_eq!(times_of(&found)[2..], times(&shown)[2..]);
        assert_eq!(shown_steps(&stored, &stored), steps(&stored));
    }
}
