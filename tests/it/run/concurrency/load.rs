//! Load: many concurrent runs on one branch, beside a person.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::run::shared_branch::{self, Member};
use crate::support::content::file;
use crate::support::git_program::Person;
use crate::support::program::run;
use crate::support::remote_fleet::{RemoteFleet, git_repository};

const RUNS: usize = 20;

/// Pushes a commit every 100 ms until `is_over`; returns the number of commits that arrived.
fn push_along(fleet: &RemoteFleet, is_over: &AtomicBool) -> usize {
    let person = Person::anonymous();
    let clone = person.clone_bare(&fleet.host.url("fleet.git"), &fleet.root().join("clone.git"));
    let mut count = 0;
    while !is_over.load(Ordering::SeqCst) {
        let begin = Instant::now();
        // After a lost race the commit is made again on the new tip.
        person.git(clone.path(), ["fetch", "--quiet", "origin", "+main:main"]).with_status(0);
        clone.commit("main", &format!("Person {count}"), &[file(format!("person/{count}.yaml"), "1\n")]);
        count += usize::from(person.push(&clone, "main").status == Some(0));
        std::thread::sleep(Duration::from_millis(100).saturating_sub(begin.elapsed()));
    }
    count
}

#[test]
fn twenty_runs_at_once_beside_a_person_lose_nothing() {
    let members = Member::several(RUNS);
    let fleet = shared_branch::fleet(&members);
    let repository = git_repository(&fleet.host.url("fleet.git"), "timeout: 60s");
    let is_over = AtomicBool::new(false);
    let pushes = std::thread::scope(|scope| {
        let person = scope.spawn(|| push_along(&fleet, &is_over));
        let runs: Vec<_> = members
            .iter()
            .map(|member| {
                let place = fleet.root().join(&member.name);
                std::fs::create_dir(&place).unwrap();
                std::fs::write(place.join("all.yaml"), member.manifests() + &repository).unwrap();
                let mut command = fleet.command_on(&place, &place.join("state"));
                scope.spawn(move || run(&mut command))
            })
            .collect();
        let runs: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        is_over.store(true, Ordering::SeqCst);
        for run in runs {
            assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
            assert_eq!(run.json()["automations"][0]["outcome"], "pushed", "{run:?}");
        }
        person.join().unwrap()
    });
    shared_branch::assert_each_landed_once(&fleet, &members);
    let log = fleet.repository.log("main");
    assert_eq!(log.len(), 1 + RUNS + pushes);
    for number in 0..pushes {
        let message = format!("Person {number}\n");
        assert_eq!(log.iter().filter(|commit| commit.message == message).count(), 1, "{message}");
    }
    for member in &members {
        let place = fleet.root().join(&member.name).join("state/mirrors");
        for mirror in std::fs::read_dir(place).unwrap() {
            let mirror = mirror.unwrap().path().join("repository.git");
            crate::support::bare_repository::BareRepository::existing(&mirror).assert_sound();
        }
    }
}
