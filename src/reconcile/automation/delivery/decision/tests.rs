use ClosedReason::{NothingLeft, Superseded};
use LeftBranch::EditedByOthers;
use PullRequestState::{Closed, Merged, Open};

use super::*;
use crate::forge::{MergeMethod, PullRequestState};
use crate::reconcile::automation::delivery::found::REBUILD_LABEL;
use crate::reconcile::automation::delivery::found::tests::with_images;
use crate::reconcile::automation::delivery::known::OpenPullRequest;
use crate::reconcile::automation::delivery::memory::TextHash;
use crate::reconcile::automation::delivery::memory::tests::{image, name, owner};
use crate::reconcile::automation::delivery::text::tests::pull_request;

/// The images of a bundle, each as policy and tag.
type Images = &'static [(&'static str, &'static str)];

const WEB_1: Images = &[("web", "1")];
const WEB_2: Images = &[("web", "2")];

/// The time at which the run of git began.
fn made_at() -> Instant {
    static MADE_AT: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *MADE_AT.get_or_init(Instant::now)
}

fn tip() -> CommitId {
    "00112233445566778899aabbccddeeff00112233".parse().unwrap()
}

fn current(is_new: bool) -> BranchState {
    BranchState::Current { tip: tip(), is_new }
}

/// A pull request as we open it.
fn ours(images: Images) -> PullRequest {
    let text = PullRequestText { title: "Update web".to_owned(), body: "a table".to_owned() };
    let (owners, images) = ([owner("fleet")].into(), hashes(images));
    let texts = text.opened(Content { owners: &owners, images: &images, limit: None }, false).unwrap();
    pull_request(&texts.title, &texts.body)
}

fn hashes(images: Images) -> BTreeSet<ImageHash> {
    images.iter().map(|(policy, tag)| image(policy, tag)).collect()
}

/// A case: the wanted pull request, which is changed by some settings.
struct Case {
    images: Images,
    owners: Vec<OwnerHash>,
    /// Further automations of the repository.
    others: Vec<OwnerHash>,
    /// The tip at which git looked.
    judged: Option<CommitId>,
    /// The time since which the newest past pull request is known to have ended.
    ended_at: Option<Instant>,
    readable: Vec<&'static str>,
    options: PullRequestOptions,
    joined: PullRequestOptions,
    text: &'static str,
    separate: SeparateParts,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            images: WEB_1,
            owners: vec![owner("fleet")],
            others: Vec::new(),
            judged: None,
            ended_at: None,
            readable: vec!["web", "api"],
            options: PullRequestOptions::default(),
            joined: PullRequestOptions::default(),
            text: "a table",
            separate: SeparateParts::default(),
        }
    }
}

impl Case {
    fn decide(&self, branch: BranchState, open: Option<&PullRequest>, past: &[PullRequest]) -> Decision {
        let text = PullRequestText { title: "Update web".to_owned(), body: self.text.to_owned() };
        let images = hashes(self.images);
        let wanted = WantedPullRequest {
            branch: &"tagboat/web".parse().unwrap(),
            base: &"main".parse().unwrap(),
            owners: &self.owners.iter().cloned().collect(),
            known: &self.owners.iter().chain(&self.others).cloned().collect(),
            judged: self.judged,
            made_at: made_at(),
            images: &images,
            readable: &self.readable.iter().map(|policy| PolicyHash::of(&name(policy))).collect(),
            options: &self.options,
            joined: &self.joined,
            text: Some(&text).filter(|_| !images.is_empty()),
            separate: self.separate,
            limit: None,
        };
        let open = open.cloned().map(OpenPullRequest::new);
        let past: Vec<PastPullRequest> = past.iter().map(PastPullRequest::of).collect();
        let found = FoundPullRequests {
            open: open.as_ref(),
            past: Some(&past),
            handed_back: None,
            ended_at: self.ended_at,
            is_reopened: false,
        };
        decide(&wanted, branch, found).unwrap()
    }
}

