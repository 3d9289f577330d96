//! Azure DevOps.
//!
//! Reviewers are ids, and there are no assignees. A body has at most 4,000 characters. A listing cuts bodies after 400, so longer
//! ones are read one by one: those of wanted heads in each listing, and any other once, to see if it has a mark. Auto-complete is set in the name of the user who created the pull request.

use serde_json::{Value, json};

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first, path};
use super::error::ForgeError;
use super::exchange::{ApiRequest, ApiResponse, Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use super::reading::{Defect, branch, commit, flag, list, message, number, one_line, text, texts};
use crate::git::BranchName;
use crate::net::percent;

/// The version of the API.
const VERSION: &str = "7.1";

/// The number of entries of a page.
const PAGE_SIZE: usize = 100;

/// The number of characters after which a listing cuts a body.
const CUT: usize = 400;

/// The policies of branches that require a check or an approval.
const POLICIES: [&str; 4] = [
    // A number of reviewers.
    "fa4e907d-c16b-4a4c-9dfa-4906e5d171dd",
    // Certain reviewers.
    "fd2167ab-b0be-447a-8ec8-39368250530e",
    // A build.
    "0609b952-1397-4640-95ec-e00a01b2c241",
    // A status of another service.
    "cbdc66da-9728-4af8-aada-9a5a32e4a226",
];

/// The pull requests of a repository on Azure DevOps.
#[derive(Debug)]
pub struct AzureDevops<T> {
    client: Client<T>,
    repository: AzureRepository,
}

/// A repository on Azure DevOps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzureRepository {
    /// The organization.
    pub organization: String,
    /// The project.
    pub project: String,
    /// The name.
    pub name: String,
}

