use serde_json::{Value, json};

use super::*;
use crate::rollout::place::Written;
use crate::update::{Field, ObjectIdentifier};

const OLD: &str = "1.0.0";
const NEW: &str = "1.1.0";

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: "apps".into(), name: name.into() }
}

/// A condition; the fields are type, status, reason and message.
type ConditionRow<'a> = (&'a str, &'a str, &'a str, &'a str);

fn conditions(rows: &[ConditionRow<'_>]) -> Value {
    let condition = |(type_, status, reason, message): &ConditionRow<'_>| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    rows.iter().map(condition).collect()
}

fn policy(tag: Option<&str>, rows: &[ConditionRow<'_>]) -> ImagePolicy {
    let latest = tag.map(|tag| json!({"name": "ghcr.io/org/app", "tag": tag}));
    serde_json::from_value(json!({
        "metadata": {"namespace": "apps", "name": "app"},
        "spec": {"imageRepositoryRef": {"name": "app"}, "policy": {}},
        "status": {"latestRef": latest, "conditions": conditions(rows)},
    }))
    .unwrap()
}

fn automation(object: &str, suspend: bool, rows: &[ConditionRow<'_>]) -> ImageUpdateAutomation {
    serde_json::from_value(json!({
        "metadata": {"namespace": "apps", "name": object},
        "spec": {
            "interval": "1m",
            "suspend": suspend,
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
        },
        "status": {"conditions": conditions(rows)},
    }))
    .unwrap()
}

/// A place with its value, and that on the push branch.
fn place(value: &str, proposed: Option<&str>) -> Place {
    Place {
        policy: name("app"),
        document: ObjectIdentifier::default(),
        file: "app.yaml".into(),
        line: 3,
        field: Field::Tag,
        pointer: None,
        value: value.into(),
        proposed: proposed.map(str::to_owned),
        written: None,
    }
}

fn scan(object: &str, places: Vec<Place>) -> ScannedPlaces {
    ScannedPlaces {
        automation: name(object),
        source: name("fleet"),
        repository: "https://git.example/fleet".into(),
        revision: format!("main@sha1:{object}"),
        checkout: Some("main".into()),
        push: "auto".into(),
        places,
        omitted: 0,
        removed_files: Vec::new(),
    }
}

fn commit(id: &str, time: &str) -> CommitRef {
    let time = serde_json::from_value(json!(time)).unwrap();
    CommitRef { id: id.into(), branch: "auto".into(), time, automation: "fleet".into() }
}

fn written(place: Place, id: &str, time: &str) -> Place {
    Place { written: Some(Written { former: OLD.into(), commit: commit(id, time) }), ..place }
}

fn previous(tag: &str, commit: Option<CommitRef>) -> DeploymentStatusStatus {
    let report = json!({
        "deploymentId": "id", "timeStamp": "2026-01-01T12:00:00Z", "state": "pending",
        "since": "2026-01-01T00:00:00Z", "summary": {}, "progress": "0/0", "revision": "main@sha1:previous",
        "target": {"name": "ghcr.io/org/app", "tag": tag},
    });
    let status: DeploymentStatusStatus = serde_json::from_value(report).unwrap();
    DeploymentStatusStatus { report: Report { commit, ..status.report }, ..status }
}

/// The same status with a component whose image is not committed.
fn lacking(mut status: DeploymentStatusStatus) -> DeploymentStatusStatus {
    let mut component = ComponentStatus::new("Job/a/b", State::Pending, status.time_stamp.clone());
    component.reason = Some(BlockReason::NotCommitted);
    status.report.components.push(component);
    status
}

#[test]
fn every_failure_of_an_automation_has_a_code() {
    use DeploymentErrorCode::{GitCheckoutFailed, GitPushRejected, TemplateInvalid, UpdateFailed};
    for (type_, status, reason, text, expected) in [
        ("Ready", "True", "Succeeded", "repository up-to-date", None),
        ("Ready", "Unknown", "Progressing", "reconciliation in progress", None),
        (
            "Ready",
            "False",
            "GitOperationFailed",
            "failed to checkout source: unable to clone",
            Some(GitCheckoutFailed),
        ),
        (
            "Ready",
            "False",
            "SourceManagerFailed",
            "failed configuring source manager",
            Some(GitCheckoutFailed),
        ),
        ("Stalled", "True", "AccessDenied", "can't access 'GitRepository/a/b'", Some(GitCheckoutFailed)),
        ("Stalled", "True", "FeatureGateDisabled", "to use", Some(GitCheckoutFailed)),
        ("Stalled", "True", "InvalidSourceConfiguration", "source kind", Some(GitCheckoutFailed)),
        (
            "Ready",
            "False",
            "GitOperationFailed",
            "failed to update source: failed to push to remote 'https://git.example/fleet': refused",
            Some(GitPushRejected),
        ),
        (
            "Ready",
            "False",
            "GitOperationFailed",
            "failed to update source: unable to create commit message template from spec: template: x",
            Some(TemplateInvalid),
        ),
        (
            "Ready",
            "False",
            "GitOperationFailed",
            "failed to update source: failed to run template from spec: template: x",
            Some(TemplateInvalid),
        ),
        ("Stalled", "True", "RemovedTemplateField", "template uses .Updated", Some(TemplateInvalid)),
        ("Ready", "False", "UpdateFailed", "failed to apply policies: walking path", Some(UpdateFailed)),
        ("Stalled", "True", "InvalidUpdateStrategy", "unsupported update strategy: x", Some(UpdateFailed)),
        ("Stalled", "True", "InvalidPolicySelector", "failed to parse policy selector", Some(UpdateFailed)),
        ("Ready", "False", "Failed", "failed to list policies: x", Some(UpdateFailed)),
        ("Stalled", "True", "InvalidSettings", "tagboat.dev/x", Some(UpdateFailed)),
    ] {
        let (policy, fleet) =
            (policy(Some(NEW), &[]), automation("fleet", false, &[(type_, status, reason, text)]));
        let scan = scan("fleet", vec![place(OLD, None)]);
        let automations = [AutomationView { automation: &fleet, scan: Some(&scan) }];
        let found = BeforeRollout { policy: &policy, automations: &automations, previous: None }.error();
        assert_eq!(found.as_ref().map(|error| error.code), expected, "{reason} {text}");
        if let Some(error) = found {
            assert_eq!((&*error.source, &*error.message), ("ImageUpdateAutomation/apps/fleet", text));
        }
    }
}

#[test]
fn a_stalled_automation_is_reported_with_the_message_of_stalled() {
    let rows = [
        ("Stalled", "True", "InvalidUpdateStrategy", "unsupported update strategy: x"),
        ("Ready", "False", "GitOperationFailed", "failed to checkout source: old"),
    ];
    let (policy, fleet) = (policy(Some(NEW), &[]), automation("fleet", false, &rows));
    let automations = [AutomationView { automation: &fleet, scan: None }];
    let error = BeforeRollout { policy: &policy, automations: &automations, previous: None }.error().unwrap();
    assert_eq!((error.code, &*error.message), (DeploymentErrorCode::UpdateFailed, rows[0].3));
}

#[test]
fn only_failures_that_delay_the_commit_are_errors() {
    use DeploymentErrorCode::{GitCheckoutFailed, PolicyNotReady};
    let failed = [("Ready", "False", "GitOperationFailed", "failed to checkout source: x")];
    let not_ready = [("Ready", "False", "DependencyNotReady", "the repository was not scanned")];
    let open = scan("fleet", vec![place(NEW, None), place(OLD, None)]);
    let done = scan("fleet", vec![place(NEW, None), place(OLD, Some(NEW))]);
    let nothing = scan("fleet", Vec::new());
    for (row, tag, policy_rows, suspend, scan, expected) in [
        ("open", Some(NEW), &[][..], false, Some(&open), Some(GitCheckoutFailed)),
        ("unknown", Some(NEW), &[], false, None, Some(GitCheckoutFailed)),
        ("committed", Some(NEW), &[], false, Some(&done), None),
        ("no marker", Some(NEW), &[], false, Some(&nothing), None),
        ("suspended", Some(NEW), &[], true, Some(&open), None),
        ("policy fails, open", Some(NEW), &not_ready, false, Some(&open), Some(PolicyNotReady)),
        ("policy fails, committed", Some(NEW), &not_ready, false, Some(&done), None),
        ("policy without image", None, &not_ready, false, Some(&done), Some(PolicyNotReady)),
        ("policy without image, suspended", None, &not_ready, true, Some(&done), Some(PolicyNotReady)),
    ] {
        let (policy, fleet) = (policy(tag, policy_rows), automation("fleet", suspend, &failed));
        let automations = [AutomationView { automation: &fleet, scan }];
        let error = BeforeRollout { policy: &policy, automations: &automations, previous: None }.error();
        assert_eq!(error.map(|error| error.code), expected, "{row}");
    }
    let policy = policy(None, &not_ready);
    let error = BeforeRollout { policy: &policy, automations: &[], previous: None }.error().unwrap();
    assert_eq!((&*error.source, &*error.message), ("ImagePolicy/apps/app", not_ready[0].3));
}

#[test]
fn every_place_without_the_image_has_a_reason() {
    use BlockReason::{AwaitingMerge, NotChosen, NotCommitted};
    let failed = [("Ready", "False", "UpdateFailed", "failed to apply policies: x")];
    for (tag, suspend, rows, place, expected) in [
        (
            None,
            false,
            &[][..],
            place(OLD, None),
            Some((NotChosen, "ImagePolicy apps/app has selected no image")),
        ),
        (
            Some("no tag"),
            false,
            &[],
            place(OLD, None),
            Some((
                NotChosen,
                "ImagePolicy apps/app has selected ghcr.io/org/app:no tag, which is not a valid image",
            )),
        ),
        (Some(NEW), false, &[], place(NEW, None), None),
        (Some(NEW), true, &failed, place(NEW, None), None),
        // Another value on the push branch does not matter.
        (Some(NEW), false, &[], place(NEW, Some(OLD)), None),
        (
            Some(NEW),
            false,
            &[],
            place(OLD, None),
            Some((NotCommitted, "ImageUpdateAutomation apps/fleet has not committed the image yet")),
        ),
        (
            Some(NEW),
            false,
            &failed,
            place(OLD, Some("1.0.5")),
            Some((NotCommitted, "ImageUpdateAutomation apps/fleet: failed to apply policies: x")),
        ),
        (
            Some(NEW),
            true,
            &failed,
            place(OLD, None),
            Some((NotCommitted, "ImageUpdateAutomation apps/fleet is suspended")),
        ),
        (
            Some(NEW),
            false,
            &failed,
            place(OLD, Some(NEW)),
            Some((AwaitingMerge, "a commit on branch auto is not merged into branch main")),
        ),
        (
            Some(NEW),
            false,
            &[],
            written(place(OLD, Some(NEW)), "0123456789abcdef", "2026-01-01T00:00:00Z"),
            Some((AwaitingMerge, "commit 0123456 on branch auto is not merged into branch main")),
        ),
    ] {
        let (policy, fleet) = (policy(tag, &[]), automation("fleet", suspend, rows));
        let scan = scan("fleet", vec![place.clone()]);
        let automations = [AutomationView { automation: &fleet, scan: Some(&scan) }];
        let before = BeforeRollout { policy: &policy, automations: &automations, previous: None };
        let found = before.block(&name("fleet"), &place);
        let expected = expected.map(|(reason, message)| Block { reason, message: message.to_owned() });
        assert_eq!(found, expected, "{tag:?} {suspend} {place:?}");
    }
}

#[test]
fn the_wanted_value_is_the_part_that_the_marker_writes() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let mut policy = policy(Some(NEW), &[]);
    policy.status.as_mut().unwrap().latest_ref.as_mut().unwrap().digest = Some(digest.clone());
    let fleet = automation("fleet", false, &[]);
    let automations = [AutomationView { automation: &fleet, scan: None }];
    let before = BeforeRollout { policy: &policy, automations: &automations, previous: None };
    for (field, value) in [
        (Field::Reference, format!("ghcr.io/org/app:{NEW}@{digest}")),
        (Field::Tag, NEW.to_owned()),
        (Field::Digest, digest.clone()),
        (Field::TagAndDigest, format!("{NEW}@{digest}")),
    ] {
        let with = Place { field, ..place(&value, None) };
        assert_eq!(before.block(&name("fleet"), &with), None, "{field:?}");
        let without = Place { field, ..place("x", None) };
        assert!(before.block(&name("fleet"), &without).is_some(), "{field:?}");
    }
}

/// The code is read from the beginning of a message.
#[test]
fn the_messages_of_templates_begin_as_expected() {
    use crate::message::{TemplateError, TemplateErrorKind};
    let kind = || TemplateErrorKind::Handlebars { location: None, cause: String::new() };
    let errors = [TemplateError::Invalid(kind()), TemplateError::Render(kind())];
    assert_eq!(errors.map(|error| error.to_string()), TEMPLATE_ERRORS);
}

#[test]
fn the_commit_is_that_which_wrote_the_target_or_is_known_from_before() {
    let (early, late) = ("2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z");
    let earlier = commit("previous", early);
    for (row, places, push, previous, expected) in [
        ("nothing", vec![place(NEW, None)], None, None, None),
        (
            "the newest of two",
            vec![written(place(NEW, None), "a", late), written(place(NEW, None), "b", early)],
            None,
            None,
            Some("a"),
        ),
        ("on the push branch", vec![written(place(OLD, Some(NEW)), "a", late)], None, None, Some("a")),
        ("of another value", vec![written(place(OLD, None), "a", late)], None, None, None),
        (
            "written before known",
            vec![written(place(NEW, None), "a", late)],
            None,
            Some(previous(NEW, Some(earlier.clone()))),
            Some("a"),
        ),
        (
            "after a restart",
            vec![place(NEW, None)],
            Some(late),
            Some(previous(NEW, Some(earlier.clone()))),
            Some("previous"),
        ),
        (
            "another target",
            vec![place(NEW, None)],
            Some(early),
            Some(previous(OLD, Some(earlier.clone()))),
            None,
        ),
        (
            "a push since the previous status",
            vec![place(NEW, None)],
            Some(late),
            Some(previous(OLD, Some(earlier.clone()))),
            Some("last-push"),
        ),
        (
            "a push since the file lacked the target",
            vec![place(NEW, None)],
            Some(early),
            Some(lacking(previous(NEW, None))),
            Some("last-push"),
        ),
        (
            "a push before the file lacked the target",
            vec![place(NEW, None)],
            Some("2025-12-31T23:59:59Z"),
            Some(lacking(previous(NEW, None))),
            None,
        ),
        // Formerly, the target that a person had committed got the next commit of another image.
        ("a push of another image", vec![place(NEW, None)], Some(late), Some(previous(NEW, None)), None),
        ("a push of something else", vec![place(OLD, None)], Some(late), Some(previous(OLD, None)), None),
        ("without a previous status", vec![place(NEW, None)], Some(late), None, None),
    ] {
        let (policy, mut fleet) = (policy(Some(NEW), &[]), automation("fleet", false, &[]));
        if let Some(time) = push {
            let status = fleet.status.as_mut().unwrap();
            status.last_push_commit = Some("last-push".into());
            status.last_push_time = serde_json::from_value(json!(time)).unwrap();
        }
        let scan = scan("fleet", places);
        let automations = [AutomationView { automation: &fleet, scan: Some(&scan) }];
        let before =
            BeforeRollout { policy: &policy, automations: &automations, previous: previous.as_ref() };
        let found = before.commit();
        assert_eq!(found.as_ref().map(|commit| &*commit.id), expected, "{row}");
        assert!(found.is_none_or(|commit| commit.automation == "fleet" && commit.branch == "auto"), "{row}");
    }
}

/// Formerly, the commit was lost if the process was killed after its report.
#[test]
fn before_the_first_scan_the_last_run_tells_if_the_target_is_committed() {
    let policy = policy(Some(NEW), &[]);
    for (observed, expected) in [(NEW, Some(("last-push", "main"))), (OLD, None)] {
        let mut fleet = automation("fleet", false, &[]);
        let status = fleet.status.as_mut().unwrap();
        status.last_push_commit = Some("last-push".into());
        status.last_push_time = serde_json::from_value(json!("2026-01-01T13:00:00Z")).unwrap();
        status.observed_source_revision = Some("main@sha1:0".into());
        let image = serde_json::from_value(json!({"name": "ghcr.io/org/app", "tag": observed})).unwrap();
        status.observed_policies.insert("app".into(), image);
        let automations = [AutomationView { automation: &fleet, scan: None }];
        let previous = previous(OLD, Some(commit("previous", "2026-01-01T11:00:00Z")));
        let before = BeforeRollout { policy: &policy, automations: &automations, previous: Some(&previous) };
        let found = before.commit();
        let found = found.as_ref().map(|commit| (&*commit.id, &*commit.branch));
        assert_eq!(found, expected, "{observed}");
    }
}

#[test]
fn the_revision_is_that_of_the_newest_scan_with_places() {
    let policy = policy(Some(NEW), &[]);
    let with_run = |object: &str, time: &str| {
        let mut automation = automation(object, false, &[]);
        automation.status.as_mut().unwrap().last_automation_run_time =
            serde_json::from_value(json!(time)).unwrap();
        automation
    };
    let (a, b) = (with_run("a", "2026-01-01T02:00:00Z"), with_run("b", "2026-01-01T01:00:00Z"));
    let (scan_a, scan_b, empty) =
        (scan("a", vec![place(OLD, None)]), scan("b", vec![place(OLD, None)]), scan("a", Vec::new()));
    let previous = previous(OLD, None);
    let known = "main@sha1:previous";
    for (of_a, of_b, previous, expected) in [
        (Some(&scan_a), Some(&scan_b), None, Some("main@sha1:a")),
        (Some(&empty), Some(&scan_b), Some(&previous), Some("main@sha1:b")),
        (None, Some(&scan_b), Some(&previous), Some("main@sha1:b")),
        (None, None, Some(&previous), Some(known)),
        (None, None, None, None),
    ] {
        let automations =
            [AutomationView { automation: &a, scan: of_a }, AutomationView { automation: &b, scan: of_b }];
        let before = BeforeRollout { policy: &policy, automations: &automations, previous };
        assert_eq!(before.revision().as_deref(), expected);
    }
}
