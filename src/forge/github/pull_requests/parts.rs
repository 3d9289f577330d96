//! The parts of a pull request beside its text: labels, assignees and reviewers.
//!
//! Each needs a call of its own.

use serde_json::{Value, json};

use super::{Github, LABEL};
use crate::forge::error::ForgeError;
use crate::forge::exchange::{Cost, Method, Transport};
use crate::forge::pull_request::{NewPullRequest, PullRequest, PullRequestEdit};

const COMPLETE: &str = "complete a pull request";
const ASSIGN: &str = "assign a pull request";
const REVIEW: &str = "ask for a review";

/// A part of a pull request beside its text.
pub(super) enum Part<'p> {
    Labels(&'p [String]),
    Assignees(&'p [String]),
    Reviewers(&'p [String]),
}

impl Part<'_> {
    fn names(&self) -> &[String] {
        match self {
            Self::Labels(names) | Self::Assignees(names) | Self::Reviewers(names) => names,
        }
    }

    /// Returns true if a later round may add it.
    fn may_pass(&self, error: &ForgeError) -> bool {
        match self {
            Self::Labels(_) => error.delays_labels(),
            Self::Assignees(_) | Self::Reviewers(_) => !error.is_final(),
        }
    }

    fn call(&self) -> ([&'static str; 2], Cost, &'static str) {
        match self {
            Self::Labels(_) => (["issues", "labels"], Cost::Essential, LABEL),
            Self::Assignees(_) => (["issues", "assignees"], Cost::Essential, ASSIGN),
            Self::Reviewers(_) => (["pulls", "requested_reviewers"], Cost::Create, REVIEW),
        }
    }

    /// Returns a sentence for each name that GitHub has dropped silently.
    fn left_out(&self, answer: &Value) -> Vec<String> {
        let (Self::Assignees(names), Some(assigned)) = (self, answer["assignees"].as_array()) else {
            return Vec::new();
        };
        let is_assigned = |name: &&String| {
            assigned
                .iter()
                .any(|user| user["login"].as_str().is_some_and(|login| login.eq_ignore_ascii_case(name)))
        };
        let left_out = names.iter().filter(|name| !is_assigned(name));
        left_out.map(|name| format!("assignee {name:?} is left out by GitHub")).collect()
    }

    fn body(&self) -> Value {
        match self {
            Self::Labels(names) => json!({"labels": names}),
            Self::Assignees(names) => json!({"assignees": names}),
            Self::Reviewers(names) => {
                let (teams, users): (Vec<&String>, Vec<&String>) =
                    names.iter().partition(|name| name.contains('/'));
                let teams: Vec<&str> =
                    teams.iter().filter_map(|team| Some(team.rsplit_once('/')?.1)).collect();
                json!({"reviewers": users, "team_reviewers": teams})
            }
        }
    }
}

/// The parts that a new pull request lacks.
#[derive(Default)]
struct Missing {
    sentences: Vec<String>,
    /// True if one of the failures may pass.
    may_pass: bool,
}

impl Missing {
    fn note(&mut self, error: &ForgeError, may_pass: bool) {
        self.may_pass |= may_pass;
        self.sentences.push(error.to_string());
    }
}

impl<T: Transport> Github<T> {
    /// Adds labels, reviewers or assignees; those of others stay.
    ///
    /// Returns GitHub's answer.
    pub(super) async fn add(&self, number: u64, part: &Part<'_>) -> Result<Value, ForgeError> {
        let (resource, cost, operation) = part.call();
        let number = number.to_string();
        let path = [resource[0], &number, resource[1]];
        let response = self.send((Method::Post, cost), &path, Some(part.body()), operation).await?;
        match response.status {
            200 | 201 => Ok(response.body),
            _ => Err(self.refusal(operation, &response)),
        }
    }

    /// Adds a part; reviewers are added one by one if GitHub refuses them together.
    ///
    /// One that is unknown, or is the author, makes GitHub refuse all. Returns its last answer, and adds a sentence for each
    /// reviewer that it refuses.
    async fn add_each(
        &self,
        number: u64,
        part: &Part<'_>,
        refused: &mut Vec<String>,
    ) -> Result<Value, ForgeError> {
        let (error, reviewers) = match (self.add(number, part).await, part) {
            (Err(error @ ForgeError::Refused { status: 422, .. }), Part::Reviewers(names)) => (error, *names),
            (added, _) => return added,
        };
        let mut answer = Value::Null;
        for reviewer in reviewers {
            let one = std::slice::from_ref(reviewer);
            let added = match reviewers.len() {
                1 => Err(error.clone()),
                _ => self.add(number, &Part::Reviewers(one)).await,
            };
            match added {
                Ok(added) => answer = added,
                Err(ForgeError::Refused { status: 422, detail, .. }) => {
                    refused.push(format!("reviewer {reviewer:?} is refused: {detail}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answer)
    }

    /// Returns the body of a pull request.
    async fn body(&self, number: u64) -> Result<String, ForgeError> {
        let path = ["pulls", &number.to_string()];
        let response = self.send((Method::Get, Cost::EssentialRead), &path, None, COMPLETE).await?;
        match response.status {
            200 => Ok(text_of(&response.body["body"])),
            _ => Err(self.refusal(COMPLETE, &response)),
        }
    }

    /// Sets the body of a new pull request, which says that all parts are there.
    async fn set_body(&self, number: u64, body: &str) -> Result<(), ForgeError> {
        let path = ["pulls", &number.to_string()];
        let body = json!({ "body": body });
        let response = self.send((Method::Patch, Cost::Essential), &path, Some(body), COMPLETE).await?;
        match response.status {
            200 => Ok(()),
            _ => Err(self.refusal(COMPLETE, &response)),
        }
    }

    /// Adds what a new pull request has beside its text.
    ///
    /// Returns a sentence for each part that is missing.
    ///
    /// It is open already, so a failure is told, and is no error. The completed body comes last. After a failure that may pass, or
    /// if a person has changed the text meanwhile, the body stays as it is, and a later round completes it.
    pub(super) async fn complete(
        &self,
        opened: &PullRequest,
        new: &NewPullRequest,
        is_new: bool,
    ) -> Vec<String> {
        let (mut missing, mut text) = (Missing::default(), None);
        // Each request notifies the reviewers.
        let reviewers = if is_new { new.reviewers.as_slice() } else { &[] };
        for part in [Part::Labels(&new.labels), Part::Assignees(&new.assignees), Part::Reviewers(reviewers)] {
            if part.names().is_empty() {
                continue;
            }
            let added = self.add_each(opened.number, &part, &mut missing.sentences).await;
            let answer = added.unwrap_or_else(|error| {
                missing.note(&error, part.may_pass(&error));
                Value::Null
            });
            missing.sentences.extend(part.left_out(&answer));
            // That to labels has no text.
            text = answer.get("body").map(text_of);
        }
        let body = new.completed_body.as_ref().filter(|_| is_new && !missing.may_pass);
        if let Some(body) = body
            && let Err(error) = self.complete_body(opened, text, body).await
        {
            missing.note(&error, !error.is_final());
        }
        missing.sentences
    }

    /// Sets the body of a new pull request, unless others have changed it meanwhile.
    ///
    /// `text` is its body in the last answer, if that has one.
    async fn complete_body(
        &self,
        opened: &PullRequest,
        text: Option<String>,
        body: &str,
    ) -> Result<(), ForgeError> {
        let text = match text {
            Some(text) => text,
            None => self.body(opened.number).await?,
        };
        if text == opened.body { self.set_body(opened.number, body).await } else { Ok(()) }
    }

    /// Adds labels, reviewers and assignees before a change of the text.
    ///
    /// One that is refused stays away. Returns a sentence for each of these.
    pub(super) async fn add_missing(
        &self,
        number: u64,
        edit: &PullRequestEdit,
    ) -> Result<Vec<String>, ForgeError> {
        let mut refused = Vec::new();
        for part in [
            Part::Labels(&edit.added_labels),
            Part::Assignees(&edit.added_assignees),
            Part::Reviewers(&edit.added_reviewers),
        ] {
            if part.names().is_empty() {
                continue;
            }
            match self.add_each(number, &part, &mut refused).await {
                Err(error) if !part.may_pass(&error) => refused.push(error.to_string()),
                added => drop(added?),
            }
        }
        Ok(refused)
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