impl<T: Transport> AzureDevops<T> {
    /// Makes the client of a repository; the base URL of the transport includes the organization.
    pub fn new(transport: T, endpoint: Endpoint, repository: AzureRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists pull requests whose head is in the repository itself, with whole bodies.
    async fn list(
        &self,
        query: &[(&'static str, String)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        let (mut pages, mut found) = (Pages::of(PAGE_SIZE), Vec::new());
        loop {
            let mut request = self.repository.request(Method::Get, &[], OPERATION);
            request.query.extend(query.iter().cloned());
            let request = request.with_query("$top", &pages.size()).with_query("$skip", &pages.offset());
            let request = request.essential_if(listing.is_urgent);
            let Some(response) = pages.admit(self.client.call(request).await)? else { continue };
            let all = response.body.get("value").and_then(Value::as_array);
            let all = self.client.checked(OPERATION, all.ok_or(Defect("no list of pull requests")))?;
            let numbers = all.iter().filter_map(|entry| number(entry, "/pullRequestId"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            for entry in all {
                let read = self.repository.pull_request(entry);
                let Some(mut one) = self.client.checked(OPERATION, read)? else { continue };
                if one.body.chars().count() >= CUT && listing.needs_whole_body(&one) {
                    let whole = self.read(one.number, listing.is_urgent).await?.0;
                    // One that is read by its id has no labels.
                    one = PullRequest { labels: one.labels, ..whole };
                }
                if listing.keeps(&one) {
                    found.push(one);
                }
            }
            if all.len() < pages.size() {
                return Ok(newest_first(found));
            }
            pages.go_on();
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let request = self.repository.request(Method::Get, &[&number.to_string()], OPERATION);
        let response = self.client.call(request.essential_if(is_essential)).await?;
        let read = self.repository.own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Adds reviewers that are not among those of a document.
    ///
    /// Returns a sentence for each that is refused, and the last failure that may pass.
    async fn add_reviewers(
        &self,
        number: u64,
        ids: &[String],
        document: &Value,
    ) -> (Vec<String>, Option<ForgeError>) {
        let (mut refused, mut passing) = (Vec::new(), None);
        let present = texts(list(document, "/reviewers"), "/id");
        // A second request would take a vote back.
        for id in ids.iter().filter(|id| !present.iter().any(|one| one.eq_ignore_ascii_case(id))) {
            let reason = if is_id(id) {
                match self.add_reviewer(number, id).await {
                    Ok(None) => continue,
                    Ok(Some(reason)) => reason,
                    Err(error) => passing.insert(error).to_string(),
                }
            } else {
                "Azure DevOps takes the ids of users and groups".to_owned()
            };
            refused.push(format!("reviewer {id:?} is refused: {reason}"));
        }
        (refused, passing)
    }

    /// Adds a reviewer; returns the forge's reason to refuse, if it does.
    ///
    /// # Errors
    ///
    /// If the failure may pass.
    async fn add_reviewer(&self, number: u64, id: &str) -> Result<Option<String>, ForgeError> {
        let request = self.repository.add_reviewer(number, id);
        let operation = request.operation;
        match self.client.send(request).await {
            Ok(response) if response.is_success() => Ok(None),
            Ok(response) => self.client.refused_part(operation, &response).map(Some),
            Err(error) if error.is_final() => Ok(Some(error.to_string())),
            Err(error) => Err(error),
        }
    }

    async fn patch(&self, number: u64, body: Value, is_essential: bool) -> Result<Value, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let request = self.repository.request(Method::Patch, &[&number.to_string()], OPERATION);
        Ok(self.client.call(request.with_body(body).essential_if(is_essential)).await?.body)
    }

    async fn edit_labels(&self, number: u64, edit: &PullRequestEdit) -> Result<(), ForgeError> {
        const OPERATION: &str = "remove a label";
        for name in &edit.added_labels {
            let request = self.repository.labels(Method::Post, number, &[], "add a label");
            let request = request.with_body(json!({ "name": name })).essential_if(edit.is_closed);
            self.client.call(request).await?;
        }
        for name in &edit.removed_labels {
            let request = self.repository.labels(Method::Delete, number, &[name.as_str()], OPERATION);
            let response = self.client.send(request.essential_if(edit.is_closed)).await?;
            if !response.is_success() && response.status != 404 {
                return Err(self.client.failure(OPERATION, &response));
            }
        }
        Ok(())
    }

    /// Returns true if a policy of a branch requires a check or an approval.
    async fn is_anything_required(&self, base: &BranchName, repository: &str) -> Result<bool, ForgeError> {
        const OPERATION: &str = "list the policies of the branch";
        let path = path(&[&self.repository.project, "_apis", "git", "policy", "configurations"]);
        let request = ApiRequest::get(path, OPERATION)
            .with_query("repositoryId", repository)
            .with_query("refName", &base.reference())
            .with_query("api-version", VERSION);
        let response = self.client.call(request).await?;
        let policies = response.body.get("value").and_then(Value::as_array);
        let policies = self.client.checked(OPERATION, policies.ok_or(Defect("no list of policies")))?;
        Ok(policies.iter().any(is_required))
    }
}

impl<T: Transport> Forge for AzureDevops<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("searchCriteria.status", "active".to_owned())], listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let query = [
            ("searchCriteria.status", "all".to_owned()),
            ("searchCriteria.sourceRefName", head.reference().to_string()),
            ("searchCriteria.targetRefName", base.reference().to_string()),
        ];
        let mut found = self.list(&query, &mut Listing::of_head(head)).await?;
        found.retain(|one| one.head == *head && one.base == *base);
        Ok(found)
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a pull request";
        let response = self.client.send(self.repository.open(new)).await?;
        if !response.is_success() {
            let failure = self.client.failure(OPERATION, &response);
            if response.status == 409 {
                let found = self.find(&new.head, &new.base).await?;
                if let Some(pull_request) = found.into_iter().find(|one| one.state == PullRequestState::Open)
                {
                    return Ok(Opened { pull_request, is_new: false, refused: Vec::new() });
                }
            }
            return Err(failure);
        }
        let read = self.repository.own_pull_request(&response.body);
        let mut pull_request = self.client.checked(OPERATION, read)?;
        // The response can lack them.
        pull_request.labels.clone_from(&new.labels);
        let (mut refused, passing) =
            self.add_reviewers(pull_request.number, &new.reviewers, &response.body).await;
        if let Some(body) = new.completed_body.as_ref().filter(|_| passing.is_none()) {
            let edit = PullRequestEdit { body: Some(body.clone()), ..PullRequestEdit::default() };
            match self.patch(pull_request.number, edit_body(&edit).unwrap_or_default(), true).await {
                Ok(_) => pull_request.body.clone_from(body),
                Err(error) => refused.push(error.to_string()),
            }
        }
        if !new.assignees.is_empty() {
            refused.push("Azure DevOps has no assignees for pull requests".to_owned());
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let mut document = Value::Null;
        if edit.depends_on_text() || !edit.added_reviewers.is_empty() {
            let found = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged(OPERATION, (&found.0, current), edit)?;
            document = found.1;
        }
        self.edit_labels(current.number, edit).await?;
        let (refused, passing) = self.add_reviewers(current.number, &edit.added_reviewers, &document).await;
        refused.iter().for_each(|sentence| tracing::warn!("pull request #{}: {sentence}", current.number));
        if let Some(error) = passing {
            // The text would say that all reviewers are there.
            return Err(error);
        }
        let labels = edit.labels_after(current);
        let Some(body) = edit_body(edit) else {
            let read = self.read(current.number, false).await?.0;
            return Ok(PullRequest { labels, ..read });
        };
        let document = self.patch(current.number, body, edit.is_closed).await?;
        let edited = self.client.checked(OPERATION, self.repository.own_pull_request(&document))?;
        Ok(PullRequest { labels, ..edited })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        const OPERATION: &str = "merge a pull request";
        let (found, document) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let is_later = merge.time == MergeTime::WhenReady;
        let repository = text(&document, "/repository/id").unwrap_or(&self.repository.name);
        if is_later && !self.is_anything_required(&found.base, repository).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        let creator = text(&document, "/createdBy/id");
        let creator =
            self.client.checked(OPERATION, creator.ok_or(Defect("no creator of the pull request")))?;
        let request = self.repository.request(Method::Patch, &[&current.number.to_string()], OPERATION);
        let request = request.with_body(merge_body(merge, creator));
        let response = self.client.send(request).await?;
        merge_answer(&response).ok_or_else(|| self.client.failure(OPERATION, &response))
    }
}

impl AzureRepository {
    /// Reads the host and path of a git URL, in all of its forms.
    pub fn of_git_url(host: &str, segments: &[&str]) -> Option<Self> {
        let of = |organization: &str, project: &str, name: &str| {
            let is_named = [organization, project, name].iter().all(|part| !part.is_empty());
            is_named.then(|| Self {
                organization: organization.to_owned(),
                project: project.to_owned(),
                name: name.to_owned(),
            })
        };
        let host = host.to_ascii_lowercase();
        match (host.as_str(), segments) {
            ("ssh.dev.azure.com" | "vs-ssh.visualstudio.com", &["v3", organization, project, name]) => {
                of(organization, project, name)
            }
            ("dev.azure.com", &[organization, project, "_git", name]) => of(organization, project, name),
            // A repository with the name of its project.
            ("dev.azure.com", &[organization, "_git", name]) => of(organization, name, name),
            (host, segments) => {
                let organization = host.strip_suffix(".visualstudio.com")?;
                match segments {
                    [project, "_git", name] | ["DefaultCollection", project, "_git", name]
                        if *project != "DefaultCollection" =>
                    {
                        of(organization, project, name)
                    }
                    ["_git", name] | ["DefaultCollection", "_git", name] => of(organization, name, name),
                    _ => None,
                }
            }
        }
    }

    fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&[&self.project, "_apis", "git", "repositories", &self.name]);
        segments.push("pullrequests".to_owned());
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        let request = match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        };
        request.with_query("api-version", VERSION)
    }

    fn labels(&self, method: Method, number: u64, below: &[&str], operation: &'static str) -> ApiRequest {
        let number = number.to_string();
        let below = [[number.as_str(), "labels"].as_slice(), below].concat();
        self.request(method, &below, operation)
    }

    fn add_reviewer(&self, number: u64, id: &str) -> ApiRequest {
        let path = [number.to_string(), "reviewers".to_owned(), id.to_owned()];
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        self.request(Method::Put, &path, "add a reviewer").with_body(json!({"vote": 0})).creating()
    }

    fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let mut body = json!({
            "sourceRefName": new.head.reference().to_string(),
            "targetRefName": new.base.reference().to_string(),
            "title": new.title,
            "description": new.body,
            "isDraft": new.is_draft,
        });
        if !new.labels.is_empty() {
            body["labels"] = new.labels.iter().map(|name| json!({ "name": name })).collect();
        }
        self.request(Method::Post, &[], "open a pull request").with_body(body).creating()
    }

