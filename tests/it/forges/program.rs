//! The life cycle of pull requests by `tagboat run`, at test servers beside git.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::served::{AZURE_DEVOPS, BITBUCKET, BITBUCKET_DATA_CENTER, GITHUB, GITLAB, Served, ServedFleet};
use crate::github::server::description::Description as GithubDescription;
use crate::pull_requests::fleet::{BRANCH, action, actions};
use crate::support::content::file;
use crate::support::fleet::tag_line;
use crate::support::forges::description::Description;
use crate::support::forges::hub::{PullState, Style, TOKEN, USER};

#[test]
fn pull_requests_live_at_github() {
    let fleets = lives(&GITHUB);
    let description = GithubDescription::load("github.json");
    for sent in fleets.iter().flat_map(|fleet| fleet.hub.exchanges()) {
        let path = sent.path.strip_prefix(&["api".to_owned(), "v3".to_owned()][..]);
        // The description has neither GraphQL nor the removal of a label, and two forms of added labels.
        let Some(path) = path.filter(|path| sent.method != "delete" && path.last().unwrap() != "labels")
        else {
            continue;
        };
        let (path, body) = (format!("/{}", path.join("/")), sent.body.unwrap_or_default());
        description.check_request(&sent.method.to_uppercase(), &path, &body).unwrap();
    }
}

#[test]
fn merge_requests_live_at_gitlab() {
    lives(&GITLAB);
}

#[test]
fn pull_requests_live_at_bitbucket() {
    lives(&BITBUCKET);
}

#[test]
fn pull_requests_live_at_bitbucket_data_center() {
    lives(&BITBUCKET_DATA_CENTER);
}

#[test]
fn pull_requests_live_at_azure_devops() {
    let fleets = lives(&AZURE_DEVOPS);
    let description = Description::read("azure-devops-7.1.json").with_status("pullrequests", 201);
    for exchange in fleets.iter().flat_map(|fleet| fleet.hub.exchanges()) {
        description.check(&exchange);
    }
}

/// Runs every part of the life cycle; returns the servers.
fn lives(served: &'static Served) -> [ServedFleet; 4] {
    [opened_and_refreshed(served), closed(served), superseded(served), merged(served)]
}

fn opened_and_refreshed(served: &'static Served) -> ServedFleet {
    let fleet = ServedFleet::new(served);
    let mut annotations = json!({"pull-request-reviewers": format!("[{}]", served.reviewer)});
    if served.has_labels {
        annotations["pull-request-labels"] = json!("[images, fleet]");
    }
    if served.has_assignees {
        annotations["pull-request-assignees"] = json!(format!("[{USER}]"));
    }
    fleet.write(&annotations, "5.0.3");
    let main = fleet.hub.repository.id("main");
    let report = fleet.run();
    assert_eq!(action(&report), "opened");
    let (opened, count) = fleet.newest();
    assert_eq!((count, opened.head.as_str(), opened.base.as_str()), (1, BRANCH, "main"));
    assert_eq!(
        (opened.title.as_str(), &opened.reviewers[..]),
        ("Update podinfo to 5.0.3", &[USER.to_owned()][..])
    );
    let last = opened.body.lines().last().unwrap();
    assert!(opened.body.contains("4.0.6") && last.starts_with("[//]: # (tagboat 1"), "{}", opened.body);
    if served.has_labels {
        assert_eq!(opened.labels, ["images", "fleet"]);
    }
    if served.has_assignees {
        assert_eq!(opened.assignees, [USER]);
    }
    let tip = fleet.hub.tip(&opened).unwrap();
    assert_eq!(report["pullRequests"][0]["commit"], json!(tip));
    assert_eq!(fleet.hub.repository.id("main"), main);

    // Neither a second run nor a lost state writes anything.
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        assert_eq!(action(&fleet.run()), "kept");
        let again = fleet.newest().0;
        assert_eq!((again.version, fleet.hub.tip(&again)), (opened.version, Some(tip.clone())));
    }

    // A new image is on the same pull request, and the text of a person stays.
    fleet.write(&annotations, "6.0.0");
    assert_eq!(action(&fleet.run()), "refreshed");
    assert_eq!(fleet.newest().0.title, "Update podinfo to 6.0.0");
    fleet.hub.change(1, |pull| {
        pull.title = "Wait".to_owned();
        pull.body = format!("Please wait until Monday.\n\n{}", pull.body);
    });
    fleet.write(&annotations, "7.0.0");
    assert_eq!(action(&fleet.run()), "refreshed");
    let (refreshed, count) = fleet.newest();
    assert_eq!((refreshed.title.as_str(), count), ("Wait", 1));
    assert!(refreshed.body.starts_with("Please wait until Monday."), "{}", refreshed.body);
    assert_eq!(refreshed.reviewers, [USER]);
    assert_eq!(fleet.hub.repository.file(BRANCH, "app.yaml"), tag_line("7.0.0").as_bytes());
    fleet
}

