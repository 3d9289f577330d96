//! Bitbucket Cloud.
//!
//! There are no labels, no assignees and no auto-merge, and a declined pull request is final. The commits in a pull request are
//! shortened, and a merge cannot be bound to one: the branch is read right before the merge. A pull request is not opened if one
//! with the same branches is open, because Bitbucket might change that one.

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
use super::reading::{Defect, branch, commit, flag, list, message, number, page_url, text, texts};
use crate::git::BranchName;

/// The maximum number of entries of a page of pull requests.
const PAGE_SIZE: usize = 50;

/// The number of digits in a shortened id of a commit.
const SHORT_ID: usize = 12;

/// The states of a pull request, each of which a listing has to name.
const STATES: [&str; 4] = ["OPEN", "MERGED", "DECLINED", "SUPERSEDED"];

const NO_LABELS: &str = "Bitbucket has no labels for pull requests";

/// The pull requests of a repository on Bitbucket Cloud.
#[derive(Debug)]
pub struct Bitbucket<T> {
    client: Client<T>,
    repository: BitbucketRepository,
}

/// A repository on Bitbucket Cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitbucketRepository {
    /// The workspace.
    pub workspace: String,
    /// The name in addresses.
    pub slug: String,
}

/// A change of a pull request's text and reviewers.
struct Update<'u> {
    found: &'u PullRequest,
    /// The forge's document of it.
    document: &'u Value,
    title: &'u str,
    body: &'u str,
    /// The names of users to ask for a review.
    added: &'u [String],
    is_essential: bool,
}

