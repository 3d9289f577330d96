//! Controllers that are killed before and after each call that changes something at Gitea.
//! The next process completes what is missing, and each action has one event.
//!
//! Each pull request has a branch of its own: Gitea works off the deletion of a branch in the background, and closes what was
//! opened from a new branch of that name meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::core::DynamicObject;
use serde_json::json;

use super::delivery::Delivery;
use super::pod::Pod;
use crate::support::eventually::eventually;
use crate::support::gitea::OWNER;
use crate::support::stopping_front::{Moment, StoppingFront};

/// The arguments of controllers without a Lease, which would make the next process wait.
const ARGUMENTS: [&str; 3] = ["--watch-all-namespaces=false", "--log-level=error", "--min-retry-delay=200ms"];

/// The time after which a controller is asked for another run.
const PATIENCE: Duration = Duration::from_secs(2);

/// A step of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A pull request is opened.
    Open,
    /// It gets another image.
    Refresh,
    /// It is closed, because nothing is left to change, and its branch is deleted.
    Close,
    /// One is opened and merged, and its branch is deleted.
    Merge,
}

/// A delivery behind a front, with controllers that are killed at a call.
struct Killed {
    own: Delivery,
    front: StoppingFront,
    pod: Option<Pod>,
    /// Number of the change at which controllers are killed.
    call: usize,
    /// The steps that make fewer changes.
    ended: BTreeSet<Step>,
    moment: Moment,
    loses_state: bool,
    kills: Vec<String>,
    requests: usize,
}

impl Killed {
    async fn new(name: &str, moment: Moment, loses_state: bool) -> Self {
        let own = Delivery::new(name).await;
        let front = StoppingFront::before(own.forge.port());
        own.reach_by(&front.address()).await;
        own.annotate(json!({"tagboat.dev/pull-request-labels": "[images, team/ops]"})).await;
        let pod = Some(Pod::start(&own.scene, &ARGUMENTS).await);
        own.scene.ready("app").await;
        let (call, ended, kills, requests) = (0, BTreeSet::new(), Vec::new(), 0);
        Self { own, front, pod, call, ended, moment, loses_state, kills, requests }
    }

    async fn request(&mut self) {
        self.requests += 1;
        self.own.scene.request("app", &format!("r{}", self.requests)).await;
    }

    /// Has the next pull request come from a branch, and be merged in a way.
    ///
    /// The controller may see a later change of a policy earlier, so this waits until it has seen the settings.
    async fn deliver_by(&mut self, branch: &str, merge: &str) {
        self.requests += 1;
        let token = format!("r{}", self.requests);
        let annotations = json!({
            "tagboat.dev/push-branch": branch,
            "tagboat.dev/pull-request-merge": merge,
            "reconcile.fluxcd.io/requestedAt": token,
        });
        self.own.annotate(annotations).await;
        let is_handled =
            |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token.as_str();
        self.own.scene.until("app", &token, is_handled).await;
    }

    /// The file on a branch, which may be deleted at the same time.
    async fn content(&self, branch: &str) -> Option<String> {
        let name = &self.own.forge.name;
        let path = format!("repos/{OWNER}/{name}/contents/fleet.yaml?ref={branch}");
        let (status, found) = self.own.forge.wire.send("GET", &path, None).await;
        let content = found["content"].as_str().filter(|_| status == 200)?;
        Some(String::from_utf8(STANDARD.decode(content).unwrap()).unwrap())
    }

    /// Returns true if a step is complete at the forge.
    async fn is_done(&self, step: Step, (number, tag): (usize, &str)) -> bool {
        // The newest are first.
        let found = self.own.forge.call("GET", "pulls?state=all&limit=10", json!(null)).await;
        let pulls = found.as_array().unwrap();
        let open: Vec<_> =
            pulls.iter().filter(|pull| pull["state"] == "open").map(|pull| &pull["number"]).collect();
        assert!(open.len() <= 1, "killed at {:?}, open {open:?}", self.kills.last());
        let branch = branch(number);
        let tip = self.own.forge.tip(&branch).await;
        let Some(last) = pulls.first().filter(|last| last["number"] == number) else { return false };
        match step {
            Step::Open | Step::Refresh => {
                let labels = last["labels"].as_array().unwrap().len();
                last["state"] == "open"
                    && last["title"].as_str().unwrap().ends_with(tag)
                    && labels == 2
                    && tip.is_some()
                    && last["head"]["sha"].as_str() == tip.as_deref()
                    && self.content(&branch).await == Some(self.own.line(tag))
            }
            Step::Close => last["state"] == "closed" && last["merged"] == false && tip.is_none(),
            Step::Merge => last["merged"] == true && tip.is_none(),
        }
    }

