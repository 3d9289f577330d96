//! Random actions of people beside the controller, on the real Gitea.
//! No commit, no text and no refusal of a person is lost.
//!
//! Each seed gives a series of actions. `TAGBOAT_SEEDS=10..40` runs these seeds instead of the usual ones; a failure
//! names its seed and the actions so far.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::delivery::Delivery;
use super::pod::Pod;
use super::scene::{Kind, Scene, kstatus};
use crate::support::forges::wire::Wire;
use crate::support::git_program::{git, output};
use crate::support::gitea::{GiteaRepository, OWNER};
use crate::support::program::run;

const ARGUMENTS: [&str; 3] = ["--watch-all-namespaces=false", "--log-level=error", "--min-retry-delay=200ms"];

/// The seeds of each run of the tests.
const SEEDS: Range<u64> = 1..4;

/// The steps of a seed; each has one action or two in a row.
const STEPS: usize = 8;

/// The time after which a step must have come to its end.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A source of numbers that a seed determines.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// An action beside the controller.
#[derive(Debug, Clone, Copy)]
enum Action {
    CommitOnBranch,
    CommitOnBranchToTheSameFile,
    EditTitle,
    EditBody,
    Close,
    Reopen,
    Merge,
    Squash,
    DeleteBranch,
    UpdateBranch,
    CommitOnBase,
    CommitOnBaseToTheSameFile,
    NewImage,
    EarlierImage,
    ReplaceBodyAndClose,
    ChangeBase,
    ConvertToDraft,
    HandBack,
    Restart,
    Kill,
    LoseState,
}

const ACTIONS: [Action; 27] = [
    Action::CommitOnBranch,
    Action::CommitOnBranchToTheSameFile,
    Action::EditTitle,
    Action::EditBody,
    Action::Close,
    Action::Close,
    Action::Reopen,
    Action::Merge,
    Action::Merge,
    Action::Squash,
    Action::DeleteBranch,
    Action::UpdateBranch,
    Action::CommitOnBase,
    Action::CommitOnBaseToTheSameFile,
    Action::NewImage,
    Action::NewImage,
    Action::NewImage,
    Action::EarlierImage,
    Action::EarlierImage,
    Action::ReplaceBodyAndClose,
    Action::ChangeBase,
    Action::ConvertToDraft,
    Action::HandBack,
    Action::HandBack,
    Action::Restart,
    Action::Kill,
    Action::LoseState,
];

/// The actions of a seed, and all that must not be lost.
struct World {
    seed: u64,
    own: Delivery,
    /// Sends what people do, without a check of the answers.
    wire: Wire,
    pod: Option<Pod>,
    clone: TempDir,
    random: Random,
    /// The present image, the newest one, and a number for files and texts.
    image: usize,
    newest: usize,
    count: usize,
    /// The commits of people on the branch.
    commits: BTreeSet<String>,
    /// The texts of people, by pull request.
    titles: BTreeMap<u64, String>,
    notes: BTreeMap<u64, String>,
    /// The drafts of people, by pull request.
    drafts: BTreeMap<u64, bool>,
    /// Pull requests that a person closed.
    refused: BTreeMap<u64, Refusal>,
    /// The image of each set of hashes that was seen in a settled pull request.
    seen: BTreeMap<String, usize>,
    story: String,
    requests: AtomicUsize,
}

/// A pull request that a person closed.
#[derive(Debug)]
struct Refusal {
    /// The number of the last pull request at that time.
    last: u64,
    /// The image at that time.
    image: usize,
    /// The hashes of its images; none if the person replaced the body.
    hashes: Option<String>,
}

/// The hashes of images in the last line of a body.
fn images(pull: &Value) -> Option<&str> {
    let (_, rest) = pull["body"].as_str()?.rsplit_once(" images=")?;
    rest.split([' ', ')']).next()
}

fn number(pull: &Value) -> u64 {
    pull["number"].as_u64().unwrap()
}

