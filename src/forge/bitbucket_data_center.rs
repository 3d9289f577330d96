//! Bitbucket Data Center.
//!
//! Each change names the version of the pull request that it is made to, which rises with each change. An update without
//! reviewers removes them, so it names them. There are no labels and no assignees. A declined pull request can be reopened.

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

/// The entries of a page.
const PAGE_SIZE: usize = 100;

/// The pull requests of a repository on Bitbucket Data Center.
#[derive(Debug)]
pub struct BitbucketDataCenter<T> {
    client: Client<T>,
    repository: DataCenterRepository,
}

/// A repository on Bitbucket Data Center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataCenterRepository {
    /// The segments of the path under which the server runs, mostly none.
    pub context: Vec<String>,
    /// The key of the project, or `~` and the name of a user.
    pub project: String,
    /// The name in addresses.
    pub slug: String,
}

impl<T: Transport> BitbucketDataCenter<T> {
    /// Makes the client of a repository.
    /// The base URL of the transport includes the context path.
    pub fn new(transport: T, endpoint: Endpoint, repository: DataCenterRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists those pull requests of a choice whose head is in the repository itself.
    async fn list(
        &self,
        query: &[(&'static str, &str)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        // The server says where the next page starts.
        let (mut pages, mut found, mut start) = (Pages::of(PAGE_SIZE), Vec::new(), 0);
        loop {
            let mut request = self.repository.request(Method::Get, &["pull-requests"], OPERATION);
            for (name, value) in query {
                request = request.with_query(name, value);
            }
            let request = request.with_query("limit", &pages.size()).with_query("start", &start);
            let request = request.essential_if(listing.is_urgent);
            let before = pages.offset();
            let Some(response) = pages.admit(self.client.call(request).await)? else {
                // One that is too large alone is skipped.
                start += (pages.offset() - before) as u64;
                continue;
            };
            let entries = self.client.checked(OPERATION, pull_requests(&response.body))?;
            let numbers = list(&response.body, "/values").iter().filter_map(|entry| number(entry, "/id"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            found.extend(entries.into_iter().filter(|one| listing.keeps(one)));
            pages.go_on();
            match number(&response.body, "/nextPageStart") {
                Some(next) if !flag(&response.body, "/isLastPage") && next > start => start = next,
                _ => return Ok(newest_first(found)),
            }
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let path = ["pull-requests", &number.to_string()];
        let request = self.repository.request(Method::Get, &path, OPERATION).essential_if(is_essential);
        let response = self.client.call(request).await?;
        let read = own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Adds reviewers, beside those that are there.
    ///
    /// Returns a sentence for each that is refused.
    async fn add_reviewers(&self, number: u64, names: &[String]) -> Result<Vec<String>, ForgeError> {
        let mut refused = Vec::new();
        for name in names {
            let request = self.repository.add_reviewer(number, name);
            let operation = request.operation;
            let response = self.client.send(request).await?;
            if !response.is_success() {
                let reason = self.client.refused_part(operation, &response)?;
                refused.push(format!("reviewer {name:?} is refused: {reason}"));
            }
        }
        Ok(refused)
    }

    /// Adds reviewers to a new pull request, and completes its body.
    ///
    /// The text that a person wrote meanwhile stays.
    async fn complete(
        &self,
        opened: &PullRequest,
        new: &NewPullRequest,
    ) -> Result<(PullRequest, Vec<String>), ForgeError> {
        let refused = self.add_reviewers(opened.number, &new.reviewers).await?;
        // Each reviewer may have raised the version.
        let (found, document) = self.read(opened.number, true).await?;
        let Some(body) = new.completed_body.as_ref().filter(|_| found.body == opened.body) else {
            return Ok((found, refused));
        };
        let edit = PullRequestEdit { body: Some(body.clone()), ..PullRequestEdit::default() };
        Ok((self.update((&found, &document), &edit, true).await?, refused))
    }

    /// Sets title and body of a known version.
    async fn update(
        &self,
        (found, document): (&PullRequest, &Value),
        edit: &PullRequestEdit,
        is_essential: bool,
    ) -> Result<PullRequest, ForgeError> {
        let body = edit_body(found, document, edit, found.version.unwrap_or_default());
        let path = ["pull-requests", &found.number.to_string()];
        let request = self.repository.request(Method::Put, &path, "edit a pull request").with_body(body);
        let request = request.essential_if(is_essential);
        let operation = request.operation;
        let response = self.client.call(request).await?;
        self.client.checked(operation, own_pull_request(&response.body))
    }

    /// Returns true if a merge needs a check or an approval.
    ///
    /// The settings have the numbers of approvals and builds; other checks are known only while they forbid the merge.
    async fn is_anything_required(&self, number: u64) -> Result<bool, ForgeError> {
        let request =
            self.repository.request(Method::Get, &["settings", "pull-requests"], "read the settings");
        if requires_anything(&self.client.call(request).await?.body) {
            return Ok(true);
        }
        let path = ["pull-requests", &number.to_string(), "merge"];
        let request = self.repository.request(Method::Get, &path, "test a merge");
        Ok(!list(&self.client.call(request).await?.body, "/vetoes").is_empty())
    }
}

impl<T: Transport> Forge for BitbucketDataCenter<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("state", "OPEN"), ("order", "NEWEST")], listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let reference = head.reference().to_string();
        let query =
            [("state", "ALL"), ("direction", "OUTGOING"), ("at", reference.as_str()), ("order", "NEWEST")];
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
        let mut pull_request = self.client.checked(OPERATION, own_pull_request(&response.body))?;
        let mut refused = Vec::new();
        if !new.reviewers.is_empty() {
            // It is open: a failure is told, and not returned.
            match self.complete(&pull_request, new).await {
                Ok((completed, sentences)) => (pull_request, refused) = (completed, sentences),
                Err(error) => refused.push(format!("reviewers are missing: {error}")),
            }
        }
        if new.is_draft && !pull_request.is_draft {
            refused.push("this version of Bitbucket has no drafts".to_owned());
        }
        if !new.labels.is_empty() {
            refused.push("Bitbucket has no labels for pull requests".to_owned());
        }
        if !new.assignees.is_empty() {
            refused.push("Bitbucket has no assignees for pull requests".to_owned());
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
        let (mut found, mut document) = self.read(current.number, edit.is_closed).await?;
        if edit.is_closed {
            self.client.unchanged("decline a pull request", (&found, current), edit)?;
        }
        // The version that the caller knows: an edit by a person meanwhile makes the server refuse.
        found.version = current.version.or(found.version);
        if !edit.added_reviewers.is_empty() {
            for sentence in self.add_reviewers(current.number, &edit.added_reviewers).await? {
                tracing::warn!("pull request #{}: {sentence}", current.number);
            }
            // Each reviewer may have raised the version.
            (found, document) = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged("edit a pull request", (&found, current), edit)?;
        }
        if edit.title.is_some() || edit.body.is_some() {
            found = self.update((&found, &document), edit, edit.is_closed).await?;
        }
        if edit.is_closed && found.state == PullRequestState::Open {
            let request = self.repository.decline(current.number, found.version.unwrap_or_default());
            let operation = request.operation;
            let response = self.client.call(request).await?;
            found = self.client.checked(operation, own_pull_request(&response.body))?;
        }
        Ok(found)
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let (found, _) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let is_later = merge.time == MergeTime::WhenReady;
        if is_later && !self.is_anything_required(current.number).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        // This version is of the state that was verified above.
        let request = self.repository.merge(current.number, merge, found.version.unwrap_or_default());
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response, is_later).ok_or_else(|| self.client.failure(operation, &response))
    }
}

impl DataCenterRepository {
    /// Reads the path of a git URL, such as `/scm/PROJECT/REPO.git` below any context path.
    ///
    /// URLs of ssh have no `scm`, and no context path.
    pub fn of_git_path(segments: &[&str]) -> Option<Self> {
        let (rest, slug) = segments.split_last().map(|(last, rest)| (rest, *last))?;
        let (rest, project) = rest.split_last().map(|(last, rest)| (rest, *last))?;
        let context = match rest.split_last() {
            None => rest,
            Some((&"scm", context)) => context,
            Some(_) => return None,
        };
        let slug = slug.strip_suffix(".git").unwrap_or(slug);
        let is_named = |text: &&str| !text.is_empty();
        [project, slug].iter().all(is_named).then(|| Self {
            context: context.iter().map(|&segment| segment.to_owned()).collect(),
            project: project.to_owned(),
            slug: slug.to_owned(),
        })
    }

    fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["projects", &self.project, "repos", &self.slug]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let place = json!({"slug": self.slug, "project": {"key": self.project}});
        let reference =
            |branch: &BranchName| json!({"id": branch.reference().to_string(), "repository": place});
        let mut body = json!({
            "title": new.title,
            "description": new.body,
            "fromRef": reference(&new.head),
            "toRef": reference(&new.base),
        });
        if new.is_draft {
            body["draft"] = json!(true);
        }
        self.request(Method::Post, &["pull-requests"], "open a pull request").with_body(body).creating()
    }

    fn add_reviewer(&self, number: u64, name: &str) -> ApiRequest {
        let path = ["pull-requests", &number.to_string(), "participants"];
        let body = json!({"user": {"name": name}, "role": "REVIEWER"});
        self.request(Method::Post, &path, "add a reviewer").with_body(body).creating()
    }

    fn decline(&self, number: u64, version: u64) -> ApiRequest {
        let path = ["pull-requests", &number.to_string(), "decline"];
        let request = self.request(Method::Post, &path, "decline a pull request").essential();
        let mut request = request.with_query("version", &version);
        // A POST without a body is refused otherwise, as a defence of browsers.
        request.headers.push(("X-Atlassian-Token", "no-check".to_owned()));
        request
    }

    fn merge(&self, number: u64, merge: &Merge, version: u64) -> ApiRequest {
        let mut body = json!({});
        if merge.time == MergeTime::WhenReady {
            body["autoMerge"] = json!(true);
        }
        if let Some(method) = merge.method {
            body["strategyId"] = json!(match method {
                MergeMethod::Commit => "no-ff",
                MergeMethod::Squash => "squash",
                MergeMethod::Rebase => "rebase-ff-only",
            });
        }
        let path = ["pull-requests", &number.to_string(), "merge"];
        let request = self.request(Method::Post, &path, "merge a pull request");
        request.with_query("version", &version).with_body(body)
    }
}

/// Returns the members of an update, which names all that it must not lose.
fn edit_body(found: &PullRequest, document: &Value, edit: &PullRequestEdit, version: u64) -> Value {
    let reviewers = texts(list(document, "/reviewers"), "/user/name");
    let reviewers: Vec<_> = reviewers.iter().map(|name| json!({"user": {"name": name}})).collect();
    let mut body = json!({
        "version": version,
        "title": edit.title.as_ref().unwrap_or(&found.title),
        "description": edit.body.as_ref().unwrap_or(&found.body),
        "reviewers": reviewers,
    });
    if found.is_draft {
        body["draft"] = json!(true);
    }
    body
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
    let number_of = |pointer| number(body, pointer);
    let number = number_of("/id").ok_or(Defect("a pull request without a number"))?;
    let target = number_of("/toRef/repository/id");
    let target = target.ok_or(Defect("a pull request without a repository"))?;
    let (Some(head), Some(base)) = (branch(body, "/fromRef/id"), branch(body, "/toRef/id")) else {
        return Ok(None);
    };
    if number_of("/fromRef/repository/id") != Some(target) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        Some("OPEN") => PullRequestState::Open,
        Some("DECLINED") => PullRequestState::Closed,
        Some("MERGED") => PullRequestState::Merged,
        _ => return Err(Defect("a pull request without a state")),
    };
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/links/self/0/href")?,
        state,
        head,
        head_commit: commit(body, "/fromRef/latestCommit"),
        base,
        title: text(body, "/title").unwrap_or_default().to_owned(),
        body: text(body, "/description").unwrap_or_default().to_owned(),
        is_draft: flag(body, "/draft"),
        labels: Vec::new(),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: Some(number_of("/version").ok_or(Defect("a pull request without a version"))?),
    }))
}