/// The decision as `action reason number`, with what is edited.
fn shown(decision: &Decision) -> String {
    let edit = match &decision.action {
        PullRequestAction::Edit(edit) | PullRequestAction::Close(edit) => Some(edit),
        PullRequestAction::Refresh(edit) => edit.as_ref(),
        _ => None,
    };
    let action = match &decision.action {
        PullRequestAction::Nothing => "nothing",
        PullRequestAction::Open(_) => "opened",
        PullRequestAction::Keep | PullRequestAction::Edit(_) => "kept",
        PullRequestAction::Refresh(_) => "refreshed",
        PullRequestAction::Close(_) => "closed",
        PullRequestAction::Leave => "left",
    };
    let reason = |reason| match reason {
        PullRequestReason::ClosedByPerson => "closed-by-a-person",
        PullRequestReason::EditedByOthers => "edited-by-others",
        PullRequestReason::OwnedByOthers => "owned-by-others",
        PullRequestReason::OtherBase => "other-base",
        PullRequestReason::InMergeQueue => "in-merge-queue",
        PullRequestReason::Superseded => "superseded",
        PullRequestReason::Duplicate => "duplicate",
        PullRequestReason::NothingLeft => "nothing-left",
    };
    let mut parts = vec![action.to_owned()];
    parts.extend(decision.reason.map(|found| reason(found).to_owned()));
    parts.extend(decision.number.map(|number| format!("#{number}")));
    parts.extend(decision.refused_by.map(|number| format!("by #{number}")));
    if let Some(edit) = edit {
        parts.extend(edit.title.as_ref().map(|_| "title".to_owned()));
        parts.extend(edit.body.as_ref().map(|_| "body".to_owned()));
        parts.extend(edit.added_labels.iter().map(|label| format!("+{label}")));
        parts.extend(edit.removed_labels.iter().map(|label| format!("-{label}")));
        parts.extend(edit.is_closed.then(|| "close".to_owned()));
    }
    parts.extend(decision.merge.as_ref().map(|merge| format!("merge {:?}", merge.time)));
    parts.join(" ")
}

