//! Branches that several automations may render.

use serde_json::{Value, json};

use super::*;
use crate::reference::ImageReference;

/// Makes an automation with the policy of its name.
fn automation(name: &str, base: &str, branch: &str, more: &Value) -> Arc<ImageUpdateAutomation> {
    let mut object = json!({
        "metadata": {
            "namespace": "shop", "name": name, "uid": "1",
            "annotations": {"tagboat.dev/delivery": "branch", "tagboat.dev/push-branch": branch},
        },
        "spec": {
            "interval": "1m",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {
                "checkout": {"ref": {"branch": base}},
                "commit": {"author": {"name": "bot", "email": "bot@example.com"}},
            },
            "update": {"strategy": "Setters"},
        },
    });
    json_patch(&mut object, more);
    Arc::new(serde_json::from_value(object).unwrap())
}

fn json_patch(object: &mut Value, more: &Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            more.iter()
                .for_each(|(name, value)| json_patch(object.entry(name).or_insert(Value::Null), value));
        }
        (object, more) => *object = more.clone(),
    }
}

fn inputs() -> SiblingInputs {
    let policy = json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"imageRepositoryRef": {"name": "web"}, "policy": {"alphabetical": {}}},
        "status": {"latestRef": {"name": "registry/web", "tag": "1"}},
    });
    let repository = json!({
        "metadata": {"namespace": "shop", "name": "fleet"},
        "spec": {"url": "https://git.example/fleet.git", "interval": "1m"},
    });
    SiblingInputs {
        repository: Some(serde_json::from_value(repository).unwrap()),
        policies: vec![Arc::new(serde_json::from_value(policy).unwrap())],
        given: ImageOverrides::new(),
        references: BranchReferences::All,
    }
}

fn rendered(siblings: &Siblings) -> usize {
    let known = siblings.0.known.get().unwrap();
    known.siblings.iter().filter(|sibling| sibling.rendered.get().is_some()).count()
}

#[test]
fn the_commit_of_an_active_automation_that_renders_the_branch_is_awaited() {
    use DropReason::{Failed, Gone, OtherBranch, Suspended};
    let status = |ready: &str| {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "x", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        json!({"status": {"conditions": [condition]}})
    };
    let annotation = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
    let git = |git: Value| json!({"spec": {"git": git}});
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for (base, branch, more, is_tried, expected) in [
        ("main", "images", json!({}), false, None),
        ("main", "images", json!({}), true, None),
        ("main", "{{ .Policy.Name }}", json!({}), false, Some(OtherBranch)),
        ("release", "images", json!({}), false, Some(OtherBranch)),
        ("main", "images", status("True"), true, None),
        ("main", "images", status("Unknown"), true, None),
        ("main", "images", status("False"), true, Some(Failed)),
        // It may have been repaired since.
        ("main", "images", status("False"), false, None),
        ("main", "images", json!({"spec": {"suspend": true}}), false, Some(Suspended)),
        ("main", "images", deleted, false, Some(Gone)),
        ("main", "images", annotation("tagboat.dev/delivery", "push"), false, Some(OtherBranch)),
        // Its run fails, which is reported first.
        ("main", "images", annotation("tagboat.dev/delivery", "wrong"), true, None),
        ("main", "images", json!({"spec": {"update": {"strategy": "Other"}}}), true, None),
        // It can have no part in the transaction.
        ("main", "images", git(json!({"push": {"options": {"ci.skip": "true"}}})), false, Some(OtherBranch)),
        // Another name of the same base.
        ("main", "images", git(json!({"checkout": {"ref": {"name": "refs/heads/main"}}})), false, None),
    ] {
        let one = automation("one", "main", "images", &json!({}));
        let all = vec![one, automation("two", base, branch, &more)];
        let siblings = Siblings::new(all, |automation| is_tried && automation.name_any() == "two");
        siblings.find_series(&inputs());
        let by = ObjectName { namespace: "shop".to_owned(), name: "one".to_owned() };
        let absence = |proposal: &str| siblings.absence(&by, &"images".parse().unwrap(), proposal);
        let expected = expected.map_or_else(|| Absence::Awaited("shop/two".to_owned()), Absence::Dropped);
        assert_eq!(absence("shop/two 1"), expected, "{base} {branch} {more}");
        // One of this name was deleted, and this is another.
        assert_eq!(absence("shop/two 0"), Absence::Dropped(Gone));
    }
}

/// Its branch is unknown until the policy has an image.
#[test]
fn the_commit_of_an_automation_whose_policy_has_no_image_is_awaited() {
    let mut inputs = inputs();
    Arc::make_mut(&mut inputs.policies[0]).status = None;
    let two = automation("two", "main", "{{ .Policy.Name }}", &json!({}));
    let siblings = Siblings::new(vec![automation("one", "main", "images", &json!({})), two], |_| false);
    siblings.find_series(&inputs);
    let by = ObjectName { namespace: "shop".to_owned(), name: "one".to_owned() };
    let absence = siblings.absence(&by, &"images".parse().unwrap(), "shop/two 1");
    assert_eq!(absence, Absence::Awaited("shop/two".to_owned()));
}

