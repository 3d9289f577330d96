//! Release groups: three policies move in one commit or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::scene::{MADE, Scene};
use crate::support::http_front::{Front, Reply};
use crate::support::program::Run;
use crate::support::remote_fleet::only_outcome;

/// The members, with the file and the prefix of the tags of each.
const MEMBERS: [(&str, &str, &str); 3] = [("web", "app", ""), ("api", "api", "v"), ("job", "job", "job-")];

/// A fleet with the release group `shop`, whose members show and have `1.0.0`.
struct Group {
    scene: Scene,
    front: Front,
    /// The index of the member whose scans fail; others' succeed.
    failing: Arc<AtomicUsize>,
}

impl Group {
    fn new() -> Self {
        let scene = Scene::new();
        scene.another("api");
        scene.another("job");
        let failing = Arc::new(AtomicUsize::new(MEMBERS.len()));
        let index = failing.clone();
        let front = Front::before(scene.registry.port(), move |request| {
            let failing = MEMBERS.get(index.load(Ordering::SeqCst));
            let fails = failing.is_some_and(|(name, ..)| request.path.contains(&format!("app/{name}/tags")));
            if fails { Reply::status(500) } else { Reply::Forward }
        });
        let group = Self { scene, front, failing };
        for (name, _, _) in MEMBERS {
            let image = format!("{}/app/{name}", group.front.address());
            group.scene.repository(name, json!({"spec": {"image": image}}));
            group.member(name, json!({}));
        }
        group.push("web api job", "1.0.0");
        group
    }

    /// Writes a member, with changes.
    fn member(&self, name: &str, changes: Value) {
        let (_, _, prefix) = MEMBERS.into_iter().find(|(member, ..)| *member == name).unwrap();
        let mut whole = json!({
            "metadata": {"annotations": {"tagboat.dev/release-group": "shop"}},
            "spec": {"filterTags": {"pattern": format!("^{prefix}(?P<version>[0-9.]+)$"), "extract": "$version"}},
        });
        super::scene::merge(&mut whole, changes);
        self.scene.policy(name, whole);
    }

    fn push(&self, members: &str, version: &str) {
        for (name, _, prefix) in MEMBERS.into_iter().filter(|(name, ..)| members.contains(name)) {
            self.scene.registry.push(&format!("app/{name}"), &format!("{prefix}{version}"), MADE);
        }
    }

    fn remove(&self, members: &str, version: &str) {
        for (name, _, prefix) in MEMBERS.into_iter().filter(|(name, ..)| members.contains(name)) {
            self.scene.registry.remove(&format!("app/{name}"), &format!("{prefix}{version}"));
        }
    }

    /// The versions of the members in a commit, in the order of the members.
    fn versions(&self, commit: &str) -> [String; 3] {
        MEMBERS.map(|(name, file, prefix)| {
            let text = self.scene.fleet.repository.file(commit, &format!("{file}.yaml"));
            let text = String::from_utf8(text).unwrap();
            let (_, tag) = text.split(' ').nth(1).unwrap().rsplit_once(':').unwrap();
            tag.strip_prefix(prefix).unwrap_or_else(|| panic!("{name} has {tag}")).to_owned()
        })
    }

    /// Asserts that each of our commits has one value, and returns the last.
    #[track_caller]
    fn only_value(&self) -> String {
        for commit in self.scene.commits() {
            let versions = self.versions(&commit.id);
            assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
        }
        self.versions("main")[0].clone()
    }

    /// Runs, with lower versions that count after one scan.
    fn run(&self) -> Run {
        self.scene.run(&["--regression-scans", "1", "--regression-time", "0s"])
    }
}

fn choice<'o>(outcome: &'o Value, policy: &str) -> &'o Value {
    let choices = outcome["choices"].as_array().unwrap();
    choices.iter().find(|choice| choice["policy"] == format!("default/{policy}")).unwrap()
}

#[test]
fn the_members_move_in_one_commit_to_the_version_that_all_have() {
    let group = Group::new();
    assert_eq!(group.scene.outcome_name(&[]), "pushed");
    assert_eq!((group.only_value().as_str(), group.scene.commits().len()), ("1.0.0", 1));
    // Two have newer versions, of which none is common to all.
    group.push("web", "2.0.0");
    group.push("web", "3.0.0");
    group.push("api", "2.0.0");
    assert_eq!(group.scene.outcome_name(&[]), "skipped");
    assert_eq!(group.scene.commits().len(), 1);
    group.push("job", "2.0.0");
    assert_eq!(group.scene.outcome_name(&[]), "pushed");
    assert_eq!((group.only_value().as_str(), group.scene.commits().len()), ("2.0.0", 2));
    // Another order of the same versions: nothing moves, and two members are named.
    group.push("api job", "3.0.0");
    group.member("job", json!({"spec": {"policy": {"semver": null, "alphabetical": {"order": "desc"}}}}));
    let outcome = only_outcome(&group.scene.run(&[]).with_status(0));
    let held = choice(&outcome, "web")["held"].as_str().unwrap();
    assert!(
        held.starts_with(
            "the release group shop does not move: of the values that all policies have, 3.0.0 is the best one for \
             default/web and 1.0.0 for default/job"
        ),
        "{held}"
    );
    assert_eq!((group.only_value().as_str(), group.scene.commits().len()), ("2.0.0", 2));
}

