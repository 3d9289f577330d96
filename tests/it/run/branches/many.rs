//! Many branches of one repository.

use serde_json::json;

use super::{Automation, actions, beyond, pushes, report, run, tip};
use crate::support::content::file;
use crate::support::git_host::{Operation, Settings};
use crate::support::manifests::{marker, policy};
use crate::support::remote_fleet::{RemoteFleet, git_repository};

/// A fleet whose automation has a branch for each of its policies `p000`, `p001`, …
fn fleet(count: usize) -> RemoteFleet {
    let lines: Vec<String> = names(count).iter().map(|name| line(name, "1.0.0")).collect();
    // The first two values are in one file, the others in one each.
    let mut files = vec![file("shared.yaml", lines[..2].concat())];
    files.extend(
        lines[2..].iter().enumerate().map(|(number, line)| file(format!("f{number}.yaml"), line.as_str())),
    );
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, count, "2.0.0");
    fleet
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("p{number:03}")).collect()
}

fn line(name: &str, version: &str) -> String {
    format!("{name}: {version} {}\n", marker(&format!("default:{name}:tag")))
}

fn write(fleet: &RemoteFleet, count: usize, tag: &str) {
    let mut text = git_repository(&fleet.host.url("fleet.git"), "timeout: 60s");
    text.extend(names(count).iter().map(|name| policy("default", name, &format!("reg.io/{name}"), tag)));
    text += &Automation::new(json!({"push-branch": "images/{{ .Policy.Name }}"})).manifest();
    fleet.write_manifests(&text);
}

fn branch(name: &str) -> String {
    format!("images/{name}")
}

#[test]
fn two_hundred_branches_take_one_listing_one_fetch_and_one_push() {
    const COUNT: usize = 200;
    let fleet = fleet(COUNT);
    let requests = |operation| fleet.host.requests_for(operation).len();
    let expected = |action: &str| -> Vec<String> {
        names(COUNT).iter().map(|name| format!("{}: {action}", branch(name))).collect()
    };
    for (tag, action) in [("2.0.0", "created"), ("3.0.0", "rebuilt")] {
        write(&fleet, COUNT, tag);
        let before = [requests(Operation::ListForFetch), requests(Operation::Fetch), pushes(&fleet)];
        assert_eq!(actions(&run(&fleet)), expected(action));
        // A listing is two requests of protocol 2. What is fetched first is in the mirror afterwards.
        let fetches = if action == "created" { 1 } else { 0 };
        let after = [requests(Operation::ListForFetch), requests(Operation::Fetch), pushes(&fleet)];
        let of_fetch = |index: usize| after[index] - before[index];
        assert_eq!([of_fetch(0), of_fetch(2)], [1 + fetches, 1], "{:?}", fleet.host.requests());
        for name in names(COUNT).iter().step_by(37) {
            let own = beyond(&fleet, &branch(name));
            assert_eq!((own.len(), &own[0].parents), (1, &vec![fleet.tip()]));
        }
    }
    // Each branch has the value of its policy and no other.
    let text = |name: &str| super::content(&fleet, &branch(name), "shared.yaml");
    assert_eq!(text("p000"), line("p000", "3.0.0") + &line("p001", "1.0.0"));
    assert_eq!(text("p001"), line("p000", "1.0.0") + &line("p001", "3.0.0"));
    let last = tip(&fleet, &branch("p199")).unwrap();
    assert_eq!(fleet.status("fleet")["lastPushCommit"], last.as_str());
    // With lost state nothing is pushed either, and the tips are fetched at once.
    super::lose_state(&fleet);
    let before = (requests(Operation::ListForFetch), pushes(&fleet));
    assert_eq!(actions(&run(&fleet)), expected("kept"));
    assert_eq!((requests(Operation::ListForFetch), pushes(&fleet)), (before.0 + 3, before.1));
    fleet.assert_sound();
}

/// The other branches were reported as pushed once more.
#[test]
fn the_end_of_the_last_branch_does_not_bring_the_report_of_the_others_back() {
    let fleet = fleet(3);
    let reported = |branches: &serde_json::Value| -> Vec<bool> {
        branches.as_array().unwrap().iter().map(|branch| branch["commit"].is_string()).collect()
    };
    assert_eq!(reported(&run(&fleet)), [true; 3]);
    let last = branch("p002");
    super::commit(&fleet, "main", &[file("f0.yaml", line("p002", "2.0.0"))]);
    fleet.repository.git(&["update-ref", "-d", &format!("refs/heads/{last}")]);
    let report = report(&fleet.run());
    assert_eq!(actions(&report["branches"]), ["images/p000: kept", "images/p001: kept"]);
    assert_eq!(reported(&report["branches"]), [false; 2]);
    assert_eq!(report["outcome"], "unchanged");
}

#[test]
fn a_rejected_branch_does_not_stop_the_others() {
    for (hook, script) in [
        ("update", "case \"$1\" in */p001) echo 'p001 is frozen'; exit 1;; esac"),
        (
            "pre-receive",
            "while read old new name; do case \"$name\" in */p001) echo 'p001 is frozen'; exit 1;; esac; done",
        ),
    ] {
        let fleet = fleet(3);
        fleet.repository.hook(hook, script);
        let run = fleet.run();
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.errors.contains("images/p001 was refused"), "{hook}: {run:?}");
        assert!(run.errors.contains("p001 is frozen"), "{hook}: {run:?}");
        let tips: Vec<bool> = names(3).iter().map(|name| tip(&fleet, &branch(name)).is_some()).collect();
        assert_eq!(tips, [true, false, true], "{hook}");
        let all: serde_json::Value = serde_json::from_str(&run.output).unwrap();
        let of = |name: &str, action: &str| format!("{}: {action}", branch(name));
        let expected = [of("p000", "created"), of("p001", "failed"), of("p002", "created")];
        assert_eq!(actions(&all["automations"][0]["branches"]), expected, "{hook}");
        let last = tip(&fleet, &branch("p002")).unwrap();
        let status = fleet.status("fleet");
        assert_eq!(status["lastPushCommit"], last.as_str(), "{hook}");
        // The next run tries again, and leaves the others alone.
        std::fs::remove_file(fleet.repository.path().join("hooks").join(hook)).unwrap();
        let expected = [of("p000", "kept"), of("p001", "created"), of("p002", "kept")];
        assert_eq!(actions(&report(&fleet.run())["branches"]), expected, "{hook}");
    }
}
