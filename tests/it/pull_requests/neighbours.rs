//! Automations with other paths that select the same policies.

use serde_json::{Value, json};

use super::fleet::{Fleet, actions, labels};
use crate::support::fleet::tag_line;

/// The automations `prod` and `staging`, each with a file of its own.
async fn fleet(name: &str) -> Fleet {
    let fleet = Fleet::new(name).await;
    for path in ["prod/app.yaml", "staging/app.yaml"] {
        fleet.forge.write("main", path, &tag_line("4.0.6")).await;
    }
    fleet
}

fn automations(prod: &Value, staging: &Value) -> [(&'static str, Value); 2] {
    let with = |path: &str, annotations: &Value| {
        let mut all = annotations.clone();
        all["path"] = json!(path);
        all
    };
    [("prod", with("./prod", prod)), ("staging", with("./staging", staging))]
}

/// The pull requests that each automation reports.
fn all_actions(fleet: &Fleet) -> Vec<String> {
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(0), "{run:?}");
    run.json()["automations"].as_array().unwrap().iter().flat_map(actions).collect()
}

/// `staging` could read the policy, so the pull request of `prod` was closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_one_automation_cannot_parse_closes_no_pull_request_of_it() {
    let fleet = fleet("unparsable-prod").await;
    fleet.write_all(&automations(&json!({}), &json!({})), "5.0.3");
    let branches = ["tagboat/default-prod-prod", "tagboat/default-staging-staging"];
    assert_eq!(all_actions(&fleet), branches.map(|branch| format!("{branch}: opened")));
    let broken = format!("a: [\n{}", tag_line("4.0.6"));
    fleet.forge.write("main", "prod/app.yaml", &broken).await;
    for _ in 0..2 {
        let expected = [format!("{}: left", branches[0]), format!("{}: kept", branches[1])];
        assert_eq!(all_actions(&fleet), expected);
    }
    // Nor is it superseded if the automation renders another branch by now.
    let elsewhere = json!({"push-branch": "elsewhere"});
    fleet.write_all(&automations(&elsewhere, &json!({})), "5.0.3");
    all_actions(&fleet);
    assert!(fleet.pulls().await.iter().all(|pull| pull["state"] == "open"));
}

/// It stayed open, and named the branch of `staging` later.
#[tokio::test(flavor = "multi_thread")]
async fn the_window_of_one_automation_keeps_no_superseded_pull_request_of_another_open() {
    let fleet = fleet("windows").await;
    let named = |name: &str| json!({"push-branch": format!("{name}/{{{{ .Image.Tag }}}}")});
    let (prod, mut staging) = (named("prod"), named("staging"));
    fleet.write_all(&automations(&prod, &staging), "5.0.3");
    assert_eq!(all_actions(&fleet), ["prod/5.0.3: opened", "staging/5.0.3: opened"]);
    staging["windows"] = json!("[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]");
    fleet.write_all(&automations(&prod, &staging), "6.0.0");
    let done = all_actions(&fleet);
    assert!(done.contains(&"prod/5.0.3: closed (superseded)".to_owned()), "{done:?}");
    let pulls = fleet.pulls().await;
    let closed: Vec<&Value> = pulls.iter().filter(|pull| pull["state"] == "closed").collect();
    assert_eq!(closed.len(), 1, "{pulls:#?}");
    let body = closed[0]["body"].as_str().unwrap();
    assert!(body.contains("`prod/6.0.0`") && !body.contains("staging"), "{body}");
}

/// `immediately` counted alone, as the other had nothing to change at the moment.
#[tokio::test(flavor = "multi_thread")]
async fn the_caution_of_an_automation_without_a_change_counts() {
    let fleet = fleet("caution").await;
    fleet.forge.write("main", "prod/app.yaml", &tag_line("5.0.3")).await;
    let prod = json!({"push-branch": "images", "pull-request-labels": "[prod]"});
    let staging = json!({
        "push-branch": "images", "pull-request-labels": "[staging]", "pull-request-merge": "immediately",
    });
    fleet.write_all(&automations(&prod, &staging), "5.0.3");
    for verb in ["opened", "kept"] {
        let done = all_actions(&fleet);
        assert!(done.contains(&format!("images: {verb}")), "{done:?}");
        let pull = fleet.pull().await;
        assert_eq!((pull["state"].as_str(), labels(&pull)), (Some("open"), vec!["prod", "staging"]));
    }
}

