//! One push for all branches, and its result for each.

use std::collections::BTreeMap;

use super::refusal::with_advice;
use crate::error::chain;
use crate::git::attempt::context::AttemptContext;
use crate::git::error::SyncError;
use crate::git::listing::Listing;
use crate::git::name::RefName;
use crate::git::push::{PushReply, PushRequest, PushUpdate};
use crate::git::remote::ListingQuery;
use crate::git::remote_error::RemoteError;
use crate::git::server_deadline::ServerDeadline;

/// The result of a push for one branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PushResult {
    /// The branch is as pushed.
    Done,
    /// Another push to the branch came first.
    Stale,
    /// The remote refuses the branch, with an error as text.
    Refused(String),
    /// The result is unknown; the push may still arrive.
    Unknown(String),
}

/// Pushes all branches at once.
///
/// If the remote refuses all of them together, as a hook does, each is pushed alone: one branch must not stop the others.
///
/// # Errors
///
/// If the push failed for all branches.
pub(super) fn push_all(
    context: &AttemptContext<'_>,
    request: &PushRequest,
    may_begin: &dyn Fn() -> bool,
) -> Result<BTreeMap<RefName, PushResult>, SyncError> {
    let deadline = ServerDeadline::after(context.remote.timeout);
    let mut results = push(context, request, &deadline, may_begin)?;
    let refused = |results: &BTreeMap<_, PushResult>| {
        results.values().filter(|result| matches!(result, PushResult::Refused(_))).count()
    };
    let is_any_done = results.values().any(|result| *result == PushResult::Done);
    if is_any_done || refused(&results) < 2 {
        return Ok(results);
    }
    for update in &request.updates {
        let is_refused = matches!(results.get(&update.reference), Some(PushResult::Refused(_)));
        if is_refused && !deadline.remaining().is_zero() {
            context.mirror.check_cancelled()?;
            let alone = PushRequest { updates: vec![update.clone()], ..request.clone() };
            results.extend(push(context, &alone, &deadline, may_begin)?);
        }
    }
    Ok(results)
}

fn push(
    context: &AttemptContext<'_>,
    request: &PushRequest,
    deadline: &ServerDeadline,
    may_begin: &dyn Fn() -> bool,
) -> Result<BTreeMap<RefName, PushResult>, SyncError> {
    let reply = context.remote.push(context.mirror, request, deadline, may_begin);
    if reply.as_ref().is_err_and(RemoteError::is_withheld) {
        // The next attempt leaves the branches alone.
        let stale = |update: &PushUpdate| (update.reference.clone(), PushResult::Stale);
        return Ok(request.updates.iter().map(stale).collect());
    }
    let is_clear = reply.as_ref().is_ok_and(|reply| {
        request
            .updates
            .iter()
            .all(|update| reply.is_done(&update.reference) || reply.is_stale(&update.reference))
    });
    let after = if is_clear { None } else { list(context, request) };
    let (reply, error) = match reply {
        Ok(reply) => (reply, None),
        Err(error) => (PushReply::default(), Some(error)),
    };
    let results: BTreeMap<RefName, PushResult> = request
        .updates
        .iter()
        .map(|update| {
            let refusal = || match &error {
                // A known failure has its own advice.
                Some(error) if error.failure_kind().is_some() => chain(error),
                Some(error) => with_advice(chain(error)),
                None => {
                    let message = reply.refusal(&update.reference);
                    with_advice(chain(&context.refusal(update.reference.clone(), message)))
                }
            };
            (update.reference.clone(), result(update, &reply, after.as_ref(), refusal))
        })
        .collect();
    match error {
        Some(error) if !results.values().any(|result| *result == PushResult::Done) => Err(error.into()),
        _ => Ok(results),
    }
}

fn list(context: &AttemptContext<'_>, request: &PushRequest) -> Option<Listing> {
    let queries: Vec<_> =
        request.updates.iter().map(|update| ListingQuery::Reference(update.reference.clone())).collect();
    let deadline = ServerDeadline::after(context.remote.timeout);
    context.remote.list(context.mirror, &queries, &deadline).ok()
}

/// Returns the result for one branch, from the reply and the listing `after` it.
fn result(
    update: &PushUpdate,
    reply: &PushReply,
    after: Option<&Listing>,
    refusal: impl FnOnce() -> String,
) -> PushResult {
    let reference = &update.reference;
    if reply.is_done(reference) {
        return PushResult::Done;
    }
    if reply.is_stale(reference) {
        return PushResult::Stale;
    }
    let Some(after) = after else { return PushResult::Unknown(refusal()) };
    match after.commit(reference) {
        tip if tip == update.new => PushResult::Done,
        tip if tip != update.old => PushResult::Stale,
        // After a broken connection git sends the push again, and its refusal says nothing of the first time; but the
        // branch is still as it was.
        // A push that held the branch may have been this very one, sent before.
        _ if reply.is_refused(reference) && !reply.is_contested(reference) => PushResult::Refused(refusal()),
        _ => PushResult::Unknown(refusal()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::git_output::GitOutput;

    #[test]
    fn the_listing_decides_where_the_reply_is_unclear() {
        let [old, new, other] = ["1", "2", "3"].map(|digit| digit.repeat(40));
        let output = "!\t2:refs/heads/a\t[remote rejected] (hook declined)\n \t2:refs/heads/b\t1..2\n\
            !\t2:refs/heads/c\t[rejected] (stale info)\n!\t2:refs/heads/d\t[remote failure] (remote failed to report status)\n\
            !\t2:refs/heads/f\t[remote rejected] (cannot lock ref 'refs/heads/f')\n";
        let reply = PushReply::parse(output.as_bytes(), &GitOutput::new("", str::to_owned), str::to_owned);
        let refused = || PushResult::Refused("no".to_owned());
        let unknown = || PushResult::Unknown("no".to_owned());
        for (branch, tip, expected) in [
            ("a", Some(&old), refused()),
            ("a", Some(&new), PushResult::Done),
            ("a", Some(&other), PushResult::Stale),
            ("a", None, PushResult::Stale),
            ("b", Some(&other), PushResult::Done),
            ("c", Some(&old), PushResult::Stale),
            ("d", Some(&old), unknown()),
            ("d", Some(&new), PushResult::Done),
            ("e", Some(&old), unknown()),
            // The lock may be that of this push, which was sent before and still arrives.
            ("f", Some(&old), unknown()),
            ("f", Some(&new), PushResult::Done),
        ] {
            let update = PushUpdate {
                reference: format!("refs/heads/{branch}").parse().unwrap(),
                new: Some(new.parse().unwrap()),
                old: Some(old.parse().unwrap()),
            };
            let text = tip.map(|tip| format!("{tip}\trefs/heads/{branch}\n")).unwrap_or_default();
            let after = Listing::parse(text.as_bytes()).unwrap();
            let found = result(&update, &reply, Some(&after), || "no".to_owned());
            assert_eq!(found, expected, "{branch} {tip:?}");
            if branch == "a" {
                assert_eq!(result(&update, &reply, None, || "no".to_owned()), unknown());
            }
        }
    }
}
