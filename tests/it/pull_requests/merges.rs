//! Merges of pull requests.

use serde_json::{Value, json};

use super::fleet::{BRANCH, Fleet, action, actions};
use crate::support::fleet::tag_line;

fn merging(time: &str, method: Option<&str>) -> Value {
    let mut annotations = json!({"pull-request-merge": time});
    if let Some(method) = method {
        annotations["pull-request-merge-method"] = json!(method);
    }
    annotations
}

/// Merges the only pull request, as a person does.
async fn merge_by_hand(fleet: &Fleet, method: &str) {
    let number = fleet.pull().await["number"].as_u64().unwrap();
    for _ in 0..50 {
        let (status, _) =
            fleet.forge.try_call("POST", &format!("pulls/{number}/merge"), json!({"Do": method})).await;
        if status == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(fleet.pull().await["merged"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_are_merged_at_once_by_each_method() {
    for method in [None, Some("commit"), Some("squash"), Some("rebase")] {
        let fleet = Fleet::new("immediately").await;
        fleet.write(&merging("immediately", method), "5.0.3");
        // Gitea checks in the background whether a pull request can be merged, which the second run says.
        let run = || fleet.run_with(&[]).json()["automations"][0].clone();
        let mut report = run();
        for _ in 0..20 {
            if action(&report) == "merged" {
                break;
            }
            assert!(matches!(action(&report).as_str(), "opened" | "kept"), "{report:#}");
            report = run();
        }
        assert_eq!(action(&report), "merged", "{method:?}");
        assert_eq!(fleet.forge.read("main", "app.yaml").await, tag_line("5.0.3"), "{method:?}");
        assert_eq!(fleet.pull().await["merged"], true, "{method:?}");
        // The branch has served its purpose.
        let report = fleet.run();
        assert_eq!(
            (actions(&report), fleet.forge.tip(BRANCH).await),
            (vec![], None),
            "{method:?} {report:#}"
        );
        fleet.write(&merging("by-hand", method), "6.0.0");
        assert_eq!(action(&fleet.run()), "opened", "{method:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_without_rules_merges_nothing_when_it_is_ready() {
    let fleet = Fleet::new("ready").await;
    fleet.write(&merging("when-ready", None), "5.0.3");
    let run = fleet.run_with(&[]);
    let report = &run.json()["automations"][0];
    assert_eq!((run.status, action(report).as_str()), (Some(0), "opened"));
    let pull = fleet.pull().await;
    assert_eq!(pull["state"], "open");
    let (delivery, number) = (fleet.delivery(), &pull["number"]);
    let sentence = format!("pull request #{number} is not merged: ");
    assert!(delivery.starts_with(&format!("False AutoMergeRefused {sentence}")), "{delivery}");
    assert!(delivery.ends_with(&format!("; 1 open: #{number}")), "{delivery}");
    // A run prints it as well.
    let warning = report["pullRequests"][0]["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with(&sentence), "{warning}");
    assert_eq!(run.errors, format!("warning: default/fleet: {warning}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_whom_the_forge_refuses_is_a_warning() {
    let fleet = Fleet::new("reviewer").await;
    fleet.write(&json!({"pull-request-reviewers": "[ghost]"}), "5.0.3");
    let run = fleet.run_with(&[]);
    let report = &run.json()["automations"][0];
    assert_eq!((run.status, action(report).as_str()), (Some(0), "opened"));
    let warning = report["pullRequests"][0]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("ghost"), "{warning}");
    assert_eq!(run.errors, format!("warning: default/fleet: {warning}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_at_the_forge_while_a_window_is_closed() {
    let fleet = Fleet::new("window").await;
    fleet.write(&merging("by-hand", None), "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    let before = fleet.pull().await;
    let mut closed = merging("immediately", None);
    closed["windows"] = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]".into();
    fleet.write(&closed, "5.0.3");
    for _ in 0..2 {
        // Nothing said that the merge waits.
        let report = fleet.run();
        assert_eq!(
            (action(&report).as_str(), &report["outcome"]),
            ("left (waiting)", &json!("waiting")),
            "{report:#}"
        );
        assert_eq!(report["pullRequests"][0]["reason"], "waiting");
        let by = "deny window `long` of automation default/fleet";
        let message = format!("1 value of podinfo waits: {by}; until 2200-01-01T00:00:00Z");
        let expected = json!([{
            "policies": ["default/podinfo"], "reason": "WindowClosed", "by": by, "until": "2200-01-01T00:00:00Z",
            "message": message,
        }]);
        assert_eq!((&report["waiting"], &report["message"]), (&expected, &json!(message)));
        let number = &before["number"];
        let delivery = format!(
            "True Current 1 open: #{number}; a change of #{number} waits: {by}; until 2200-01-01T00:00:00Z"
        );
        assert_eq!(fleet.delivery(), delivery);
        assert_eq!(fleet.condition("UpdatesWaiting"), format!("True WindowClosed {message}"));
        assert_eq!(fleet.condition("Ready"), format!("True Succeeded {message}"));
    }
    assert_eq!(
        (fleet.pull().await["state"].as_str(), &fleet.pull().await["updated_at"]),
        (Some("open"), &before["updated_at"])
    );
    fleet.write(&merging("immediately", None), "5.0.3");
    // Gitea may still check whether it can be merged.
    let report = fleet.run_with(&[]).json()["automations"][0].clone();
    assert!(matches!(action(&report).as_str(), "merged" | "kept"), "{report:#}");
    assert_eq!(report["waiting"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_is_merged_when_its_check_has_passed() {
    let fleet = Fleet::new("checked").await;
    let rule = json!({
        "rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": ["ci"],
    });
    fleet.forge.call("POST", "branch_protections", rule).await;
    fleet.write(&merging("when-ready", None), "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(fleet.pull().await["state"], "open");
    let tip = fleet.forge.tip(BRANCH).await.unwrap();
    fleet.forge.call("POST", &format!("statuses/{tip}"), json!({"context": "ci", "state": "success"})).await;
    // Either the forge merges it by itself, or the next run finds it ready.
    let mut merged = false;
    for _ in 0..50 {
        merged = fleet.pull().await["merged"] == true;
        if merged {
            break;
        }
        fleet.run_with(&[]);
    }
    assert!(merged, "{:#}", fleet.pull().await);
    assert_eq!(fleet.forge.read("main", "app.yaml").await, tag_line("5.0.3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_that_a_person_merged_is_done() {
    let fleet = Fleet::new("by-hand").await;
    fleet.write(&json!({}), "5.0.3");
    fleet.run();
    merge_by_hand(&fleet, "squash").await;
    let report = fleet.run();
    assert_eq!((actions(&report), fleet.forge.tip(BRANCH).await), (vec![], None), "{report:#}");
    assert_eq!(fleet.delivery(), "True Current no pull request is open");
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
}

/// The branch counted as edited by others for ever, and updates stopped.
#[tokio::test(flavor = "multi_thread")]
async fn updates_go_on_after_a_branch_with_a_commit_of_a_person_was_merged() {
    for (method, is_lost, has_moved, is_next) in [
        ("squash", false, false, false),
        ("squash", false, false, true),
        ("squash", true, false, true),
        ("squash", false, true, true),
        ("rebase", false, false, true),
        ("merge", false, false, true),
    ] {
        let case = format!("{method}: lost {is_lost}, moved {has_moved}, next {is_next}");
        let fleet = Fleet::new("merged-edited").await;
        fleet.write(&json!({}), "5.0.3");
        fleet.run();
        fleet.forge.write(BRANCH, "notes.md", "words\n").await;
        fleet.forge.write("main", "other.md", "more\n").await;
        merge_by_hand(&fleet, method).await;
        if has_moved {
            fleet.forge.write(BRANCH, "late.md", "words\n").await;
        }
        if is_lost {
            fleet.lose_state();
        }
        if is_next {
            fleet.write(&json!({}), "6.0.0");
        }
        let report = fleet.run();
        match (has_moved, is_next) {
            (true, _) => {
                assert_eq!(action(&report), "left (edited-by-others)", "{case}");
                assert_eq!(fleet.forge.read(BRANCH, "late.md").await, "words\n", "{case}");
            }
            (false, true) => {
                assert_eq!(action(&report), "opened", "{case}");
                assert_eq!(fleet.forge.read(BRANCH, "app.yaml").await, tag_line("6.0.0"), "{case}");
            }
            (false, false) => {
                assert_eq!((actions(&report), fleet.forge.tip(BRANCH).await), (vec![], None), "{case}");
            }
        }
        assert_eq!(fleet.forge.read("main", "notes.md").await, "words\n", "{case}");
    }
}

/// It was kept for ever, and nothing said why.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_waits_for_an_approval_or_a_check_says_so() {
    let rules = [
        json!({"rule_name": "main", "required_approvals": 1, "enable_push": true}),
        json!({
            "rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": ["ci"],
        }),
    ];
    for rule in rules {
        let fleet = Fleet::new("blocked").await;
        fleet.forge.call("POST", "branch_protections", rule.clone()).await;
        fleet.write(&merging("immediately", None), "5.0.3");
        let mut reports = Vec::new();
        // Gitea checks in the background whether a pull request can be merged.
        for _ in 0..20 {
            let run = fleet.run_with(&[]);
            assert_eq!(run.status, Some(0), "{run:?}");
            reports.push((run.json()["automations"][0].clone(), run.errors));
            let answered = |(report, _): &(Value, String)| {
                let told = report["pullRequests"][0]["warnings"][0].as_str();
                told.is_some_and(|told| !told.to_lowercase().contains("try again later"))
            };
            if reports.iter().filter(|report| answered(report)).count() == 2 {
                break;
            }
        }
        let number = &fleet.pull().await["number"];
        for (report, errors) in &reports[reports.len() - 2..] {
            let warning = report["pullRequests"][0]["warnings"][0].as_str().unwrap_or_default();
            assert!(warning.starts_with(&format!("pull request #{number} is not merged: ")), "{report:#}");
            assert_eq!(*errors, format!("warning: default/fleet: {warning}\n"), "{rule}");
            let delivery = fleet.delivery();
            assert!(delivery.starts_with(&format!("False AutoMergeRefused {warning}")), "{delivery}");
        }
        assert_eq!(fleet.pull().await["merged"], false);
    }
}

/// Gitea took the schedule, and never merged.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_method_that_the_repository_forbids_is_reported() {
    let fleet = Fleet::new("method").await;
    let place = format!("repos/bot/{}", fleet.forge.name);
    let rules = json!({"has_pull_requests": true, "allow_squash_merge": false});
    fleet.forge.wire.call("PATCH", &place, rules).await;
    let rule = json!({"rule_name": "main", "required_approvals": 1, "enable_push": true});
    fleet.forge.call("POST", "branch_protections", rule).await;
    for verb in ["opened", "kept"] {
        fleet.write(&merging("when-ready", Some("squash")), "5.0.3");
        let run = fleet.run_with(&[]);
        assert_eq!((run.status, action(&run.json()["automations"][0]).as_str()), (Some(0), verb));
        let delivery = fleet.delivery();
        let expected = "is not merged: the repository does not permit the merge method \"squash\"";
        assert!(delivery.starts_with("False AutoMergeRefused ") && delivery.contains(expected), "{delivery}");
    }
    fleet.write(&merging("when-ready", Some("rebase")), "5.0.3");
    assert_eq!(action(&fleet.run()), "kept");
    assert!(fleet.delivery().starts_with("True Current 1 open"), "{}", fleet.delivery());
}

/// A fleet with a pull request that Gitea merges once the check `ci` has passed.
async fn scheduled(name: &str, annotations: &Value) -> Fleet {
    let fleet = Fleet::new(name).await;
    let rule = json!({
        "rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": ["ci"],
    });
    fleet.forge.call("POST", "branch_protections", rule).await;
    fleet.write(annotations, "5.0.3");
    assert!(action(&fleet.run()).ends_with("opened"));
    assert!(is_scheduled(&fleet).await);
    // It stays so while nothing changes.
    assert!(action(&fleet.run()).ends_with("kept"));
    assert!(is_scheduled(&fleet).await);
    fleet
}

/// True if Gitea merges the only pull request once its check has passed.
async fn is_scheduled(fleet: &Fleet) -> bool {
    let place = format!("pulls/{}/merge", fleet.pull().await["number"]);
    for _ in 0..50 {
        // A second request is refused.
        let request = json!({"Do": "merge", "merge_when_checks_succeed": true});
        match fleet.forge.try_call("POST", &place, request).await {
            (409, answer) if answer["message"].as_str().unwrap().contains("already scheduled") => {
                return true;
            }
            (201, _) => {
                fleet.forge.call("DELETE", &place, json!(null)).await;
                return false;
            }
            // It still computes whether the pull request can be merged.
            _ => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
    panic!("Gitea does not say whether it merges {place}")
}

/// Passes the check of a branch, and runs until its pull request is merged.
async fn pass_check(fleet: &Fleet, branch: &str) {
    let tip = fleet.forge.tip(branch).await.unwrap();
    fleet.forge.call("POST", &format!("statuses/{tip}"), json!({"context": "ci", "state": "success"})).await;
    for _ in 0..50 {
        if fleet.pull().await["merged"] == true {
            return;
        }
        fleet.run_with(&[]);
    }
    panic!("{:#}", fleet.pull().await);
}

/// The messages of the commits of `main`, the newest first.
async fn messages(fleet: &Fleet) -> Vec<String> {
    let log = fleet.forge.call("GET", "commits?sha=main&stat=false&limit=10", json!(null)).await;
    let message = |one: &Value| one["commit"]["message"].as_str().unwrap().to_owned();
    log.as_array().unwrap().iter().map(message).collect()
}

/// Gitea merged during the freeze, as it had been asked before.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_and_a_window_cancel_the_auto_merge_and_their_end_asks_again() {
    let ready = merging("when-ready", Some("squash"));
    let mut denied = ready.clone();
    denied["windows"] = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]".into();
    let frozen = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "annotations": {"tagboat.dev/freeze": "incident 4711"}},
    });
    for is_freeze in [true, false] {
        let fleet = scheduled("frozen", &ready).await;
        if is_freeze {
            fleet.edit_manifests(|text| format!("{text}---\n{frozen}\n"));
        } else {
            fleet.write(&denied, "5.0.3");
        }
        // A dry run cancels nothing.
        assert_eq!(fleet.run_with(&["--dry-run"]).status, Some(0));
        assert!(is_scheduled(&fleet).await);
        assert_eq!(action(&fleet.run()), "left (waiting)");
        assert!(!is_scheduled(&fleet).await);
        // The next image does not change that.
        assert_eq!(action(&fleet.run()), "left (waiting)");
        assert!(!is_scheduled(&fleet).await);
        fleet.write(&ready, "5.0.3");
        assert_eq!(action(&fleet.run()), "kept");
        assert!(is_scheduled(&fleet).await);
        pass_check(&fleet, BRANCH).await;
    }
}

/// Gitea merged the commit of the person, as it had been asked before.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_a_person_cancels_the_auto_merge() {
    let fleet = scheduled("pushed", &merging("when-ready", Some("squash"))).await;
    fleet.forge.write(BRANCH, "notes.md", "words\n").await;
    assert_eq!(action(&fleet.run()), "left (edited-by-others)");
    assert!(!is_scheduled(&fleet).await);
}

/// Gitea merged although one of the automations wants people to merge.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_automation_with_by_hand_cancels_the_auto_merge() {
    let shared = |time: &str| {
        let mut annotations = merging(time, None);
        annotations["push-branch"] = "tagboat/shared".into();
        annotations
    };
    let fleet = scheduled("joined", &shared("when-ready")).await;
    let both = |time: &str| [("fleet", shared("when-ready")), ("other", shared(time))];
    fleet.write_all(&both("by-hand"), "5.0.3");
    for _ in 0..2 {
        assert_eq!(fleet.run_with(&[]).status, Some(0));
        assert!(!is_scheduled(&fleet).await);
    }
    fleet.write_all(&both("when-ready"), "5.0.3");
    assert_eq!(fleet.run_with(&[]).status, Some(0));
    assert!(is_scheduled(&fleet).await);
    pass_check(&fleet, "tagboat/shared").await;
}

/// The commit on the base had the message of the image before.
#[tokio::test(flavor = "multi_thread")]
async fn an_auto_merge_has_the_message_of_the_last_image() {
    let ready = merging("when-ready", Some("squash"));
    let fleet = scheduled("message", &ready).await;
    fleet.write(&ready, "6.0.0");
    assert_eq!(action(&fleet.run()), "refreshed");
    if !is_scheduled(&fleet).await {
        // Gitea still computed whether the new commit can be merged.
        assert_eq!(action(&fleet.run()), "kept");
        assert!(is_scheduled(&fleet).await);
    }
    let title = fleet.pull().await["title"].as_str().unwrap().to_owned();
    assert!(title.contains("6.0.0"), "{title}");
    pass_check(&fleet, BRANCH).await;
    let messages = messages(&fleet).await;
    assert!(messages[0].starts_with(&title), "{messages:#?}");
    assert_eq!(fleet.forge.read("main", "app.yaml").await, tag_line("6.0.0"));
}

/// The base got two commits: that of Gitea, and our own.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_at_once_cancels_the_auto_merge_before() {
    let fleet = scheduled("once", &merging("when-ready", Some("squash"))).await;
    let before = messages(&fleet).await.len();
    fleet.write(&merging("immediately", Some("squash")), "5.0.3");
    // The check is missing.
    assert_eq!(action(&fleet.run_with(&[]).json()["automations"][0]), "kept");
    assert!(!is_scheduled(&fleet).await);
    pass_check(&fleet, BRANCH).await;
    let after = messages(&fleet).await;
    assert_eq!(after.len(), before + 1, "{after:#?}");
}
