//! Histories of deployments, told as steps.

use jiff::Timestamp;

use super::*;

fn time(second: i64) -> Time {
    Timestamp::from_second(second).unwrap().into()
}

fn target(tag: &str, digest: Option<&str>) -> Target {
    Target { name: "ghcr.io/org/app".to_owned(), tag: tag.to_owned(), digest: digest.map(str::to_owned) }
}

fn commit(id: &str) -> CommitRef {
    CommitRef { id: id.to_owned(), branch: "main".to_owned(), time: time(0), automation: "apps".to_owned() }
}

/// Returns a component: its image and state, and the beginning of the state.
fn component(image: &str, state: State, since: i64) -> ComponentStatus {
    ComponentStatus {
        image: Some(image.to_owned()),
        reason: (state == State::Pending).then_some(BlockReason::NotApplied),
        ..ComponentStatus::new("Deployment/a/b", state, time(since))
    }
}

/// Returns the component after an observation.
fn observed(previous: Option<&ComponentStatus>, mut current: ComponentStatus) -> ComponentStatus {
    current.last_deployed = last_deployed(previous, &current);
    current.complete_since = continued_complete_since(previous, &current);
    current
}

/// Returns installed components that were deployed at these times.
fn deployed(times: &[i64]) -> Vec<ComponentStatus> {
    let component = |second: &i64| ComponentStatus {
        last_deployed: Some(time(*second)),
        ..component("app", State::Installed, *second)
    };
    times.iter().map(component).collect()
}

/// Returns entries as `digest-or-version:count@second`.
fn text(entries: &[HistoryEntry]) -> String {
    let entry = |entry: &HistoryEntry| {
        let key = entry.digest.as_ref().or(entry.version.as_ref()).unwrap();
        format!("{key}:{}@{}", entry.object_count, entry.last_deployed.0.as_second())
    };
    entries.iter().map(entry).collect::<Vec<_>>().join(" ")
}