    /// Returns the address of a pull request's page, which the API does not tell.
    fn page(&self, number: u64) -> String {
        let [organization, project, name] =
            [&self.organization, &self.project, &self.name].map(|part| percent::encode(part.as_bytes()));
        format!("https://dev.azure.com/{organization}/{project}/_git/{name}/pullrequest/{number}")
    }

    fn own_pull_request(&self, body: &Value) -> Result<PullRequest, Defect> {
        self.pull_request(body)?.ok_or(Defect("a pull request whose head is in another repository"))
    }

    /// Reads a pull request.
    /// It is left out if its head is not a branch of the repository itself.
    fn pull_request(&self, body: &Value) -> Result<Option<PullRequest>, Defect> {
        let number = number(body, "/pullRequestId").ok_or(Defect("a pull request without a number"))?;
        let (Some(head), Some(base)) = (branch(body, "/sourceRefName"), branch(body, "/targetRefName"))
        else {
            return Ok(None);
        };
        if body.get("forkSource").is_some_and(|fork| !fork.is_null()) {
            return Ok(None);
        }
        let state = match text(body, "/status") {
            Some("active") => PullRequestState::Open,
            Some("abandoned") => PullRequestState::Closed,
            Some("completed") => PullRequestState::Merged,
            _ => return Err(Defect("a pull request without a state")),
        };
        Ok(Some(PullRequest {
            number,
            url: self.page(number),
            state,
            head,
            head_commit: commit(body, "/lastMergeSourceCommit/commitId"),
            base,
            title: text(body, "/title").unwrap_or_default().to_owned(),
            body: text(body, "/description").unwrap_or_default().to_owned(),
            is_draft: flag(body, "/isDraft"),
            labels: texts(list(body, "/labels"), "/name"),
            is_in_merge_queue: false,
            has_auto_merge: text(body, "/autoCompleteSetBy/id").is_some(),
            version: None,
        }))
    }
}

