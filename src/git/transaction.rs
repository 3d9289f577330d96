//! One transaction: proposals for one branch, or several, and one push for all.
//!
//! The remote is listed, new objects are fetched, each proposal is made on the tree of the one before it, and the tip
//! is pushed on the condition that the branch is as it was listed. The next listing, and not the reply, decides the
//! result of the push; after a lost race the new tip is fetched and everything is proposed again on it.

use std::time::{Duration, Instant};

use super::attempt::Attempt;
use super::attempts::{AttemptOutcome, Attempts};
use super::branches::BranchAttempt;
use super::error::SyncError;
use super::failure_kind::FailureKind;
use super::mirror::Mirror;
use super::options::WriterOptions;
use super::proposal::{Answer, Proposal, Proposer};
use super::push_journal::PushJournal;
use super::redirect::Redirect;
use super::remote::Remote;
use super::remote_error::RemoteError;
use super::server_deadline::ServerDeadline;
use crate::backoff::{Backoff, random_fraction};
use crate::secrets::redact_url;

/// The number of attempts after lost races.
const MAX_ATTEMPTS: u32 = 5;

/// The minimum backoff before the second repetition. It doubles with each.
///
/// The first repetition is immediate: most often there was a single other push. If an attempt takes longer than this,
/// the backoff depends on the attempt: of many concurrent writers only a few should try at any time, or all of them
/// starve.
const INITIAL_BACKOFF: Duration = Duration::from_millis(100);

/// The maximum backoff, however long the attempts take: the mirror is held all the while.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Runs proposals with the same checkout, push branch and push options.
pub(super) fn transact<P: Proposer>(
    mirror: &mut Mirror,
    remote: &mut Remote,
    proposals: Vec<Proposal<P>>,
    options: &WriterOptions,
) -> Vec<Answer<P>> {
    let has_own_branches = proposals.first().is_some_and(|first| first.target.own_branches.is_some());
    if has_own_branches {
        attempt_all(BranchAttempt::new(proposals, options.is_dry_run), mirror, remote, options)
    } else {
        attempt_all(Attempt::new(proposals, options.is_dry_run), mirror, remote, options)
    }
}

fn attempt_all<P: Proposer>(
    mut attempt: impl Attempts<P>,
    mirror: &mut Mirror,
    remote: &mut Remote,
    options: &WriterOptions,
) -> Vec<Answer<P>> {
    let mut journal = PushJournal::load(&mirror.folder);
    let mut repairs = Repairs::default();
    let redirected = journal.redirect.as_ref().and_then(|target| remote.url.redirected(target).ok());
    let redirected = redirected.filter(|url| url.is_same_origin(&remote.url));
    remote.redirect = redirected.map(|url| Redirect { url, is_remembered: true });
    let mut tries = 0;
    loop {
        let begin = Instant::now();
        let outcome = attempt.make(mirror, remote, &mut journal);
        // A cancelled proposal may be the cause of any failure; the others start again.
        let is_to_be_repeated = !matches!(outcome, AttemptOutcome::Done) && mirror.is_cancelled();
        let outcome = if is_to_be_repeated {
            AttemptOutcome::Repaired
        } else {
            repairs.repair(outcome, mirror, remote, &mut journal)
        };
        match outcome {
            AttemptOutcome::Done => return attempt.answers(),
            AttemptOutcome::Repaired => {}
            AttemptOutcome::LostRace if tries + 1 < MAX_ATTEMPTS && !options.context.stop.is_cancelled() => {
                options.context.metrics.push_retried();
                if tries > 0 {
                    let backoff =
                        Backoff { first: begin.elapsed().max(INITIAL_BACKOFF), longest: MAX_BACKOFF };
                    // Full jitter: any fraction of the backoff, so that writers that lost the same race spread out.
                    std::thread::sleep(backoff.after(tries).mul_f64(random_fraction()));
                }
                tries += 1;
            }
            AttemptOutcome::LostRace => {
                return attempt
                    .fail(SyncError::LostRace { url: remote.url.to_string(), tries: MAX_ATTEMPTS });
            }
            AttemptOutcome::Refused(error) => {
                return match attempt.separate() {
                    // A commit that the server refuses must not block the others.
                    Ok(proposals) => proposals
                        .into_iter()
                        .flat_map(|proposal| transact(mirror, remote, vec![proposal], options))
                        .collect(),
                    Err(attempt) => attempt.fail(error),
                };
            }
            AttemptOutcome::Failed(error) => return attempt.fail(error),
        }
    }
}