/// Texts of people lost the word, and branches their pull requests.
#[test]
fn a_password_that_is_a_word_of_a_text_and_of_a_branch_changes_neither() {
    for served in [&GITHUB, &GITLAB, &BITBUCKET, &BITBUCKET_DATA_CENTER, &AZURE_DEVOPS] {
        let fleet = ServedFleet::new(served);
        let branch = format!("{TOKEN}/web");
        let annotations = json!({"push-branch": branch});
        fleet.write(&annotations, "5.0.3");
        assert_eq!(action(&fleet.run()), format!("{branch}: opened"), "{}", served.forge);
        let text = format!("The {TOKEN} of the other cluster stays.");
        fleet.hub.change(1, |pull| pull.body = format!("{text}\n\n{}", pull.body));
        fleet.write(&annotations, "6.0.0");
        assert_eq!(action(&fleet.run()), format!("{branch}: refreshed"), "{}", served.forge);
        let (refreshed, count) = fleet.newest();
        assert_eq!((refreshed.title.as_str(), count), ("Update podinfo to 6.0.0", 1), "{}", served.forge);
        assert!(refreshed.body.starts_with(&text), "{}: {}", served.forge, refreshed.body);
    }
}

#[test]
fn a_short_password_that_a_forge_puts_into_a_title_is_not_shown() {
    for served in [&GITHUB, &GITLAB, &BITBUCKET, &BITBUCKET_DATA_CENTER, &AZURE_DEVOPS] {
        let fleet = ServedFleet::new(served);
        fleet.write(&json!({}), "5.0.3");
        assert_eq!(action(&fleet.run()), "opened");
        let title = format!("Wait for {TOKEN}");
        fleet.hub.change(1, |pull| pull.title.clone_from(&title));
        for (tag, expected) in [("5.0.3", "kept"), ("6.0.0", "refreshed")] {
            fleet.write(&json!({}), tag);
            let run = fleet.run_any();
            let report = &run.json()["automations"][0];
            assert_eq!(action(report), expected, "{}: {run:?}", served.forge);
            assert_eq!(report["pullRequests"][0]["title"], "Wait for ••••", "{}", served.forge);
            assert!(!run.output.contains(TOKEN) && !run.errors.contains(TOKEN), "{}: {run:?}", served.forge);
            assert_eq!(fleet.newest().0.title, title, "{}", served.forge);
        }
    }
}

/// The text is that of a listing which took longer than a text stays recent.
#[test]
fn text_that_a_person_writes_during_a_slow_listing_stays() {
    let listings = Arc::new(AtomicUsize::new(2));
    let fleet = ServedFleet::with(&GITHUB, {
        let listings = Arc::clone(&listings);
        move |hub, call| {
            let reply = (GITHUB.respond)(hub, call);
            let is_listing = call.method == "GET" && call.query("state") == Some("open");
            if is_listing && listings.fetch_add(1, Ordering::Relaxed) == 1 {
                hub.change(1, |pull| pull.title = "Wait".to_owned());
                sleep(Duration::from_millis(1_200));
            }
            reply
        }
    });
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    fleet.write(&json!({}), "6.0.0");
    // The first listing is for git.
    listings.store(0, Ordering::Relaxed);
    let failed = fleet.run_any();
    assert_eq!((failed.status, listings.load(Ordering::Relaxed)), (Some(1), 2), "{failed:?}");
    assert_eq!(fleet.newest().0.title, "Wait");
    assert_eq!(action(&fleet.run()), "refreshed");
    let (refreshed, _) = fleet.newest();
    assert!(refreshed.title == "Wait" && refreshed.body.contains("6.0.0"), "{refreshed:?}");
}

#[test]
fn a_pull_request_in_a_merge_queue_is_not_rebuilt_until_it_has_left_the_queue() {
    let fleet = ServedFleet::new(&GITHUB);
    fleet.hub.require_check();
    fleet.hub.merge_by_queue();
    let later = json!({"pull-request-merge": "when-ready", "pull-request-merge-method": "squash"});
    fleet.write(&later, "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(action(&fleet.run()), "kept");
    // It waits for the check in front of the queue.
    assert!(fleet.newest().0.scheduled.is_some());
    fleet.hub.pass_check();
    assert_eq!(fleet.hub.queue(), Some(vec![1]));

    let tip = fleet.hub.repository.id(BRANCH);
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        fleet.write(&later, "6.0.0");
        assert_eq!(action(&fleet.run()), "left (in-merge-queue)");
        assert_eq!((fleet.hub.repository.id(BRANCH), fleet.hub.queue()), (tip.clone(), Some(vec![1])));
    }

    // It is ready already when it has left.
    fleet.hub.dequeue(1);
    assert_eq!(action(&fleet.run()), "refreshed");
    assert_eq!(fleet.hub.repository.file(BRANCH, "app.yaml"), tag_line("6.0.0").as_bytes());
    assert_eq!(action(&fleet.run()), "kept");
    assert_eq!((fleet.hub.queue(), fleet.newest().1), (Some(vec![1]), 1));
    fleet.hub.merge(1, None, Style::Squash).unwrap();
    fleet.hub.dequeue(1);
    assert_eq!((actions(&fleet.run()), fleet.hub.repository.id(BRANCH)), (vec![], None));
}