/// One observation: tag and digest of the target, times of the installed components.
type Step = (&'static str, Option<&'static str>, &'static [i64]);

/// Folds observations, and verifies that a repeated one changes nothing.
fn fold_all(steps: &[Step]) -> Vec<HistoryEntry> {
    let mut entries = Vec::new();
    for (tag, digest, times) in steps {
        let target = target(tag, *digest);
        let components = deployed(times);
        entries = fold(&entries, Some(&target), None, &components);
        assert_eq!(fold(&entries, Some(&target), None, &components), entries, "{steps:?}");
    }
    entries
}

#[test]
fn histories() {
    let cases: &[(&str, &[Step], &str)] = &[
        ("nothing was deployed", &[("1", Some("A"), &[])], ""),
        (
            "one object after the other",
            &[("1", Some("B"), &[10]), ("1", Some("B"), &[10, 20]), ("1", Some("B"), &[10, 20, 15])],
            "B:3@20",
        ),
        (
            "two images in the same second",
            &[("1", Some("A"), &[10]), ("2", Some("B"), &[10]), ("3", Some("C"), &[])],
            "B:1@10 A:1@10",
        ),
        (
            "three entries are kept",
            &[
                ("1", Some("B"), &[1, 2, 3]),
                ("2", Some("C"), &[4, 5, 6]),
                ("3", Some("D"), &[7, 8, 9]),
                ("4", Some("E"), &[10, 11, 12]),
            ],
            "E:3@12 D:3@9 C:3@6",
        ),
        (
            "a rollback moves its entry to the first place",
            &[("3", Some("D"), &[7, 8, 9]), ("4", Some("E"), &[10, 11, 12]), ("3", Some("D"), &[13, 14, 15])],
            "D:3@15 E:3@12",
        ),
        (
            "a rollback in progress",
            &[("3", Some("D"), &[7, 8, 9]), ("4", Some("E"), &[10, 11, 12]), ("3", Some("D"), &[13])],
            "D:3@13 E:3@12",
        ),
        (
            "another target in the middle of a rollout",
            &[("1", Some("B"), &[1]), ("2", Some("C"), &[]), ("2", Some("C"), &[2, 3, 4])],
            "C:3@4 B:1@1",
        ),
        (
            "a further object",
            &[("1", Some("B"), &[1, 2, 3]), ("1", Some("B"), &[1, 2, 3]), ("1", Some("B"), &[1, 2, 3, 9])],
            "B:4@9",
        ),
        ("an object that is gone", &[("1", Some("B"), &[1, 2, 3]), ("1", Some("B"), &[1])], "B:3@3"),
        (
            "the first of a rollout, right after the target has changed",
            &[("1", Some("A"), &[5]), ("2", Some("B"), &[])],
            "A:1@5",
        ),
        (
            "without a digest the tag is the key",
            &[("1", None, &[1]), ("2", None, &[2, 3]), ("1", None, &[4])],
            "1:1@4 2:2@3",
        ),
        (
            "a tag that moves is not deployed by objects without a digest",
            &[("latest", Some("A"), &[1, 2]), ("latest", Some("B"), &[1, 2])],
            "A:2@2",
        ),
        (
            "objects with and without a digest, after the tag has moved",
            &[
                ("latest", Some("A"), &[1, 2]),
                ("latest", Some("B"), &[1, 2, 3]),
                ("latest", Some("B"), &[1, 4, 3]),
            ],
            "B:2@4 A:2@2",
        ),
        (
            "a policy that begins to report digests",
            &[("1", None, &[1, 2]), ("1", Some("A"), &[1, 2]), ("1", Some("A"), &[1, 3])],
            "A:1@3 1:2@2",
        ),
        (
            "equal times are in the order of digests",
            &[("2", Some("B"), &[1]), ("1", Some("A"), &[1])],
            "A:1@1 B:1@1",
        ),
    ];
    for (name, steps, expected) in cases {
        assert_eq!(text(&fold_all(steps)), *expected, "{name}");
    }
}

#[test]
fn only_installed_components_count() {
    for state in State::BY_SEVERITY {
        let components = deployed(&[1]).into_iter().map(|component| ComponentStatus { state, ..component });
        let entries = fold(&[], Some(&target("1", None)), None, &components.collect::<Vec<_>>());
        assert_eq!(entries.len(), usize::from(state == State::Installed), "{state}");
    }
    let no_record = [component("app", State::Installed, 1)];
    assert_eq!(fold(&[], Some(&target("1", None)), None, &no_record), []);
    assert_eq!(fold(&[], None, None, &deployed(&[1])), []);
}

#[test]
fn version_and_commit_are_those_of_the_last_time() {
    let first = fold(&[], Some(&target("1-rc", Some("A"))), Some(&commit("c1")), &deployed(&[1]));
    assert_eq!((first[0].version.as_deref(), first[0].commit.as_deref()), (Some("1-rc"), Some("c1")));
    // The same digest with another tag and commit.
    let pending = fold(&first, Some(&target("1", Some("A"))), Some(&commit("c2")), &[]);
    assert_eq!(pending, first);
    let second = fold(&first, Some(&target("1", Some("A"))), Some(&commit("c2")), &deployed(&[2]));
    assert_eq!((second[0].version.as_deref(), second[0].commit.as_deref()), (Some("1"), Some("c2")));
    assert_eq!(second.len(), 1);
    // A commit of a user, which Tagboat does not know.
    let third = fold(&second, Some(&target("1", Some("A"))), None, &deployed(&[3]));
    assert_eq!(third[0].commit.as_deref(), Some("c2"));
}

#[test]
fn an_entry_has_five_fields() {
    let entries = fold(&[], Some(&target("1", Some("A"))), Some(&commit("c1")), &deployed(&[1]));
    let json = serde_json::to_value(&entries[0]).unwrap();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["digest", "version", "objectCount", "lastDeployed", "commit"]);
}

