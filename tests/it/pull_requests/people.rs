//! Actions of people on pull requests, which are never lost.

use serde_json::{Value, json};

use super::fleet::{BRANCH, Fleet, action, actions, labels};
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::gitea::GiteaRepository;
use crate::support::manifests::policy;

/// A fleet with an open pull request, and its number.
async fn opened(name: &str) -> (Fleet, u64) {
    let fleet = Fleet::new(name).await;
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    let number = fleet.pull().await["number"].as_u64().unwrap();
    (fleet, number)
}

/// Hands the branch of a pull request back, as a person does.
async fn hand_back(fleet: &Fleet, number: u64) {
    fleet.forge.call("POST", "labels", json!({"name": "tagboat/rebuild", "color": "#00aa00"})).await;
    let labels = json!({"labels": ["tagboat/rebuild"]});
    fleet.forge.call("POST", &format!("issues/{number}/labels"), labels).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_stands_until_there_is_a_new_image() {
    let (fleet, number) = opened("refused").await;
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.edit(number, json!({"state": "closed"})).await;
    // The base changes a file of the branch, and the state is lost.
    fleet.forge.write("main", "app.yaml", &format!("a: 1\n{}", tag_line("4.0.6"))).await;
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        let report = fleet.run();
        assert_eq!(action(&report), "left (closed-by-a-person)");
        assert_eq!(report["branches"][0]["reason"], "closed-by-a-person");
        assert_eq!((fleet.pulls().await.len(), fleet.forge.tip(BRANCH).await), (1, tip.clone()));
        assert_eq!(fleet.delivery(), format!("True Current refused by a person: #{number}"));
        // It was called written.
        let held = fleet.explain().with_status(1).json()["policies"][0].clone();
        let reason = format!("a person has closed pull request #{number} without a merge; ");
        assert_eq!(held["state"], "held", "{held:#}");
        assert!(held["reason"].as_str().unwrap().starts_with(&reason), "{held:#}");
    }
    // It is taken up again once it is open again.
    fleet.edit(number, json!({"state": "open"})).await;
    assert_eq!(action(&fleet.run()), "refreshed");
    fleet.edit(number, json!({"state": "closed"})).await;
    fleet.run();
    fleet.write(&json!({}), "6.0.0");
    let due = fleet.explain().with_status(0).json()["policies"][0].clone();
    assert_eq!(due["state"], "written", "{due:#}");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(fleet.pulls().await.len(), 2);
}

/// It was opened again: without the last line, nothing was refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_stands_if_the_person_replaces_the_body() {
    let (fleet, number) = opened("replaced").await;
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.edit(number, json!({"body": "We stay at 4.0.6.", "state": "closed"})).await;
    assert_eq!(action(&fleet.run()), "left (closed-by-a-person)");
    // The base changes a file of the branch, and the state is lost.
    fleet.forge.write("main", "app.yaml", &format!("a: 1\n{}", tag_line("4.0.6"))).await;
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        assert_eq!(action(&fleet.run()), "left (closed-by-a-person)");
        assert_eq!((fleet.pulls().await.len(), fleet.forge.tip(BRANCH).await), (1, tip.clone()));
        assert_eq!(fleet.delivery(), format!("True Current refused by a person: #{number}"));
    }
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(action(&fleet.run()), "kept");
}

/// It was opened again: the branch told no more which images were refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_stands_if_the_person_replaces_the_body_and_deletes_the_branch() {
    let (fleet, number) = opened("replaced-deleted").await;
    fleet.edit(number, json!({"body": "We stay at 4.0.6.", "state": "closed"})).await;
    let path = format!("branches/{}", BRANCH.replace('/', "%2F"));
    fleet.forge.call("DELETE", &path, Value::Null).await;
    for change in ["nothing", "the base", "the state"] {
        match change {
            "the base" => {
                let text = format!("a: 1\n{}", tag_line("4.0.6"));
                drop(fleet.forge.write("main", "app.yaml", &text).await);
            }
            "the state" => fleet.lose_state(),
            _ => {}
        }
        assert_eq!(action(&fleet.run()), "left (closed-by-a-person)", "{change}");
        assert_eq!((fleet.pulls().await.len(), fleet.forge.tip(BRANCH).await), (1, None), "{change}");
        assert_eq!(fleet.delivery(), format!("True Current refused by a person: #{number}"), "{change}");
    }
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(action(&fleet.run()), "kept");
}