impl<T: Transport> Bitbucket<T> {
    /// Makes the client of a repository.
    pub fn new(transport: T, endpoint: Endpoint, repository: BitbucketRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists those pull requests of a choice whose head is in the repository itself.
    async fn list(
        &self,
        query: &[(&'static str, String)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        let (mut pages, mut found) = (Pages::of(PAGE_SIZE), Vec::new());
        loop {
            let mut request = self.repository.request(Method::Get, &["pullrequests"], OPERATION);
            request.query.extend(query.iter().cloned());
            let request = request.with_query("pagelen", &pages.size()).with_query("page", &pages.number());
            let request = request.essential_if(listing.is_urgent);
            let Some(response) = pages.admit(self.client.call(request).await)? else { continue };
            let entries = self.client.checked(OPERATION, pull_requests(&response.body))?;
            let numbers = list(&response.body, "/values").iter().filter_map(|entry| number(entry, "/id"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            found.extend(entries.into_iter().filter(|one| listing.keeps(one)));
            if text(&response.body, "/next").is_none() {
                return Ok(newest_first(found));
            }
            pages.go_on();
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let path = ["pullrequests", &number.to_string()];
        let request = self.repository.request(Method::Get, &path, OPERATION).essential_if(is_essential);
        let response = self.client.call(request).await?;
        let read = own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Finds the ids of members of the workspace by nickname, account id or id.
    async fn user_ids(&self, names: &[String]) -> Result<Vec<Option<String>>, ForgeError> {
        const OPERATION: &str = "list the members of the workspace";
        let mut ids: Vec<_> = names.iter().map(|name| name.starts_with('{').then(|| name.clone())).collect();
        let mut pages = Pages::of(100);
        for page in 1u64.. {
            if ids.iter().all(Option::is_some) {
                break;
            }
            let path = path(&["workspaces", &self.repository.workspace, "members"]);
            let request = ApiRequest::get(path, OPERATION)
                .with_query("pagelen", &100)
                .with_query("page", &page)
                .essential();
            let response = self.client.call(request).await?;
            self.client.checked(OPERATION, pages.count([page]))?;
            for member in list(&response.body, "/values") {
                let Some(id) = text(member, "/user/uuid") else { continue };
                for (name, found) in names.iter().zip(&mut ids) {
                    let known = [text(member, "/user/nickname"), text(member, "/user/account_id")];
                    if known.contains(&Some(name.as_str())) {
                        *found = Some(id.to_owned());
                    }
                }
            }
            if text(&response.body, "/next").is_none() {
                break;
            }
        }
        Ok(ids)
    }

    /// Sets a text and adds reviewers, in one call if all are accepted.
    ///
    /// Returns a sentence for each reviewer that is refused.
    async fn update(&self, update: Update<'_>) -> Result<(PullRequest, Vec<String>), ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let Update { found, document, title, body, added, is_essential } = update;
        let mut refused = Vec::new();
        let ids = match self.user_ids(added).await {
            Err(error) if error.is_final() => {
                refused.push(format!("reviewers are missing: {error}"));
                Vec::new()
            }
            ids => ids?,
        };
        // An update without those that are there would remove them.
        let mut accepted = texts(list(document, "/reviewers"), "/uuid");
        let mut users = Vec::new();
        for (name, id) in added.iter().zip(ids) {
            match id {
                Some(id) if accepted.contains(&id) => {}
                Some(id) => users.push((name, id)),
                None => refused.push(format!("reviewer {name:?} is refused: no member has this name")),
            }
        }
        let send = async |reviewers: &[String]| {
            let request = self.repository.update(found.number, &text_body(found, title, body, reviewers));
            self.client.send(request.essential_if(is_essential)).await
        };
        let mut all = accepted.clone();
        all.extend(users.iter().map(|(_, id)| id.clone()));
        let mut response = send(&all).await?;
        if !response.is_success() && !users.is_empty() {
            // One that may not read the repository makes the forge refuse all.
            self.client.refused_part(OPERATION, &response)?;
            for (name, id) in users {
                accepted.push(id);
                let one = send(&accepted).await?;
                if !one.is_success() {
                    accepted.pop();
                    let reason = self.client.refused_part(OPERATION, &one)?;
                    refused.push(format!("reviewer {name:?} is refused: {reason}"));
                }
            }
            response = send(&accepted).await?;
        }
        if !response.is_success() {
            return Err(self.client.failure(OPERATION, &response));
        }
        Ok((self.client.checked(OPERATION, own_pull_request(&response.body))?, refused))
    }

    /// Adds reviewers to a new pull request, and completes its body.
    ///
    /// The text that a person wrote meanwhile stays.
    async fn complete(
        &self,
        opened: &PullRequest,
        new: &NewPullRequest,
    ) -> Result<(PullRequest, Vec<String>), ForgeError> {
        let (found, document) = self.read(opened.number, true).await?;
        let completed = new.completed_body.as_ref().filter(|_| found.body == opened.body);
        let body = completed.unwrap_or(&found.body);
        let (title, added) = (&found.title, &new.reviewers);
        let update = Update { found: &found, document: &document, title, body, added, is_essential: true };
        self.update(update).await
    }

    /// Returns the tip of a branch, if there is one.
    async fn tip(&self, branch: &BranchName) -> Result<Option<crate::git::CommitId>, ForgeError> {
        let path = ["refs", "branches", branch.as_str()];
        let request = self.repository.request(Method::Get, &path, "read a branch");
        Ok(commit(&self.client.call(request).await?.body, "/target/hash"))
    }
}

impl<T: Transport> Forge for Bitbucket<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("state", "OPEN".to_owned())], listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let mut query: Vec<_> = STATES.iter().map(|state| ("state", (*state).to_owned())).collect();
        query.push(("q", branches_filter(head, base)));
        query.push(("sort", "-created_on".to_owned()));
        let mut found = self.list(&query, &mut Listing::of_head(head)).await?;
        found.retain(|one| one.head == *head && one.base == *base);
        Ok(found)
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a pull request";
        let query = [("state", "OPEN".to_owned()), ("q", branches_filter(&new.head, &new.base))];
        let open = self.list(&query, &mut Listing::of_head(&new.head)).await?;
        if let Some(pull_request) = open.into_iter().find(|one| one.head == new.head && one.base == new.base)
        {
            return Ok(Opened { pull_request, is_new: false, refused: Vec::new() });
        }
        let response = self.client.call(self.repository.open(new)).await?;
        let mut pull_request = self.client.checked(OPERATION, own_pull_request(&response.body))?;
        let mut refused = Vec::new();
        if !new.reviewers.is_empty() {
            // It is open: a failure is told, and not returned.
            match self.complete(&pull_request, new).await {
                Ok(completed) => (pull_request, refused) = completed,
                Err(error) => refused.push(format!("reviewers are missing: {error}")),
            }
        }
        if !new.labels.is_empty() {
            refused.push(NO_LABELS.to_owned());
        }
        if !new.assignees.is_empty() {
            refused.push("Bitbucket has no assignees for pull requests".to_owned());
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let (mut found, document) = self.read(current.number, edit.is_closed).await?;
        if edit.depends_on_text() {
            self.client.unchanged(OPERATION, (&found, current), edit)?;
        }
        if edit.title.is_some() || edit.body.is_some() || !edit.added_reviewers.is_empty() {
            let (updated, refused) = self
                .update(Update {
                    title: edit.title.as_ref().unwrap_or(&found.title),
                    body: edit.body.as_ref().unwrap_or(&found.body),
                    found: &found,
                    document: &document,
                    added: &edit.added_reviewers,
                    is_essential: edit.is_closed,
                })
                .await?;
            for sentence in refused {
                tracing::warn!("pull request #{}: {sentence}", current.number);
            }
            found = updated;
        }
        if edit.is_closed && found.state == PullRequestState::Open {
            let path = ["pullrequests", &current.number.to_string(), "decline"];
            let request = self.repository.request(Method::Post, &path, "decline a pull request").essential();
            let operation = request.operation;
            let response = self.client.call(request).await?;
            found = self.client.checked(operation, own_pull_request(&response.body))?;
        }
        Ok(found)
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        if merge.time == MergeTime::WhenReady {
            return Ok(MergeAnswer::Refused { reason: "Bitbucket has no auto-merge".to_owned() });
        }
        let (found, document) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let wanted = merge.head_commit.to_string();
        let short = text(&document, "/source/commit/hash").unwrap_or_default();
        if short.len() < SHORT_ID
            || !wanted.starts_with(short)
            || self.tip(&found.head).await? != Some(merge.head_commit)
        {
            let reason = format!("its head is not {}", merge.head_commit.short());
            return Ok(MergeAnswer::NotYet { reason });
        }
        let request = self.repository.merge(current.number, merge.method);
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response).ok_or_else(|| self.client.failure(operation, &response))
    }
}

impl BitbucketRepository {
    fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["repositories", &self.workspace, &self.slug]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let mut body = json!({
            "title": new.title,
            "description": new.body,
            "source": {"branch": {"name": new.head.as_str()}},
            "destination": {"branch": {"name": new.base.as_str()}},
        });
        if new.is_draft {
            body["draft"] = json!(true);
        }
        self.request(Method::Post, &["pullrequests"], "open a pull request").with_body(body).creating()
    }

    fn update(&self, number: u64, body: &Value) -> ApiRequest {
        let path = ["pullrequests", &number.to_string()];
        self.request(Method::Put, &path, "edit a pull request").with_body(body.clone())
    }

    fn merge(&self, number: u64, method: Option<MergeMethod>) -> ApiRequest {
        let path = ["pullrequests", &number.to_string(), "merge"];
        let request = self.request(Method::Post, &path, "merge a pull request");
        let strategy = match method {
            Some(MergeMethod::Commit) => "merge_commit",
            Some(MergeMethod::Squash) => "squash",
            Some(MergeMethod::Rebase) => "rebase_fast_forward",
            None => return request.with_body(json!({})),
        };
        request.with_body(json!({ "merge_strategy": strategy }))
    }
}

/// Returns the members of an update, which names all that it must not lose.
fn text_body(current: &PullRequest, title: &str, body: &str, reviewers: &[String]) -> Value {
    let reviewers: Vec<_> = reviewers.iter().map(|id| json!({ "uuid": id })).collect();
    let mut members = json!({"title": title, "description": body, "reviewers": reviewers});
    if current.is_draft {
        members["draft"] = json!(true);
    }
    members
}

/// Returns the filter for pull requests between two branches.
fn branches_filter(head: &BranchName, base: &BranchName) -> String {
    let quoted = |branch: &BranchName| branch.as_str().replace('"', "\\\"");
    format!("source.branch.name=\"{}\" AND destination.branch.name=\"{}\"", quoted(head), quoted(base))
}

/// Reads a page of pull requests; those whose head is elsewhere are left out.
fn pull_requests(body: &Value) -> Result<Vec<PullRequest>, Defect> {
    let entries = body.get("values").and_then(Value::as_array).ok_or(Defect("no list of pull requests"))?;
    entries.iter().filter_map(|entry| pull_request(entry).transpose()).collect()
}

fn own_pull_request(body: &Value) -> Result<PullRequest, Defect> {
    pull_request(body)?.ok_or(Defect("a pull request whose head is in another repository"))
}

/// Reads a pull request.
/// It is left out if its head is not a branch of the repository itself.
fn pull_request(body: &Value) -> Result<Option<PullRequest>, Defect> {
    let number = number(body, "/id").ok_or(Defect("a pull request without a number"))?;
    let target = text(body, "/destination/repository/full_name");
    let target = target.ok_or(Defect("a pull request without a repository"))?;
    let (Some(head), Some(base)) =
        (branch(body, "/source/branch/name"), branch(body, "/destination/branch/name"))
    else {
        return Ok(None);
    };
    if text(body, "/source/repository/full_name") != Some(target) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        Some("OPEN") => PullRequestState::Open,
        Some("DECLINED" | "SUPERSEDED") => PullRequestState::Closed,
        Some("MERGED") => PullRequestState::Merged,
        _ => return Err(Defect("a pull request without a state")),
    };
    let description = text(body, "/description").or_else(|| text(body, "/summary/raw"));
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/links/html/href")?,
        state,
        head,
        head_commit: commit(body, "/source/commit/hash"),
        base,
        title: text(body, "/title").unwrap_or_default().to_owned(),
        body: description.unwrap_or_default().to_owned(),
        is_draft: flag(body, "/draft"),
        labels: Vec::new(),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: None,
    }))
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
fn merge_answer(response: &ApiResponse) -> Option<MergeAnswer> {
    let reason = message(response);
    Some(match response.status {
        202 => MergeAnswer::NotYet { reason: "the merge has not finished".to_owned() },
        200..=299 => MergeAnswer::Merged,
        // 555 is a merge that takes too long.
        400 | 409 | 555 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::script::{Script, endpoint, run};
    use super::*;

    pub(in crate::forge) const HEAD: &str = "1111111111111111111111111111111111111111";

    pub(in crate::forge) fn document(number: u64, state: &str) -> Value {
        json!({
            "id": number, "state": state, "title": "Update web", "description": "text", "draft": false,
            "links": {"html": {"href": format!("https://bitbucket.org/team/fleet/pull-requests/{number}")}},
            "source": {
                "branch": {"name": "tagboat/web"}, "commit": {"hash": &HEAD[..12]},
                "repository": {"full_name": "team/fleet"},
            },
            "destination": {"branch": {"name": "main"}, "repository": {"full_name": "team/fleet"}},
            "reviewers": [{"uuid": "{r}"}],
        })
    }

    fn page(entries: &[Value]) -> Value {
        json!({ "values": entries })
    }

    fn bitbucket(script: &Script) -> Bitbucket<&Script> {
        let repository = BitbucketRepository { workspace: "team".to_owned(), slug: "fleet".to_owned() };
        Bitbucket::new(script, endpoint(), repository)
    }

    fn new() -> NewPullRequest {
        NewPullRequest {
            head: "tagboat/web".parse().unwrap(),
            base: "main".parse().unwrap(),
            title: "Update web".to_owned(),
            body: "text".to_owned(),
            is_draft: true,
            labels: Vec::new(),
            reviewers: vec!["{a}".to_owned(), "ann".to_owned(), "ghost".to_owned()],
            assignees: Vec::new(),
            completed_body: None,
        }
    }

    #[test]
    fn an_open_one_is_never_opened_again() {
        let script = Script::new([(200, page(&[document(3, "OPEN")]))]);
        let opened = run(bitbucket(&script).open(&new())).unwrap();
        assert_eq!((opened.pull_request.number, opened.is_new), (3, false));
        let filter = r#"q=source.branch.name="tagboat/web" AND destination.branch.name="main""#;
        assert!(script.requests()[0].0.contains(filter), "{:?}", script.requests());
    }

    #[test]
    fn reviewers_are_added_by_id_one_by_one_if_refused() {
        let members = json!({"values": [{"user": {"uuid": "{b}", "nickname": "ann"}}]});
        let refusal = || (400, json!({"error": {"message": "{b} is no reviewer"}}));
        let accepted = || (200, document(3, "OPEN"));
        let begin = [(200, page(&[])), (201, document(3, "OPEN")), accepted(), (200, members)];
        let updates = [refusal(), accepted(), refusal(), accepted()];
        let script = Script::new(begin.into_iter().chain(updates));
        let opened = run(bitbucket(&script).open(&new())).unwrap();
        assert!(opened.is_new);
        script.assert_essential();
        assert_eq!(
            opened.refused,
            [
                "reviewer \"ghost\" is refused: no member has this name",
                "reviewer \"ann\" is refused: {b} is no reviewer",
            ]
        );
        let sent = script.requests();
        assert_eq!(sent[1].1["draft"], json!(true));
        // The one that is there stays.
        assert_eq!(sent[4].1["reviewers"], json!([{"uuid": "{r}"}, {"uuid": "{a}"}, {"uuid": "{b}"}]));
        assert_eq!(sent[7].1["reviewers"], json!([{"uuid": "{r}"}, {"uuid": "{a}"}]));
    }

    #[test]
    fn pull_requests_of_forks_are_left_out() {
        let mut fork = document(1, "OPEN");
        fork["source"]["repository"] = json!({"full_name": "other/fleet"});
        assert_eq!(pull_request(&fork), Ok(None));
        fork["source"]["repository"] = json!(null);
        assert_eq!(pull_request(&fork), Ok(None), "a fork that was deleted");
        let mut odd = document(1, "OPEN");
        odd["state"] = json!("ODD");
        assert!(pull_request(&odd).is_err());
    }

    #[test]
    fn an_edit_keeps_the_reviewers() {
        let current = own_pull_request(&document(1, "OPEN")).unwrap();
        let script = Script::new([
            (200, document(1, "OPEN")),
            (200, document(1, "OPEN")),
            (200, document(1, "DECLINED")),
        ]);
        let edit =
            PullRequestEdit { body: Some("why".to_owned()), is_closed: true, ..PullRequestEdit::default() };
        let closed = run(bitbucket(&script).edit(&current, &edit)).unwrap();
        assert_eq!(closed.state, PullRequestState::Closed);
        script.assert_essential();
        let wanted = json!({"title": "Update web", "description": "why", "reviewers": [{"uuid": "{r}"}]});
        assert_eq!(script.requests()[1].1, wanted);
        assert_eq!(script.requests()[2].0, "Post repositories/team/fleet/pullrequests/1/decline");
    }

    #[test]
    fn text_that_a_person_wrote_meanwhile_stays() {
        let current = own_pull_request(&document(1, "OPEN")).unwrap();
        let edit =
            PullRequestEdit { body: Some("why".to_owned()), is_closed: true, ..PullRequestEdit::default() };
        for member in ["description", "title"] {
            let mut changed = document(1, "OPEN");
            changed[member] = json!("A person's");
            let script = Script::new([(200, changed)]);
            let error = run(bitbucket(&script).edit(&current, &edit)).unwrap_err();
            assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
        }
    }

    #[test]
    fn a_merge_is_bound_to_the_tip_of_the_branch() {
        let current = own_pull_request(&document(1, "OPEN")).unwrap();
        let now = Merge {
            time: MergeTime::Immediately,
            method: Some(MergeMethod::Squash),
            head_commit: HEAD.parse().unwrap(),
        };
        let tip = |id: &str| json!({"target": {"hash": id}});
        let script =
            Script::new([(200, document(1, "OPEN")), (200, tip(HEAD)), (200, document(1, "MERGED"))]);
        assert_eq!(run(bitbucket(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
        assert_eq!(script.requests()[2].1, json!({"merge_strategy": "squash"}));

        let other = format!("{}2222222222222222222222222222", &HEAD[..12]);
        let script = Script::new([(200, document(1, "OPEN")), (200, tip(&other))]);
        assert!(matches!(run(bitbucket(&script).merge(&current, &now)), Ok(MergeAnswer::NotYet { .. })));

        let later = Merge { time: MergeTime::WhenReady, ..now };
        let script = Script::new([]);
        assert!(matches!(run(bitbucket(&script).merge(&current, &later)), Ok(MergeAnswer::Refused { .. })));
    }

    #[test]
    fn answers_to_a_merge_are_told_apart() {
        let answer = |status| merge_answer(&ApiResponse { status, headers: Vec::new(), body: json!({}) });
        assert_eq!(answer(200), Some(MergeAnswer::Merged));
        for status in [202, 400, 409, 555] {
            assert!(matches!(answer(status), Some(MergeAnswer::NotYet { .. })), "{status}");
        }
        assert_eq!(answer(403), None);
    }

    #[test]
    fn a_filter_quotes_branches() {
        let (head, base) = ("a\"b".parse().unwrap(), "main".parse().unwrap());
        let wanted = r#"source.branch.name="a\"b" AND destination.branch.name="main""#;
        assert_eq!(branches_filter(&head, &base), wanted);
    }
}