fn closed(served: &'static Served) -> ServedFleet {
    let fleet = ServedFleet::new(served);
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    // A refusal stands until there is a new image.
    fleet.hub.change(1, |pull| pull.state = PullState::Closed);
    let tip = fleet.hub.repository.id(BRANCH);
    for is_lost in [false, true] {
        if is_lost {
            fleet.lose_state();
        }
        assert_eq!(action(&fleet.run()), "left (closed-by-a-person)");
        assert_eq!((fleet.newest().1, fleet.hub.repository.id(BRANCH)), (1, tip.clone()));
    }
    fleet.write(&json!({}), "6.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(fleet.newest().1, 2);

    // Nothing is left to change on the base.
    fleet.hub.repository.commit("main", "By hand", &[file("app.yaml", tag_line("6.0.0"))]);
    assert_eq!(action(&fleet.run()), "closed (nothing-left)");
    let (ended, _) = fleet.newest();
    assert_eq!(ended.state, PullState::Closed);
    assert!(
        ended.body.starts_with("Closed by Tagboat: nothing is left to change on `main`."),
        "{}",
        ended.body
    );
    assert_eq!((actions(&fleet.run()), fleet.hub.repository.id(BRANCH)), (vec![], None));
    fleet.write(&json!({}), "7.0.0");
    assert_eq!(action(&fleet.run()), "opened");
    assert_eq!(fleet.newest().1, 3);
    fleet
}

fn superseded(served: &'static Served) -> ServedFleet {
    let fleet = ServedFleet::new(served);
    let by_version = json!({"push-branch": "images/{{ .Policy.Name }}-{{ .Image.Tag }}"});
    fleet.write(&by_version, "5.0.3");
    assert_eq!(actions(&fleet.run()), ["images/podinfo-5.0.3: opened"]);
    fleet.write(&by_version, "6.0.0");
    let both = ["images/podinfo-5.0.3: closed (superseded)", "images/podinfo-6.0.0: opened"];
    assert_eq!(actions(&fleet.run()), both);
    let pulls = fleet.hub.pulls();
    assert_eq!((pulls[0].state, pulls[1].state), (PullState::Closed, PullState::Open));
    let text = "Closed by Tagboat: superseded by `images/podinfo-6.0.0`.";
    assert!(pulls[0].body.starts_with(text), "{}", pulls[0].body);
    let tip = |branch: &str| fleet.hub.repository.id(branch);
    assert_eq!((tip("images/podinfo-5.0.3"), tip("images/podinfo-6.0.0").is_some()), (None, true));
    fleet
}

fn merged(served: &'static Served) -> ServedFleet {
    let fleet = ServedFleet::new(served);
    let gone = |fleet: &ServedFleet| {
        assert_eq!((actions(&fleet.run()), fleet.hub.repository.id(BRANCH)), (vec![], None));
    };
    // By a person.
    fleet.write(&json!({}), "5.0.3");
    assert_eq!(action(&fleet.run()), "opened");
    fleet.hub.merge(1, None, Style::Squash).unwrap();
    gone(&fleet);
    // At once.
    fleet.write(&json!({"pull-request-merge": "immediately"}), "6.0.0");
    assert_eq!(action(&fleet.run()), "merged");
    assert_eq!(fleet.hub.repository.file("main", "app.yaml"), tag_line("6.0.0").as_bytes());
    gone(&fleet);
    if served.has_auto_merge {
        // By the forge, once the required check has passed.
        fleet.hub.require_check();
        let later = json!({"pull-request-merge": "when-ready", "pull-request-merge-method": "squash"});
        fleet.write(&later, "7.0.0");
        assert_eq!(action(&fleet.run()), "opened");
        if fleet.newest().0.scheduled.is_none() {
            // The forge computes first if it can be merged.
            assert_eq!(action(&fleet.run()), "kept");
        }
        let scheduled = fleet.newest().0;
        assert_eq!((scheduled.state, scheduled.scheduled), (PullState::Open, Some(Style::Squash)));
        fleet.hub.pass_check();
        assert_eq!(fleet.newest().0.state, PullState::Merged);
        gone(&fleet);
        assert_eq!(fleet.hub.repository.file("main", "app.yaml"), tag_line("7.0.0").as_bytes());
    }
    fleet
}