#[test]
fn a_suspended_or_invalid_member_keeps_all_where_they_are() {
    for (changes, cause) in [
        (json!({"spec": {"suspend": true}}), "ImagePolicy default/api is suspended"),
        (
            json!({"metadata": {"annotations": {"tagboat.dev/minimum-age": "soon"}}}),
            "ImagePolicy default/api cannot select: annotation tagboat.dev/minimum-age",
        ),
        (
            json!({"spec": {"imageRepositoryRef": {"name": "gone"}}}),
            "ImagePolicy default/api cannot select: failed to get the referred ImageRepository",
        ),
    ] {
        let group = Group::new();
        group.scene.outcome(&[]);
        group.push("web api job", "2.0.0");
        group.member("api", changes);
        let ended = group.scene.run(&[]);
        let outcome = only_outcome(&ended);
        let held = choice(&outcome, "web")["held"].as_str().unwrap();
        assert!(held.starts_with(&format!("the release group shop does not move: {cause}")), "{held}");
        assert_eq!(group.only_value(), "1.0.0");
    }
}

/// A wish of a user for one member counts for all of them.
#[test]
fn an_excluded_version_takes_all_members_back_at_once() {
    let group = Group::new();
    group.push("web api job", "2.0.0");
    group.scene.outcome(&[]);
    assert_eq!(group.only_value(), "2.0.0");
    group.member("job", json!({"metadata": {"annotations": {"tagboat.dev/exclude": "job-2.0.0"}}}));
    assert_eq!(group.scene.outcome_name(&[]), "pushed");
    assert_eq!((group.only_value().as_str(), group.scene.commits().len()), ("1.0.0", 2));
}

/// Without an image of `--latest` for each of them, the members wait.
#[test]
fn a_member_with_another_image_is_not_written_and_the_others_wait_with_it() {
    let group = Group::new();
    group.scene.outcome(&[]);
    group.push("web api job", "2.0.0");
    group.scene.another("other");
    group.scene.registry.push("app/other", "5.0.0", MADE);
    let of_web = format!("web={}/app/web:2.0.0", group.front.address());
    let outcome = group.scene.outcome(&["--latest", &of_web]);
    assert_eq!(
        (&outcome["outcome"], &outcome["policies"]["web"]["tag"]),
        (&json!("pushed"), &json!("1.0.0"))
    );
    assert_eq!(group.scene.value("other"), "app/other:5.0.0");
    assert_eq!(group.only_value(), "1.0.0");
    let waiting = &outcome["waiting"][0];
    assert_eq!(waiting["reason"], "ReleaseGroupIncomplete");
    assert_eq!(waiting["policies"], json!(["default/web"]));
    assert_eq!(
        waiting["message"],
        r#"1 value of web waits: release group shop: api has "1.0.0" and web has "2.0.0"; no end is known"#
    );
    let of_web = |marker: &&Value| marker["setter"] == "default:web";
    let markers = outcome["markers"].as_array().unwrap();
    assert_eq!(markers.iter().find(of_web).unwrap()["outcome"], "waiting");
    // Nothing else is to be written now.
    let of_web = format!("web={}/app/web:2.0.0", group.front.address());
    let again = group.scene.outcome(&["--latest", &of_web]);
    assert_eq!(again["outcome"], "waiting");
    // The next run lets all of them select.
    assert_eq!(group.scene.outcome_name(&[]), "pushed");
    assert_eq!(group.only_value(), "2.0.0");
    // A freeze is the first reason.
    group.push("web", "3.0.0");
    let annotations = json!({"tagboat.dev/freeze": "x"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "annotations": annotations}});
    std::fs::write(group.scene.manifests().join("namespace.json"), namespace.to_string()).unwrap();
    let of_web = format!("web={}/app/web:3.0.0", group.front.address());
    let frozen = group.scene.outcome(&["--latest", &of_web]);
    let waiting = &frozen["waiting"][0];
    assert_eq!((&waiting["reason"], &waiting["policies"]), (&json!("Frozen"), &json!(["default/web"])));
}

/// Scans fail and tags are deleted, in every order that these numbers give.
#[test]
fn no_commit_has_two_values_whatever_scans_and_tags_do() {
    let group = Group::new();
    group.scene.outcome(&[]);
    let mut random = 20_261_128_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let mut there: [Vec<String>; 3] = [const { Vec::new() }; 3];
    for step in 0..18 {
        let member = next(3);
        let name = MEMBERS[member].0;
        match next(3) {
            0 if !there[member].is_empty() => {
                let version = there[member].remove(next(there[member].len()));
                group.remove(name, &version);
            }
            1 => {
                let version = format!("{}.0.0", 2 + step / 6);
                if !there[member].contains(&version) {
                    group.push(name, &version);
                    there[member].push(version);
                }
            }
            _ => {
                for (member, (name, ..)) in MEMBERS.iter().enumerate() {
                    let version = format!("{}.0.0", 2 + step / 6);
                    if next(4) > 0 && !there[member].contains(&version) {
                        group.push(name, &version);
                        there[member].push(version);
                    }
                }
            }
        }
        group.failing.store(next(6), Ordering::SeqCst);
        group.run();
        group.only_value();
    }
    // With whole scans the group arrives at a version that all have.
    group.failing.store(MEMBERS.len(), Ordering::SeqCst);
    group.push("web api job", "9.0.0");
    group.run().with_status(0);
    assert_eq!(group.only_value(), "9.0.0");
    assert!(group.scene.commits().len() > 3, "{}", group.scene.commits().len());
}