/// The refusal was only a line of the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_reviewer_of_an_automation_that_joins_is_a_warning() {
    let fleet = fleet("reviewer-later").await;
    let prod = json!({"push-branch": "images"});
    let staging = json!({"push-branch": "images", "pull-request-reviewers": "[ghost]"});
    fleet.write_all(&automations(&prod, &staging)[..1], "5.0.3");
    assert_eq!(all_actions(&fleet), ["images: opened"]);
    fleet.write_all(&automations(&prod, &staging), "5.0.3");
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let number = &fleet.pull().await["number"];
    let warning = format!("pull request #{number}: reviewer \"ghost\" is refused: there is no such user");
    assert!(run.errors.contains(&format!(": {warning}\n")), "{run:?}");
    let reports = run.json()["automations"].as_array().unwrap().clone();
    let warnings: Vec<&Value> =
        reports.iter().flat_map(|report| report["pullRequests"].as_array().unwrap()).collect();
    assert!(warnings.iter().any(|pull| pull["warnings"] == json!([warning])), "{warnings:#?}");
}

/// `immediately` counted alone in a run without the other, and after a typo.
#[tokio::test(flavor = "multi_thread")]
async fn the_caution_of_an_automation_without_a_part_in_the_run_counts() {
    let fleet = fleet("caution-absent").await;
    fleet.forge.write("main", "staging/app.yaml", &tag_line("5.0.3")).await;
    let prod = json!({"push-branch": "images", "pull-request-merge": "immediately"});
    let staging = |merge: &str| json!({"push-branch": "images", "pull-request-merge": merge});
    let run = |merge: &str, arguments: &[&str], status| {
        fleet.write_all(&automations(&prod, &staging(merge)), "5.0.3");
        let run = fleet.run_with(arguments);
        assert_eq!(run.status, Some(status), "{run:?}");
        run.json()["automations"].as_array().unwrap().iter().flat_map(actions).collect::<Vec<_>>()
    };
    let alone: &[&str] = &["--automation", "default/prod"];
    assert_eq!(run("by-hand", alone, 0), ["images: opened"]);
    // Gitea checks in the background whether a pull request can be merged.
    for _ in 0..100 {
        if fleet.pull().await["mergeable"] == true {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(fleet.pull().await["mergeable"], true);
    assert_eq!(run("by-hand", alone, 0), ["images: kept"]);
    let done = run("by-hnd", &[], 1);
    assert!(done.contains(&"images: kept".to_owned()), "{done:?}");
    fleet.lose_state();
    assert_eq!(run("by-hand", alone, 0), ["images: kept"]);
    assert_eq!(run("immediately", alone, 0), ["images: merged"]);
}

/// A typing error kept all pull requests from being merged, and no report named it.
#[tokio::test(flavor = "multi_thread")]
async fn an_automation_with_invalid_annotations_holds_back_only_merges_of_its_branch_and_is_named() {
    let fleet = fleet("caution-invalid").await;
    fleet.forge.write("main", "staging/app.yaml", &tag_line("5.0.3")).await;
    let prod = json!({"push-branch": "images", "pull-request-merge": "immediately"});
    let run = |branch: &str| {
        let staging = json!({"push-branch": branch, "pull-request-merge": "by-hnd"});
        fleet.write_all(&automations(&prod, &staging), "5.0.3");
        let run = fleet.run_with(&[]);
        assert_eq!(run.status, Some(1), "{run:?}");
        let warning = "merges wait for automation default/staging, which may render the same branch and has invalid \
                       annotations: correct them, or suspend it";
        let is_named = run.errors.contains(warning);
        let all = run.json()["automations"].as_array().unwrap().iter().flat_map(actions).collect::<Vec<_>>();
        (all, is_named)
    };
    assert_eq!(run("images"), (vec!["images: opened".to_owned()], true));
    // Gitea checks in the background whether a pull request can be merged.
    for _ in 0..100 {
        if fleet.pull().await["mergeable"] == true {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(run("images"), (vec!["images: kept".to_owned()], true));
    assert_eq!(run("other"), (vec!["images: merged".to_owned()], false));
}

/// A typing error in a selector kept all pull requests from being merged.
#[tokio::test(flavor = "multi_thread")]
async fn an_automation_with_an_invalid_selector_holds_back_only_merges_of_its_branch_and_is_named() {
    let fleet = fleet("caution-selector").await;
    fleet.forge.write("main", "staging/app.yaml", &tag_line("5.0.3")).await;
    let prod = json!({"push-branch": "images", "pull-request-merge": "immediately"});
    let run = |branch: &str| {
        let staging = json!({"push-branch": branch});
        fleet.write_all(&automations(&prod, &staging), "5.0.3");
        let selector = r#""update":{"strategy":"Setters","path":"./staging""#;
        let invalid = r#""policySelector":{"matchExpressions":[{"key":"a","operator":"Is"}]},"update":{"strategy":"Setters","path":"./staging""#;
        fleet.edit_manifests(|text| {
            assert!(text.contains(selector), "{text}");
            text.replace(selector, invalid)
        });
        let run = fleet.run_with(&[]);
        assert_eq!(run.status, Some(1), "{run:?}");
        let warning = "merges wait for automation default/staging, which renders the same branch and is stalled: see its \
                       conditions, or suspend it";
        let is_named = run.errors.contains(warning);
        let all = run.json()["automations"].as_array().unwrap().iter().flat_map(actions).collect::<Vec<_>>();
        (all, is_named)
    };
    assert_eq!(run("images"), (vec!["images: opened".to_owned()], true));
    // Gitea checks in the background whether a pull request can be merged.
    for _ in 0..100 {
        if fleet.pull().await["mergeable"] == true {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(run("images"), (vec!["images: kept".to_owned()], true));
    assert_eq!(run("{{ .Base }}-other"), (vec!["images: merged".to_owned()], false));
}

/// The branch lost the commit if the push journal was lost.
///
/// Otherwise, the condition hid the invalid name.
#[tokio::test(flavor = "multi_thread")]
async fn the_commit_of_an_automation_without_a_usable_name_stays_on_a_shared_branch() {
    for is_lost in [false, true] {
        let fleet = fleet("shared-branchless").await;
        let images = json!({"push-branch": "images"});
        fleet.write_all(&automations(&images, &images), "5.0.3");
        assert!(all_actions(&fleet).contains(&"images: opened".to_owned()));
        let tip = fleet.forge.tip("images").await;
        fleet.write_all(&automations(&json!({"push-branch": "HEAD"}), &images), "6.0.0");
        if is_lost {
            fleet.lose_state();
        }
        for _ in 0..2 {
            let run = fleet.run_with(&[]);
            assert_eq!(run.status, Some(1), "{run:?}");
            assert_eq!(fleet.forge.tip("images").await, tip, "{is_lost}");
            let of =
                |name: &str| fleet.condition_of(&format!("ImageUpdateAutomation/default/{name}"), "Delivery");
            assert!(of("prod").starts_with("False InvalidBranch "), "{is_lost} {}", of("prod"));
            let awaited = "False EditedByOthers branch 'images' is left alone, because it has a commit of automation default/prod";
            assert!(of("staging").starts_with(awaited), "{is_lost} {}", of("staging"));
            assert_eq!(fleet.pull().await["state"], "open");
        }
        fleet.write_all(&automations(&images, &images), "6.0.0");
        assert!(all_actions(&fleet).contains(&"images: refreshed".to_owned()));
        for path in ["prod/app.yaml", "staging/app.yaml"] {
            assert_eq!(fleet.forge.read("images", path).await, tag_line("6.0.0"));
        }
    }
}

/// It was closed, though the branch had the change of the other under review.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_stays_open_while_its_branch_has_a_change_of_an_automation_without_a_forge() {
    let fleet = fleet("change-without-forge").await;
    let prod = json!({"push-branch": "images"});
    let staging = json!({"push-branch": "images", "delivery": "branch"});
    fleet.write_all(&automations(&prod, &staging), "5.0.3");
    assert_eq!(all_actions(&fleet), ["images: opened"]);
    // The value of `prod` reaches the base by another way.
    fleet.forge.write("main", "prod/app.yaml", &tag_line("5.0.3")).await;
    for _ in 0..2 {
        assert_eq!(all_actions(&fleet), ["images: left"]);
        assert_eq!(fleet.pull().await["state"], "open");
        assert_eq!(fleet.forge.read("images", "staging/app.yaml").await, tag_line("5.0.3"));
    }
    fleet.forge.write("main", "staging/app.yaml", &tag_line("5.0.3")).await;
    assert_eq!(all_actions(&fleet), ["images: closed (nothing-left)"]);
}

/// The one without a forge knew of no refusal, and had the branch made anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_branch_is_not_made_anew_for_an_automation_without_a_forge() {
    let fleet = fleet("without-forge").await;
    let prod = json!({"push-branch": "images"});
    let staging = json!({"push-branch": "images", "delivery": "branch"});
    fleet.write_all(&automations(&prod, &staging), "5.0.3");
    assert_eq!(all_actions(&fleet), ["images: opened"]);
    let tip = fleet.forge.tip("images").await;
    fleet.edit(fleet.pull().await["number"].as_u64().unwrap(), json!({"state": "closed"})).await;
    for path in ["prod/app.yaml", "staging/app.yaml"] {
        fleet.forge.write("main", path, &format!("a: 1\n{}", tag_line("4.0.6"))).await;
    }
    for _ in 0..2 {
        assert_eq!(all_actions(&fleet), ["images: left (closed-by-a-person)"]);
        assert_eq!(fleet.forge.tip("images").await, tip);
    }
    // The one with a forge has nothing to change any more, and the image stays refused.
    fleet.forge.write("main", "prod/app.yaml", &tag_line("5.0.3")).await;
    assert_eq!(all_actions(&fleet), Vec::<String>::new());
    assert_eq!(fleet.forge.tip("images").await, tip);
    // All images of the other counted as refused.
    fleet.forge.write("main", "prod/app.yaml", &tag_line("6.0.0")).await;
    fleet.write_all(&automations(&prod, &staging), "6.0.0");
    assert_eq!(all_actions(&fleet), Vec::<String>::new());
    let expected = format!("a: 1\n{}", tag_line("6.0.0"));
    assert_eq!(fleet.forge.read("images", "staging/app.yaml").await, expected);
}

/// The branch got the next image, and its title told of the one before.
#[tokio::test(flavor = "multi_thread")]
async fn the_branch_of_a_pull_request_of_another_automation_is_left_alone() {
    let automation =
        |name: &'static str, path: &str| [(name, json!({"push-branch": "images", "path": path}))];
    for (renamed, is_lost, is_closed) in [
        (automation("next", "./prod"), false, false),
        (automation("next", "./prod"), true, false),
        (automation("fleet", "./"), false, false),
        (automation("fleet", "./"), false, true),
    ] {
        let case = format!("{renamed:?} {is_lost} {is_closed}");
        let fleet = fleet("renamed").await;
        fleet.write_all(&automation("fleet", "./prod"), "5.0.3");
        assert_eq!(all_actions(&fleet), ["images: opened"], "{case}");
        let (tip, number) = (fleet.forge.tip("images").await, fleet.pull().await["number"].as_u64().unwrap());
        fleet.write_all(&renamed, "6.0.0");
        if is_lost {
            fleet.lose_state();
        }
        for _ in 0..2 {
            let run = fleet.run_with(&[]);
            let report = &run.json()["automations"][0];
            assert_eq!(actions(report), ["images: left (edited-by-others)"], "{case}");
            let branch = &report["branches"][0];
            assert_eq!((&branch["action"], fleet.forge.tip("images").await), (&json!("left"), tip.clone()));
            let message = branch["message"].as_str().unwrap();
            let told = format!("#{number} belongs to other automations, or to this one under another name");
            assert!(
                message.contains(&told) && message.contains("remove the last line of its body"),
                "{message}"
            );
            let place = format!("ImageUpdateAutomation/default/{}", renamed[0].0);
            let delivery = fleet.condition_of(&place, "Delivery");
            assert!(delivery.starts_with(&format!("False EditedByOthers {message}")), "{delivery}");
        }
        if is_closed {
            fleet.edit(number, json!({"state": "closed"})).await;
            assert_eq!(all_actions(&fleet), ["images: opened"], "{case}");
            fleet.write_all(&renamed, "5.0.3");
            assert_eq!(all_actions(&fleet), ["images: left (closed-by-a-person)"], "{case}");
            continue;
        }
        if is_lost {
            // Another name is another author here, whose commit stays.
            continue;
        }
        let body = fleet.pull().await["body"].as_str().unwrap().to_owned();
        let (text, _) = body.trim_end().rsplit_once('\n').unwrap();
        fleet.edit(number, json!({"title": "Set 6.0.0", "body": text})).await;
        assert_eq!(all_actions(&fleet), ["images: refreshed"], "{case}");
        assert_eq!(fleet.forge.read("images", "prod/app.yaml").await, tag_line("6.0.0"), "{case}");
        assert_eq!(fleet.pull().await["title"], "Set 6.0.0", "{case}");
    }
}