#[test]
fn each_state_of_the_forge_and_the_branch_has_its_action() {
    use BranchState::{Absent, Failed, Left};
    let past = |number, state, images, closed| with_images(number, state, images, closed);
    let open = |images| Some(ours(images));
    let queued = Some(PullRequest { is_in_merge_queue: true, ..ours(WEB_1) });
    let handed_back =
        Some(PullRequest { labels: vec!["x".to_owned(), REBUILD_LABEL.to_owned()], ..ours(WEB_1) });
    let adopted = Some(pull_request("by ann", "text of ann"));
    let of_another_cluster = {
        let memory =
            Memory { owners: [owner("elsewhere")].into(), images: hashes(WEB_1), ..Memory::default() };
        Some(pull_request("t", &memory.to_string()))
    };
    let shared = {
        let owners = [owner("fleet"), owner("gone")].into();
        let memory = Memory { owners, images: hashes(WEB_1), ..Memory::default() };
        Some(pull_request("t", &memory.to_string()))
    };
    let reopened = {
        let memory = Memory::of_body(&ours(WEB_1).body).unwrap();
        Some(pull_request("Update web", &closed_body(&ours(WEB_1), &memory, NothingLeft, &[], None).unwrap()))
    };
    let case = |images| Case { images, ..Case::default() };
    for (rule, case, branch, open, past, expected) in [
        // Opening.
        ("a new branch", case(WEB_1), current(true), None, vec![], "opened"),
        ("killed after the push", case(WEB_1), current(false), None, vec![], "opened"),
        ("nothing to change", case(&[]), Absent, None, vec![], "nothing"),
        (
            "a branch of others without a pull request",
            case(WEB_1),
            Left(EditedByOthers),
            None,
            vec![],
            "left edited-by-others",
        ),
        ("a push that was rejected", case(WEB_1), Failed, None, vec![], "nothing"),
        // Refusals.
        (
            "closed by a person",
            case(WEB_1),
            Left(LeftBranch::Refused),
            None,
            vec![past(9, Closed, WEB_1, None)],
            "left closed-by-a-person #9",
        ),
        (
            "deleted by a person, who closed it so",
            case(WEB_1),
            Absent,
            None,
            vec![past(9, Closed, WEB_1, None)],
            "left closed-by-a-person #9",
        ),
        (
            "the refusal of an older image names its number",
            case(WEB_1),
            Left(LeftBranch::Refused),
            None,
            vec![past(9, Closed, WEB_2, None), past(8, Closed, WEB_1, None)],
            "left closed-by-a-person #8",
        ),
        (
            "a new image after a refusal",
            case(WEB_2),
            current(true),
            None,
            vec![past(9, Closed, WEB_1, None)],
            "opened",
        ),
        (
            "reopened by a person",
            case(WEB_1),
            current(false),
            open(WEB_1),
            vec![past(8, Closed, WEB_1, None)],
            "kept #7",
        ),
        (
            "deleted by a person under an open pull request",
            case(WEB_1),
            Left(LeftBranch::Refused),
            open(WEB_1),
            vec![],
            "left closed-by-a-person #7",
        ),
        (
            "back to an image that a person has refused, beside an open one that nobody refused",
            case(WEB_1),
            Left(LeftBranch::Refused),
            open(WEB_2),
            vec![past(6, Closed, WEB_1, None)],
            "left closed-by-a-person #7 by #6",
        ),
        (
            "a new image after a merge",
            case(WEB_2),
            current(true),
            None,
            vec![past(9, Merged, WEB_1, None)],
            "opened",
        ),
        (
            "the same image after we closed it",
            case(WEB_1),
            current(true),
            None,
            vec![past(9, Closed, WEB_1, Some(NothingLeft))],
            "opened",
        ),
        (
            "refused, and nothing left since",
            case(&[]),
            Left(LeftBranch::Refused),
            None,
            vec![past(9, Closed, WEB_1, None)],
            "nothing",
        ),
        // Refreshing.
        ("nothing new", case(WEB_1), current(false), open(WEB_1), vec![], "kept #7"),
        ("a new image", case(WEB_2), current(true), open(WEB_1), vec![], "refreshed #7 body"),
        (
            "killed between push and edit",
            case(WEB_2),
            current(false),
            open(WEB_1),
            vec![],
            "refreshed #7 body",
        ),
        ("rebuilt because the base moved", case(WEB_1), current(true), open(WEB_1), vec![], "refreshed #7"),
        (
            "rebuilt with another text",
            Case { text: "another table", ..case(WEB_1) },
            current(true),
            open(WEB_1),
            vec![],
            "refreshed #7 body",
        ),
        (
            "another text of the same images",
            Case { text: "rendered at noon", ..case(WEB_1) },
            current(false),
            open(WEB_1),
            vec![],
            "kept #7",
        ),
        ("a push that was rejected, of an open one", case(WEB_2), Failed, open(WEB_1), vec![], "left #7"),
        // Others.
        (
            "a commit of others",
            case(WEB_2),
            Left(EditedByOthers),
            open(WEB_1),
            vec![],
            "left edited-by-others #7",
        ),
        ("handed back again", case(WEB_1), current(true), handed_back, vec![], "refreshed #7"),
        (
            "opened by others, and adopted",
            case(WEB_1),
            current(false),
            adopted.clone(),
            vec![],
            "kept #7 body",
        ),
        (
            "adopted with a new image",
            case(WEB_2),
            current(true),
            adopted.clone(),
            vec![],
            "refreshed #7 body",
        ),
        (
            "of another cluster",
            case(WEB_1),
            current(false),
            of_another_cluster.clone(),
            vec![],
            "left owned-by-others #7",
        ),
        (
            "of another cluster, with nothing left here",
            case(&[]),
            Left(LeftBranch::NothingLeft),
            of_another_cluster,
            vec![],
            "left owned-by-others #7",
        ),
        // The merge queue.
        (
            "in a merge queue",
            case(WEB_2),
            Left(LeftBranch::InMergeQueue),
            queued.clone(),
            vec![],
            "left in-merge-queue #7",
        ),
        (
            "in a merge queue, with nothing left",
            case(&[]),
            Left(LeftBranch::InMergeQueue),
            queued.clone(),
            vec![],
            "left in-merge-queue #7",
        ),
        (
            "in a merge queue, and current",
            case(WEB_1),
            current(false),
            queued,
            vec![],
            "left in-merge-queue #7",
        ),
        // Closing.
        (
            "nothing left",
            case(&[]),
            Left(LeftBranch::NothingLeft),
            open(WEB_1),
            vec![],
            "closed nothing-left #7 body close",
        ),
        (
            "nothing left, and the branch is gone",
            case(&[]),
            Absent,
            open(WEB_1),
            vec![],
            "closed nothing-left #7 body close",
        ),
        // It was closed though the branch had a change under review.
        (
            "nothing left here, and a change of an automation without pull requests",
            case(&[]),
            current(true),
            open(WEB_1),
            vec![],
            "left #7",
        ),
        (
            "nothing left here, and the order of another is not there yet",
            case(&[]),
            current(false),
            open(WEB_1),
            vec![],
            "left #7",
        ),
        (
            "nothing left for a branch of others",
            case(&[]),
            Left(EditedByOthers),
            open(WEB_1),
            vec![],
            "left edited-by-others #7",
        ),
        (
            "nothing left for one that is not ours",
            case(&[]),
            Left(LeftBranch::NothingLeft),
            adopted,
            vec![],
            "left nothing-left #7",
        ),
        (
            "nothing left while a policy has no image",
            Case { readable: vec!["api"], ..case(&[]) },
            Left(LeftBranch::NothingLeft),
            open(WEB_1),
            vec![],
            "left #7",
        ),
        (
            "nothing left, shared with a suspended automation",
            case(&[]),
            Left(LeftBranch::NothingLeft),
            shared,
            vec![],
            "left nothing-left #7",
        ),
        (
            "reopened after we closed it",
            case(WEB_1),
            current(true),
            reopened.clone(),
            vec![],
            "refreshed #7 body",
        ),
        (
            "reopened by a person, or killed between text and closing",
            case(&[]),
            Left(LeftBranch::NothingLeft),
            reopened,
            vec![],
            "left nothing-left #7",
        ),
    ] {
        let decision = case.decide(branch, open.as_ref(), &past);
        assert_eq!(shown(&decision), expected, "{rule}");
    }
}