/// Returns true if the settings require an approval or a build.
fn requires_anything(settings: &Value) -> bool {
    // A number in older versions, and a switch with a number in newer ones.
    let is_required = |name: &str| {
        let value = &settings[name];
        let is_off = ["enable", "enabled"].iter().any(|name| value[name] == json!(false));
        let count = number(value, "").or_else(|| number(value, "/count"));
        !is_off && count.unwrap_or(0) > 0
    };
    flag(settings, "/requiredAllApprovers")
        || ["requiredApprovers", "requiredSuccessfulBuilds"].into_iter().any(is_required)
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
fn merge_answer(response: &ApiResponse, is_later: bool) -> Option<MergeAnswer> {
    let reason = message(response);
    Some(match response.status {
        200..=299 if text(&response.body, "/state") == Some("MERGED") => MergeAnswer::Merged,
        200..=299 if is_later => MergeAnswer::Scheduled,
        200..=299 => MergeAnswer::NotYet { reason: "the merge has not finished".to_owned() },
        400 => MergeAnswer::Refused { reason },
        409 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::script::{Script, endpoint, run};
    use super::*;

    pub(in crate::forge) const HEAD: &str = "1111111111111111111111111111111111111111";

    pub(in crate::forge) fn document(number: u64, state: &str, version: u64) -> Value {
        let page = format!("https://forge.example/projects/OPS/repos/fleet/pull-requests/{number}");
        json!({
            "id": number, "version": version, "state": state, "title": "Update web", "description": "text",
            "draft": false, "links": {"self": [{"href": page}]},
            "fromRef": {"id": "refs/heads/tagboat/web", "latestCommit": HEAD, "repository": {"id": 4}},
            "toRef": {"id": "refs/heads/main", "repository": {"id": 4}},
            "reviewers": [{"user": {"name": "ann"}}],
        })
    }

    fn forge(script: &Script) -> BitbucketDataCenter<&Script> {
        let repository =
            DataCenterRepository { context: Vec::new(), project: "OPS".to_owned(), slug: "fleet".to_owned() };
        BitbucketDataCenter::new(script, endpoint(), repository)
    }

    fn new() -> NewPullRequest {
        NewPullRequest {
            head: "tagboat/web".parse().unwrap(),
            base: "main".parse().unwrap(),
            title: "Update web".to_owned(),
            body: "text".to_owned(),
            is_draft: true,
            labels: Vec::new(),
            reviewers: vec!["ann".to_owned(), "ghost".to_owned()],
            assignees: Vec::new(),
            completed_body: None,
        }
    }

    #[test]
    fn paths_of_git_urls_are_read() {
        let read = |path: &str| DataCenterRepository::of_git_path(&path.split('/').collect::<Vec<_>>());
        for (path, context, project, slug) in [
            ("scm/OPS/fleet.git", "", "OPS", "fleet"),
            ("scm/~ann/fleet", "", "~ann", "fleet"),
            ("code/bb/scm/OPS/fleet.git", "code/bb", "OPS", "fleet"),
            ("OPS/fleet.git", "", "OPS", "fleet"),
        ] {
            let context = context.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            let wanted = DataCenterRepository { context, project: project.to_owned(), slug: slug.to_owned() };
            assert_eq!(read(path), Some(wanted), "{path}");
        }
        for bad in ["", "fleet", "OPS/.git", "scm//fleet", "a/OPS/fleet"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_unknown_reviewer_leaves_the_pull_request() {
        let script = Script::new([
            (201, document(2, "OPEN", 0)),
            (200, json!({})),
            (409, json!({"errors": [{"message": "ghost is not a user"}]})),
            (200, document(2, "OPEN", 1)),
        ]);
        let opened = run(forge(&script).open(&new())).unwrap();
        assert_eq!(opened.pull_request.version, Some(1));
        script.assert_essential();
        assert_eq!(
            opened.refused,
            ["reviewer \"ghost\" is refused: ghost is not a user", "this version of Bitbucket has no drafts",]
        );
        let sent = script.requests();
        assert_eq!(sent[0].0, "Post projects/OPS/repos/fleet/pull-requests");
        assert_eq!(sent[0].1["fromRef"]["id"], "refs/heads/tagboat/web");
    }

    #[test]
    fn one_that_exists_already_is_found() {
        let page = json!({"isLastPage": true, "values": [document(2, "OPEN", 0)]});
        let script = Script::new([(409, json!({"errors": [{"message": "only one"}]})), (200, page)]);
        let opened = run(forge(&script).open(&new())).unwrap();
        assert_eq!((opened.pull_request.number, opened.is_new), (2, false));
        let query = "state=ALL&direction=OUTGOING&at=refs/heads/tagboat/web";
        assert!(script.requests()[1].0.contains(query), "{:?}", script.requests());
    }

    #[test]
    fn each_change_names_a_version() {
        let current = own_pull_request(&document(2, "OPEN", 5)).unwrap();
        let script = Script::new([
            (200, document(2, "OPEN", 6)),
            (200, document(2, "OPEN", 7)),
            (200, document(2, "DECLINED", 8)),
        ]);
        let edit =
            PullRequestEdit { body: Some("why".to_owned()), is_closed: true, ..PullRequestEdit::default() };
        let closed = run(forge(&script).edit(&current, &edit)).unwrap();
        assert_eq!((closed.state, closed.version), (PullRequestState::Closed, Some(8)));
        script.assert_essential();
        let sent = script.requests();
        let wanted = json!({
            "version": 5, "title": "Update web", "description": "why", "reviewers": [{"user": {"name": "ann"}}],
        });
        assert_eq!(sent[1].1, wanted, "the version that the caller knows");
        assert_eq!(sent[2].0, "Post projects/OPS/repos/fleet/pull-requests/2/decline?version=7");
    }

    #[test]
    fn pull_requests_of_forks_are_left_out() {
        let mut fork = document(1, "OPEN", 0);
        fork["fromRef"]["repository"]["id"] = json!(9);
        assert_eq!(pull_request(&fork), Ok(None));
        fork["version"] = json!(null);
        fork["fromRef"]["repository"]["id"] = json!(4);
        assert!(pull_request(&fork).is_err());
    }

    #[test]
    fn a_merge_needs_a_rule_unless_it_is_immediate() {
        let current = own_pull_request(&document(2, "OPEN", 5)).unwrap();
        let later = Merge {
            time: MergeTime::WhenReady,
            method: Some(MergeMethod::Rebase),
            head_commit: HEAD.parse().unwrap(),
        };
        let free =
            json!({"requiredApprovers": 0, "requiredSuccessfulBuilds": {"enabled": false, "count": "2"}});
        let script =
            Script::new([(200, document(2, "OPEN", 6)), (200, free.clone()), (200, json!({"vetoes": []}))]);
        assert_eq!(run(forge(&script).merge(&current, &later)), Ok(MergeAnswer::NothingRequired));

        let veto = json!({"vetoes": [{"summaryMessage": "a build is missing"}]});
        let script = Script::new([
            (200, document(2, "OPEN", 6)),
            (200, free),
            (200, veto),
            (200, document(2, "OPEN", 7)),
        ]);
        assert_eq!(run(forge(&script).merge(&current, &later)), Ok(MergeAnswer::Scheduled));
        let (line, body) = &script.requests()[3];
        assert_eq!(line, "Post projects/OPS/repos/fleet/pull-requests/2/merge?version=6");
        assert_eq!(*body, json!({"autoMerge": true, "strategyId": "rebase-ff-only"}));

        let now = Merge { time: MergeTime::Immediately, method: None, ..later };
        let script = Script::new([(200, document(2, "OPEN", 6)), (200, document(2, "MERGED", 7))]);
        assert_eq!(run(forge(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
        assert_eq!(script.requests()[1].1, json!({}));
    }

    #[test]
    fn rules_are_read_in_both_forms() {
        for settings in [
            json!({"requiredApprovers": 1}),
            json!({"requiredApprovers": {"enabled": true, "count": "2"}}),
            json!({"requiredSuccessfulBuilds": {"enable": true, "count": 1}}),
            json!({"requiredAllApprovers": true}),
        ] {
            assert!(requires_anything(&settings), "{settings}");
        }
        for settings in [
            json!({}),
            json!({"requiredApprovers": 0, "requiredAllApprovers": false}),
            json!({"requiredApprovers": {"enable": false, "count": "2"}}),
        ] {
            assert!(!requires_anything(&settings), "{settings}");
        }
    }
}
