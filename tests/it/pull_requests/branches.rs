//! Many branches, protected ones, and the branches of two tenants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::fleet::{Fleet, actions, carried};
use crate::support::fleet::IMAGE;
use crate::support::gitea::{GiteaRepository, OTHER, OWNER};
use crate::support::http_front::{Front, Reply};
use crate::support::manifests::{marker, policy};

fn line(namespace: &str, name: &str, tag: &str) -> String {
    format!("{name}: {tag} {}\n", marker(&format!("{namespace}:{name}:tag")))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_branches_are_in_one_push() {
    let fleet = Fleet::new("many").await;
    let names: Vec<String> = (0..200).map(|number| format!("p{number:03}")).collect();
    let lines = |tag: &str| names.iter().map(|name| line("default", name, tag)).collect::<String>();
    fleet.forge.write("main", "app.yaml", &lines("1.0.0")).await;
    let policies: String = names.iter().map(|name| policy("default", name, IMAGE, "2.0.0")).collect();
    let annotations = json!({"delivery": "branch", "push-branch": "x/{{ .Policy.Name }}"});
    fleet.write_with(&[("fleet", annotations)], &policies, GiteaRepository::token());
    // A push for each would be refused by none, so their number is told by the front.
    let port = fleet.forge.url().split([':', '/']).nth(4).unwrap().parse().unwrap();
    let front = Front::before(port, |_| Reply::Forward);
    let (from, to) = (format!("127.0.0.1:{port}"), front.address());
    // Gitea takes its time for so many branches beside other tests.
    let slow = |text: String| text.replace(r#""interval":"1m","#, r#""interval":"1m","timeout":"5m","#);
    fleet.edit_manifests(|text| slow(text.replace(&from, &to)));
    let report = fleet.run();
    let branches = report["branches"].as_array().unwrap();
    assert!(branches.iter().all(|branch| branch["action"] == "created"), "{report:#}");
    assert_eq!(branches.len(), names.len());
    let pushes = || {
        front
            .requests()
            .iter()
            .filter(|one| one.method == "POST" && one.path.ends_with("git-receive-pack"))
            .count()
    };
    assert_eq!(pushes(), 1);
    for name in ["p000", "p199"] {
        let expected =
            lines("1.0.0").replace(&line("default", name, "1.0.0"), &line("default", name, "2.0.0"));
        assert_eq!(fleet.forge.read(&format!("x/{name}"), "app.yaml").await, expected);
    }
    fleet.run();
    assert_eq!(pushes(), 1);
}

/// Such images were called written.
///
/// The report lacked the branches, and `Delivery` claimed that none was open.
#[tokio::test(flavor = "multi_thread")]
async fn images_that_a_failure_or_a_person_keeps_out_are_told_apart_from_the_others() {
    let fleet = Fleet::new("failing").await;
    let lines: Vec<String> = [("api", "1.0.0"), ("same", "2.0.0"), ("web", "1.0.0")]
        .map(|(name, tag)| line("default", name, tag))
        .to_vec();
    fleet.forge.write("main", "app.yaml", &lines.concat()).await;
    let policies: String =
        ["api", "same", "web"].map(|name| policy("default", name, IMAGE, "2.0.0")).concat();
    let annotations = json!({"push-branch": "x/{{ .Policy.Name }}"});
    fleet.write_with(&[("fleet", annotations)], &policies, GiteaRepository::token());
    let port = fleet.forge.port();
    let is_failing = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&is_failing);
    let front = Front::before(port, move |request| {
        match failing.load(Ordering::SeqCst) && request.path.starts_with("/api/") {
            true => Reply::Answer { status: 503, headers: Vec::new(), body: Vec::new() },
            false => Reply::Forward,
        }
    });
    let (own, address) = (format!("127.0.0.1:{port}"), front.address());
    fleet.edit_manifests(|text| text.replace(&own, &address));
    let states = || {
        let explained = fleet.explain().with_status(1).json();
        let one = |policy: &Value| {
            let [name, state] = ["policy", "state"].map(|member| policy[member].as_str().unwrap().to_owned());
            (format!("{name} {state}"), policy["reason"].as_str().unwrap().to_owned())
        };
        let mut states: Vec<_> = explained["policies"].as_array().unwrap().iter().map(one).collect();
        states.sort();
        states
    };
    let named =
        |states: &[(String, String)]| states.iter().map(|(state, _)| state.clone()).collect::<Vec<_>>();
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(1), "{run:?}");
    let left = ["x/api: left (forge-failed)", "x/web: left (forge-failed)"];
    assert_eq!(actions(&run.json()["automations"][0]), left);
    let delivery = fleet.delivery();
    assert!(delivery.starts_with("False ForgeUnavailable "), "{delivery}");
    assert!(delivery.ends_with("; not delivered: api, web"), "{delivery}");
    let found = states();
    assert_eq!(named(&found), ["default/api held", "default/same written", "default/web held"]);
    assert!(
        found[0].1.starts_with("the last run did not put it on a branch; `Delivery` says: "),
        "{found:?}"
    );
    is_failing.store(false, Ordering::SeqCst);
    assert_eq!(actions(&fleet.run()), ["x/api: opened", "x/web: opened"]);
    let pulls = fleet.pulls().await;
    let number = |branch: &str| {
        let pull = pulls.iter().find(|pull| pull["head"]["ref"] == branch).unwrap();
        pull["number"].as_u64().unwrap()
    };
    let (api, web) = (number("x/api"), number("x/web"));
    fleet.edit(web, json!({"state": "closed"})).await;
    assert_eq!(actions(&fleet.run()), ["x/api: kept", "x/web: left (closed-by-a-person)"]);
    let expected =
        format!("True Current 1 open: #{api}; refused by a person: #{web}; not delivered: web (#{web})");
    assert_eq!(fleet.delivery(), expected);
    let found = states();
    assert_eq!(named(&found), ["default/api written", "default/same written", "default/web held"]);
    assert!(found[2].1.starts_with(&format!("a person has closed pull request #{web} ")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_pull_requests_are_listed_once_for_all_automations_before_git() {
    let fleet = Fleet::new("listed").await;
    let automations = ["fleet", "other", "third"].map(|name| (name, json!({})));
    fleet.write_all(&automations, "5.0.3");
    let port = fleet.forge.url().split([':', '/']).nth(4).unwrap().parse().unwrap();
    let front = Front::before(port, |_| Reply::Forward);
    let (from, to) = (format!("127.0.0.1:{port}"), front.address());
    fleet.edit_manifests(|text| text.replace(&from, &to));
    let run = fleet.run_with(&[]);
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    let requests = front.requests();
    let listings = requests.iter().filter(|one| {
        one.method == "GET" && one.path.ends_with("/pulls") && one.query.contains("state=open")
    });
    // The other one is that of the round after git.
    assert_eq!(listings.count(), 2);
    assert_eq!(fleet.pulls().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_branch_is_named_with_advice_and_stops_no_other() {
    let fleet = Fleet::new("protected").await;
    fleet
        .forge
        .write("main", "app.yaml", &(line("default", "web", "1.0.0") + &line("default", "api", "1.0.0")))
        .await;
    let rule = json!({"rule_name": "x/web", "enable_push": false});
    fleet.forge.call("POST", "branch_protections", rule).await;
    let policies = policy("default", "web", IMAGE, "2.0.0") + &policy("default", "api", IMAGE, "2.0.0");
    let annotations = json!({"push-branch": "x/{{ .Policy.Name }}"});
    fleet.write_with(&[("fleet", annotations)], &policies, GiteaRepository::token());
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.errors.contains("the server protects this branch: allow the login of git"), "{run:?}");
    let report = &run.json()["automations"][0];
    let made: Vec<&Value> = report["branches"].as_array().unwrap().iter().map(|one| &one["action"]).collect();
    assert_eq!(made, ["created", "failed"]);
    assert_eq!(actions(report), ["x/api: opened"]);
    assert_eq!(fleet.forge.tip("x/web").await, None);
}

/// The advice was to give the user the right to push.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_repository_is_named_with_advice() {
    let fleet = Fleet::new("archived").await;
    let place = format!("repos/{OWNER}/{}", fleet.forge.name);
    fleet.forge.wire.call("PATCH", &place, json!({"archived": true})).await;
    fleet.write(&json!({}), "5.0.3");
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(1), "{run:?}");
    let advice = "the repository is archived, so it is read-only; unarchive it, or suspend the automation";
    assert!(run.errors.contains(advice), "{run:?}");
    assert!(!run.errors.contains("right to read and to push"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_in_the_way_of_another_is_named_with_advice() {
    let fleet = Fleet::new("in-the-way").await;
    fleet.forge.call("POST", "branches", json!({"new_branch_name": "tagboat"})).await;
    fleet.write(&json!({}), "5.0.3");
    let run = fleet.run_with(&[]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.errors.contains("in the way, because one branch cannot be a folder of another"), "{run:?}");
}

/// The manifests of one tenant, who reaches the repository by an address of its own.
fn tenant(namespace: &str, (user, token): (&str, &str), url: &str) -> String {
    let metadata = |name: &str| json!({"namespace": namespace, "name": name});
    let mut source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata("fleet"),
        "spec": {"interval": "1m", "url": url, "ref": {"branch": "main"}, "secretRef": {"name": "git"}},
    });
    source["metadata"]["annotations"] = json!({"tagboat.dev/forge": "gitea"});
    let mut automation = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageUpdateAutomation", "metadata": metadata("fleet"),
        "spec": {
            "interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"name": "fleet", "email": "bot@example.com"}}},
            "update": {"strategy": "Setters", "path": "./"},
        },
    });
    automation["metadata"]["annotations"] = json!({"tagboat.dev/delivery": "pull-request"});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata("git"),
        "stringData": {"username": user, "password": token},
    });
    let policy = policy(namespace, "podinfo", IMAGE, "5.0.3");
    format!("{policy}---\n{secret}\n---\n{source}\n---\n{automation}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_of_one_repository_send_their_own_tokens_only() {
    let fleet = Fleet::new("tenants").await;
    let permission = json!({"permission": "write"});
    fleet.forge.call("PUT", &format!("collaborators/{OTHER}"), permission).await;
    fleet
        .forge
        .write("main", "app.yaml", &(line("a", "podinfo", "4.0.6") + &line("b", "podinfo", "4.0.6")))
        .await;
    let port: u16 = fleet.forge.url().split([':', '/']).nth(4).unwrap().parse().unwrap();
    let fronts = [0, 1].map(|_| Front::before(port, |_| Reply::Forward));
    let logins = [("bot", GiteaRepository::token()), (OTHER, GiteaRepository::other_token())];
    let address = |front: &Front| fleet.forge.url().replace(&format!("127.0.0.1:{port}"), &front.address());
    let text = tenant("a", logins[0], &address(&fronts[0])) + &tenant("b", logins[1], &address(&fronts[1]));
    fleet.write(&json!({}), "5.0.3");
    fleet.edit_manifests(|_| text);
    // The second run has everything cached.
    for _ in 0..2 {
        let run = fleet.run_with(&[]);
        assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    }
    assert_eq!(fleet.pulls().await.len(), 2);
    for (front, (_, token)) in fronts.iter().zip(logins) {
        let (tokens, writes) = carried(front);
        assert_eq!(tokens, BTreeSet::from([token.to_owned()]));
        for write in ["git-receive-pack", "pulls"] {
            assert!(writes.contains(write), "{write}: {writes:?}");
        }
    }
}
