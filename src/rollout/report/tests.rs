//! Tests of the status of a deployment, over several observations.

use tagboat_api::deployment_status::{MAX_HISTORY, StatusError};

use super::*;
use crate::rollout::aggregate::DeploymentErrorCode;

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn target(tag: &str) -> Target {
    Target { name: "ghcr.io/org/app".to_owned(), tag: tag.to_owned(), digest: None }
}

/// Returns a component: name, image, state, beginning of the state.
fn component(name: &str, image: &str, state: State, since: i64) -> Component {
    let status = ComponentStatus {
        image: Some(image.to_owned()),
        ..ComponentStatus::new(name, state, time(since).into())
    };
    Component { status, has_wanted_image: state != State::Pending }
}

fn observation(tag: &str, components: Vec<Component>) -> Observation {
    Observation {
        deployment_id: "3a5549f2".to_owned(),
        target: Some(target(tag)),
        commit: None,
        revision: None,
        error: None,
        components,
    }
}

/// Reports observations one after the other, each at its time in seconds.
fn reports(observations: Vec<(i64, Observation)>) -> Vec<DeploymentStatusStatus> {
    let mut reports: Vec<DeploymentStatusStatus> = Vec::new();
    for (now, observation) in observations {
        let next = status(observation, reports.last(), time(now));
        // As it is read back from the API server.
        let json = serde_json::to_value(&next).unwrap();
        assert_eq!(serde_json::from_value::<DeploymentStatusStatus>(json).unwrap(), next);
        reports.push(next);
    }
    reports
}

fn seconds(time: &Time) -> i64 {
    time.0.as_second()
}

#[test]
fn each_transition_of_a_rollout_sets_the_time_stamp_once() {
    use State::{Installed, Installing, Pending};
    let at = |state: State, since: i64, other: State, other_since: i64| {
        let image = |state: State| if state == Pending { "app:1" } else { "app:2" };
        observation(
            "2",
            vec![
                component("Deployment/a/a", image(state), state, since),
                component("Deployment/a/b", image(other), other, other_since),
            ],
        )
    };
    // Time of the observation, states, expected: aggregate state, time stamp, since.
    let steps = [
        (1, at(Pending, 1, Pending, 1), (Pending, 1, 1)),
        (2, at(Pending, 2, Pending, 2), (Pending, 1, 1)),
        (3, at(Installing, 3, Pending, 3), (Installing, 3, 3)),
        (4, at(Installing, 4, Pending, 4), (Installing, 3, 3)),
        (6, at(Installed, 5, Pending, 6), (Pending, 6, 6)),
        (7, at(Installed, 5, Installing, 7), (Installing, 7, 7)),
        (9, at(Installed, 5, Installed, 8), (Installed, 9, 8)),
        (20, at(Installed, 5, Installed, 8), (Installed, 9, 8)),
    ];
    let found = reports(steps.iter().map(|(now, observation, _)| (*now, observation.clone())).collect());
    for ((now, _, expected), found) in steps.iter().zip(&found) {
        let found = (found.report.state, seconds(&found.time_stamp), seconds(&found.report.since));
        assert_eq!(found, *expected, "at {now}");
    }
    let last = &found.last().unwrap().report;
    assert_eq!(last.deploy_history.len(), 1);
    assert_eq!((last.deploy_history[0].object_count, seconds(&last.deploy_history[0].last_deployed)), (2, 8));
}