/// Its branch depends on no policy, so it renders no other.
#[test]
fn the_commit_of_an_automation_whose_only_branch_is_another_one_is_not_awaited() {
    let mut inputs = inputs();
    Arc::make_mut(&mut inputs.policies[0]).status = None;
    let by = ObjectName { namespace: "shop".to_owned(), name: "one".to_owned() };
    for (branch, expected) in [
        ("other", Absence::Dropped(DropReason::OtherBranch)),
        ("images", Absence::Awaited("shop/two".to_owned())),
    ] {
        let two = automation("two", "main", branch, &json!({}));
        let siblings = Siblings::new(vec![automation("one", "main", "images", &json!({})), two], |_| false);
        siblings.find_series(&inputs);
        assert_eq!(siblings.absence(&by, &"images".parse().unwrap(), "shop/two 1"), expected, "{branch}");
    }
}

/// Its branch was given to another one, or its commit awaited there for ever.
#[test]
fn an_image_of_an_earlier_run_names_the_branch_of_an_automation_that_takes_no_part() {
    let by = ObjectName { namespace: "shop".to_owned(), name: "one".to_owned() };
    let web = ObjectName { namespace: "shop".to_owned(), name: "web".to_owned() };
    let mut inputs = inputs();
    Arc::make_mut(&mut inputs.policies[0]).status = None;
    let branch: BranchName = "images-2".parse().unwrap();
    for (base, tag, is_refused, absence) in [
        ("main", None, false, Absence::Awaited("shop/two".to_owned())),
        ("main", Some("2"), false, Absence::Awaited("shop/two".to_owned())),
        ("main", Some("3"), false, Absence::Dropped(DropReason::OtherBranch)),
        ("release", Some("2"), true, Absence::Dropped(DropReason::OtherBranch)),
        ("release", None, false, Absence::Dropped(DropReason::OtherBranch)),
    ] {
        let of_two = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}});
        let one = automation("one", "main", "images-2", &json!({}));
        let two = automation("two", base, "images-{{ .Image.Tag }}", &of_two);
        let images = tag.map(|tag| (web.clone(), ImageReference::parse(&format!("reg.io/web:{tag}")).ok()));
        let images: ImageOverrides = images.into_iter().collect();
        let siblings = Siblings::with_images(vec![one.clone(), two], images, |_| false);
        let series = siblings.find_series(&inputs);
        let Some(Branches::Own(naming)) = inputs.branches_of(&one) else { panic!("{base}") };
        let mut bundles =
            Bundles { branches: [(branch.clone(), [web.clone()].into())].into(), ..Bundles::default() };
        series.refuse(naming.target(), &mut bundles);
        assert_eq!(!bundles.invalid.is_empty(), is_refused, "{base} {tag:?}");
        assert_eq!(siblings.absence(&by, &branch, "shop/two 1"), absence, "{base} {tag:?}");
    }
}