#[test]
fn a_new_pull_request_has_all_settings() {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let options = PullRequestOptions {
        labels: list(&["images"]),
        reviewers: list(&["ann", "acme/web"]),
        assignees: list(&["bob"]),
        is_draft: true,
        ..PullRequestOptions::default()
    };
    let decision = Case { options, ..Case::default() }.decide(current(true), None, &[]);
    let PullRequestAction::Open(new) = decision.action else { panic!("{decision:?}") };
    assert_eq!((new.head.as_str(), new.base.as_str()), ("tagboat/web", "main"));
    assert_eq!((new.labels, new.reviewers), (list(&["images"]), list(&["ann", "acme/web"])));
    assert_eq!((new.assignees, new.is_draft, new.title.as_str()), (list(&["bob"]), true, "Update web"));
    let memory = Memory::of_body(&new.body).unwrap();
    assert_eq!((memory.owners, memory.images), ([owner("fleet")].into(), hashes(WEB_1)));
    assert_eq!(memory.title, Some(TextHash::of("Update web")));
    assert!(new.body.starts_with("a table\n\n[//]: # (tagboat "), "{}", new.body);
}

#[test]
fn a_pull_request_of_an_automation_without_a_change_is_ours_and_one_with_an_unknown_tip_stays_open() {
    let (other, fleet) = (owner("other"), owner("fleet"));
    let nothing_left = BranchState::Left(LeftBranch::NothingLeft);
    let at = |commit| PullRequest { head_commit: Some(commit), ..ours(WEB_1) };
    let another = "1".repeat(40).parse().unwrap();
    let reopened = with_images(7, Open, WEB_1, Some(NothingLeft));
    for (rule, owners, others, images, judged, branch, open, expected) in [
        (
            "the other one has a change now",
            &other,
            Some(&fleet),
            WEB_1,
            None,
            current(false),
            ours(WEB_1),
            "kept #7 body",
        ),
        ("it is of others", &other, None, WEB_1, None, nothing_left, ours(WEB_1), "left owned-by-others #7"),
        (
            "its tip is known",
            &fleet,
            None,
            &[],
            Some(tip()),
            nothing_left,
            at(tip()),
            "closed nothing-left #7 body close",
        ),
        (
            "a later commit is on it",
            &fleet,
            None,
            &[],
            Some(tip()),
            nothing_left,
            at(another),
            "left nothing-left #7",
        ),
        ("a person reopened it", &fleet, None, &[], None, nothing_left, reopened, "left nothing-left #7"),
    ] {
        let (owners, others) = (vec![owners.clone()], others.into_iter().cloned().collect());
        let case = Case { images, owners, others, judged, ..Case::default() };
        assert_eq!(shown(&case.decide(branch, Some(&open), &[])), expected, "{rule}");
    }
}