#[test]
fn a_component_is_deployed_when_it_is_observed_to_become_installed() {
    use State::{Failed, Installed, Installing, Pending, Removing};
    // Observations of one component: image, state, beginning of the state, expected time.
    type Observation = (&'static str, State, i64, Option<i64>);
    let cases: &[(&str, &[Observation])] = &[
        ("it ran before", &[("v1", Installed, 1, None), ("v1", Installed, 1, None)]),
        (
            "two rollouts",
            &[
                ("v1", Installed, 1, None),
                ("v1", Pending, 5, None),
                ("v2", Installing, 6, None),
                ("v2", Installed, 7, Some(7)),
                ("v2", Installed, 7, Some(7)),
                ("v2", Pending, 10, Some(7)),
                ("v1", Installing, 11, None),
                ("v1", Installed, 12, Some(12)),
            ],
        ),
        ("steps that were not observed", &[("v1", Installed, 1, None), ("v2", Installed, 7, Some(7))]),
        ("in the same second", &[("v1", Pending, 7, None), ("v2", Installed, 7, Some(7))]),
        ("the clock of the cluster is slow", &[("v1", Pending, 7, None), ("v2", Installed, 5, Some(5))]),
        (
            "a failure and its recovery",
            &[
                ("v1", Pending, 1, None),
                ("v1", Installed, 2, Some(2)),
                ("v1", Failed, 3, Some(2)),
                ("v1", Installed, 4, Some(2)),
            ],
        ),
        (
            "a failed rollout that completes",
            &[("v1", Pending, 1, None), ("v2", Failed, 3, None), ("v2", Installed, 4, Some(4))],
        ),
        (
            "a failing object that is observed for the first time",
            &[("v1", Failed, 1, None), ("v1", Installed, 2, Some(2))],
        ),
        (
            "it ran before, fails and recovers",
            &[("v1", Installed, 1, None), ("v1", Failed, 3, None), ("v1", Installed, 4, None)],
        ),
        (
            "it ran before, and is restarted",
            &[("v1", Installed, 1, None), ("v1", Installing, 3, None), ("v1", Installed, 4, None)],
        ),
        (
            "it ran before, and another image was chosen for a time",
            &[("v1", Installed, 1, None), ("v1", Pending, 3, None), ("v1", Installed, 4, None)],
        ),
        (
            "its applier fails for another image, and the first one is chosen again",
            &[
                ("v1", Pending, 1, None),
                ("v1", Installed, 2, Some(2)),
                ("v1", Pending, 3, Some(2)),
                ("v1", Installed, 4, Some(2)),
            ],
        ),
        (
            "it fails after a restart that was in progress",
            &[
                ("v1", Installed, 1, None),
                ("v1", Installing, 3, None),
                ("v1", Failed, 4, None),
                ("v1", Installed, 5, None),
            ],
        ),
        (
            "the same text with another content, by an annotation",
            &[
                ("v1", Pending, 1, None),
                ("v1", Installed, 2, Some(2)),
                ("v1", Pending, 3, Some(2)),
                ("v1", Installing, 4, None),
                ("v1", Installed, 5, Some(5)),
            ],
        ),
        (
            "a rollout whose end the object reports before the second in which it was observed",
            &[("v1", Pending, 1, None), ("v2", Installing, 3, None), ("v2", Installed, 2, Some(2))],
        ),
        (
            "it is being deleted",
            &[("v1", Pending, 1, None), ("v1", Installed, 2, Some(2)), ("v1", Removing, 3, Some(2))],
        ),
    ];
    for (name, observations) in cases {
        let mut previous = None;
        for (image, state, since, expected) in *observations {
            let current = observed(previous.as_ref(), component(image, *state, *since));
            assert_eq!(current.last_deployed, expected.map(time), "{name}: {image} {state}");
            previous = Some(current);
        }
    }
}

#[test]
fn an_outage_is_no_deployment() {
    use State::{Installed, Installing, Pending};
    let lost = |image: Option<&str>, since| ComponentStatus {
        image: image.map(str::to_owned),
        ..ComponentStatus::new("Deployment/a/b", Pending, time(since))
    };
    let after = |steps: &[ComponentStatus]| {
        steps.iter().cloned().fold(None, |previous, current| Some(observed(previous.as_ref(), current)))
    };
    let deployed =
        |steps: &[ComponentStatus]| after(steps).unwrap().last_deployed.map(|time| time.0.as_second());
    let (ran, begun) = (component("v1", Installed, 1), component("v1", Installing, 1));
    let back = component("v1", Installed, 9);
    assert_eq!(deployed(&[ran.clone(), lost(Some("v1"), 5), back.clone()]), None);
    assert_eq!(deployed(&[begun.clone(), ran.clone(), lost(Some("v1"), 5), back.clone()]), Some(1));
    // Its rollout ended meanwhile.
    assert_eq!(deployed(&[begun, lost(Some("v1"), 5), back.clone()]), Some(9));
    assert_eq!(deployed(&[ran.clone(), lost(Some("v1"), 5), component("v2", Installed, 9)]), Some(9));
    // Nothing was known about the object, which ran before; or its rollout ended later.
    assert_eq!(deployed(&[lost(None, 5), component("v1", Installed, 4)]), None);
    assert_eq!(deployed(&[lost(None, 5), back.clone()]), Some(9));
    // A kind of object whose rollout has phases, after the outage.
    let restarted = component("v1", Installing, 8);
    assert_eq!(deployed(&[ran, lost(Some("v1"), 5), restarted, back]), None);
}

/// An applier that fails may do so before it applies the image.
#[test]
fn a_failure_before_the_rollout_keeps_the_deployment() {
    use State::{Failed, Installed, Pending};
    let failed = ComponentStatus { reason: Some(BlockReason::NotApplied), ..component("v1", Failed, 4) };
    let steps =
        [component("v1", Installed, 1), component("v1", Pending, 3), failed, component("v1", Installed, 5)];
    let last = steps.into_iter().fold(None, |previous, current| Some(observed(previous.as_ref(), current)));
    assert_eq!(last.unwrap().last_deployed, None);
}