/// Its images counted as refused for ever, because the refused branch lacks the file.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_file_that_a_refused_branch_lacks_was_not_refused() {
    let (fleet, number) = opened("replaced-moved").await;
    fleet.edit(number, json!({"body": "We stay at 4.0.6.", "state": "closed"})).await;
    assert_eq!(action(&fleet.run()), "left (closed-by-a-person)");
    // People move the file.
    let found = fleet.forge.call("GET", "contents/app.yaml?ref=main", Value::Null).await;
    let gone = json!({"sha": found["sha"], "message": "Move it", "branch": "main"});
    fleet.forge.call("DELETE", "contents/app.yaml", gone).await;
    fleet.forge.write("main", "apps/app.yaml", &tag_line("4.0.6")).await;
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(fleet.forge.read(BRANCH, "apps/app.yaml").await, tag_line("6.0.0"));
    assert_eq!(action(&fleet.run()), "kept");
}

/// The next pull request of the branch got the image.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_pull_request_gets_no_image_that_a_person_has_refused() {
    let (fleet, number) = opened("refused-before").await;
    fleet.edit(number, json!({"state": "closed"})).await;
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.write(&json!({}), "5.0.3");
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        let report = fleet.run();
        assert_eq!(action(&report), "left (closed-by-a-person)");
        assert_eq!(fleet.forge.tip(BRANCH).await, tip);
        // The open one is none that a person has refused.
        let open = &fleet.pulls().await[1]["number"];
        let message = report["pullRequests"][0]["message"].as_str().unwrap();
        let refused = format!(": a person has refused the images by pull request #{number}");
        assert!(message.contains(&format!("#{open} ")) && message.ends_with(&refused), "{message}");
        assert_eq!(fleet.delivery(), format!("True Current 1 open: #{open}; refused by a person: #{number}"));
    }
    fleet.write(&json!({}), "7.0.0");
    assert_eq!(action(&fleet.run()), "refreshed");
    // The person takes it up again.
    let pulls = fleet.pulls().await;
    fleet.edit(pulls[1]["number"].as_u64().unwrap(), json!({"state": "closed"})).await;
    fleet.edit(number, json!({"state": "open"})).await;
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "refreshed");
    assert_eq!(fleet.forge.read(BRANCH, "app.yaml").await, tag_line("5.0.3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_a_person_wrote_stays() {
    let (fleet, number) = opened("text").await;
    let body = fleet.pull().await["body"].as_str().unwrap().to_owned();
    let body = format!("Please wait until Monday.\n\n{body}");
    fleet.edit(number, json!({"title": "Wait", "body": body})).await;
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "refreshed");
    let pull = fleet.pull().await;
    assert_eq!(pull["title"], "Wait");
    assert!(pull["body"].as_str().unwrap().starts_with("Please wait until Monday."), "{pull:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_a_person_stays_until_the_branch_is_handed_back() {
    let (fleet, number) = opened("commit").await;
    let review = fleet.forge.write(BRANCH, "notes.md", "words\n").await;
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "left (edited-by-others)");
    assert_eq!(fleet.forge.tip(BRANCH).await, Some(review.clone()));
    let delivery = fleet.delivery();
    let expected = format!("False EditedByOthers branch '{BRANCH}' has commit {}", &review[..7]);
    assert!(delivery.starts_with(&expected), "{delivery}");
    // Nothing is left to change, and the words of the person still stand.
    fleet.forge.write("main", "app.yaml", &tag_line("6.0.0")).await;
    assert_eq!(action(&fleet.run()), "left (edited-by-others)");
    assert_eq!(fleet.pull().await["state"], "open");
    fleet.write(&json!({}), "7.0.0");
    hand_back(&fleet, number).await;
    assert_eq!(action(&fleet.run()), "refreshed");
    let pull = fleet.pull().await;
    assert_eq!((labels(&pull), fleet.forge.read(BRANCH, "app.yaml").await), (vec![], tag_line("7.0.0")));
    assert_ne!(fleet.forge.tip(BRANCH).await, Some(review));
}

