//! The decision whether an object exists for a policy.

use tagboat_api::deployment_status::Report;

/// The facts that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts<'a> {
    /// The uid of the policy; none if the policy does not exist.
    pub(super) policy: Option<&'a str>,
    /// The uid of the policy that the object was made for; none without an object.
    pub(super) object: Option<&'a str>,
    /// A scan found a marker, or a component of a removed file is still reported.
    pub(super) has_marker: bool,
    /// A scan in this process may still find a marker.
    pub(super) may_have_marker: bool,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// There is no object, and none is needed.
    Nothing,
    /// The object is made.
    Create,
    /// The object stays, and its status is computed.
    Report,
    /// The object is deleted.
    Delete,
}

/// Decides whether a policy has an object.
///
/// The object is made for the first marker, and is deleted with the policy, its last automation or its last marker.
/// As long as a scan may find a marker, as after a restart, the object stays. An object of a deleted policy is deleted
/// before the one of a new policy with its name is made.
pub(super) fn decide(facts: Facts<'_>) -> Decision {
    match facts {
        Facts { object: None, policy: Some(_), has_marker: true, .. } => Decision::Create,
        Facts { object: None, .. } => Decision::Nothing,
        Facts { object, policy, .. } if object != policy => Decision::Delete,
        Facts { has_marker, may_have_marker, .. } if has_marker || may_have_marker => Decision::Report,
        Facts { .. } => Decision::Delete,
    }
}

/// Returns true if a scan may still find a marker of a policy.
///
/// Components name their automations, which have the others. Without any, each automation of the namespace may have a
/// marker that was not scanned yet (`has_unscanned`).
pub(super) fn may_have_marker(previous: Option<&Report>, has_unscanned: bool) -> bool {
    let is_unknown = previous.is_none_or(|report| report.components.is_empty() || report.omitted > 0);
    is_unknown && has_unscanned
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;
    use tagboat_api::deployment_status::{ComponentStatus, State};

    use super::*;

    /// An automation that is suspended is never scanned after a restart.
    #[test]
    fn an_unrelated_automation_without_a_scan_keeps_no_object() {
        let mut report: Report = serde_json::from_value(json!({
            "state": "installed", "since": "2026-01-01T00:00:00Z", "summary": {}, "progress": "1/1",
        }))
        .unwrap();
        assert!(may_have_marker(None, true) && may_have_marker(Some(&report), true));
        assert!(!may_have_marker(None, false));
        let since = Time("2026-01-01T00:00:00Z".parse().unwrap());
        report.components.push(ComponentStatus::new("Deployment/a/b", State::Installed, since));
        assert!(!may_have_marker(Some(&report), true));
        report.omitted = 1;
        assert!(may_have_marker(Some(&report), true));
    }

    #[test]
    fn an_object_lives_as_long_as_its_policy_and_a_marker() {
        use Decision::{Create, Delete, Nothing, Report};
        let (one, two) = (Some("1"), Some("2"));
        for (policy, object, has_marker, may_have_marker, expected) in [
            (None, None, false, false, Nothing),
            (None, None, true, false, Nothing),
            (one, None, false, false, Nothing),
            (one, None, false, true, Nothing),
            (one, None, true, false, Create),
            (one, None, true, true, Create),
            (one, one, true, false, Report),
            (one, one, true, true, Report),
            // After a restart.
            (one, one, false, true, Report),
            // The last marker or the last automation is gone.
            (one, one, false, false, Delete),
            // The policy is gone, or is another one.
            (None, one, true, true, Delete),
            (None, one, false, false, Delete),
            (two, one, true, false, Delete),
        ] {
            let facts = Facts { policy, object, has_marker, may_have_marker };
            assert_eq!(decide(facts), expected, "{facts:?}");
        }
    }
}
