//! Rounds on a forge of tests.
//!
//! | file | contents |
//! |---|---|
//! | `searches` | calls that find pull requests, and their failures |
//! | `changes` | the changes that a round makes, and those that it leaves |
//! | `reports` | the outcomes that a round reports |

mod changes;
mod reports;
mod searches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::settings::{MergeTime, PullRequestSettings, TemplateLanguage};
use tagboat_api::{ObjectName, Reason};

use super::merges::AskedMerges;
use super::order::{BranchContent, PullRequestOrder};
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb};
use super::progress::PullRequestProgress;
use super::round::{Round, RoundMode, RoundOutcome, RoundWork};
use super::snapshot::Snapshot;
use super::test_forge::{TestForge, open};
use crate::forge::{ForgeError, MergeAnswer, PullRequest, PullRequestState, SeparateParts};
use crate::git::{BranchAction, BranchFacts, BranchName, BranchOutcome, CommitId, LeftReason};
use crate::message::MessageData;
use crate::reconcile::automation::delivered::{Delivered, ForgeProgress};
use crate::reconcile::automation::delivery::{
    CautiousAutomation, Memory, OwnerHash, PullRequestReason, REBUILD_LABEL, Standstill,
};
use crate::reconcile::automation::waiting::WriteRules;
use crate::schedule::Windows;
use crate::tenancy::BlockingPool;

/// An order whose pull requests have vanished.
pub(super) fn order(branches: &[&str]) -> PullRequestOrder {
    let automation = ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() };
    PullRequestOrder {
        owner: OwnerHash::of(&automation, None),
        automation,
        base: "main".parse().unwrap(),
        settings: PullRequestSettings::default(),
        cautious: Vec::new(),
        language: TemplateLanguage::Go,
        facts: BTreeMap::new(),
        rendered: branches.iter().map(|name| name.parse().unwrap()).collect(),
        readable: BTreeSet::new(),
        unreadable: BTreeSet::new(),
        reported_open: BTreeSet::from([7]),
        contents: BTreeMap::new(),
        delivered: Delivered {
            base: "main".to_owned(),
            branches: Vec::new(),
            invalid: Vec::new(),
            without_branch: BTreeSet::new(),
            policies: BTreeMap::new(),
            forge: ForgeProgress::Awaited,
            shown: BTreeMap::new(),
        },
        gate: None,
        made_at: Instant::now(),
    }
}

async fn round(forge: &TestForge, order: PullRequestOrder, snapshot: &mut Snapshot) -> RoundOutcome {
    round_with(forge, order, snapshot, true).await
}

async fn round_with(
    forge: &TestForge,
    order: PullRequestOrder,
    snapshot: &mut Snapshot,
    is_dry_run: bool,
) -> RoundOutcome {
    round_of(forge, vec![order], snapshot, is_dry_run).await
}

async fn round_of(
    forge: &TestForge,
    orders: Vec<PullRequestOrder>,
    snapshot: &mut Snapshot,
    is_dry_run: bool,
) -> RoundOutcome {
    let orders = orders.into_iter().map(|order| (order.automation.clone(), Arc::new(order))).collect();
    let (pool, handled) = (BlockingPool::new(2), BTreeMap::new());
    let mode = if is_dry_run { RoundMode::DryRun } else { RoundMode::Single };
    let round = Round { mode, ..plain_round(forge, &pool, &orders, &handled) };
    run(&round, snapshot).await
}

/// Returns what a dry run would do with some open pull requests.
pub(super) async fn decided(orders: Vec<PullRequestOrder>, listed: Vec<PullRequest>) -> Vec<String> {
    let forge = TestForge::with(listed);
    let done = round_of(&forge, orders, &mut Snapshot::default(), true).await;
    assert_eq!(done.failure, None);
    let shown = |one: &PullRequestOutcome| match one.number {
        Some(number) => format!("{} #{number}", one.action.name()),
        None => format!("{} {}", one.action.name(), one.branch),
    };
    done.all().map(shown).collect()
}

async fn run(round: &Round<'_, TestForge>, snapshot: &mut Snapshot) -> RoundOutcome {
    let mut work = RoundWork { snapshot: std::mem::take(snapshot), ..RoundWork::default() };
    round.ask(&mut work).await;
    round.act(&mut work).await;
    *snapshot = work.snapshot;
    work.outcome
}

/// Returns a round that waits for no report.
fn plain_round<'r>(
    forge: &'r TestForge,
    pool: &'r BlockingPool,
    orders: &'r BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    handled: &'r BTreeMap<BranchName, CommitId>,
) -> Round<'r, TestForge> {
    Round {
        forge,
        pool,
        limit: None,
        separate: SeparateParts::default(),
        orders,
        handled,
        text_age: Duration::ZERO,
        mode: RoundMode::Single,
        is_present: &|_, _| true,
    }
}

pub(super) fn pull_request(head: &str) -> PullRequest {
    open(7, head)
}

/// An order with a branch that git has kept, and two pull requests.
///
/// The first has the images in its text, the second has not.
fn kept() -> (PullRequestOrder, [PullRequest; 2]) {
    let mut order = order(&["a"]);
    let branch: BranchName = "a".parse().unwrap();
    let content = BranchContent { data: MessageData::plain_sample(), path: None, message: None };
    let images = [content.images(), BTreeSet::new()];
    order.contents.insert(branch.clone(), content);
    order.facts.insert(branch.clone(), BranchFacts::default());
    let (tip, message) = (Some("1".repeat(40).parse().unwrap()), String::new());
    let outcome =
        BranchOutcome { branch, action: BranchAction::Kept, tip, commit: None, message, dropped: Vec::new() };
    order.delivered.branches.push(outcome);
    let pull_requests = images.map(|images| {
        let memory = Memory { owners: [order.owner.clone()].into(), images, ..Memory::default() };
        PullRequest { body: memory.to_string(), ..pull_request("a") }
    });
    (order, pull_requests)
}