/// The label was removed, and had no effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_handed_back_ends_if_nothing_is_left_to_change() {
    let (fleet, number) = opened("handed-back-end").await;
    fleet.forge.write(BRANCH, "notes.md", "words\n").await;
    fleet.forge.write("main", "app.yaml", &tag_line("5.0.3")).await;
    assert_eq!(action(&fleet.run()), "left (edited-by-others)");
    hand_back(&fleet, number).await;
    let report = fleet.run();
    assert_eq!(action(&report), "closed (nothing-left)");
    // It was still reported as left.
    let branches = report["branches"].as_array().unwrap();
    assert_eq!((branches.len(), branches[0]["action"].as_str()), (1, Some("deleted")), "{report:#}");
    let pull = fleet.pull().await;
    assert_eq!((pull["state"].as_str(), labels(&pull)), (Some("closed"), vec![]));
    assert_eq!(fleet.forge.tip(BRANCH).await, None);
}

/// The label stayed for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_handed_back_ends_if_another_supersedes_it() {
    let fleet = Fleet::new("handed-back-superseded").await;
    let annotations = json!({"push-branch": "x/{{ .Image.Tag }}"});
    fleet.write(&annotations, "5.0.3");
    assert_eq!(actions(&fleet.run()), ["x/5.0.3: opened"]);
    let number = fleet.pull().await["number"].as_u64().unwrap();
    fleet.forge.write("x/5.0.3", "notes.md", "words\n").await;
    fleet.write(&annotations, "6.0.0");
    assert_eq!(actions(&fleet.run()), ["x/5.0.3: left (edited-by-others)", "x/6.0.0: opened"]);
    hand_back(&fleet, number).await;
    assert_eq!(actions(&fleet.run()), ["x/5.0.3: closed (superseded)", "x/6.0.0: kept"]);
    assert_eq!(labels(&fleet.pulls().await[0]), Vec::<&str>::new());
    assert_eq!(fleet.forge.tip("x/5.0.3").await, None);
}

/// It was closed and its branch deleted, though the image was on no other branch.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_without_the_image_supersedes_no_other() {
    let fleet = Fleet::new("superseded-lacking").await;
    let template = r#"x/{{ if eq .Image.Tag "5.0.3" }}a{{ else }}b{{ end }}"#;
    let annotations = json!({"push-branch": template});
    fleet.write(&annotations, "6.0.0");
    assert_eq!(actions(&fleet.run()), ["x/b: opened"]);
    let number = fleet.pull().await["number"].as_u64().unwrap();
    fleet.forge.write("x/b", "notes.md", "words\n").await;
    fleet.write(&annotations, "5.0.3");
    assert_eq!(actions(&fleet.run()), ["x/a: opened", "x/b: left (edited-by-others)"]);
    // The pull request of the branch is left alone, without the image.
    fleet.write(&annotations, "7.0.0");
    for _ in 0..2 {
        assert_eq!(actions(&fleet.run()), ["x/a: left", "x/b: left (edited-by-others)"]);
        assert_eq!(fleet.pulls().await[1]["state"], "open");
        assert!(fleet.forge.tip("x/a").await.is_some());
    }
    hand_back(&fleet, number).await;
    let expected = ["x/a: closed (superseded)", "x/b: refreshed"];
    let dry_run = fleet.run_with(&["--dry-run"]).json()["automations"][0].clone();
    assert_eq!(actions(&dry_run), expected);
    assert_eq!(actions(&fleet.run()), expected);
    assert_eq!(fleet.forge.tip("x/a").await, None);
}