/// Labels are set at the opening and the adoption, and for another automation.
#[test]
fn labels_that_people_removed_stay_away() {
    let options = PullRequestOptions { labels: vec!["images".to_owned()], ..PullRequestOptions::default() };
    let both = vec![owner("fleet"), owner("other")];
    let labelled = PullRequest { labels: vec!["images".to_owned()], ..ours(WEB_1) };
    for (rule, owners, images, open, expected) in [
        ("removed", vec![owner("fleet")], WEB_1, ours(WEB_1), "kept #7"),
        ("removed, with a new image", vec![owner("fleet")], WEB_2, ours(WEB_1), "refreshed #7 body"),
        ("adopted", vec![owner("fleet")], WEB_1, pull_request("by ann", ""), "kept #7 body +images"),
        ("joined", both.clone(), WEB_1, ours(WEB_1), "kept #7 body +images"),
        ("joined, with the label", both, WEB_1, labelled, "kept #7 body"),
    ] {
        let case = Case { images, owners, options: options.clone(), ..Case::default() };
        assert_eq!(shown(&case.decide(current(false), Some(&open), &[])), expected, "{rule}");
    }
}

/// Only the labels of an automation that joined later were added.
#[test]
fn the_reviewers_of_an_automation_that_joins_are_asked() {
    let names = |name: &str| vec![name.to_owned()];
    let joined = PullRequestOptions {
        reviewers: names("ann"),
        assignees: names("bob"),
        ..PullRequestOptions::default()
    };
    let case = Case { owners: vec![owner("fleet"), owner("other")], joined, ..Case::default() };
    let decision = case.decide(current(false), Some(&ours(WEB_1)), &[]);
    let PullRequestAction::Edit(edit) = decision.action else { panic!("{decision:?}") };
    assert_eq!((edit.added_reviewers, edit.added_assignees), (names("ann"), names("bob")));
}

/// The refusal was lost with the last line.
#[test]
fn a_person_who_replaces_the_body_refuses_the_tip_of_the_branch() {
    let other: CommitId = "2".repeat(40).parse().unwrap();
    let closed = |head_commit| PullRequest {
        state: Closed,
        head_commit,
        ..pull_request("Update web", "We stay at 1.0.0.")
    };
    let refused = "left closed-by-a-person #7";
    for (rule, branch, judged, past, expected) in [
        ("the tip", current(false), Some(tip()), vec![closed(Some(tip()))], refused),
        (
            "git found its values",
            BranchState::Left(LeftBranch::Refused),
            Some(tip()),
            vec![closed(Some(tip()))],
            refused,
        ),
        // It was opened again if the person also deleted the branch.
        (
            "the branch was deleted, and git found its values",
            BranchState::Left(LeftBranch::Refused),
            None,
            vec![closed(Some(tip()))],
            refused,
        ),
        (
            "another tip was refused",
            BranchState::Left(LeftBranch::Refused),
            Some(other),
            vec![closed(Some(tip()))],
            "nothing",
        ),
        ("another tip", current(false), Some(tip()), vec![closed(Some(other))], "opened"),
        ("an unknown tip", current(false), Some(tip()), vec![closed(None)], "opened"),
        ("made by this run", current(true), Some(tip()), vec![closed(Some(tip()))], "opened"),
        (
            "another one since",
            current(false),
            Some(tip()),
            vec![with_images(9, Merged, WEB_2, None), closed(Some(tip()))],
            "opened",
        ),
    ] {
        let case = Case { judged, ..Case::default() };
        assert_eq!(shown(&case.decide(branch, None, &past)), expected, "{rule}");
    }
}

