//! The life of a pull request: opened, refreshed, closed.

use serde_json::json;

use super::fleet::{BRANCH, Fleet, action, actions, labels};
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::gitea::GiteaRepository;
use crate::support::manifests::{marker, policy};

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_is_opened_kept_and_refreshed() {
    let fleet = Fleet::new("opened").await;
    let annotations = json!({"pull-request-labels": "[images, team/ops]"});
    fleet.write(&annotations, "5.0.3");
    let main = fleet.forge.tip("main").await;
    let report = fleet.run();
    assert_eq!(action(&report), "opened");
    let pull = fleet.pull().await;
    let (number, url) = (pull["number"].as_u64().unwrap(), pull["html_url"].as_str().unwrap());
    let tip = fleet.forge.tip(BRANCH).await.unwrap();
    let own = &report["pullRequests"][0];
    assert_eq!(own["message"], format!("opened pull request #{number} {url} '{BRANCH}' -> 'main'"));
    assert_eq!((&own["number"], &own["url"], &own["commit"]), (&json!(number), &json!(url), &json!(tip)));
    assert_eq!((&own["base"], &own["title"], &own["reason"]), (&json!("main"), &pull["title"], &json!(null)));
    assert_eq!(pull["title"], "Update podinfo to 5.0.3");
    let body = pull["body"].as_str().unwrap();
    assert!(
        body.contains("4.0.6") && body.lines().last().unwrap().starts_with("[//]: # (tagboat 1"),
        "{body}"
    );
    assert_eq!(labels(&pull), ["images", "team/ops"]);
    assert_eq!(fleet.delivery(), format!("True Current 1 open: #{number}"));
    assert_eq!(fleet.forge.tip("main").await, main);

    // Neither a second run nor a lost state writes anything.
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        let report = fleet.run();
        assert_eq!(action(&report), "kept");
        let own = ["outcome", "message", "waiting"].map(|member| &report[member]);
        assert_eq!(own, [&json!("unchanged"), &json!("repository up-to-date"), &json!(null)], "{report:#}");
        let again = fleet.pull().await;
        assert_eq!((&again["updated_at"], &again["head"]["sha"]), (&pull["updated_at"], &json!(tip)));
    }

    // A new image is on the same pull request.
    fleet.write(&annotations, "6.0.0");
    let report = fleet.run();
    assert_eq!(action(&report), "refreshed");
    let refreshed = fleet.pull().await;
    assert_eq!(
        (&refreshed["number"], &refreshed["title"]),
        (&json!(number), &json!("Update podinfo to 6.0.0"))
    );
    assert_ne!(refreshed["head"]["sha"], json!(tip));
    assert_eq!(fleet.forge.read(BRANCH, "app.yaml").await, tag_line("6.0.0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_rebuilt_only_if_the_base_changes_one_of_its_files() {
    let fleet = Fleet::new("moved").await;
    fleet.write(&json!({}), "5.0.3");
    fleet.run();
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.forge.write("main", "other.yaml", "a: 1\n").await;
    assert_eq!(action(&fleet.run()), "kept");
    assert_eq!(fleet.forge.tip(BRANCH).await, tip);
    fleet.forge.write("main", "app.yaml", &format!("a: 1\n{}", tag_line("4.0.6"))).await;
    assert_eq!(action(&fleet.run()), "refreshed");
    assert_eq!(fleet.forge.read(BRANCH, "app.yaml").await, format!("a: 1\n{}", tag_line("5.0.3")));
    assert_eq!(fleet.pulls().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_with_nothing_left_is_closed_and_its_branch_deleted() {
    let fleet = Fleet::new("nothing").await;
    fleet.write(&json!({}), "5.0.3");
    fleet.run();
    fleet.forge.write("main", "app.yaml", &tag_line("5.0.3")).await;
    assert_eq!(action(&fleet.run()), "closed (nothing-left)");
    let pull = fleet.pull().await;
    assert_eq!(pull["state"], "closed");
    let body = pull["body"].as_str().unwrap();
    assert!(body.starts_with("Closed by Tagboat: nothing is left to change on `main`."), "{body}");
    let report = fleet.run();
    assert_eq!((actions(&report), report["branches"][0]["action"].as_str()), (vec![], Some("deleted")));
    assert_eq!(fleet.forge.tip(BRANCH).await, None);
    assert_eq!(fleet.delivery(), "True Current no pull request is open");
    // The next image is a pull request of its own.
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(fleet.pulls().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_branch_supersedes_a_pull_request() {
    let fleet = Fleet::new("superseded").await;
    let by_version = json!({"push-branch": "images/{{ .Policy.Name }}-{{ .Image.Tag }}"});
    fleet.write(&by_version, "5.0.3");
    assert_eq!(actions(&fleet.run()), ["images/podinfo-5.0.3: opened"]);
    fleet.write(&by_version, "6.0.0");
    let expected = ["images/podinfo-5.0.3: closed (superseded)", "images/podinfo-6.0.0: opened"];
    // A dry run takes the pull request that it would open for open.
    let dry_run = fleet.run_with(&["--dry-run"]).json()["automations"][0].clone();
    assert_eq!(actions(&dry_run), expected);
    let branch = &dry_run["branches"][0];
    assert_eq!(branch["reason"], "abandoned");
    assert_eq!(branch["message"], "branch 'images/podinfo-5.0.3' has the images of no policy any more");
    let before = fleet.forge.tip("images/podinfo-5.0.3").await;
    assert!(before.is_some());
    let report = fleet.run();
    assert_eq!(actions(&report), expected);
    // Its branch stayed.
    let branch = &report["branches"][0];
    assert_eq!((&branch["branch"], &branch["action"]), (&json!("images/podinfo-5.0.3"), &json!("deleted")));
    assert_eq!(branch["message"], "deleted branch 'images/podinfo-5.0.3'");
    assert_eq!((&report["outcome"], &report["branches"][1]["action"]), (&json!("pushed"), &json!("created")));
    assert_eq!(fleet.forge.tip("images/podinfo-5.0.3").await, None);
    assert_eq!(actions(&fleet.run()), ["images/podinfo-6.0.0: kept"]);
    let pulls = fleet.pulls().await;
    let states: Vec<_> = pulls.iter().map(|pull| pull["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["closed", "open"]);
    let body = pulls[0]["body"].as_str().unwrap();
    assert!(body.starts_with("Closed by Tagboat: superseded by `images/podinfo-6.0.0`."), "{body}");
}

/// The branch and its pull request are left alone.
#[tokio::test(flavor = "multi_thread")]
async fn the_branch_of_a_superseded_pull_request_with_a_commit_of_others_stays() {
    let fleet = Fleet::new("superseded-review").await;
    let by_version = json!({"push-branch": "images/{{ .Policy.Name }}-{{ .Image.Tag }}"});
    fleet.write(&by_version, "5.0.3");
    fleet.run();
    let review = fleet.forge.write("images/podinfo-5.0.3", "notes.md", "words\n").await;
    fleet.write(&by_version, "6.0.0");
    let report = fleet.run();
    assert_eq!(report["branches"][0]["reason"], "edited-by-others", "{report:#}");
    assert_eq!(fleet.forge.tip("images/podinfo-5.0.3").await, Some(review));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_for_each_policy_or_one_for_two_automations() {
    let fleet = Fleet::new("bundles").await;
    let line = |name: &str| format!("{name}: 1.0.0 {}\n", marker(&format!("default:{name}:tag")));
    fleet.forge.write("main", "app.yaml", &(line("web") + &line("api"))).await;
    let policies = |tag: &str| policy("default", "web", IMAGE, tag) + &policy("default", "api", IMAGE, tag);
    let write = |automations: &[(&str, serde_json::Value)], tag: &str| {
        fleet.write_with(automations, &policies(tag), GiteaRepository::token());
    };
    write(&[("fleet", json!({"push-branch": "{{ .Policy.Name }}"}))], "2.0.0");
    assert_eq!(actions(&fleet.run()), ["api: opened", "web: opened"]);
    assert_eq!(fleet.forge.read("web", "app.yaml").await, line("web").replace('1', "2") + &line("api"));

    // Two automations share a branch, and their settings are united.
    let fleet = Fleet::new("shared").await;
    fleet.forge.write("main", "app.yaml", &(line("web") + &line("api"))).await;
    let setting = |label: &str| json!({"push-branch": "images", "pull-request-labels": format!("[{label}]")});
    fleet.write_with(
        &[("fleet", setting("one")), ("other", setting("two"))],
        &policies("2.0.0"),
        GiteaRepository::token(),
    );
    assert_eq!(actions(&fleet.run()), ["images: opened"]);
    let pull = fleet.pull().await;
    assert_eq!(labels(&pull), ["one", "two"]);
    let body = pull["body"].as_str().unwrap();
    assert!(body.contains("default/fleet") && body.contains("default/other"), "{body}");
    assert_eq!(actions(&fleet.run()), ["images: kept"]);
    assert_eq!(fleet.pull().await["updated_at"], pull["updated_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_make_title_and_body() {
    let fleet = Fleet::new("templates").await;
    let annotations = json!({
        "pull-request-title": "{{ .Branch }} into {{ .Base }}",
        "pull-request-body": "Images: {{ range .Changed.Changes }}{{ .NewValue }}{{ end }}",
        "pull-request-draft": "true",
    });
    fleet.write(&annotations, "5.0.3");
    fleet.run();
    let pull = fleet.pull().await;
    assert_eq!(pull["title"], format!("WIP: {BRANCH} into main"));
    assert!(pull["body"].as_str().unwrap().starts_with("Images: 5.0.3\n"), "{pull:#}");
}

/// The branch was pushed, and then there was no pull request.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_cannot_be_rendered_pushes_nothing() {
    let fleet = Fleet::new("no-text").await;
    for annotation in ["pull-request-title", "pull-request-body"] {
        // The name of the field is wrong, and the template is one.
        fleet.write(&json!({ annotation: "{{ (index .Changed.Changes 0).Nope }}" }), "5.0.3");
        for arguments in [&[][..], &["--dry-run"]] {
            let failed = fleet.run_with(arguments).with_status(1);
            let begin = format!(
                "default/fleet: failed to update source: the annotation tagboat.dev/{annotation} cannot be rendered: "
            );
            assert!(failed.only_error().starts_with(&begin), "{failed:?}");
        }
        assert_eq!((fleet.pulls().await, fleet.forge.tip(BRANCH).await), (vec![], None));
        for condition in ["Delivery", "Ready"] {
            let told = fleet.condition(condition);
            let begin = format!(
                "False InvalidSettings failed to update source: the annotation tagboat.dev/{annotation}"
            );
            assert!(told.starts_with(&begin), "{told}");
        }
    }
    fleet.write(&json!({}), "5.0.3");
    let report = fleet.run();
    assert_eq!(action(&report), "opened");
    let number = fleet.pull().await["number"].clone();
    assert_eq!(fleet.delivery(), format!("True Current 1 open: #{number}"));
    // An open one stays as it is.
    let tip = fleet.forge.tip(BRANCH).await;
    fleet.write(&json!({"pull-request-body": "{{ .Nope }}"}), "6.0.0");
    fleet.run_with(&[]).with_status(1);
    assert_eq!(
        (fleet.pull().await["title"].clone(), fleet.forge.tip(BRANCH).await),
        (json!("Update podinfo to 5.0.3"), tip)
    );
    let told = fleet.delivery();
    assert!(told.ends_with(&format!("; 1 open: #{number}")), "{told}");
}

/// The answer was a bare 404.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_url_of_the_api_is_told() {
    let fleet = Fleet::new("wrong-url").await;
    for (url, words) in [
        ("/", "404, with a text instead of JSON: check that tagboat.dev/forge-url leads to the API"),
        (
            "/api/v1/api/v1",
            "404, with a text instead of JSON: check that tagboat.dev/forge-url leads to the API",
        ),
        // The API is right, and the repository is another one.
        ("/api/v1", "not found: check that tagboat.dev/forge-url leads to the API that has the repository"),
    ] {
        fleet.write(&json!({}), "5.0.3");
        fleet.edit_manifests(|text| {
            let given = format!(r#""tagboat.dev/forge":"gitea","tagboat.dev/forge-url":"{url}""#);
            text.replace(r#""tagboat.dev/forge":"gitea""#, &given)
        });
        if url == "/api/v1" {
            let path = format!("repos/{}/{}", crate::support::gitea::OWNER, fleet.forge.name);
            fleet.forge.wire.call("PATCH", &path, json!({"has_pull_requests": false})).await;
        }
        let failed = fleet.run_with(&[]).with_status(1);
        let begin = format!("127.0.0.1:{} refuses to list pull requests: {words}", fleet.forge.port());
        assert!(failed.errors.contains(&begin), "{failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_the_pull_request() {
    let fleet = Fleet::new("dry").await;
    fleet.write(&json!({}), "5.0.3");
    let run = fleet.run_with(&["--dry-run"]).with_status(0);
    let report = &run.json()["automations"][0];
    assert_eq!(action(report), "opened");
    let own = &report["pullRequests"][0];
    assert_eq!(own["title"], "Update podinfo to 5.0.3");
    assert_eq!(own["message"], format!("would open pull request '{BRANCH}' -> 'main'"));
    assert!(own["body"].as_str().unwrap().contains("5.0.3"), "{own:#}");
    assert!(report["diff"].as_str().unwrap().contains("+tag: 5.0.3"), "{report:#}");
    assert_eq!((fleet.pulls().await, fleet.forge.tip(BRANCH).await), (vec![], None));
}