impl World {
    async fn new(seed: u64) -> Self {
        let own = Delivery::new("people").await;
        own.forge.call("POST", "branches", json!({"new_branch_name": "other"})).await;
        own.forge.call("POST", "labels", json!({"name": "tagboat/rebuild", "color": "#00aa00"})).await;
        own.forge.write("main", "next/fleet.yaml", &own.line("1.0.0")).await;
        // Another automation selects the same policy.
        let mut spec = Scene::spec("app");
        spec["update"]["path"] = json!("./next");
        own.scene.create(Kind::Automation, "next", &spec).await;
        own.annotate_member("next", json!({"tagboat.dev/delivery": "pull-request"})).await;
        let base = format!("http://127.0.0.1:{}/api/v1/repos/{OWNER}/{}", own.forge.port(), own.forge.name);
        let wire = Wire::new(&base, &format!("token {}", GiteaRepository::token()));
        let clone = tempfile::tempdir().unwrap();
        output(git(clone.path()).args(["init", "--quiet", "--bare"]), b"");
        let pod = Some(Pod::start(&own.scene, &ARGUMENTS).await);
        own.scene.ready("app").await;
        Self {
            seed,
            own,
            wire,
            pod,
            clone,
            random: Random(seed),
            image: 1,
            newest: 1,
            count: 0,
            commits: BTreeSet::new(),
            titles: BTreeMap::new(),
            notes: BTreeMap::new(),
            drafts: BTreeMap::new(),
            refused: BTreeMap::new(),
            seen: BTreeMap::new(),
            story: String::new(),
            requests: AtomicUsize::new(0),
        }
    }

    fn tag(&self) -> String {
        format!("{}.0.0", self.image)
    }

    /// Sends a request of a person, which the forge may refuse.
    async fn ask(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        let body = (!body.is_null()).then_some(body);
        let (status, answer) = self.wire.send(method, path, body.as_ref()).await;
        (200..300).contains(&status).then_some(answer)
    }

    /// Adds a line to a file of a branch.
    ///
    /// Returns the commit, or nothing if the forge refuses it.
    async fn write(&self, branch: &str, path: &str, line: &str) -> Option<String> {
        let found = self.ask("GET", &format!("contents/{path}?ref={branch}"), Value::Null).await;
        let mut body = json!({"message": "By hand", "branch": branch});
        let mut text = line.to_owned();
        if let Some(found) = &found {
            let content = STANDARD.decode(found["content"].as_str()?).unwrap();
            text.push_str(&String::from_utf8(content).unwrap());
            body["sha"] = found["sha"].clone();
        }
        body["content"] = json!(STANDARD.encode(text));
        let method = if found.is_some() { "PUT" } else { "POST" };
        let done = self.ask(method, &format!("contents/{path}"), body).await?;
        Some(done["commit"]["sha"].as_str()?.to_owned())
    }

    /// All pull requests of the branch, the oldest first.
    async fn pulls(&self) -> Vec<Value> {
        let branch = self.own.branch();
        self.own.pulls().await.into_iter().filter(|pull| pull["head"]["label"] == *branch).collect()
    }

    /// The open pull request of the branch, into any base.
    async fn open(&self) -> Option<Value> {
        self.pulls().await.into_iter().find(|pull| pull["state"] == "open")
    }

    /// Returns true if the branch has the newest image.
    async fn has_newest_image(&self) -> bool {
        let branch = self.own.branch();
        let found = self.ask("GET", &format!("contents/fleet.yaml?ref={branch}"), Value::Null).await;
        let content = found.and_then(|found| STANDARD.decode(found["content"].as_str()?).ok());
        content
            .is_some_and(|content| String::from_utf8(content).unwrap().contains(&self.own.line(&self.tag())))
    }

