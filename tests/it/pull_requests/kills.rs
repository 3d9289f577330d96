//! Runs that are killed before and after each call that changes something at Gitea.
//! The next run completes what is missing.
//!
//! Between two other calls, the forge and the state are those before the next change.
//! Each pull request has a branch of its own: Gitea works off the deletion of a branch in the background, and closes what was
//! opened from a new branch of that name meanwhile.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::fleet::{Fleet, labels};
use crate::support::eventually::eventually;
use crate::support::fleet::tag_line;
use crate::support::stopping_front::{Moment, StoppingFront};

/// A fleet behind a front, with runs that are killed at a call.
struct Killed {
    fleet: Fleet,
    front: StoppingFront,
    /// Number of the change at which runs are killed.
    call: usize,
    /// The steps of a life that make fewer changes.
    ended: BTreeSet<usize>,
    moment: Moment,
    /// The state is lost after a kill.
    loses_state: bool,
    /// The calls at which runs were killed.
    kills: Vec<String>,
}

impl Killed {
    async fn new(name: &str, moment: Moment, loses_state: bool) -> Self {
        let fleet = Fleet::new(name).await;
        let front = StoppingFront::before(fleet.forge.port());
        Self { fleet, front, call: 0, ended: BTreeSet::new(), moment, loses_state, kills: Vec::new() }
    }

    fn write(&self, branch: &str, merge: &str, tag: &str) {
        let annotations = json!({
            "push-branch": branch, "pull-request-labels": "[images, team/ops]", "pull-request-merge": merge,
        });
        self.fleet.write(&annotations, tag);
        let behind = format!("127.0.0.1:{}", self.fleet.forge.port());
        self.fleet.edit_manifests(|text| text.replace(&behind, &self.front.address()));
    }

    /// Kills a run at the change, and runs again to the end.
    ///
    /// A run that makes fewer changes is not killed.
    fn run(&mut self, step: usize) -> Value {
        if self.ended.contains(&step) {
            return self.complete();
        }
        self.front.stop_at(self.call, self.moment);
        let mut child =
            self.fleet.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        while !self.front.has_stopped() {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break;
            }
            sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(call) = self.front.stopped_at() {
            self.kills.push(call);
            if self.loses_state {
                self.fleet.lose_state();
            }
        } else {
            self.ended.insert(step);
        }
        self.front.release();
        self.complete()
    }

    /// Runs to the end, and returns the report of the automation.
    ///
    /// On a busy machine, Gitea may take until a later run to compute whether a pull request can be merged.
    fn complete(&self) -> Value {
        let run = self.fleet.run_with(&[]);
        let is_expected = |line: &str| {
            line.starts_with("warning: ") && line.contains("is not merged: the server still checks")
        };
        assert!(run.status == Some(0) && run.errors.lines().all(is_expected), "{run:?}");
        run.json()["automations"][0].clone()
    }

    /// The newest pull request, whose number among all must be this one.
    async fn newest(&self, count: usize) -> Value {
        let pulls = self.fleet.pulls().await;
        let at = (self.call, self.moment, self.kills.last());
        assert_eq!(pulls.len(), count, "killed at {at:?}: {pulls:#?}");
        let open = pulls.iter().filter(|pull| pull["state"] == "open").count();
        assert!(open <= 1, "killed at {at:?}: {pulls:#?}");
        pulls[count - 1].clone()
    }

    /// Asserts that the newest pull request is open and up to date.
    async fn assert_open(&self, branch: &str, count: usize, tag: &str) {
        let pull = self.newest(count).await;
        let at = (self.call, self.moment, self.kills.last());
        assert_eq!(pull["state"], "open", "killed at {at:?}");
        assert_eq!(pull["title"], format!("Update podinfo to {tag}"), "killed at {at:?}");
        assert!(pull["body"].as_str().unwrap().contains(tag), "killed at {at:?}: {pull:#}");
        assert_eq!(labels(&pull), ["images", "team/ops"], "killed at {at:?}");
        assert_eq!(self.fleet.forge.read(branch, "app.yaml").await, tag_line(tag), "killed at {at:?}");
        // Gitea notices a push in the background.
        let number = pull["number"].as_u64().unwrap();
        eventually(&format!("#{number} has the tip, killed at {at:?}"), async || {
            let pull = self.fleet.forge.call("GET", &format!("pulls/{number}"), Value::Null).await;
            pull["head"]["sha"].as_str() == self.fleet.forge.tip(branch).await.as_deref()
        })
        .await;
    }

    /// Opens, refreshes, closes, opens and merges a pull request.
    /// Returns the number of runs that were killed.
    async fn life(&mut self) -> usize {
        let before = self.kills.len();
        let (first, second) = (2 * self.call + 1, 2 * self.call + 2);
        let tag = |step: usize| format!("{}.{step}.0", 5 + self.call);
        let [opened, refreshed, merged] = [1, 2, 3].map(tag);
        let branch = |number: usize| format!("tagboat/{number}");
        let (one, two) = (branch(first), branch(second));
        self.write(&one, "by-hand", &opened);
        self.run(0);
        self.assert_open(&one, first, &opened).await;
        self.write(&one, "by-hand", &refreshed);
        self.run(1);
        self.assert_open(&one, first, &refreshed).await;

        self.fleet.forge.write("main", "app.yaml", &tag_line(&refreshed)).await;
        self.run(2);
        let pull = self.newest(first).await;
        let body = pull["body"].as_str().unwrap();
        assert_eq!(pull["state"], "closed");
        assert!(body.starts_with("Closed by Tagboat: nothing is left to change on `main`."), "{body}");
        self.run(3);
        assert_eq!(self.fleet.forge.tip(&one).await, None);

        self.write(&two, "immediately", &merged);
        self.run(4);
        let at = (self.call, self.moment, self.kills.last());
        // Gitea may still compute whether it can be merged.
        eventually(&format!("#{second} is merged, killed at {at:?}"), async || {
            if self.newest(second).await["merged"] == true {
                return true;
            }
            self.complete();
            false
        })
        .await;
        assert_eq!(labels(&self.newest(second).await), ["images", "team/ops"], "killed at {at:?}");
        assert_eq!(self.fleet.forge.read("main", "app.yaml").await, tag_line(&merged));
        self.run(5);
        assert_eq!(self.fleet.forge.tip(&two).await, None);
        self.newest(second).await;
        self.kills.len() - before
    }

    /// Kills at each change, until no run makes as many.
    async fn at_each_call(mut self) {
        while self.life().await > 0 {
            self.call += 1;
            assert!(self.call < 20, "a run does not make so many changes: {:?}", self.kills);
        }
        let killed_at = |method: &str, end: &str| {
            self.kills.iter().any(|call| call.starts_with(method) && call.ends_with(end))
        };
        for (method, end) in [("POST", "/pulls"), ("POST", "/merge"), ("POST", "/git-receive-pack")] {
            assert!(killed_at(method, end), "{method} {end}: {:?}", self.kills);
        }
        assert!(self.kills.iter().any(|call| call.starts_with("PATCH")), "{:?}", self.kills);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_before_any_change_is_completed_by_the_next() {
    Killed::new("killed-before", Moment::Before, false).await.at_each_call().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_after_any_change_is_completed_by_the_next_without_its_state() {
    Killed::new("killed-after", Moment::After, true).await.at_each_call().await;
}
