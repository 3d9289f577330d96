//! The complete statuses of one automation over a chain of runs, compared with
//! `testdata/automation-status/chain.yaml`.
//!
//! Each run is a few documents: the status at its start if that is written, the status at its end, and the remaining
//! actions. `TAGBOAT_REGENERATE=1` rewrites the file; a person reviews the difference then.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::json;
use tagboat::git::checkout::Revision;
use tagboat::git::outcome::{Outcome, Push};
use tagboat::reconcile::automation::conclusion::{Conclusion, RunFailure, Stage};
use tagboat::reconcile::automation::report::{report, while_suspended};
use tagboat::reconcile::automation::source::SourceReference;
use tagboat::reconcile::cross_namespace::CrossNamespace;
use tagboat::reconcile::repository::request::ObjectIdentity;
use tagboat::reconcile::run::ReconcileRun;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{ImageRef, ImageUpdateAutomation, Reason};

/// An automation and the documents of its runs.
struct Chain {
    status: ImageUpdateAutomationStatus,
    generation: i64,
    requested_at: Option<String>,
    clock: Timestamp,
    text: String,
}

impl Chain {
    /// Adds the next run, an hour after the one before.
    /// A run takes 1.5 s.
    fn run(&mut self, title: &str, conclusion: &Conclusion) {
        self.clock += SignedDuration::from_hours(1);
        let run = ReconcileRun {
            generation: self.generation,
            requested_at: self.requested_at.clone(),
            started: self.clock,
        };
        let _ = writeln!(self.text, "# {title}");
        let begun = run.begin(&self.status);
        if begun.must_be_written {
            self.write("begin", &begun.status);
        }
        let end = self.clock + SignedDuration::from_millis(1500);
        let report = report(&run, Duration::from_secs(3600), &self.status, conclusion, end);
        self.write("end", &report.status);
        let event = format!("{:?} {}: {}", report.event.type_, report.event.reason, report.event.message);
        self.write("event", &event);
        self.write("next", &format!("{:?}", report.action));
        self.status = report.status;
    }

    fn write(&mut self, name: &str, value: &impl Serialize) {
        let _ = writeln!(self.text, "---\n{}", yaml(&json!({name: value})).trim_end());
    }
}

fn yaml(value: &impl Serialize) -> String {
    serde_saphyr::to_string(value).unwrap()
}

fn revision(digit: char) -> Revision {
    let commit = digit.to_string().repeat(40).parse().unwrap();
    Revision { reference: Some("refs/heads/main".parse().unwrap()), commit }
}

fn success(tag: &str, outcome: Outcome) -> Conclusion {
    let image = ImageRef { name: "img/app".to_owned(), tag: tag.to_owned(), digest: None };
    Conclusion::Success { outcome, policies: BTreeMap::from([("p".to_owned(), image)]) }
}

fn pushed(from: char, branch: &str, commit: char) -> Outcome {
    Outcome::Pushed(Push {
        source: revision(from),
        branch: branch.parse().unwrap(),
        commit: revision(commit).commit,
        refspec: None,
        message: "Update from image update automation".to_owned(),
        found: None,
    })
}

/// The end of a run without its GitRepository, or without `git` in its spec.
fn without_source(git: &serde_json::Value) -> Conclusion {
    let automation: ImageUpdateAutomation = serde_json::from_value(json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1",
        "kind": "ImageUpdateAutomation",
        "metadata": {"namespace": "n", "name": "a"},
        "spec": {"interval": "1h", "sourceRef": {"kind": "GitRepository", "name": "r"}, "git": git},
    }))
    .unwrap();
    let error = SourceReference::of(&automation, CrossNamespace::Forbidden)
        .and_then(|reference| reference.configure(None, ObjectIdentity::Off))
        .unwrap_err();
    Conclusion::stopped(Stage::Source, &error)
}

fn chain() -> String {
    let git = json!({"commit": {"author": {"email": "a@example.com"}}});
    let mut chain = Chain {
        status: ImageUpdateAutomationStatus::default(),
        generation: 1,
        requested_at: None,
        clock: "2026-01-01T00:00:00.75Z".parse().unwrap(),
        text: String::new(),
    };
    chain.run("first run, without a repository", &without_source(&git));
    chain.run("the same again", &without_source(&git));
    let looked = |digit, tag| success(tag, Outcome::NothingToCommit { source: revision(digit) });
    chain.run("the repository is there, nothing to change", &looked('1', "1.0.0"));
    chain.run("nothing new", &success("1.0.0", Outcome::NothingNew));
    chain.run("a policy moved", &success("1.1.0", pushed('1', "main", '2')));
    chain.requested_at = Some("2026-01-01T05:30:00Z".to_owned());
    chain.run("asked for by hand", &success("1.1.0", Outcome::NothingNew));
    chain.run("somebody else's commit", &looked('3', "1.1.0"));
    chain.generation = 2;
    chain.run("the spec lost its git", &without_source(&json!(null)));
    chain.generation = 3;
    let failure = Conclusion::Failure(RunFailure {
        stage: Stage::Push,
        reason: Reason::GitOperationFailed,
        message: "failed to update source: failed to push to remote: permission denied".to_owned(),
        hint: None,
        pushed: None,
    });
    chain.run("the spec is mended, but the push is refused", &failure);
    let stall = Conclusion::Stall(RunFailure {
        stage: Stage::Policies,
        reason: Reason::InvalidPolicySelector,
        message: "failed to parse policy selector: \"Bogus\" is not a valid label selector operator"
            .to_owned(),
        hint: None,
        pushed: None,
    });
    chain.generation = 4;
    chain.run("a bad selector after that failure: Ready keeps what it said", &stall);
    chain.generation = 5;
    chain.run(
        "the selector is mended, and the push goes to another branch",
        &success("1.2.0", pushed('3', "auto", '4')),
    );
    let _ = writeln!(chain.text, "# suspended");
    let suspended = while_suspended(&chain.status, 6);
    chain.write("end", &suspended);
    chain.text
}

#[test]
fn a_chain_of_runs_leaves_the_statuses_that_are_written_down() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/automation-status/chain.yaml");
    let found = chain();
    if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &found).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, wanted, "not as in {}", path.display());
}
