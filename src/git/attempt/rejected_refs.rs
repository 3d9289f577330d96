//! The references that a push did not update.

use std::collections::BTreeMap;

use crate::git::listing::Listing;
use crate::git::name::RefName;
use crate::git::push::{PushReply, PushRequest};

/// The references that were not updated, each with the server's message; all others were.
#[derive(Default)]
pub(super) struct RejectedRefs {
    refusals: BTreeMap<RefName, String>,
}

impl RejectedRefs {
    /// Records that a reference was not updated.
    pub(super) fn insert(&mut self, reference: RefName, message: String) {
        self.refusals.insert(reference, message);
    }

    /// Returns the message for a reference that was not updated.
    pub(super) fn refusal(&self, reference: &RefName) -> Option<&String> {
        self.refusals.get(reference)
    }
}

/// Returns the references that were not updated, by the reply and the listing `after` it.
pub(super) fn missing(
    request: &PushRequest,
    reply: Option<&PushReply>,
    after: Option<&Listing>,
) -> Vec<RefName> {
    let updates = request.updates.iter().filter(|update| {
        let is_good = reply.is_some_and(|reply| reply.is_done(&update.reference));
        let listed = after.and_then(|after| after.get(&update.reference));
        !is_good && listed.map(|listed| listed.object) != Some(update.new)
    });
    updates.map(|update| update.reference.clone()).collect()
}