/// A change of one part of an observation.
type Change = (&'static str, fn(&mut Observation));

#[test]
fn a_change_of_any_field_sets_the_time_stamp() {
    let changes: &[Change] = &[
        ("target", |observation| observation.target = Some(target("2"))),
        ("no target", |observation| observation.target = None),
        ("revision", |observation| observation.revision = Some("main@sha1:0".to_owned())),
        ("commit", |observation| {
            observation.commit = Some(CommitRef {
                id: "0a".to_owned(),
                branch: "main".to_owned(),
                time: time(1).into(),
                automation: "apps".to_owned(),
            });
        }),
        ("state", |observation| observation.components[0].status.state = State::Installing),
        ("desired", |observation| observation.components[0].status.desired = 4),
        ("updated", |observation| observation.components[0].status.updated = 4),
        ("ready", |observation| observation.components[0].status.ready = 2),
        ("message", |observation| observation.components[0].status.message = Some("slow".to_owned())),
        ("place", |observation| observation.components[0].status.place = Some("a.yaml:1".to_owned())),
        ("no component", |observation| observation.components.clear()),
    ];
    let first = observation("1", vec![component("Deployment/a/a", "app:1", State::Installed, 1)]);
    for (name, change) in changes {
        let mut second = first.clone();
        change(&mut second);
        let found = reports(vec![(1, first.clone()), (5, second.clone()), (9, second)]);
        let stamps: Vec<i64> = found.iter().map(|report| seconds(&report.time_stamp)).collect();
        assert_eq!(stamps, [1, 5, 5], "{name}");
    }
    // The times of an observation are not those of a status, and fractions of a second are not kept.
    let mut second = first.clone();
    second.components[0].status.since = Timestamp::from_millisecond(7_500).unwrap().into();
    let found = status(first, None, Timestamp::from_millisecond(8_900).unwrap());
    assert_eq!(status(second, Some(&found), time(9)), found);
    assert_eq!(found.time_stamp.0, time(8));
}

#[test]
fn the_time_stamp_is_never_set_back() {
    let first = observation("1", vec![component("Deployment/a/a", "app:1", State::Installed, 1)]);
    let mut second = first.clone();
    second.revision = Some("main@sha1:0".to_owned());
    let found = reports(vec![(10, first), (5, second)]);
    assert_eq!(seconds(&found[1].time_stamp), 10);
}

#[test]
fn since_is_the_time_of_the_state() {
    use State::{Failed, Installed, Installing, Pending};
    type Step = (i64, &'static str, &'static [(&'static str, State, i64)], i64);
    let cases: &[(&str, &[Step])] = &[
        ("it ran before", &[(90, "1", &[("a", Installed, 10), ("b", Installed, 20)], 20)]),
        ("a time in the future", &[(5, "1", &[("a", Installed, 10)], 5)]),
        ("no component", &[(5, "1", &[], 5), (6, "1", &[], 5)]),
        (
            "another target that is installed at once",
            &[(5, "1", &[("a", Installed, 2)], 2), (9, "2", &[("a", Installed, 8)], 8)],
        ),
        (
            "another target in the same state",
            &[(5, "1", &[("a", Pending, 5)], 5), (9, "2", &[("a", Pending, 5)], 9)],
        ),
        (
            "a failed component that leaves",
            &[
                (5, "1", &[("a", Installed, 1), ("b", Installing, 4)], 4),
                (7, "1", &[("a", Installed, 1), ("b", Failed, 6)], 6),
                (9, "1", &[("a", Installed, 1)], 9),
            ],
        ),
        (
            "a second failure",
            &[
                (5, "1", &[("a", Failed, 5), ("b", Installing, 4)], 5),
                (7, "1", &[("a", Failed, 5), ("b", Failed, 7)], 5),
                (9, "1", &[("a", Installed, 8), ("b", Failed, 7)], 5),
            ],
        ),
    ];
    for (name, steps) in cases {
        let observation = |tag: &str, components: &[(&str, State, i64)]| {
            let component = |(name, state, since): &(&str, State, i64)| component(name, tag, *state, *since);
            observation(tag, components.iter().map(component).collect())
        };
        let found = reports(steps.iter().map(|(now, tag, of, _)| (*now, observation(tag, of))).collect());
        for ((now, _, _, expected), found) in steps.iter().zip(&found) {
            assert_eq!(seconds(&found.report.since), *expected, "{name}, at {now}");
        }
    }
}

#[test]
fn a_component_keeps_its_time_while_state_and_image_are_the_same() {
    let steps = [
        ("app:1", State::Installed, 1, 1),
        ("app:1", State::Installed, 5, 1),
        ("app:2", State::Installed, 6, 6),
        ("app:2", State::Failed, 7, 7),
        ("app:2", State::Installed, 8, 8),
    ];
    let observed = |(image, state, since, _): &(&str, State, i64, i64)| {
        (*since, observation("1", vec![component("Deployment/a/a", image, *state, *since)]))
    };
    let found = reports(steps.iter().map(observed).collect());
    for ((_, state, at, expected), found) in steps.iter().zip(&found) {
        assert_eq!(seconds(&found.report.components[0].since), *expected, "{state} at {at}");
    }
}

#[test]
fn five_hundred_components_are_listed_the_worst_first() {
    let name = |index: usize| format!("Deployment/a/{index:04}");
    let mut components: Vec<Component> =
        (0..600).map(|index| component(&name(index), "app:1", State::Installed, 1)).collect();
    components[599] = component(&name(599), "app:1", State::Failed, 1);
    components[598] = component(&name(598), "app:0", State::Pending, 1);
    let found = reports(vec![(9, observation("1", components))]).remove(0).report;
    assert_eq!((found.components.len(), found.omitted, found.summary.total), (500, 100, 600));
    let names: Vec<&str> = found.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names[..3], [name(599), name(598), name(0)]);
    assert_eq!((found.state, found.summary.installed), (State::Failed, 598));
}

#[test]
fn an_error_before_the_rollout_is_gone_as_soon_as_every_component_has_the_image() {
    let with_error = |state: State| Observation {
        error: Some(DeploymentError {
            code: DeploymentErrorCode::GitPushRejected,
            source: String::new(),
            message: "m".repeat(5000),
        }),
        ..observation("1", vec![component("Deployment/a/a", "app:1", state, 1)])
    };
    let found = reports(vec![(1, with_error(State::Pending)), (2, with_error(State::Installed))]);
    let error = found[0].report.error.as_ref().unwrap();
    assert_eq!((&*error.code, &*error.source), ("GitPushRejected", "3a5549f2"));
    assert_eq!(error.message.chars().count(), MAX_MESSAGE);
    assert_eq!(found[0].report.state, State::Failed);
    assert_eq!(found[0].report.components[0].state, State::Pending);
    assert_eq!((found[1].report.state, &found[1].report.error), (State::Installed, &None));
}

#[test]
fn conditions_are_those_of_kstatus() {
    let failed = |code: &str| {
        let mut failed = component("Deployment/a/a", "app:1", State::Failed, 1);
        failed.status.error =
            Some(StatusError { code: code.into(), source: "Deployment/a/a".into(), message: "bad".into() });
        failed
    };
    let blocked = |reason| {
        let mut pending = component("Deployment/a/a", "app:0", State::Pending, 1);
        pending.status.reason = reason;
        pending
    };
    let plain = |state| component("Deployment/a/a", "app:1", state, 1);
    let installed = "Ready=True/Installed: ghcr.io/org/app:1 is installed";
    for (component, expected) in [
        (Some(plain(State::Installed)), vec![installed]),
        (
            Some(plain(State::Installing)),
            vec![
                "Reconciling=True/Installing: the rollout is in progress",
                "Ready=False/Installing: the rollout is in progress",
            ],
        ),
        (
            Some(blocked(Some(BlockReason::NotApplied))),
            vec![
                "Reconciling=True/NotApplied: Deployment/a/a: NotApplied",
                "Ready=False/NotApplied: Deployment/a/a: NotApplied",
            ],
        ),
        (
            Some(blocked(None)),
            vec![
                "Reconciling=True/Pending: the wanted image is not in the cluster yet",
                "Ready=False/Pending: the wanted image is not in the cluster yet",
            ],
        ),
        (
            Some(plain(State::Removing)),
            vec![
                "Reconciling=True/Removing: objects are being removed",
                "Ready=False/Removing: objects are being removed",
            ],
        ),
        (
            Some(plain(State::Removed)),
            vec![
                "Reconciling=True/Removed: objects were removed",
                "Ready=False/Removed: objects were removed",
            ],
        ),
        (
            Some(failed("ImagePullBackOff")),
            vec![
                "Stalled=True/ImagePullBackOff: Deployment/a/a: bad",
                "Ready=False/ImagePullBackOff: Deployment/a/a: bad",
            ],
        ),
        (
            Some(failed("not a reason")),
            vec!["Stalled=True/Failed: Deployment/a/a: bad", "Ready=False/Failed: Deployment/a/a: bad"],
        ),
        (
            None,
            vec![
                "Reconciling=True/Pending: the wanted image is not in the cluster yet",
                "Ready=False/Pending: the wanted image is not in the cluster yet",
            ],
        ),
    ] {
        let report = reports(vec![(1, observation("1", component.into_iter().collect()))]).remove(0).report;
        let found: Vec<String> = report
            .conditions
            .iter()
            .map(|one| format!("{}={}/{}: {}", one.type_, one.status, one.reason, one.message))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_condition_keeps_its_time_while_its_status_is_the_same() {
    let at = |state| observation("1", vec![component("Deployment/a/a", "app:1", state, 1)]);
    let found = reports(vec![
        (1, at(State::Pending)),
        (2, at(State::Installing)),
        (3, at(State::Failed)),
        (4, at(State::Installed)),
    ]);
    let times = |report: &DeploymentStatusStatus| -> Vec<i64> {
        report.report.conditions.iter().map(|one| seconds(&one.last_transition_time)).collect()
    };
    assert_eq!(found.iter().map(times).collect::<Vec<_>>(), [vec![1, 1], vec![1, 1], vec![3, 1], vec![4]]);
}

#[test]
fn without_a_target_and_components_no_image_is_chosen() {
    let nothing = Observation { target: None, ..observation("1", Vec::new()) };
    let report = reports(vec![(1, nothing)]).remove(0).report;
    assert_eq!((report.state, report.reason), (State::Pending, Some(BlockReason::NotChosen)));
}

#[test]
fn a_history_is_kept_through_many_targets() {
    let mut observations = Vec::new();
    for index in 0..5_i64 {
        let (tag, second) = (format!("app:{index}"), index * 10);
        for (state, after) in [(State::Pending, 1), (State::Installing, 2), (State::Installed, 3)] {
            let image = if state == State::Pending { format!("app:{}", index - 1) } else { tag.clone() };
            let component = component("Deployment/a/a", &image, state, second + after);
            observations.push((second + after, observation(&index.to_string(), vec![component])));
        }
    }
    let report = reports(observations).pop().unwrap().report;
    let versions: Vec<&str> =
        report.deploy_history.iter().filter_map(|entry| entry.version.as_deref()).collect();
    assert_eq!((versions.len(), versions), (MAX_HISTORY, vec!["4", "3", "2"]));
}

/// The document of the marker has no namespace.
///
/// So the place without an object has another name than the object.
#[test]
fn an_object_that_a_place_gets_is_in_the_history() {
    let at = |name: &str, state, place: &str| {
        let mut component = component(name, "app:1", state, 5);
        component.status.place = Some(place.to_owned());
        component
    };
    let reports = reports(vec![
        (1, observation("1", vec![at("Deployment/app", State::Pending, "app.yaml:7")])),
        (6, observation("1", vec![at("Deployment/apps/app", State::Installed, "app.yaml:7")])),
        (
            7,
            observation(
                "1",
                vec![
                    at("Deployment/apps/app", State::Installed, "app.yaml:7"),
                    // It ran before it was observed.
                    at("Deployment/apps/other", State::Installed, "app.yaml:7"),
                ],
            ),
        ),
    ]);
    let counts = reports.iter().map(|status| {
        let history = &status.report.deploy_history;
        history.first().map(|entry| entry.object_count)
    });
    assert_eq!(counts.collect::<Vec<_>>(), [None, Some(1), Some(1)]);
}

#[test]
fn an_object_that_fails_is_not_in_the_history() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let at = |first: State, second: State, since: i64| {
        let image = if first == State::Pending { "podinfo:5.0.2" } else { "podinfo:5.0.3" };
        let names = [("Deployment/apps/a", first), ("Deployment/apps/b", second)];
        let components = names.map(|(name, state)| component(name, image, state, since)).to_vec();
        let target = Target { digest: Some(digest.clone()), ..target("5.0.3") };
        (since, Observation { target: Some(target), ..observation("5.0.3", components) })
    };
    let history = |second: State| {
        let found = reports(vec![at(State::Pending, State::Pending, 1), at(State::Installed, second, 5)]);
        let entry = &found[1].report.deploy_history[0];
        assert_eq!(entry.digest.as_ref(), Some(&digest));
        (entry.version.clone(), entry.object_count, seconds(&entry.last_deployed))
    };
    assert_eq!(history(State::Installed), (Some("5.0.3".to_owned()), 2, 5));
    assert_eq!(history(State::Failed), (Some("5.0.3".to_owned()), 1, 5));
}

#[test]
fn right_after_a_new_target_the_history_has_the_old_one() {
    let found = reports(vec![
        (1, observation("1", vec![component("Deployment/a/a", "app:0", State::Pending, 1)])),
        (2, observation("1", vec![component("Deployment/a/a", "app:1", State::Installed, 2)])),
        (3, observation("2", vec![component("Deployment/a/a", "app:1", State::Pending, 3)])),
    ]);
    let last = &found[2].report;
    assert_eq!(last.target, Some(target("2")));
    assert_eq!(last.deploy_history[0].version.as_deref(), Some("1"));
}
