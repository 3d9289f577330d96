//! What of a push has arrived.

use std::collections::BTreeMap;

use crate::git::listing::Listing;
use crate::git::name::RefName;
use crate::git::push::{PushReply, PushRequest};

/// Which references do not have what was to go there, and why; all others do.
#[derive(Default)]
pub(super) struct Arrivals {
    refusals: BTreeMap<RefName, String>,
}

impl Arrivals {
    /// Notes that a reference does not have it.
    pub(super) fn refused(&mut self, reference: RefName, words: String) {
        self.refusals.insert(reference, words);
    }

    /// Why a reference does not have it.
    pub(super) fn refusal(&self, reference: &RefName) -> Option<&String> {
        self.refusals.get(reference)
    }
}

/// The references that have not got what was pushed, for all that the reply and the listing `after` it say.
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