#[test]
fn a_merge_is_bound_to_the_commit_of_the_branch() {
    use MergeTime::{ByHand, Immediately, WhenReady};
    let open = || Some(ours(WEB_1));
    let draft = Some(PullRequest { is_draft: true, ..ours(WEB_1) });
    let scheduled = Some(PullRequest { has_auto_merge: true, ..ours(WEB_1) });
    let queued = Some(PullRequest { is_in_merge_queue: true, ..ours(WEB_1) });
    for (merge, branch, open, expected) in [
        (ByHand, current(true), None, "opened"),
        (ByHand, current(false), open(), "kept #7"),
        (WhenReady, current(true), None, "opened merge WhenReady"),
        (WhenReady, current(false), open(), "kept #7 merge WhenReady"),
        (WhenReady, current(true), open(), "refreshed #7 merge WhenReady"),
        (WhenReady, current(false), scheduled, "kept #7 merge WhenReady"),
        (WhenReady, current(false), queued, "left in-merge-queue #7"),
        (WhenReady, current(false), draft.clone(), "kept #7"),
        (WhenReady, BranchState::Left(EditedByOthers), open(), "left edited-by-others #7"),
        (Immediately, current(true), None, "opened merge Immediately"),
        (Immediately, current(false), open(), "kept #7 merge Immediately"),
        (Immediately, current(false), draft, "kept #7"),
        (Immediately, BranchState::Failed, open(), "left #7"),
    ] {
        let merge_method = Some(MergeMethod::Squash);
        let options = PullRequestOptions { merge, merge_method, ..PullRequestOptions::default() };
        let decision = Case { options, ..Case::default() }.decide(branch, open.as_ref(), &[]);
        assert_eq!(shown(&decision), expected, "{merge:?} {branch:?} {open:?}");
        if let Some(merge) = decision.merge {
            assert_eq!((merge.head_commit, merge.method), (tip(), merge_method));
        }
    }
}

