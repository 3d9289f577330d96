//! Release groups: policies that move together, and their automation.

use std::time::Duration;

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::floating_tags::fleet::RegistryFront;
use super::reflector::{CREATED, Reflector, ReflectorBuilder, requested, until};
use super::scene::{Kind, Scene, condition};
use crate::support::clock::until_next_second;
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::Operation;
use crate::support::http_front::Reply;
use crate::support::registry::Registry;

/// The members of the group, with the prefixes of their tags.
const MEMBERS: [(&str, &str); 3] = [("api", "api-"), ("job", "job-"), ("web", "")];

/// An automation that follows all policies, and a release group of three.
///
/// Their lines in `shop.yaml` are at `1.0.0`.
struct Group {
    scene: Scene,
    registry: Registry,
    front: RegistryFront,
}

impl Group {
    async fn new() -> Self {
        let (scene, registry) = (Scene::new(&[]).await, Registry::start());
        let front = RegistryFront::before(registry.port());
        let group = Self { scene, registry, front };
        let namespace = group.scene.cluster.namespace();
        let line = |(name, prefix): (&str, &str)| {
            format!("{name}: {prefix}1.0.0 # {{\"$imagepolicy\": \"{namespace}:{name}:tag\"}}\n")
        };
        let lines = MEMBERS.map(line).concat() + &line(("free", ""));
        group.scene.repository.commit("main", "A person's", &[file("shop.yaml", lines)]);
        let mut spec = Scene::spec("bot");
        spec["interval"] = json!("1h");
        spec.as_object_mut().unwrap().remove("policySelector");
        group.scene.create(Kind::Automation, "all", &spec).await;
        for (name, prefix) in MEMBERS {
            group.policy(name, prefix, &json!({"tagboat.dev/release-group": "shop"})).await;
        }
        group.policy("free", "", &json!({})).await;
        group
    }