/// Returns the members of an edit, or none if only labels change.
fn edit_body(edit: &PullRequestEdit) -> Option<Value> {
    let mut body = serde_json::Map::new();
    if let Some(text) = &edit.title {
        body.insert("title".to_owned(), json!(text));
    }
    if let Some(text) = &edit.body {
        body.insert("description".to_owned(), json!(text));
    }
    if edit.is_closed {
        body.insert("status".to_owned(), json!("abandoned"));
    }
    (!body.is_empty()).then(|| Value::Object(body))
}

fn merge_body(merge: &Merge, creator: &str) -> Value {
    let mut body = match merge.time {
        MergeTime::WhenReady => json!({"autoCompleteSetBy": {"id": creator}}),
        MergeTime::Immediately => json!({
            "status": "completed",
            "lastMergeSourceCommit": {"commitId": merge.head_commit.to_string()},
        }),
    };
    if let Some(method) = merge.method {
        let strategy = match method {
            MergeMethod::Commit => "noFastForward",
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
        };
        body["completionOptions"] = json!({ "mergeStrategy": strategy });
    }
    body
}

/// Returns true if a policy applies, forbids merges, and requires a check or an approval.
fn is_required(policy: &Value) -> bool {
    let kind = text(policy, "/type/id").unwrap_or_default().to_ascii_lowercase();
    flag(policy, "/isEnabled") && flag(policy, "/isBlocking") && POLICIES.contains(&kind.as_str())
}