#[test]
fn a_branch_that_no_automation_renders_any_more_is_superseded_or_done() {
    use BranchState::Left;
    let of = |images| with_images(7, Open, images, None);
    let left = Left(LeftBranch::NothingLeft);
    let queued = PullRequest { is_in_merge_queue: true, ..of(WEB_1) };
    let both: Images = &[("web", "1"), ("api", "1")];
    let (api_2, web_2_api_2): (Images, Images) = (&[("api", "2")], &[("web", "2"), ("api", "2")]);
    for (rule, open, branch, readable, others, expected) in [
        (
            "its pull request is open already",
            of(WEB_1),
            left,
            vec!["web"],
            vec![("x/2", WEB_2, Some(WEB_2))],
            "closed superseded #7 body close",
        ),
        (
            "its pull request is not open yet",
            of(WEB_1),
            left,
            vec!["web"],
            vec![("x/2", WEB_2, None)],
            "left #7",
        ),
        (
            "one of two is not open yet",
            of(both),
            left,
            vec!["web", "api"],
            vec![("x/2", WEB_2, Some(WEB_2)), ("y/2", api_2, None)],
            "left #7",
        ),
        // It was closed while the image was on no branch.
        (
            "the other pull request is left alone",
            of(WEB_1),
            left,
            vec!["web"],
            vec![("x/2", WEB_2, Some(api_2))],
            "left #7",
        ),
        (
            "the other pull request has an older image",
            of(WEB_1),
            left,
            vec!["web"],
            vec![("x/2", WEB_2, Some(WEB_1))],
            "left #7",
        ),
        (
            "the other pull request lacks an image of another policy",
            of(WEB_1),
            left,
            vec!["web"],
            vec![("x/2", web_2_api_2, Some(WEB_2))],
            "closed superseded #7 body close",
        ),
        (
            "two branches",
            of(both),
            left,
            vec!["web", "api"],
            vec![("x/2", WEB_2, Some(WEB_2)), ("y/2", api_2, Some(api_2))],
            "closed superseded #7 body close",
        ),
        (
            "a branch of another policy",
            of(WEB_1),
            left,
            vec!["web", "api"],
            vec![("y/2", api_2, None)],
            "closed nothing-left #7 body close",
        ),
        ("nothing left", of(WEB_1), left, vec!["web"], vec![], "closed nothing-left #7 body close"),
        ("a policy has no image", of(WEB_1), left, vec!["api"], vec![("x/2", WEB_2, Some(WEB_2))], "left #7"),
        (
            "a commit of others",
            of(WEB_1),
            Left(EditedByOthers),
            vec!["web"],
            vec![("x/2", WEB_2, Some(WEB_2))],
            "left edited-by-others #7",
        ),
        (
            "in a merge queue",
            queued,
            left,
            vec!["web"],
            vec![("x/2", WEB_2, Some(WEB_2))],
            "left in-merge-queue #7",
        ),
        // It was closed though the branch had a change under review.
        ("a change of another", of(WEB_1), current(false), vec!["web"], vec![], "left #7"),
        (
            "a change of another, superseded",
            of(WEB_1),
            current(true),
            vec!["web"],
            vec![("x/2", WEB_2, Some(WEB_2))],
            "left #7",
        ),
        (
            "opened by others",
            pull_request("t", "by ann"),
            left,
            vec!["web"],
            vec![("x/2", WEB_2, Some(WEB_2))],
            "nothing",
        ),
    ] {
        let branches: Vec<(BranchName, BTreeSet<ImageHash>, Option<BTreeSet<ImageHash>>)> = others
            .iter()
            .map(|(branch, images, told)| (branch.parse().unwrap(), hashes(images), told.map(hashes)))
            .collect();
        let others: Vec<OtherBranch<'_>> = branches
            .iter()
            .map(|(branch, images, told)| OtherBranch { branch, images, told: told.as_ref() })
            .collect();
        for (owner_name, expected) in [("fleet", expected), ("elsewhere", "nothing")] {
            let unwanted = UnwantedPullRequest {
                pull_request: &OpenPullRequest::new(open.clone()),
                branch,
                judged: None,
                owners: &[owner(owner_name)].into(),
                readable: &readable.iter().map(|policy| PolicyHash::of(&name(policy))).collect(),
                others: &others,
                limit: None,
            };
            let decision = decide_unwanted(&unwanted).unwrap();
            assert_eq!(shown(&decision), expected, "{rule}, {owner_name}");
            if let PullRequestAction::Close(edit) = decision.action {
                let body = edit.body.unwrap();
                let closed = Memory::of_body(&body).unwrap().closed;
                let is_superseded = decision.reason == Some(PullRequestReason::Superseded);
                assert_eq!(closed, Some(if is_superseded { Superseded } else { NothingLeft }), "{rule}");
                let is_named = branches.iter().filter(|(.., told)| told.is_some());
                let mut names = is_named.map(|(branch, ..)| format!("`{branch}`"));
                assert!(!is_superseded || names.all(|name| body.contains(&name)), "{rule}: {body}");
            }
        }
    }
}

#[test]
fn an_order_from_before_a_merge_opens_no_other_pull_request() {
    let merged = with_images(9, Merged, WEB_1, None);
    let by_us = with_images(9, Closed, WEB_1, Some(NothingLeft));
    let later = made_at() + std::time::Duration::from_secs(1);
    for (past, ended_at, expected) in [
        (&merged, Some(later), "nothing"),
        (&by_us, Some(later), "nothing"),
        (&merged, Some(made_at()), "nothing"),
        // Git has read the base since, which lacks the value again, as after a revert.
        (&merged, made_at().checked_sub(std::time::Duration::from_secs(1)), "opened"),
        (&merged, None, "opened"),
    ] {
        let case = Case { ended_at, ..Case::default() };
        let decision = case.decide(current(false), None, std::slice::from_ref(past));
        assert_eq!(shown(&decision), expected, "{past:?}");
    }
}

