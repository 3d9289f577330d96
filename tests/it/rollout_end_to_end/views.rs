//! The five views of a deployment.
//!
//! They are the object, the REST API, the web page, `tagboat status` and `tagboat history`.

use std::process::Command;
use std::time::{Duration, Instant};

use kube::api::Api;
use reqwest::Method;
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;

use super::fleet::Fleet;
use super::page;
use super::step::{Step, cause};
use crate::controller::pod::get;
use crate::rest::answer::Answer;
use crate::support::git_program::Person;
use crate::support::program::{Run, run, tagboat_without_cluster};

/// Timeout of a step.
///
/// An outage counts after a minute, clients come back from it later, and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The answers of the views, asked one after the other.
struct Views {
    object: Value,
    /// The documents of the REST API: by name, by id, and in the list.
    documents: [Value; 3],
    list: Value,
    page: String,
    overview: String,
    status: Run,
    wait: Run,
    history: Value,
}

impl Fleet {
    /// Waits until all views report a step, and returns the status of the object.
    pub(super) async fn reports(&self, step: &Step<'_>) -> Value {
        let begin = Instant::now();
        loop {
            let object = self.object().await;
            let is_met = object["status"].is_object() && step.is_met_by(&object["status"]);
            let differences = if is_met {
                let views = self.views(object).await;
                let differences = views.differences(self, step);
                if differences.is_empty() {
                    return views.object["status"].clone();
                }
                differences
            } else {
                vec![format!("the object is {object:#}")]
            };
            let log = || self.program().lines().iter().map(|line| format!("{line}\n")).collect::<String>();
            assert!(begin.elapsed() < TIMEOUT, "{step:#?}\n{}\n{}", differences.join("\n"), log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The object, or null.
    async fn object(&self) -> Value {
        let api: Api<DeploymentStatus> = Api::default_namespaced(self.cluster().client());
        json!(api.get_opt("podinfo").await.unwrap())
    }

    async fn views(&self, object: Value) -> Views {
        let namespace = self.namespace();
        let address = &self.program().status;
        let document = async |path: String| Answer::of(Method::GET, address, &path, &[]).await.json();
        let id = object["status"]["deploymentId"].as_str().unwrap();
        let list = document(format!("/api/v1/deployments?namespace={namespace}")).await;
        let documents = [
            document(format!("/api/v1/namespaces/{namespace}/deployments/podinfo/status")).await,
            document(format!("/api/v1/deployments/{id}/status")).await,
            list["items"][0].clone(),
        ];
        Views {
            documents,
            list,
            page: get(address, &format!("deployments/{namespace}/podinfo")).await,
            overview: get(address, &format!("?namespace={namespace}")).await,
            status: run(&mut self.status_command(&["-o", "json"])),
            wait: run(&mut self.status_command(&["podinfo", "--wait", "0s"])),
            history: self.history(),
            object,
        }
    }

    /// The command `tagboat status` on the namespace.
    pub(super) fn status_command(&self, arguments: &[&str]) -> Command {
        let mut command = tagboat_without_cluster();
        command.args(["status", "--kubeconfig"]).arg(&self.kubeconfig).args(arguments);
        command
    }

    /// The changes of the policy's markers in a fresh clone, the newest first.
    fn history(&self) -> Value {
        let directory = tempfile::tempdir_in(self.directory()).unwrap();
        let clone = Person::anonymous().clone_bare(&self.url(), &directory.path().join("clone"));
        let mut command = tagboat_without_cluster();
        command.arg("history").arg(clone.path()).args(["-o", "json", "--live", "--kubeconfig"]);
        command.arg(&self.kubeconfig).arg("--policy");
        let run = run(command.arg(format!("{}:podinfo", self.namespace()))).with_status(0);
        run.json()["changes"].clone()
    }

    /// Returns the newest commit of the program on a branch, and its merges.
    fn commit_and_merges(&self, branch: &str) -> Vec<String> {
        let log = self.repository.log(branch);
        let own = log.iter().find(|commit| commit.author.starts_with("bot "));
        let own = own.map(|commit| commit.id.clone()).unwrap_or_default();
        let merges = log.iter().filter(|commit| commit.parents.len() > 1 && commit.parents.contains(&own));
        std::iter::once(own.clone()).chain(merges.map(|merge| merge.id.clone())).collect()
    }
}

impl Views {
    /// Returns a sentence for each view that reports something else than the step.
    fn differences(&self, fleet: &Fleet, step: &Step<'_>) -> Vec<String> {
        let status = &self.object["status"];
        let mut found = Differences::default();
        self.compare_documents(&mut found);
        self.compare_pages(status, step, &mut found);
        self.compare_commands(fleet.namespace(), status, step, &mut found);
        self.compare_history(fleet, status, step, &mut found);
        found.0
    }

    /// The documents have the fields of the object, and no others.
    fn compare_documents(&self, found: &mut Differences) {
        let [document, ..] = &self.documents;
        // An error has a number there.
        let mut rebuilt = document["status"].clone();
        for field in ["deploymentId", "timeStamp"].into_iter().filter(|_| document["status"].is_object()) {
            rebuilt[field] = document["metadata"][field].clone();
        }
        found.compare("the REST document", &rebuilt, &self.object["status"]);
        for other in &self.documents[1..] {
            found.compare("another document of the REST API", other, document);
        }
        found.compare("the state of the list", &self.list["state"], &self.object["status"]["state"]);
    }

    fn compare_pages(&self, status: &Value, step: &Step<'_>, found: &mut Differences) {
        let shown = page::of_deployment(&self.page, "podinfo");
        found.compare("the page", &json!(shown), &json!(page::lines_of(status)));
        let row = page::of_row(&self.overview, "podinfo");
        found.compare("the list on the page", &json!(row), &json!(page::row_of(status)));
        let steps = page::steps(&self.page);
        let current = steps.iter().map(|(step, _)| step.as_str()).find(|step| !step.ends_with(" done"));
        found.compare("the step on the page", &json!(current.unwrap_or_default()), &json!(step.current));
        let commit = &status["commit"];
        let is_done = steps.iter().any(|(step, _)| step == "Committed done");
        if let (true, Some(id)) = (is_done, commit["id"].as_str()) {
            let line = format!("{} on {} by fleet", &id[..7], commit["branch"].as_str().unwrap());
            let lines = &steps.iter().find(|(step, _)| step == "Committed done").unwrap().1;
            found.check("the commit on the page", lines.contains(&line), &json!(lines));
        }
    }

    /// `status` prints the list of the REST API, and `--wait` ends as the state says.
    fn compare_commands(&self, namespace: &str, status: &Value, step: &Step<'_>, found: &mut Differences) {
        found.compare("tagboat status", &self.status.json(), &self.list);
        let is_installed = step.state == "installed";
        let expected = i32::from(!is_installed);
        found.compare("the exit status of --wait", &json!(self.wait.status), &json!(expected));
        let (cause, message) = cause(status);
        let beginning = format!("error: not installed within 0s: {namespace}/podinfo: ");
        let says = |text: &str| self.wait.errors.contains(text);
        let names_component = || says(status["components"][0]["name"].as_str().unwrap_or_default());
        let is_complete = self.wait.errors.starts_with(&beginning)
            && [cause, message, step.state].iter().all(|text| says(text))
            && (status["error"].is_object() || names_component());
        let is_expected = if is_installed { self.wait.errors.is_empty() } else { is_complete };
        found.check("the message of --wait", is_expected, &json!(self.wait.errors));
    }

    /// The history lists each tag with the one before, its components and its commit.
    fn compare_history(&self, fleet: &Fleet, status: &Value, step: &Step<'_>, found: &mut Differences) {
        let tag = |value: &Value| value.as_str().map(|value| value.rsplit(':').next().unwrap().to_owned());
        let changes = self.history.as_array().unwrap();
        let listed: Vec<_> =
            changes.iter().rev().map(|change| (tag(&change["old"]), tag(&change["new"]))).collect();
        let before = std::iter::once(None).chain(step.in_git.iter().map(Some));
        let expected: Vec<_> = before.zip(step.in_git).map(|(old, new)| (old, Some(new))).collect();
        found.compare("tagboat history", &json!(listed), &json!(expected));
        let pods = |of: &Value, ready: &str| [&of["name"], &of[ready], &of["desired"]].map(Clone::clone);
        let mut live: Vec<_> = changes
            .iter()
            .flat_map(|change| {
                page::array(&change["live"]).iter().map(|live| (tag(&change["new"]), pods(live, "ready")))
            })
            .collect();
        let components = page::array(&status["components"]).iter();
        let components = components.filter(|component| component["image"].is_string());
        let mut running: Vec<_> =
            components.map(|component| (tag(&component["image"]), pods(component, "updatedReady"))).collect();
        live.sort_by_key(|row| format!("{row:?}"));
        running.sort_by_key(|row| format!("{row:?}"));
        found.compare("tagboat history --live", &json!(live), &json!(running));
        if step.pushed.is_empty() {
            return found.check("the commit", status["commit"].is_null(), &status["commit"]);
        }
        let commits = fleet.commit_and_merges(step.pushed);
        found.compare("the commit", &status["commit"]["id"], &json!(commits[0]));
        if step.in_git.last() == Some(&step.tag) {
            let merged = fleet.commit_and_merges("main");
            let is_listed = merged[0] == commits[0] && merged.iter().any(|id| changes[0]["commit"] == *id);
            found.check("the commit of tagboat history", is_listed, &changes[0]["commit"]);
        }
    }
}

/// Sentences about what the views report differently.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, what: &str, found: &Value, expected: &Value) {
        if found != expected {
            self.0.push(format!("{what} is {found:#}\nand not {expected:#}"));
        }
    }

    fn check(&mut self, what: &str, is_expected: bool, found: &Value) {
        if !is_expected {
            self.0.push(format!("{what} is not as expected: {found:#}"));
        }
    }
}