    /// Creates a policy whose values are versions, without the prefix of its tags.
    async fn policy(&self, name: &str, prefix: &str, annotations: &Value) {
        let spec = json!({
            "imageRepositoryRef": {"name": name},
            "filterTags": {"pattern": format!("^{prefix}(?P<version>[0-9.]+)$"), "extract": "$version"},
            "policy": {"semver": {"range": "*"}},
        });
        let mut object = DynamicObject::new(name, &Kind::Policy.resource()).data(json!({"spec": spec}));
        object.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
        self.scene.api(Kind::Policy).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates the ImageRepositories of the members, which are scanned on request only.
    async fn repositories(&self) {
        for (name, _) in MEMBERS {
            let spec = json!({"image": format!("{}/{name}", self.front.address()), "interval": "1h"});
            self.scene.create(Kind::Repository, name, &spec).await;
        }
    }

    fn reflector(&self, scans: u32) -> ReflectorBuilder {
        Reflector::of(&self.scene).downgrade_protection(scans, Duration::ZERO)
    }

    fn push(&self, member: usize, version: &str) {
        let (name, prefix) = MEMBERS[member];
        self.registry.push(name, &format!("{prefix}{version}"), CREATED);
    }

    fn remove(&self, member: usize, version: &str) {
        let (name, prefix) = MEMBERS[member];
        self.registry.remove(name, &format!("{prefix}{version}"));
    }

    /// Sets the latest image of a member, as Flux's controller does.
    async fn choose(&self, member: usize, version: &str) {
        let (name, prefix) = MEMBERS[member];
        self.scene.choose(name, &format!("{prefix}{version}")).await;
    }

    /// Has the repository of a member scanned, and waits for the end of the scan.
    async fn scan(&self, member: usize, token: &str) {
        let (name, _) = MEMBERS[member];
        self.scene.patch(Kind::Repository, name, &requested(token)).await;
        let is = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token;
        until(&self.scene, Kind::Repository, name, is).await;
    }

    async fn status(&self, member: usize) -> Value {
        self.scene.api(Kind::Policy).get(MEMBERS[member].0).await.unwrap().data["status"].clone()
    }

    /// Waits until all members have a version.
    async fn at(&self, version: &str) {
        for (name, prefix) in MEMBERS {
            let tag = format!("{prefix}{version}");
            let is = |object: &DynamicObject| object.data["status"]["latestRef"]["tag"] == tag;
            until(&self.scene, Kind::Policy, name, is).await;
        }
    }

    /// The versions of the members in a commit.
    fn versions(&self, commit: &str) -> [String; 3] {
        let text = String::from_utf8(self.scene.repository.file(commit, "shop.yaml")).unwrap();
        MEMBERS.map(|(name, prefix)| {
            let begin = format!("{name}: {prefix}");
            let line = text.lines().find_map(|line| line.strip_prefix(&begin)).unwrap();
            line.split(' ').next().unwrap().to_owned()
        })
    }

    /// Asserts that each commit has one version of all members.
    #[track_caller]
    fn assert_whole(&self) {
        for commit in self.scene.commits() {
            let versions = self.versions(&commit.id);
            assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
        }
    }

    async fn lands(&self, version: &str) {
        let wanted = [version; 3];
        let is = async || self.versions("main").each_ref().map(String::as_str) == wanted;
        eventually(&format!("{version} on the branch"), is).await;
    }

    /// Waits until the automation waits for the group with a message.
    async fn waits(&self, message: &str) {
        let is = |object: &DynamicObject| {
            condition(&object.data["status"], "UpdatesWaiting").is_some_and(|found| {
                found["status"] == "True"
                    && found["reason"] == "ReleaseGroupIncomplete"
                    && found["message"] == message
            })
        };
        let status = self.scene.until("all", message, is).await;
        assert_eq!(condition(&status, "Ready").unwrap()["message"], message);
    }
}

/// Another controller selects the images here, one after the other, as Flux's does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_written_together_beside_another_reflector() {
    let group = Group::new().await;
    for member in 0..3 {
        group.choose(member, "1.0.0").await;
    }
    group.scene.choose("free", "1.0.0").await;
    let mut controller = group.scene.controller().start();
    group.scene.ready("all").await;
    let pushes = || group.scene.host.requests_for(Operation::Push).len();
    group.choose(2, "2.0.0").await;
    group
        .waits(r#"1 value of web waits: release group shop: api has "1.0.0" and web has "2.0.0"; no end is known"#)
        .await;
    group.choose(0, "2.0.0").await;
    group
        .waits(r#"2 values of api, web wait: release group shop: api has "2.0.0" and job has "1.0.0"; no end is known"#)
        .await;
    assert_eq!(pushes(), 0);
    // The images that were written last stay, and a policy outside of the group is written.
    group.scene.choose("free", "5.0.0").await;
    eventually("free on the branch", async || {
        String::from_utf8(group.scene.repository.file("main", "shop.yaml")).unwrap().contains("free: 5.0.0 ")
    })
    .await;
    let observed = |status: &Value| MEMBERS.map(|(name, _)| status["observedPolicies"][name]["tag"].clone());
    let has_free =
        |object: &DynamicObject| object.data["status"]["observedPolicies"]["free"]["tag"] == "5.0.0";
    let status = group.scene.until("all", "free is observed", has_free).await;
    assert_eq!(observed(&status), ["api-1.0.0", "job-1.0.0", "1.0.0"]);
    let commits = group.scene.commits().len();
    controller.kill().await;
    controller = group.scene.controller().start();
    group.scene.request("all", "again").await;
    let is_handled = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == "again";
    group.scene.until("all", "handled", is_handled).await;
    group
        .waits(r#"2 values of api, web wait: release group shop: api has "2.0.0" and job has "1.0.0"; no end is known"#)
        .await;
    assert_eq!(group.scene.commits().len(), commits);
    // The last member comes, and all are written in one commit.
    group.choose(1, "2.0.0").await;
    group.lands("2.0.0").await;
    assert_eq!(group.scene.commits().len(), commits + 1);
    group.assert_whole();
    let is_over = |object: &DynamicObject| {
        condition(&object.data["status"], "UpdatesWaiting")
            .is_some_and(|found| found["status"] == "False" && found["reason"] == "NothingWaiting")
    };
    let status = group.scene.until("all", "nothing waits", is_over).await;
    assert_eq!(observed(&status), ["api-2.0.0", "job-2.0.0", "2.0.0"]);
    for (name, _) in MEMBERS {
        let without = json!({"metadata": {"annotations": {"tagboat.dev/release-group": null}}});
        group.scene.patch(Kind::Policy, name, &without).await;
    }
    let has_none = |object: &DynamicObject| condition(&object.data["status"], "UpdatesWaiting").is_none();
    group.scene.until("all", "no group", has_none).await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_move_together_to_the_best_version_that_all_have() {
    let group = Group::new().await;
    group.repositories().await;
    (0..3).for_each(|member| group.push(member, "1.0.0"));
    let (controller, reflector) = (group.scene.controller().start(), group.reflector(2).start());
    group.at("1.0.0").await;
    group.push(0, "2.0.0");
    group.push(2, "2.0.0");
    group.push(2, "3.0.0");
    group.scan(0, "1").await;
    group.scan(2, "1").await;
    group.push(1, "2.0.0");
    group.scan(1, "1").await;
    group.at("2.0.0").await;
    group.lands("2.0.0").await;
    // A deleted tag is a downgrade for all, which each of them holds until all have seen two scans.
    group.remove(1, "2.0.0");
    for scan in ["2", "3"] {
        for member in 0..2 {
            tokio::time::sleep(until_next_second()).await;
            group.scan(member, scan).await;
        }
    }
    let is_held = |object: &DynamicObject| {
        condition(&object.data["status"], "RegressionHeld").is_some_and(|held| held["status"] == "True")
    };
    for (name, _) in MEMBERS {
        let status = until(&group.scene, Kind::Policy, name, is_held).await;
        assert!(status["latestRef"]["tag"].as_str().unwrap().ends_with("2.0.0"), "{status:#}");
    }
    group.scan(2, "2").await;
    tokio::time::sleep(until_next_second()).await;
    group.scan(2, "3").await;
    group.at("1.0.0").await;
    group.lands("1.0.0").await;
    group.assert_whole();
    reflector.end().await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_change_of_one_member_counts_for_all_and_a_suspended_one_stops_them() {
    let group = Group::new().await;
    group.repositories().await;
    (0..3).for_each(|member| ["1.0.0", "2.0.0"].iter().for_each(|version| group.push(member, version)));
    let reflector = group.reflector(3).start();
    group.at("2.0.0").await;
    let exclude = json!({"metadata": {"annotations": {"tagboat.dev/exclude": "job-2.0.0"}}});
    group.scene.patch(Kind::Policy, "job", &exclude).await;
    group.at("1.0.0").await;
    let suspend = |is: bool| json!({"spec": {"suspend": is}});
    group.scene.patch(Kind::Policy, "job", &suspend(true)).await;
    (0..3).for_each(|member| group.push(member, "3.0.0"));
    let stale = |object: &DynamicObject| {
        condition(&object.data["status"], "Stale").is_some_and(|stale| {
            let message = stale["message"].as_str().unwrap();
            stale["reason"] == "GroupIncomplete"
                && message.starts_with("the release group shop does not move: ImagePolicy ")
                && message.ends_with("/job is suspended")
        })
    };
    for member in 0..3 {
        group.scan(member, "1").await;
    }
    for name in ["api", "web"] {
        let status = until(&group.scene, Kind::Policy, name, stale).await;
        assert_eq!(condition(&status, "Ready").unwrap()["status"], "True");
    }
    assert_eq!(group.status(0).await["latestRef"]["tag"], "api-1.0.0");
    group.scene.patch(Kind::Policy, "job", &suspend(false)).await;
    group.at("3.0.0").await;
    for member in 0..3 {
        assert_eq!(condition(&group.status(member).await, "Stale"), None);
    }
    // Members that order the versions differently do not move, and two of them are named.
    (0..3).for_each(|member| group.push(member, "4.0.0"));
    let descending = json!({"spec": {"policy": {"semver": null, "alphabetical": {"order": "desc"}}}});
    group.scene.patch(Kind::Policy, "web", &descending).await;
    for member in 0..3 {
        group.scan(member, "2").await;
    }
    let namespace = group.scene.cluster.namespace();
    let message = format!(
        "the release group shop does not move: of the values that all policies have, 4.0.0 is the best one for \
         {namespace}/api and 1.0.0 for {namespace}/web"
    );
    let disagrees = |object: &DynamicObject| {
        condition(&object.data["status"], "Stale").is_some_and(|stale| stale["message"] == message)
    };
    until(&group.scene, Kind::Policy, "api", disagrees).await;
    assert_eq!(group.status(1).await["latestRef"]["tag"], "job-3.0.0");
    reflector.end().await;
}

/// Scans fail, tags come and go, and the controllers are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_commit_has_two_versions_whatever_scans_and_tags_do() {
    let group = Group::new().await;
    group.repositories().await;
    (0..3).for_each(|member| group.push(member, "1.0.0"));
    let (mut controller, mut reflector) = (group.scene.controller().start(), group.reflector(1).start());
    group.at("1.0.0").await;
    let mut random = 20_261_128_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let mut there: [Vec<String>; 3] = [const { Vec::new() }; 3];
    for step in 0..16 {
        let failing = next(5);
        group.front.answer(move |request| {
            let fails =
                MEMBERS.get(failing).is_some_and(|(name, _)| request.path.contains(&format!("{name}/tags")));
            if fails { Reply::status(500) } else { Reply::Forward }
        });
        for (member, tags) in there.iter_mut().enumerate() {
            let version = format!("{}.0.0", 2 + step / 4);
            match next(3) {
                0 if !tags.is_empty() => group.remove(member, &tags.remove(next(tags.len()))),
                1 if !tags.contains(&version) => {
                    group.push(member, &version);
                    tags.push(version);
                }
                _ => {}
            }
            group.scan(member, &step.to_string()).await;
        }
        if step % 5 == 4 {
            controller.kill().await;
            reflector.end().await;
            controller = group.scene.controller().start();
            // The tags of the scans before are lost, as those of a container are.
            reflector = group.reflector(1).with_an_empty_store().start();
        }
        group.assert_whole();
    }
    group.front.heal();
    for member in 0..3 {
        group.push(member, "9.0.0");
        group.scan(member, "last").await;
    }
    group.at("9.0.0").await;
    group.lands("9.0.0").await;
    group.assert_whole();
    reflector.end().await;
    controller.end().await;
}