    /// Waits until Gitea has closed a pull request.
    ///
    /// Gitea does so in the background once the branch is deleted.
    /// It stays open if the controller pushes a newer image first, which the person has not refused.
    async fn stays_closed(&self, number: u64, had_newest: bool) -> bool {
        let begin = Instant::now();
        loop {
            let pull = self.own.forge.call("GET", &format!("pulls/{number}"), Value::Null).await;
            if pull["state"] == "closed" {
                return true;
            }
            if !had_newest && self.has_newest_image().await {
                return false;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "seed {}: #{number} stays open after{}",
                self.seed,
                self.story
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Performs an action; what the state does not allow does nothing.
    async fn act(&mut self, action: Action) {
        write!(self.story, " {action:?}").unwrap();
        self.count += 1;
        let (count, branch) = (self.count, self.own.branch());
        match action {
            Action::CommitOnBranch | Action::CommitOnBranchToTheSameFile => {
                if self.own.forge.tip(&branch).await.is_none() {
                    return;
                }
                let notes = format!("notes-{count}.md");
                let is_same = matches!(action, Action::CommitOnBranchToTheSameFile);
                let path = if is_same { "fleet.yaml" } else { &notes };
                let commit = self.write(&branch, path, &format!("# branch {count}\n")).await;
                self.commits.extend(commit);
            }
            Action::CommitOnBase => {
                self.write("main", &format!("base-{count}.md"), "words\n").await;
            }
            Action::CommitOnBaseToTheSameFile => {
                self.write("main", "fleet.yaml", &format!("# base {count}\n")).await;
            }
            Action::EditTitle | Action::EditBody => {
                let Some(pull) = self.open().await else { return };
                let is_title = matches!(action, Action::EditTitle);
                let text = format!("Words {count} of a person");
                let change = if is_title {
                    json!({"title": text})
                } else {
                    json!({"body": format!("{text}\n\n{}", pull["body"].as_str().unwrap())})
                };
                if self.ask("PATCH", &format!("pulls/{}", number(&pull)), change).await.is_some() {
                    let texts = if is_title { &mut self.titles } else { &mut self.notes };
                    texts.insert(number(&pull), text);
                    if is_title {
                        self.drafts.remove(&number(&pull));
                    }
                }
            }
            Action::ConvertToDraft => {
                let Some(pull) = self.open().await else { return };
                let title = pull["title"].as_str().unwrap();
                let bare = title.strip_prefix("WIP: ");
                let title = bare.map_or_else(|| format!("WIP: {title}"), str::to_owned);
                let path = format!("pulls/{}", number(&pull));
                if self.ask("PATCH", &path, json!({"title": title})).await.is_some() {
                    self.drafts.insert(number(&pull), bare.is_none());
                    if let Some(text) = self.titles.get_mut(&number(&pull)) {
                        *text = title;
                    }
                }
            }
            Action::ChangeBase => {
                let Some(pull) = self.open().await else { return };
                let base = if pull["base"]["ref"] == "main" { "other" } else { "main" };
                self.ask("PATCH", &format!("pulls/{}", number(&pull)), json!({"base": base})).await;
            }
            Action::HandBack => {
                let Some(pull) = self.open().await.filter(|pull| pull["base"]["ref"] == "main") else {
                    return;
                };
                // The commits on it are given up by the person.
                self.commits.clear();
                let labels = json!({"labels": ["tagboat/rebuild"]});
                self.ask("POST", &format!("issues/{}/labels", number(&pull)), labels).await;
                self.label_is_removed(number(&pull)).await;
            }
            Action::Close | Action::ReplaceBodyAndClose | Action::DeleteBranch => {
                let Some(pull) = self.open().await else { return };
                let has_newest = self.has_newest_image().await;
                let is_replaced = matches!(action, Action::ReplaceBodyAndClose);
                let done = if is_replaced {
                    let text = format!("Words {count} of a person in place of all others");
                    let change = json!({"state": "closed", "body": text});
                    let done = self.ask("PATCH", &format!("pulls/{}", number(&pull)), change).await;
                    if done.is_some() {
                        self.notes.insert(number(&pull), text);
                    }
                    done
                } else if matches!(action, Action::Close) {
                    self.ask("PATCH", &format!("pulls/{}", number(&pull)), json!({"state": "closed"})).await
                } else {
                    // The commits on it are given up by the person who deletes it.
                    self.commits.clear();
                    let path = format!("branches/{}", branch.replace('/', "%2F"));
                    self.ask("DELETE", &path, Value::Null).await
                };
                // Into another base, it refuses nothing on this one.
                let is_refusal = pull["base"]["ref"] == "main" && (has_newest || !is_replaced);
                if done.is_some() && self.stays_closed(number(&pull), has_newest).await && is_refusal {
                    let last = self.pulls().await.iter().map(number).max().unwrap();
                    let hashes = images(&pull).filter(|_| !is_replaced).map(str::to_owned);
                    self.refused.insert(number(&pull), Refusal { last, image: self.image, hashes });
                }
            }
            Action::Reopen => {
                let Some(&number) = self.refused.keys().last() else { return };
                // Gitea would let a person have two of one branch, or one without a branch, which counts as refused.
                if self.open().await.is_some() || self.own.forge.tip(&branch).await.is_none() {
                    return;
                }
                let path = format!("pulls/{number}");
                if self.ask("PATCH", &path, json!({"state": "open"})).await.is_none() {
                    return;
                }
                let pulls = self.pulls().await;
                if pulls.iter().filter(|pull| pull["state"] == "open").count() == 1 {
                    self.refused.remove(&number);
                } else {
                    // The controller has opened one in between.
                    self.ask("PATCH", &path, json!({"state": "closed"})).await.unwrap();
                }
            }
            Action::Merge | Action::Squash => {
                let Some(pull) = self.open().await else { return };
                let style = if matches!(action, Action::Merge) { "merge" } else { "squash" };
                let path = format!("pulls/{}/merge", number(&pull));
                // Gitea computes in the background whether it can be merged; some have conflicts.
                for _ in 0..20 {
                    if self.ask("POST", &path, json!({"Do": style})).await.is_some() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            Action::UpdateBranch => {
                let Some(pull) = self.open().await else { return };
                self.ask("POST", &format!("pulls/{}/update", number(&pull)), json!({})).await;
            }
            Action::NewImage | Action::EarlierImage => {
                self.image = if matches!(action, Action::NewImage) {
                    self.newest += 1;
                    self.newest
                } else {
                    1 + self.random.below(self.newest)
                };
                // Once the branch has another image, nothing tells any more what was refused.
                self.refused.retain(|_, refusal| refusal.hashes.is_some());
                self.own.scene.choose("app", &self.tag()).await;
            }
            Action::Restart => {
                assert_eq!(self.pod.take().unwrap().terminate().0, Some(0));
                self.pod = Some(Pod::start(&self.own.scene, &ARGUMENTS).await);
            }
            Action::Kill | Action::LoseState => {
                self.pod.take().unwrap().kill();
                if matches!(action, Action::LoseState) {
                    self.own.lose_state();
                }
                self.pod = Some(Pod::start(&self.own.scene, &ARGUMENTS).await);
            }
        }
    }

    /// Fetches all branches of the forge.
    fn fetch(&self) {
        let credentials = format!("http://bot:{}@", GiteaRepository::token());
        let url = self.own.forge.url().replace("http://", &credentials);
        output(
            git(self.clone.path()).args(["fetch", "--quiet", "--prune", &url, "+refs/heads/*:refs/heads/*"]),
            b"",
        );
    }

    fn is_reachable(&self, commit: &str, branch: &str) -> bool {
        run(git(self.clone.path()).args(["merge-base", "--is-ancestor", commit, branch])).status == Some(0)
    }

    /// Asserts that nothing of a person's is lost.
    async fn assert_kept(&self) {
        let (story, seed, branch) = (&self.story, self.seed, self.own.branch());
        let pulls = self.pulls().await;
        self.fetch();
        for commit in &self.commits {
            let is_there = [branch.as_str(), "main"].iter().any(|name| self.is_reachable(commit, name));
            assert!(is_there, "seed {seed}: commit {commit} is lost after{story}: {pulls:#?}");
        }
        let open = pulls.iter().filter(|pull| pull["state"] == "open").count();
        assert!(open <= 1, "seed {seed}: {open} are open after{story}");
        for pull in &pulls {
            let own = number(pull);
            if let Some(title) = self.titles.get(&own) {
                assert_eq!(pull["title"], *title, "seed {seed}: the title of #{own} after{story}");
            }
            if let Some(note) = self.notes.get(&own) {
                let body = pull["body"].as_str().unwrap();
                assert!(body.contains(note), "seed {seed}: the body of #{own} after{story}: {body}");
            }
        }
        for (own, is_draft) in &self.drafts {
            let pull = pulls.iter().find(|pull| number(pull) == *own && pull["state"] == "open");
            assert!(
                pull.is_none_or(|pull| pull["draft"] == *is_draft),
                "seed {seed}: the draft #{own} after{story}"
            );
        }
        for (refused, Refusal { last, hashes, .. }) in &self.refused {
            let of_refused = pulls.iter().find(|pull| number(pull) == *refused).unwrap();
            assert_eq!(of_refused["state"], "closed", "seed {seed}: #{refused} is open again after{story}");
            let is_same = |pull: &&Value| hashes.as_ref().is_none_or(|hashes| images(pull) == Some(hashes));
            let again = pulls.iter().filter(|pull| number(pull) > *last).find(is_same);
            assert!(
                again.is_none(),
                "seed {seed}: the images of #{refused} are proposed again after{story}: {again:#?}"
            );
        }
        for pull in self.next_pulls().await.iter().filter(|pull| pull["state"] == "closed") {
            let body = pull["body"].as_str().unwrap();
            assert!(body.contains("closed=nothing-left"), "seed {seed}: next after{story}: {pull:#}");
        }
        let main = self.own.forge.read("main", "fleet.yaml").await;
        let marker = self.own.line("").split_once('#').unwrap().1.to_owned();
        assert_eq!(main.matches(&marker).count(), 1, "seed {seed}: the marker on main after{story}: {main}");
    }

    /// The pull requests of the other automation, which no person touches.
    async fn next_pulls(&self) -> Vec<Value> {
        let branch = format!("tagboat/{}-next-next", self.own.scene.cluster.namespace());
        self.own.pulls().await.into_iter().filter(|pull| pull["head"]["label"] == *branch).collect()
    }

    /// Returns what the other automation still has to do.
    async fn next_missing(&self) -> Option<String> {
        let pulls = self.next_pulls().await;
        let open: Vec<&Value> = pulls.iter().filter(|pull| pull["state"] == "open").collect();
        match (open.as_slice(), self.image) {
            ([], 1) => None,
            ([pull], image) if image > 1 => {
                let branch = pull["head"]["label"].as_str().unwrap();
                let has_line = self
                    .own
                    .forge
                    .read(branch, "next/fleet.yaml")
                    .await
                    .contains(&self.own.line(&self.tag()));
                (!has_line).then(|| "the branch of the other automation lacks the image".to_owned())
            }
            _ => Some(format!("the other automation has {} open", open.len())),
        }
    }

    /// Waits until the controller has taken the branch of an open pull request back.
    async fn label_is_removed(&self, number: u64) {
        let begin = Instant::now();
        loop {
            self.reconcile().await;
            let pull = self.own.forge.call("GET", &format!("pulls/{number}"), Value::Null).await;
            if pull["state"] == "closed" || pull["labels"].as_array().is_none_or(Vec::is_empty) {
                return;
            }
            let (seed, story) = (self.seed, &self.story);
            assert!(begin.elapsed() < TIMEOUT, "seed {seed}: the label of #{number} stays after{story}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns true if a person has refused the present image, or may have.
    fn is_refused(&self) -> bool {
        self.refused.values().any(|refusal| {
            let of_hashes = |hashes: &String| self.seen.get(hashes).is_none_or(|image| *image == self.image);
            refusal.image == self.image || refusal.hashes.as_ref().is_some_and(of_hashes)
        })
    }

    /// Returns true if the branch has a commit of a person that the base lacks.
    fn is_edited(&self) -> bool {
        let branch = self.own.branch();
        self.commits
            .iter()
            .any(|commit| self.is_reachable(commit, &branch) && !self.is_reachable(commit, "main"))
    }

    /// Requests a run, and waits until it has ended.
    async fn reconcile(&self) {
        let token = format!("r{}", self.requests.fetch_add(1, Ordering::Relaxed));
        for automation in ["app", "next"] {
            self.own.scene.request(automation, &token).await;
        }
        let what = format!("reconciled (seed {} after{})", self.seed, self.story);
        let is_handled = |object: &kube::core::DynamicObject| {
            object.data["status"]["lastHandledReconcileAt"] == *token && kstatus(object) == "Current"
        };
        for automation in ["app", "next"] {
            self.own.scene.until(automation, &what, is_handled).await;
        }
    }

    /// Returns what is still missing, if the actions determine it.
    async fn missing(&self) -> Option<String> {
        self.fetch();
        let is_wanted =
            !self.own.forge.read("main", "fleet.yaml").await.contains(&self.own.line(&self.tag()));
        if let Some(missing) = self.next_missing().await {
            return Some(missing);
        }
        if self.is_refused() || self.is_edited() {
            return None;
        }
        let open = self.open().await;
        if open.as_ref().is_some_and(|pull| pull["base"]["ref"] != "main") {
            return None;
        }
        if !is_wanted {
            return open.map(|pull| format!("#{} is open, with nothing left to change", number(&pull)));
        }
        let Some(pull) = open else { return Some("no pull request is open".to_owned()) };
        let branch = self.own.branch();
        let has_line = self.own.forge.tip(&branch).await.is_some()
            && self.own.forge.read(&branch, "fleet.yaml").await.contains(&self.own.line(&self.tag()));
        (!has_line).then(|| format!("the branch of #{} lacks the image", number(&pull)))
    }

    /// Waits until the controller has done what it has to do.
    async fn settle(&mut self) {
        self.reconcile().await;
        let begin = Instant::now();
        let mut asked = Instant::now();
        while let Some(missing) = self.missing().await {
            assert!(
                begin.elapsed() < TIMEOUT,
                "seed {}: {missing} after{}: {:#}\n{:#?}",
                self.seed,
                self.story,
                self.own.scene.status("app").await,
                self.own.pulls().await,
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
            // A person's action is noticed by the next run.
            if asked.elapsed() > Duration::from_secs(3) {
                asked = Instant::now();
                self.reconcile().await;
            }
        }
        self.reconcile().await;
        if let Some(pull) = self.open().await
            && !self.is_refused()
            && !self.is_edited()
            && pull["base"]["ref"] == "main"
            && let Some(hashes) = images(&pull)
        {
            self.seen.insert(hashes.to_owned(), self.image);
        }
    }

    /// All branches and pull requests, with the times of their last changes.
    async fn forge_state(&self) -> (String, Vec<Value>) {
        self.fetch();
        let branches = output(git(self.clone.path()).args(["for-each-ref", "refs/heads"]), b"");
        let members = ["number", "state", "title", "body", "updated_at"];
        let of = |pull: &Value| members.map(|member| pull[member].clone()).into_iter().collect();
        (String::from_utf8(branches).unwrap(), self.own.pulls().await.iter().map(of).collect())
    }

    async fn run(mut self) {
        self.act(Action::NewImage).await;
        self.settle().await;
        for _ in 0..STEPS {
            self.story.push(';');
            for _ in 0..=self.random.below(2) {
                let action = ACTIONS[self.random.below(ACTIONS.len())];
                self.act(action).await;
            }
            self.settle().await;
            self.assert_kept().await;
        }
        // A start without any state changes nothing at the forge.
        let before = self.forge_state().await;
        self.act(Action::LoseState).await;
        self.settle().await;
        self.assert_kept().await;
        assert_eq!(self.forge_state().await, before, "seed {}: after{}", self.seed, self.story);
        println!("seed {}:{}", self.seed, self.story);
    }
}

/// The seeds that the caller wants.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TAGBOAT_SEEDS") else { return SEEDS };
    let ends = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    ends.unwrap_or_else(|| panic!("TAGBOAT_SEEDS is {text:?}: write two numbers, such as 1..20"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_commit_text_or_refusal_of_a_person_is_lost_whatever_people_do() {
    let seeds: Vec<u64> = seeds().collect();
    for pair in seeds.chunks(2) {
        futures::future::join_all(pair.iter().map(async |seed| World::new(*seed).await.run().await)).await;
    }
}