#[test]
fn parts_that_were_lost_with_a_killed_process_are_added_by_the_next_round() {
    let names = |name: &str| vec![name.to_owned()];
    let options = PullRequestOptions {
        labels: names("images"),
        reviewers: names("ann"),
        assignees: names("bob"),
        ..PullRequestOptions::default()
    };
    let separate = SeparateParts { reviewers: true, ..SeparateParts::default() };
    let case = Case { options: options.clone(), separate, ..Case::default() };
    let PullRequestAction::Open(new) = case.decide(current(true), None, &[]).action else { panic!("opened") };
    let completed = new.completed_body.unwrap();
    assert!(Memory::of_body(&new.body).unwrap().is_incomplete);
    assert!(!Memory::of_body(&completed).unwrap().is_incomplete);
    // The process was killed before the other calls.
    let open = pull_request(&new.title, &new.body);
    let decision = case.decide(current(false), Some(&open), &[]);
    let PullRequestAction::Edit(edit) = decision.action else { panic!("{decision:?}") };
    assert_eq!(
        (&edit.added_labels, &edit.added_reviewers, &edit.added_assignees),
        (&options.labels, &options.reviewers, &options.assignees)
    );
    assert_eq!((edit.body.as_ref(), edit.title), (Some(&completed), None));
    let done = pull_request(&new.title, &completed);
    assert_eq!(shown(&case.decide(current(false), Some(&done), &[])), "kept #7");
    // Only the mark is changed: the images of an automation that is unknown for now were dropped.
    let (text, memory) = Memory::split(&new.body);
    let mut memory = memory.unwrap();
    memory.owners.insert(owner("other"));
    memory.images.insert(image("api", "1"));
    let open = pull_request(&new.title, &format!("{text}\n\n{memory}"));
    let decision = case.decide(current(false), Some(&open), &[]);
    let PullRequestAction::Edit(edit) = decision.action else { panic!("{decision:?}") };
    let left = Memory::of_body(&edit.body.unwrap()).unwrap();
    assert_eq!(left, Memory { is_incomplete: false, ..memory });
    // A forge that takes all in one call, or a pull request without such parts, needs no mark.
    for case in [Case { options, ..Case::default() }, Case { separate, ..Case::default() }] {
        let PullRequestAction::Open(new) = case.decide(current(true), None, &[]).action else {
            panic!("opened")
        };
        assert_eq!((new.completed_body, Memory::of_body(&new.body).unwrap().is_incomplete), (None, false));
    }
}

#[test]
fn a_second_pull_request_of_a_branch_is_closed_only_if_it_is_ours() {
    let first = ours(WEB_1);
    let second = PullRequest { number: 9, ..ours(WEB_1) };
    let of_person = |number| PullRequest { number, ..pull_request("t", "by ann") };
    let queued = PullRequest { is_in_merge_queue: true, ..second.clone() };
    let reopened = with_images(9, Open, WEB_1, Some(ClosedReason::Duplicate));
    for (rule, first, second, owner_name, readable, expected) in [
        ("ours", &first, &second, "fleet", vec!["web"], "closed duplicate #9 body close"),
        (
            "a person opened the first",
            &of_person(7),
            &second,
            "fleet",
            vec!["web"],
            "closed duplicate #9 body close",
        ),
        ("a person opened the second", &first, &of_person(9), "fleet", vec!["web"], "nothing"),
        ("a person reopened the second", &first, &reopened, "fleet", vec!["web"], "nothing"),
        ("of other automations", &first, &second, "other", vec!["web"], "nothing"),
        ("a policy is not readable", &first, &second, "fleet", vec!["api"], "nothing"),
        ("in a merge queue", &first, &queued, "fleet", vec!["web"], "nothing"),
    ] {
        let readable = readable.iter().map(|policy| PolicyHash::of(&name(policy))).collect();
        let known = (&BTreeSet::from([owner(owner_name)]), &readable);
        let [opened, older] = [second, first].map(|one| OpenPullRequest::new(PullRequest::clone(one)));
        let decision = decide_second(&opened, &older, known, None).unwrap();
        assert_eq!(shown(&decision), expected, "{rule}");
        if let PullRequestAction::Close(edit) = decision.action {
            let body = edit.body.unwrap();
            let sentence = format!("superseded by {}, which has the same branch.", first.url);
            assert!(body.contains(&sentence), "{rule}: {body}");
            assert_eq!(Memory::of_body(&body).unwrap().closed, Some(ClosedReason::Duplicate));
        }
    }
}