    /// Waits until a step is complete, and asks for further runs where one is needed.
    async fn until_done(&mut self, step: Step, wanted: (usize, &str), ends_at_stop: bool) {
        let what = format!("{step:?} of {wanted:?}, call {}, killed at {:?}", self.call, self.kills.last());
        let mut asked = Instant::now();
        eventually(&what, async || {
            if ends_at_stop && self.front.has_stopped() || self.is_done(step, wanted).await {
                return true;
            }
            // Gitea may still have computed whether it can be merged.
            if matches!(step, Step::Close | Step::Merge) && asked.elapsed() > PATIENCE {
                asked = Instant::now();
                self.request().await;
            }
            false
        })
        .await;
    }

    /// Performs a step; the controller is killed at the change, if it makes as many.
    async fn step(&mut self, step: Step, (number, tag): (usize, &str)) {
        let is_killed = !self.ended.contains(&step);
        if is_killed {
            self.front.stop_at(self.call, self.moment);
        }
        match step {
            Step::Open | Step::Refresh | Step::Merge => self.own.scene.choose("app", tag).await,
            Step::Close => {
                self.own.forge.write("main", "fleet.yaml", &self.own.line(tag)).await;
                self.request().await;
            }
        }
        self.until_done(step, (number, tag), is_killed).await;
        if let Some(call) = self.front.stopped_at() {
            self.pod.take().unwrap().kill();
            self.kills.push(call);
            if self.loses_state {
                self.own.lose_state();
            }
            self.front.release();
            self.pod = Some(Pod::start(&self.own.scene, &ARGUMENTS).await);
            self.until_done(step, (number, tag), false).await;
        } else {
            self.ended.insert(step);
        }
        self.front.release();
    }

    /// Opens, refreshes, closes, opens and merges a pull request.
    /// Returns the number of controllers that were killed.
    async fn life(&mut self) -> usize {
        let before = self.kills.len();
        let (first, second) = (2 * self.call + 1, 2 * self.call + 2);
        let tag = |step: usize| format!("{}.{step}.0", 2 + self.call);
        let [opened, refreshed, merged] = [1, 2, 3].map(tag);
        self.deliver_by(&branch(first), "by-hand").await;
        self.step(Step::Open, (first, &opened)).await;
        self.step(Step::Refresh, (first, &refreshed)).await;
        self.step(Step::Close, (first, &refreshed)).await;
        self.deliver_by(&branch(second), "immediately").await;
        self.step(Step::Merge, (second, &merged)).await;
        let main = self.own.forge.read("main", "fleet.yaml").await;
        assert_eq!(main, self.own.line(&merged), "killed at {:?}", self.kills.last());
        self.until_reported().await;
        self.kills.len() - before
    }

    /// Waits until each action of all lives has one event.
    async fn until_reported(&self) {
        let mut wanted = Vec::new();
        for life in 0..=self.call {
            let (first, second) = (2 * life + 1, 2 * life + 2);
            let of_first = ["Opened", "Refreshed", "Closed"];
            wanted.extend(of_first.map(|verb| format!("PullRequest{verb} #{first} 1")));
            wanted.extend(["Opened", "Merged"].map(|verb| format!("PullRequest{verb} #{second} 1")));
        }
        wanted.sort();
        let begin = Instant::now();
        loop {
            let found = self.own.counted_events().await;
            if found == wanted {
                return;
            }
            let missing: Vec<_> = wanted.iter().filter(|one| !found.contains(one)).collect();
            let odd: Vec<_> = found.iter().filter(|one| !wanted.contains(one)).collect();
            let kills = &self.kills[self.kills.len().saturating_sub(4)..];
            let is_late = begin.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "killed at {kills:?}, missing {missing:?}, odd {odd:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn at_each_call(mut self) {
        while self.life().await > 0 {
            self.call += 1;
            assert!(self.call < 20, "a controller does not make so many changes: {:?}", self.kills);
        }
        let pulls = self.own.pulls().await;
        assert_eq!(pulls.len(), 2 * (self.call + 1), "{pulls:#?}");
        for (method, end) in [("POST", "/pulls"), ("POST", "/merge"), ("POST", "/git-receive-pack")] {
            let is_it = |call: &String| call.starts_with(method) && call.ends_with(end);
            assert!(self.kills.iter().any(is_it), "{method} {end}: {:?}", self.kills);
        }
        assert!(self.kills.iter().any(|call| call.starts_with("PATCH")), "{:?}", self.kills);
    }
}

/// The branch of a pull request.
fn branch(number: usize) -> String {
    format!("tagboat/{number}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_before_any_change_is_completed_by_the_next() {
    Killed::new("pod-before", Moment::Before, false).await.at_each_call().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_after_any_change_is_completed_by_the_next_without_its_state() {
    Killed::new("pod-after", Moment::After, true).await.at_each_call().await;
}