/// The whole new base came into the pull request.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_with_a_pull_request_into_another_base_is_left_alone() {
    let (fleet, number) = opened("other-base").await;
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.forge.call("POST", "branches", json!({"new_branch_name": "release"})).await;
    fleet.forge.write("release", "secret.md", "words\n").await;
    fleet.edit_manifests(|text| text.replace(r#""branch":"main""#, r#""branch":"release""#));
    for _ in 0..2 {
        // It warns of a state for another branch.
        let report = fleet.run_with(&[]).with_status(0).json()["automations"][0].clone();
        assert_eq!(action(&report), "left (edited-by-others)");
        assert_eq!((fleet.pulls().await.len(), fleet.forge.tip(BRANCH).await), (1, tip.clone()));
        let delivery = fleet.delivery();
        let expected = format!(
            "False EditedByOthers branch '{BRANCH}' is left alone, because the open pull request #{number}"
        );
        assert!(delivery.starts_with(&expected), "{delivery}");
    }
    // A person brings it to the new base.
    fleet.edit(number, json!({"base": "release"})).await;
    assert_eq!(action(&fleet.run()), "kept");
    assert_eq!(fleet.pull().await["base"]["ref"], "release");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_a_person_deleted_is_not_made_again() {
    let (fleet, number) = opened("deleted").await;
    let path = format!("branches/{}", BRANCH.replace('/', "%2F"));
    fleet.forge.call("DELETE", &path, Value::Null).await;
    for _ in 0..2 {
        assert_eq!(action(&fleet.run()), "left (closed-by-a-person)");
        assert_eq!((fleet.pulls().await.len(), fleet.forge.tip(BRANCH).await), (1, None));
    }
    assert_eq!(fleet.pull().await["number"], number);
}

/// Nothing was delivered any more, and the report said that a person had refused it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_that_is_reopened_without_its_branch_is_taken_up_again() {
    let (fleet, number) = opened("reopened").await;
    let path = format!("branches/{}", BRANCH.replace('/', "%2F"));
    for is_lost in [false, true] {
        fleet.forge.call("DELETE", &path, Value::Null).await;
        assert_eq!(action(&fleet.run()), "left (closed-by-a-person)");
        assert_eq!(fleet.pull().await["state"], "closed");
        fleet.edit(number, json!({"state": "open"})).await;
        if is_lost {
            fleet.lose_state();
        }
        assert_eq!(action(&fleet.run()), "refreshed");
        assert_eq!(fleet.forge.read(BRANCH, "app.yaml").await, tag_line("5.0.3"));
        assert_eq!(action(&fleet.run()), "kept");
        assert_eq!(fleet.delivery(), format!("True Current 1 open: #{number}"));
    }
}

/// Tagboat had deleted the branch itself, after it had closed the pull request.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_pull_request_that_is_reopened_gets_its_branch_again() {
    let (fleet, number) = opened("reopened-old").await;
    fleet.edit(number, json!({"state": "closed"})).await;
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    fleet.forge.write("main", "app.yaml", &tag_line("6.0.0")).await;
    assert_eq!(action(&fleet.run()), "closed (nothing-left)");
    fleet.run();
    assert_eq!(fleet.forge.tip(BRANCH).await, None);
    // The server closes pull requests of the branch some moments after its deletion.
    for _ in 0..20 {
        fleet.edit(number, json!({"state": "open"})).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        if fleet.pulls().await[0]["state"] == "open" {
            break;
        }
    }
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "refreshed");
    assert_eq!(fleet.forge.read(BRANCH, "app.yaml").await, tag_line("5.0.3"));
    assert_eq!(fleet.pulls().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_that_a_person_opened_is_adopted() {
    let fleet = Fleet::new("adopted").await;
    // The branch was delivered before pull requests were wanted.
    fleet.write(&json!({"delivery": "branch"}), "5.0.3");
    fleet.run();
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.forge.call("POST", "pulls", json!({"head": BRANCH, "base": "main", "title": "Mine"})).await;
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "kept");
    let pull = fleet.pull().await;
    assert_eq!((pull["title"].as_str(), fleet.forge.tip(BRANCH).await), (Some("Mine"), tip));
    assert!(pull["body"].as_str().unwrap().contains("[//]: # (tagboat 1"), "{pull:#}");
    assert_eq!(action(&fleet.run()), "kept");
    assert_eq!(fleet.pull().await["updated_at"], pull["updated_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_stays_open_while_its_policy_has_no_image() {
    let (fleet, _) = opened("imageless").await;
    fleet.write_with(&[("fleet", json!({}))], "", crate::support::gitea::GiteaRepository::token());
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(fleet.pull().await["state"], "open");
    // Also if its branch would be another one.
    fleet.write_with(
        &[("fleet", json!({"push-branch": "elsewhere"}))],
        &policy("default", "other", IMAGE, "1.0.0"),
        crate::support::gitea::GiteaRepository::token(),
    );
    assert!(actions(&fleet.run()).iter().all(|action| !action.contains("closed")));
    assert_eq!(fleet.pull().await["state"], "open");
}

/// The plan had no change of the file, and the branch was deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_parsed_closes_no_pull_request() {
    let (fleet, _) = opened("unparsable").await;
    let tip = fleet.forge.tip(BRANCH).await;
    let broken = format!("a: [\n{}", tag_line("4.0.6"));
    fleet.forge.write("main", "app.yaml", &broken).await;
    for _ in 0..2 {
        let report = fleet.run();
        assert_eq!(action(&report), "left");
        assert_eq!(report["unparsable"][0]["file"], "app.yaml");
        assert_eq!(
            (fleet.pull().await["state"].as_str(), fleet.forge.tip(BRANCH).await),
            (Some("open"), tip.clone())
        );
    }
    fleet.forge.write("main", "app.yaml", &format!("a: 1\n{}", tag_line("4.0.6"))).await;
    assert_eq!(action(&fleet.run()), "refreshed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_loses_its_branch_closes_no_pull_request() {
    let fleet = Fleet::new("branchless").await;
    let template = format!(r#"{{{{ if eq .Image.Tag "5.0.3" }}}}{BRANCH}{{{{ end }}}}"#);
    let annotations = json!({"push-branch": template});
    fleet.write(&annotations, "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    fleet.write(&annotations, "6.0.0");
    for _ in 0..2 {
        let run = fleet.run_with(&[]);
        assert!(run.status == Some(1) && run.errors.contains("ImagePolicy default/podinfo"), "{run:?}");
        assert_eq!(fleet.pull().await["state"], "open");
        assert!(fleet.delivery().starts_with("False InvalidBranch "), "{}", fleet.delivery());
        // It was called written.
        let held = fleet.explain().with_status(1).json()["policies"][0].clone();
        assert_eq!(held["state"], "held", "{held:#}");
    }
    fleet.write(&annotations, "5.0.3");
    assert_eq!(action(&fleet.run()), "kept");
}

/// The automation's own commit counted as one of others, which hid the invalid name.
#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_name_is_reported_also_after_the_state_was_lost() {
    let fleet = Fleet::new("branchless-lost").await;
    let named = |name: &str| json!({"push-branch": name});
    fleet.write(&named("images"), "5.0.3");
    assert_eq!(action(&fleet.run()), "images: opened");
    let tip = fleet.forge.tip("images").await;
    for (name, sentence) in [("HEAD", "renders to HEAD"), ("{{ .Policy.Labels.team }}", "<no value>")] {
        fleet.write(&named(name), "6.0.0");
        fleet.lose_state();
        for _ in 0..2 {
            let run = fleet.run_with(&[]);
            assert!(run.status == Some(1) && !run.errors.contains("of others"), "{run:?}");
            let delivery = fleet.delivery();
            assert!(
                delivery.starts_with("False InvalidBranch ") && delivery.contains(sentence),
                "{delivery}"
            );
            assert_eq!(
                (&fleet.pull().await["state"], fleet.forge.tip("images").await),
                (&json!("open"), tip.clone())
            );
        }
    }
    fleet.write(&named("images"), "6.0.0");
    fleet.lose_state();
    assert_eq!(action(&fleet.run()), "images: refreshed");
}

/// A part of the commit counted as one of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_loses_one_of_its_policies_is_made_anew_also_after_the_state_was_lost() {
    let fleet = Fleet::new("part-lost").await;
    let other = "ghcr.io/stefanprodan/other";
    let line = tag_line("4.0.6");
    let marked = line.replace("default:podinfo", "default:other").replacen("tag", "other", 1);
    fleet.forge.write("main", "app.yaml", &format!("{line}{marked}")).await;
    let policies = |tag: &str| {
        format!("{}---\n{}", policy("default", "podinfo", IMAGE, tag), policy("default", "other", other, tag))
    };
    let write = |template: &str, tag: &str| {
        let automations = [("fleet", json!({"push-branch": template}))];
        fleet.write_with(&automations, &policies(tag), GiteaRepository::token());
    };
    write("images", "5.0.3");
    assert_eq!(action(&fleet.run()), "images: opened");
    write(r#"{{ if eq .Policy.Name "podinfo" }}images{{ end }}"#, "6.0.0");
    fleet.lose_state();
    let run = fleet.run_with(&[]);
    assert_eq!(
        (run.status, action(&run.json()["automations"][0])),
        (Some(1), "images: refreshed".to_owned())
    );
    assert!(fleet.delivery().starts_with("False InvalidBranch "), "{}", fleet.delivery());
    let text = fleet.forge.read("images", "app.yaml").await;
    assert_eq!(text, format!("{}{marked}", tag_line("6.0.0")));
}

/// The pull request was theirs, from a branch that Tagboat pushes to.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_of_people_is_not_deleted_after_their_merge() {
    let fleet = Fleet::new("develop").await;
    fleet.forge.call("POST", "branches", json!({"new_branch_name": "develop"})).await;
    fleet.forge.write("develop", "notes.md", "words\n").await;
    fleet.forge.write("develop", "app.yaml", &tag_line("5.0.3")).await;
    fleet.forge.call("POST", "pulls", json!({"head": "develop", "base": "main", "title": "Ours"})).await;
    let number = fleet.pull().await["number"].as_u64().unwrap();
    for _ in 0..100 {
        let (status, _) =
            fleet.forge.try_call("POST", &format!("pulls/{number}/merge"), json!({"Do": "merge"})).await;
        if status == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(fleet.pull().await["merged"], true);
    let tip = fleet.forge.tip("develop").await;
    fleet.write(&json!({"push-branch": "develop"}), "5.0.3");
    for _ in 0..2 {
        fleet.run();
        assert_eq!(fleet.forge.tip("develop").await, tip);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_refuses_the_login_is_an_error_of_its_own() {
    let fleet = Fleet::new("login").await;
    fleet.write(&json!({}), "5.0.3");
    let annotations = [("fleet", json!({}))];
    // The login of git works, that of the API does not.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "default", "name": "forge"}, "stringData": {"token": "wr0ng-t0ken"},
    });
    let policies = policy("default", "podinfo", IMAGE, "5.0.3") + &format!("---\n{secret}\n");
    fleet.write_with(&annotations, &policies, crate::support::gitea::GiteaRepository::token());
    fleet.edit_manifests(|text| {
        text.replace(
            r#""tagboat.dev/forge":"gitea""#,
            r#""tagboat.dev/forge":"gitea","tagboat.dev/forge-secret":"forge""#,
        )
    });
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.errors.contains("refuses the credentials of Secret default/forge"), "{run:?}");
    assert!(!format!("{run:?}").contains("wr0ng-t0ken"), "{run:?}");
    let delivery = fleet.delivery();
    let begin = format!("False Forbidden 127.0.0.1:{} refuses the credentials", fleet.forge.port());
    assert!(delivery.starts_with(&begin), "{delivery}");
    // It is not known that the change was refused, so no branch is made.
    assert_eq!((fleet.pulls().await, fleet.forge.tip(BRANCH).await), (vec![], None));
}