/// Returns true for an id: 32 hexadecimal digits in five groups.
fn is_id(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
fn merge_answer(response: &ApiResponse) -> Option<MergeAnswer> {
    let body = &response.body;
    Some(match response.status {
        200..=299 if text(body, "/status") == Some("completed") => MergeAnswer::Merged,
        200..=299 => match text(body, "/mergeStatus") {
            Some(state @ ("conflicts" | "rejectedByPolicy" | "failure")) => {
                let reason = text(body, "/mergeFailureMessage").unwrap_or(state);
                MergeAnswer::NotYet { reason: one_line(reason) }
            }
            // The forge does it in the background.
            _ => MergeAnswer::Scheduled,
        },
        400 => MergeAnswer::Refused { reason: message(response) },
        409 => MergeAnswer::NotYet { reason: message(response) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, endpoint, run};
    use super::*;

    const HEAD: &str = "1111111111111111111111111111111111111111";
    const ANN: &str = "d6245f20-2af8-44f4-9451-8107cb2767db";

    fn repository() -> AzureRepository {
        AzureRepository {
            organization: "acme".to_owned(),
            project: "Web Shop".to_owned(),
            name: "fleet".to_owned(),
        }
    }

    fn document(number: u64, status: &str) -> Value {
        json!({
            "pullRequestId": number, "status": status, "title": "Update web", "description": "text",
            "sourceRefName": "refs/heads/tagboat/web", "targetRefName": "refs/heads/main",
            "lastMergeSourceCommit": {"commitId": HEAD}, "isDraft": false, "createdBy": {"id": ANN},
            "repository": {"id": "3411ebc1-d5aa-464f-9615-0b527bc66719"},
        })
    }

    fn azure(script: &Script) -> AzureDevops<&Script> {
        AzureDevops::new(script, endpoint(), repository())
    }

    fn new() -> NewPullRequest {
        NewPullRequest {
            head: "tagboat/web".parse().unwrap(),
            base: "main".parse().unwrap(),
            title: "Update web".to_owned(),
            body: "text".to_owned(),
            is_draft: true,
            labels: vec!["images".to_owned()],
            reviewers: vec![ANN.to_owned(), "ann@example.com".to_owned()],
            assignees: vec![ANN.to_owned()],
            completed_body: None,
        }
    }

    #[test]
    fn all_forms_of_urls_are_read() {
        let read = |host: &str, path: &str| {
            AzureRepository::of_git_url(host, &path.split('/').collect::<Vec<_>>())
                .map(|found| format!("{} {} {}", found.organization, found.project, found.name))
        };
        for (host, path, wanted) in [
            ("dev.azure.com", "acme/Web Shop/_git/fleet", "acme Web Shop fleet"),
            ("dev.azure.com", "acme/_git/fleet", "acme fleet fleet"),
            ("Acme.visualstudio.com", "shop/_git/fleet", "acme shop fleet"),
            ("acme.visualstudio.com", "DefaultCollection/shop/_git/fleet", "acme shop fleet"),
            ("acme.visualstudio.com", "_git/fleet", "acme fleet fleet"),
            ("acme.visualstudio.com", "DefaultCollection/_git/fleet", "acme fleet fleet"),
            ("ssh.dev.azure.com", "v3/acme/shop/fleet", "acme shop fleet"),
            ("vs-ssh.visualstudio.com", "v3/acme/shop/fleet", "acme shop fleet"),
        ] {
            assert_eq!(read(host, path).as_deref(), Some(wanted), "{host} {path}");
        }
        for (host, path) in [
            ("dev.azure.com", "acme/shop/fleet"),
            ("dev.azure.com", "/shop/_git/fleet"),
            ("dev.azure.com", "acme/shop/_git/fleet/more"),
            ("ssh.dev.azure.com", "v2/acme/shop/fleet"),
            ("azure.example", "acme/shop/_git/fleet"),
        ] {
            assert_eq!(read(host, path), None, "{host} {path}");
        }
    }

    #[test]
    fn a_pull_request_is_opened_with_labels_and_ids() {
        let script = Script::new([(201, document(7, "active")), (200, json!({}))]);
        let opened = run(azure(&script).open(&new())).unwrap();
        assert_eq!(opened.pull_request.url, "https://dev.azure.com/acme/Web%20Shop/_git/fleet/pullrequest/7");
        assert_eq!(opened.pull_request.labels, ["images"]);
        script.assert_essential();
        assert_eq!(opened.refused.len(), 2, "{:?}", opened.refused);
        let sent = script.requests();
        let path = "Web%20Shop/_apis/git/repositories/fleet/pullrequests";
        assert_eq!(sent[0].0, format!("Post {path}?api-version=7.1"));
        assert_eq!(sent[0].1["labels"], json!([{"name": "images"}]));
        assert_eq!(sent[1], (format!("Put {path}/7/reviewers/{ANN}?api-version=7.1"), json!({"vote": 0})));
    }

    #[test]
    fn a_body_that_a_listing_cuts_is_read_whole() {
        let mut cut = document(7, "active");
        cut["description"] = json!("é".repeat(CUT));
        let mut whole = document(7, "active");
        whole["description"] = json!("é".repeat(900));
        let page = json!({"count": 2, "value": [cut, document(6, "active")]});
        let script = Script::new([(200, page), (200, whole)]);
        let found = run(azure(&script).open_pull_requests(&mut Listing::all())).unwrap();
        assert_eq!(found.iter().map(|one| one.body.chars().count()).collect::<Vec<_>>(), [900, 4]);
    }

    #[test]
    fn labels_stay_although_one_pull_request_alone_is_read_without_them() {
        let mut cut = document(7, "active");
        (cut["description"], cut["labels"]) = (json!("é".repeat(CUT)), json!([{"name": "tagboat/rebuild"}]));
        let mut whole = document(7, "active");
        whole["description"] = json!("é".repeat(900));
        let script = Script::new([(200, json!({ "value": [cut] })), (200, whole.clone())]);
        let found = run(azure(&script).open_pull_requests(&mut Listing::all())).unwrap();
        assert_eq!(found[0].labels, ["tagboat/rebuild"]);
        let edit = PullRequestEdit { added_labels: vec!["a".to_owned()], ..PullRequestEdit::default() };
        let script = Script::new([(200, json!({})), (200, whole)]);
        let edited = run(azure(&script).edit(&found[0], &edit)).unwrap();
        assert_eq!(edited.labels, ["tagboat/rebuild", "a"]);
    }

    #[test]
    fn a_long_body_of_a_stranger_is_read_once() {
        let long = |number: u64, head: &str, end: &str| {
            let mut document = document(number, "active");
            document["sourceRefName"] = json!(format!("refs/heads/{head}"));
            document["description"] = json!("é".repeat(CUT) + end);
            document
        };
        // One of a head that is wanted, one with a mark, and one of a person.
        let all = [("tagboat/web", ""), ("tagboat/old", "mark"), ("fix", "")];
        let answers = || {
            let whole = (1..).zip(all).map(|(number, (head, end))| long(number, head, end));
            let cut = (1..).zip(all).map(|(number, (head, _))| long(number, head, ""));
            [json!({ "value": cut.collect::<Vec<_>>() })].into_iter().chain(whole).collect::<Vec<_>>()
        };
        let listing =
            || Listing::of(["tagboat/web".parse().unwrap()].into(), |body: &str| body.ends_with("mark"));
        let numbers = |script: &Script, listing: &mut Listing| {
            let found = run(azure(script).open_pull_requests(listing)).unwrap();
            (found.iter().map(|one| one.number).collect::<Vec<_>>(), script.requests().len() - 1)
        };
        let mut first = listing();
        let script = Script::new(answers().into_iter().map(|body| (200, body)));
        assert_eq!(numbers(&script, &mut first), (vec![2, 1], 3));
        let mut second = Listing { strangers: first.left_out, ..listing() };
        let script = Script::new(answers().into_iter().take(3).map(|body| (200, body)));
        assert_eq!(numbers(&script, &mut second), (vec![2, 1], 2));
        assert_eq!(second.left_out, [3].into());
    }

    #[test]
    fn one_that_exists_already_is_found() {
        let page = json!({"value": [document(8, "abandoned"), document(7, "active")]});
        let script = Script::new([(409, json!({"message": "TF401179: already exists"})), (200, page)]);
        let opened = run(azure(&script).open(&new())).unwrap();
        assert_eq!((opened.pull_request.number, opened.is_new), (7, false));
    }

    #[test]
    fn pull_requests_of_forks_are_left_out() {
        let mut fork = document(1, "active");
        fork["forkSource"] = json!({"name": "refs/heads/tagboat/web"});
        assert_eq!(repository().pull_request(&fork), Ok(None));
        let mut odd = document(1, "notSet");
        assert!(repository().pull_request(&odd).is_err());
        odd["sourceRefName"] = json!("refs/heads/a..b");
        assert_eq!(repository().pull_request(&odd), Ok(None));
    }

    #[test]
    fn text_that_a_person_wrote_meanwhile_stays() {
        let current = repository().own_pull_request(&document(1, "active")).unwrap();
        let edit = PullRequestEdit {
            title: Some("New".to_owned()),
            added_labels: vec!["a".to_owned()],
            ..PullRequestEdit::default()
        };
        for member in ["description", "title"] {
            let mut changed = document(1, "active");
            changed[member] = json!("A person's");
            let script = Script::new([(200, changed)]);
            let error = run(azure(&script).edit(&current, &edit)).unwrap_err();
            assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
        }
        let script =
            Script::new([(200, document(1, "active")), (200, json!({})), (200, document(1, "active"))]);
        run(azure(&script).edit(&current, &edit)).unwrap();
        assert_eq!(script.requests()[2].1, json!({"title": "New"}));
    }

    #[test]
    fn a_reviewer_that_could_not_be_added_is_not_forgotten_in_a_later_round() {
        let current = repository().own_pull_request(&document(1, "active")).unwrap();
        let edit = PullRequestEdit {
            body: Some("complete".to_owned()),
            added_reviewers: vec![ANN.to_owned()],
            ..PullRequestEdit::default()
        };
        let found = || (200, document(1, "active"));
        for status in [401, 503] {
            let script = Script::new([found(), (status, json!({}))]);
            let error = run(azure(&script).edit(&current, &edit)).unwrap_err();
            assert!(!error.is_final(), "{error}");
            assert_eq!(script.requests().len(), 2, "the body still says that it is missing");
        }
        // One that is refused for good stays away.
        let script = Script::new([found(), (404, json!({"message": "unknown"})), found()]);
        run(azure(&script).edit(&current, &edit)).unwrap();
        assert_eq!(script.requests()[2].1, json!({"description": "complete"}));
        // One that is there has perhaps voted.
        let mut reviewed = document(1, "active");
        reviewed["reviewers"] = json!([{"id": ANN.to_uppercase(), "vote": 10}]);
        let script = Script::new([(200, reviewed), found()]);
        run(azure(&script).edit(&current, &edit)).unwrap();
        assert_eq!(script.requests().len(), 2);
    }

    #[test]
    fn closing_goes_on_when_little_is_left_of_a_limit() {
        let current = repository().own_pull_request(&document(1, "active")).unwrap();
        let removed_labels = vec!["a".to_owned()];
        let edit = PullRequestEdit { removed_labels, is_closed: true, ..PullRequestEdit::default() };
        let script =
            Script::new([(200, document(1, "active")), (404, json!({})), (200, document(1, "abandoned"))]);
        assert_eq!(run(azure(&script).edit(&current, &edit)).unwrap().state, PullRequestState::Closed);
        script.assert_essential();
    }

    #[test]
    fn a_merge_needs_a_rule_unless_it_is_immediate() {
        let current = repository().own_pull_request(&document(1, "active")).unwrap();
        let later = Merge {
            time: MergeTime::WhenReady,
            method: Some(MergeMethod::Squash),
            head_commit: HEAD.parse().unwrap(),
        };
        let policy = |kind: &str, is_blocking: bool| json!({"isEnabled": true, "isBlocking": is_blocking, "type": {"id": kind}});
        let strategy = "fa4e907d-c16b-4a4c-9dfa-4916e5d171ab";
        let harmless = json!({"value": [policy(strategy, true), policy(POLICIES[2], false)]});
        let script = Script::new([(200, document(1, "active")), (200, harmless)]);
        assert_eq!(run(azure(&script).merge(&current, &later)), Ok(MergeAnswer::NothingRequired));

        let build = json!({"value": [policy(&POLICIES[2].to_uppercase(), true)]});
        let script = Script::new([(200, document(1, "active")), (200, build), (200, document(1, "active"))]);
        assert_eq!(run(azure(&script).merge(&current, &later)), Ok(MergeAnswer::Scheduled));
        let wanted = json!({
            "autoCompleteSetBy": {"id": ANN}, "completionOptions": {"mergeStrategy": "squash"},
        });
        assert_eq!(script.requests()[2].1, wanted);

        let now = Merge { time: MergeTime::Immediately, method: None, ..later };
        let script = Script::new([(200, document(1, "active")), (200, document(1, "completed"))]);
        assert_eq!(run(azure(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
        let wanted = json!({"status": "completed", "lastMergeSourceCommit": {"commitId": HEAD}});
        assert_eq!(script.requests()[1].1, wanted);
    }

    #[test]
    fn answers_to_a_merge_are_told_apart() {
        let answer = |status, body| merge_answer(&ApiResponse { status, headers: Vec::new(), body });
        let conflict = json!({"status": "active", "mergeStatus": "conflicts"});
        assert_eq!(answer(200, conflict), Some(MergeAnswer::NotYet { reason: "conflicts".to_owned() }));
        assert_eq!(answer(200, json!({"mergeStatus": "queued"})), Some(MergeAnswer::Scheduled));
        assert!(matches!(answer(409, json!({"message": "stale"})), Some(MergeAnswer::NotYet { .. })));
        assert_eq!(answer(403, json!({})), None);
    }

    #[test]
    fn ids_have_five_groups() {
        assert!(is_id(ANN));
        for bad in ["", "ann", "d6245f20-2af8-44f4-9451-8107cb2767d", "g6245f20-2af8-44f4-9451-8107cb2767db"]
        {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