/// Their caution was missing as long as the forge work had no order of theirs.
#[test]
fn automations_with_a_more_cautious_merge_are_known_with_the_branches_that_they_may_render() {
    use MergeTime::{ByHand, Immediately, WhenReady};
    let with = |merge: &str, more: &Value| {
        let mut all = json!({"metadata": {"annotations": {
            "tagboat.dev/delivery": "pull-request", "tagboat.dev/pull-request-merge": merge,
        }}});
        json_patch(&mut all, more);
        all
    };
    let annotation = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
    let release = json!({"spec": {"git": {"checkout": {"ref": {"branch": "release"}}}}});
    let selector = json!({"matchExpressions": [{"key": "team", "operator": "Is", "values": ["shop"]}]});
    let unselectable = json!({"spec": {"policySelector": selector}});
    let (images, any) = (Some(vec!["images"]), None);
    for (own, branch, other, expected) in [
        (Immediately, "images", with("by-hand", &json!({})), Some((ByHand, images.clone()))),
        (Immediately, "images", with("when-ready", &json!({})), Some((WhenReady, images.clone()))),
        (WhenReady, "images", with("by-hand", &json!({})), Some((ByHand, images.clone()))),
        (Immediately, "images", with("immediately", &json!({})), None),
        (WhenReady, "images", with("immediately", &json!({})), None),
        (ByHand, "images", with("by-hand", &json!({})), None),
        (Immediately, "{{ .Policy.Name }}", with("by-hand", &json!({})), Some((ByHand, Some(vec!["web"])))),
        // Of invalid settings, those that name its branches are valid.
        (Immediately, "images", with("by-hnd", &json!({})), Some((ByHand, images.clone()))),
        (Immediately, "other", with("by-hnd", &json!({})), Some((ByHand, Some(vec!["other"])))),
        // Its settings are invalid, so all of them are unknown.
        (
            Immediately,
            "images",
            with("by-hnd", &annotation("tagboat.dev/template-language", "html")),
            Some((ByHand, any.clone())),
        ),
        (
            Immediately,
            "images",
            with("immediately", &annotation("tagboat.dev/delivery", "pull-requst")),
            Some((ByHand, any.clone())),
        ),
        (Immediately, "images", with("by-hnd", &annotation("tagboat.dev/delivery", "branch")), None),
        // Its policies cannot be selected.
        (Immediately, "other", with("by-hand", &unselectable), Some((ByHand, Some(vec!["other"])))),
        (Immediately, "{{ .Base }}/all", with("by-hand", &unselectable), Some((ByHand, any.clone()))),
        (
            Immediately,
            "{{ .Base }}-all",
            with("by-hand", &unselectable),
            Some((ByHand, Some(vec!["main-all"]))),
        ),
        (Immediately, "{{ .Policy.Name }}", with("by-hand", &unselectable), Some((ByHand, any.clone()))),
        // Its branches cannot be rendered.
        (Immediately, "{{ .Nothing }}", with("by-hand", &json!({})), Some((ByHand, any))),
        // It has no pull requests, or none of these.
        (Immediately, "images", annotation("tagboat.dev/delivery", "branch"), None),
        (Immediately, "images", with("by-hand", &annotation("tagboat.dev/delivery", "push")), None),
        // It may have a part in a pull request from before.
        (
            Immediately,
            "images",
            with("immediately", &json!({"spec": {"suspend": true}})),
            Some((ByHand, Some(vec![]))),
        ),
        (Immediately, "images", with("by-hand", &release), Some((ByHand, Some(vec![])))),
    ] {
        let one = automation("one", "main", "images", &json!({}));
        let siblings = Siblings::new(vec![one, automation("two", "main", branch, &other)], |_| true);
        let by = ObjectName { namespace: "shop".to_owned(), name: "one".to_owned() };
        assert!(siblings.more_cautious(&by, own).is_empty());
        siblings.find_series(&inputs());
        let found = siblings.more_cautious(&by, own).into_iter().map(|one| {
            assert_eq!(
                (one.automation.name.as_str(), &one.owner),
                ("two", &OwnerHash::of(&one.automation, None))
            );
            let is_valid = |text: &Value| text != "by-hnd" && text != "pull-requst";
            let is_valid = other["metadata"]["annotations"].as_object().unwrap().values().all(is_valid);
            let expected = match (other["spec"]["suspend"] == true, is_valid, &one.branches) {
                (true, ..) => Some(Standstill::Suspended),
                (_, false, _) => Some(Standstill::InvalidSettings),
                (.., None) => Some(Standstill::UnknownBranches),
                _ => other["spec"]["policySelector"].is_object().then_some(Standstill::Stalled),
            };
            assert_eq!(one.standstill, expected, "{other}");
            let names = |branches: BTreeSet<BranchName>| -> Vec<String> {
                branches.iter().map(ToString::to_string).collect()
            };
            (one.merge, one.branches.map(names))
        });
        let names = |names: Vec<&str>| -> Vec<String> { names.into_iter().map(str::to_owned).collect() };
        let expected = expected.map(|(merge, branches)| (merge, branches.map(names)));
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected), "{own:?} {branch} {other}");
    }
}

#[test]
fn branches_are_rendered_once_for_a_batch_and_only_if_some_cannot_share_one() {
    let options = || json!({"spec": {"git": {"push": {"options": {"ci.skip": "true"}}}}});
    for (bases, of_two, expected) in [
        (["main", "main", "main"], json!({}), 0),
        (["main", "release", "main"], json!({}), 3),
        (["main", "main", "main"], options(), 3),
    ] {
        let names = ["one", "two", "three"].into_iter().zip(bases);
        let more = |name: &str| if name == "two" { of_two.clone() } else { json!({}) };
        let all = names.map(|(name, base)| automation(name, base, "images", &more(name)));
        let siblings = Siblings::new(all.collect(), |_| true);
        assert_eq!(siblings.known_series(), None);
        let (found, other) = (siblings.find_series(&inputs()), siblings.clone());
        // Another member of the batch.
        assert!(Arc::ptr_eq(&found, &other.known_series().unwrap()));
        assert!(Arc::ptr_eq(&found, &other.find_series(&inputs())));
        assert_eq!(rendered(&siblings), expected, "{bases:?}");
    }
}

#[test]
fn an_automation_that_pushes_commits_claims_its_branches() {
    let push = |name: &str, push: &Value| {
        let more = json!({
            "metadata": {"annotations": {"tagboat.dev/delivery": "push"}},
            "spec": {"git": {"push": push}},
        });
        automation(name, "main", "images", &more)
    };
    let all = vec![
        push("two", &json!({"branch": "images", "refspec": "HEAD:refs/heads/copy"})),
        push("one", &json!({"branch": "images", "refspec": "HEAD:refs/tags/last"})),
        push("none", &json!({})),
    ];
    let siblings = Siblings::new(all, |_| true);
    siblings.find_series(&inputs());
    let pushed = &siblings.0.known.get().unwrap().pushed;
    let pushed: Vec<_> = pushed.iter().map(|(branch, name)| format!("{branch} {}", name.name)).collect();
    assert_eq!(pushed, ["copy two", "images one", "main none"]);
}
