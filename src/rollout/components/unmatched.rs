//! The component of places that were not matched, because there are too many.

use tagboat_api::deployment_status::{ComponentStatus, State};

use super::context::Context;
use crate::rollout::aggregate::Component;
use crate::rollout::message::message;
use crate::rollout::tie::{MAX_COMPARISONS, MAX_TIES, Unmatched};

/// Returns one component for all places that were not matched.
///
/// Its name is the location of the first one, which no other component has.
pub(super) fn component(context: &Context<'_>, unmatched: &Unmatched<'_>) -> Component {
    let location = unmatched.place.location();
    let mut status = ComponentStatus::new(location.clone(), State::Pending, context.now.clone());
    status.message = Some(message(&format!(
        "{} markers of the policy are not matched with objects, because they would need more than {MAX_TIES} pairs of \
         a marker and an object, or {MAX_COMPARISONS} comparisons",
        unmatched.count
    )));
    status.automation = Some(unmatched.scan.automation.name.clone());
    status.place = Some(location);
    Component { status, has_wanted_image: false }
}