/// Repairs that are made at most once in a transaction.
#[derive(Default)]
struct Repairs {
    has_begun_anew: bool,
    has_followed: bool,
}

impl Repairs {
    /// Turns a failure that can be repaired into another attempt.
    fn repair(
        &mut self,
        outcome: AttemptOutcome,
        mirror: &mut Mirror,
        remote: &mut Remote,
        journal: &mut PushJournal,
    ) -> AttemptOutcome {
        let error = match outcome {
            AttemptOutcome::Failed(error) => error,
            other => return other,
        };
        let is_too_large =
            matches!(error, SyncError::Remote(RemoteError::TooLarge { .. } | RemoteError::NoSpace { .. }));
        let is_damaged = error.is_damage() || error.failure_kind() == Some(FailureKind::MirrorDamaged);
        if is_too_large || (is_damaged && !self.has_begun_anew) {
            // A mirror may have grown too large over time; a new one that is too large gives its disk space back.
            let is_hopeless = is_too_large && mirror.is_new;
            self.has_begun_anew = true;
            return match mirror.recreate() {
                Ok(()) if is_hopeless => AttemptOutcome::Failed(error),
                Ok(()) => AttemptOutcome::Repaired,
                Err(error) => AttemptOutcome::Failed(error.into()),
            };
        }
        let is_elsewhere = matches!(
            error.failure_kind(),
            Some(
                FailureKind::Redirected
                    | FailureKind::NoRepository
                    | FailureKind::Forbidden
                    | FailureKind::Authentication
            )
        );
        if remote.redirect.take_if(|redirect| redirect.is_remembered && is_elsewhere).is_some() {
            // The remembered redirect is out of date.
            journal.redirect = None;
            let _ = journal.store(&mirror.folder);
            return AttemptOutcome::Repaired;
        }
        let error = match error {
            SyncError::Remote(error) if error.failure_kind() == Some(FailureKind::Redirected) => {
                return self.follow(error, mirror, remote, journal);
            }
            error => error,
        };
        if error.failure_kind() == Some(FailureKind::Gone) {
            return AttemptOutcome::LostRace;
        }
        AttemptOutcome::Failed(error)
    }

    /// Follows a redirect to another address of the same server, such as one with `.git`.
    fn follow(
        &mut self,
        error: RemoteError,
        mirror: &Mirror,
        remote: &mut Remote,
        journal: &mut PushJournal,
    ) -> AttemptOutcome {
        let (operation, deadline) = (error.operation(), ServerDeadline::after(remote.timeout));
        let Some(target) = remote.find_redirect(mirror, operation, remote.address(), &deadline) else {
            return AttemptOutcome::Failed(error.into());
        };
        match remote.address().redirected(&target) {
            Ok(url) if !self.has_followed && url.is_same_origin(&remote.url) => {
                self.has_followed = true;
                // Not as received: a server may have put user info in.
                journal.redirect = Some(url.to_location());
                let _ = journal.store(&mirror.folder);
                remote.redirect = Some(Redirect { url, is_remembered: false });
                AttemptOutcome::Repaired
            }
            _ => {
                let url = remote.address().to_string();
                let target = remote.access.redact(&redact_url(&target));
                AttemptOutcome::Failed(RemoteError::Redirected { operation, url, target }.into())
            }
        }
    }
}
