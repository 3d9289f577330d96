//! The aggregate state of a deployment: state, order, summary and progress of its components.
//!
//! A deployment has the most severe state of its components, in the order of the Margo specification: failed, removing,
//! installing, pending, removed, installed. Without components it is pending.
//!
//! An error before the rollout (an unusable policy, a failed checkout or push) makes a deployment failed only while a
//! component lacks the wanted image: if the git server is down, running deployments do not become failed. A cluster that
//! does not respond is the error only if no component has failed by itself, because that one can be fixed.
//!
//! The progress is that of pods, such as `2/3`; the summary has the number of components. Components that are being
//! removed have no progress, and of a component without the wanted image no pod counts. No old pod of a rollout counts:
//! only those that are updated and ready for certain.

use std::fmt;

use tagboat_api::deployment_status::{BlockReason, ComponentStatus, State, StatusError, Summary};

/// A component as observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// Its state.
    pub status: ComponentStatus,
    /// The spec of the object has the wanted image.
    ///
    /// It matters for failed components only, because an applier can fail before it applies the image. Any other state
    /// implies it.
    pub has_wanted_image: bool,
}

impl Component {
    /// Returns true if the component should have the wanted image and does not.
    #[must_use]
    pub fn lacks_wanted_image(&self) -> bool {
        match self.status.state {
            State::Pending => true,
            State::Failed => !self.has_wanted_image,
            State::Installing | State::Installed | State::Removing | State::Removed => false,
        }
    }
}

/// The code of an error before the rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeploymentErrorCode {
    /// The policy is not ready.
    PolicyNotReady,
    /// The git repository could not be read.
    GitCheckoutFailed,
    /// The template of the commit message is invalid.
    TemplateInvalid,
    /// The files could not be updated.
    UpdateFailed,
    /// The push was refused.
    GitPushRejected,
    /// A cluster does not respond.
    HostUnavailable,
}

/// Formats the code, which is the name of the variant.
impl fmt::Display for DeploymentErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// An error before the rollout, which is none of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentError {
    /// The code.
    pub code: DeploymentErrorCode,
    /// The object or the cluster that has the error, such as `ImagePolicy/apps/podinfo`.
    pub source: String,
    /// The message for users.
    pub message: String,
}

impl From<&DeploymentError> for StatusError {
    fn from(error: &DeploymentError) -> Self {
        Self { code: error.code.to_string(), source: error.source.clone(), message: error.message.clone() }
    }
}

/// The aggregate state of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// The state.
    pub state: State,
    /// The reason of the first component with the state.
    pub reason: Option<BlockReason>,
    /// The message of the error, or of the first component with the state.
    pub message: Option<String>,
    /// The error before the rollout, if it makes the deployment failed.
    pub error: Option<StatusError>,
}

/// Returns the aggregate state of components in any order, with an error before the rollout.
#[must_use]
pub fn aggregate(components: &[Component], error: Option<&DeploymentError>) -> Aggregate {
    let has_failed = || components.iter().any(|component| component.status.state == State::Failed);
    let is_hidden =
        |error: &DeploymentError| error.code == DeploymentErrorCode::HostUnavailable && has_failed();
    let error = error.filter(|error| !is_hidden(error));
    if let Some(error) = error.filter(|_| components.iter().any(Component::lacks_wanted_image)) {
        let message = Some(error.message.clone());
        return Aggregate { state: State::Failed, reason: None, message, error: Some(error.into()) };
    }
    let components = components.iter().map(|component| &component.status);
    let Some(worst) = components.min_by_key(|component| rank(component)) else {
        return Aggregate { state: State::Pending, reason: None, message: None, error: None };
    };
    let detail = worst.error.as_ref().map(|error| error.message.as_str()).or(worst.message.as_deref());
    let detail = detail.map(str::to_owned).or_else(|| worst.reason.map(|reason| reason.to_string()));
    Aggregate {
        state: worst.state,
        reason: worst.reason,
        message: detail.map(|detail| format!("{}: {detail}", worst.name)),
        error: None,
    }
}

/// Returns the most severe of some states; pending without any.
#[must_use]
pub fn most_severe(states: impl IntoIterator<Item = State>) -> State {
    states.into_iter().min_by_key(|state| state.severity_rank()).unwrap_or(State::Pending)
}

/// Sorts components from the most to the least severe state, and by name.
pub fn sort_worst_first(components: &mut [ComponentStatus]) {
    components.sort_by(|left, right| rank(left).cmp(&rank(right)));
}

fn rank(component: &ComponentStatus) -> (usize, &str) {
    (component.state.severity_rank(), &component.name)
}

/// Counts components by state.
#[must_use]
pub fn summary(components: &[ComponentStatus]) -> Summary {
    components.iter().map(|component| component.state).collect()
}

/// Returns the progress of components: ready pods with the wanted image, and desired pods.
#[must_use]
pub fn progress(components: &[ComponentStatus]) -> String {
    let sum = |(done, desired): (i64, i64), (more_done, more_desired)| {
        (done.saturating_add(more_done), desired.saturating_add(more_desired))
    };
    let (done, desired) = components.iter().filter_map(component_progress).fold((0, 0), sum);
    format!("{done}/{desired}")
}

/// Returns the least number of ready pods with the wanted image, and the desired pods.
///
/// Returns `None` for a component that is being removed or is gone.
#[must_use]
pub fn component_progress(component: &ComponentStatus) -> Option<(i64, i64)> {
    let desired = component.desired.max(0);
    let done = match component.state {
        State::Removing | State::Removed => return None,
        State::Pending => 0,
        // It failed before it got the image.
        State::Failed if component.reason.is_some() => 0,
        State::Installing | State::Installed | State::Failed => component.updated_ready.unwrap_or(0),
    };
    Some((done.clamp(0, desired), desired))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn status(name: &str, state: State) -> ComponentStatus {
        let error = (state == State::Failed).then(|| StatusError {
            code: "CrashLoopBackOff".to_owned(),
            source: name.to_owned(),
            message: "exit code 1".to_owned(),
        });
        ComponentStatus { error, ..ComponentStatus::new(name, state, Timestamp::UNIX_EPOCH.into()) }
    }

    fn component(name: &str, state: State) -> Component {
        Component { status: status(name, state), has_wanted_image: true }
    }

    fn error(code: DeploymentErrorCode) -> DeploymentError {
        DeploymentError { code, source: "cluster".to_owned(), message: "it does not respond".to_owned() }
    }

    /// The states from the most to the least severe, as in the Margo specification.
    const SEVERITY: [State; 6] =
        [State::Failed, State::Removing, State::Installing, State::Pending, State::Removed, State::Installed];

    #[test]
    fn the_more_severe_of_two_states_wins_in_any_order() {
        for (left_rank, left) in SEVERITY.into_iter().enumerate() {
            for (right_rank, right) in SEVERITY.into_iter().enumerate() {
                let components = [component("a", left), component("b", right)];
                let expected = SEVERITY[left_rank.min(right_rank)];
                assert_eq!(aggregate(&components, None).state, expected, "{left} {right}");
                assert_eq!(most_severe([left, right]), expected, "{left} {right}");
            }
        }
    }

    #[test]
    fn one_component_has_its_own_state_and_none_is_pending() {
        for state in SEVERITY {
            assert_eq!(aggregate(&[component("a", state)], None).state, state);
        }
        assert_eq!(aggregate(&[], None).state, State::Pending);
        assert_eq!(most_severe([]), State::Pending);
    }

    #[test]
    fn an_error_before_the_rollout_matters_while_a_component_lacks_the_image() {
        use State::{Failed, Installed, Installing, Pending, Removed, Removing};
        // State, has the wanted image, becomes failed by the error.
        for (state, has_wanted_image, expected) in [
            (Pending, false, true),
            (Failed, false, true),
            (Failed, true, false),
            (Installing, true, false),
            (Installed, true, false),
            (Removing, false, false),
            (Removed, false, false),
        ] {
            let other = component("b", Installed);
            let components = [Component { has_wanted_image, ..component("a", state) }, other];
            let error = error(DeploymentErrorCode::GitPushRejected);
            let found = aggregate(&components, Some(&error));
            assert_eq!(found.error.is_some(), expected, "{state} {has_wanted_image}");
            let state = if expected { Failed } else { state };
            assert_eq!(found.state, state, "{has_wanted_image}");
        }
        let found = aggregate(&[], Some(&error(DeploymentErrorCode::PolicyNotReady)));
        assert_eq!((found.state, found.error), (Pending, None));
    }

    #[test]
    fn an_outage_hides_no_failure_of_a_component() {
        let failed = component("Deployment/a/b", State::Failed);
        let lost = Component { has_wanted_image: false, ..component("edge/Deployment/a/b", State::Pending) };
        let outage = error(DeploymentErrorCode::HostUnavailable);
        let found = aggregate(&[lost.clone(), failed], Some(&outage));
        assert_eq!((found.state, found.error), (State::Failed, None));
        assert_eq!(found.message.as_deref(), Some("Deployment/a/b: exit code 1"));
        let found = aggregate(&[lost], Some(&outage));
        assert_eq!(found.error.unwrap().code, "HostUnavailable");
    }

    #[test]
    fn every_code_is_reported() {
        use DeploymentErrorCode as Code;
        for (code, text) in [
            (Code::PolicyNotReady, "PolicyNotReady"),
            (Code::GitCheckoutFailed, "GitCheckoutFailed"),
            (Code::TemplateInvalid, "TemplateInvalid"),
            (Code::UpdateFailed, "UpdateFailed"),
            (Code::GitPushRejected, "GitPushRejected"),
            (Code::HostUnavailable, "HostUnavailable"),
        ] {
            let found = aggregate(&[component("a", State::Pending)], Some(&error(code)));
            let reported = found.error.unwrap();
            assert_eq!((reported.code.as_str(), reported.source.as_str()), (text, "cluster"));
            assert_eq!(found.message.as_deref(), Some("it does not respond"));
        }
    }

    #[test]
    fn the_message_is_that_of_the_first_component_with_the_state() {
        let pending = |name: &str, reason| {
            let mut component = component(name, State::Pending);
            component.status.reason = Some(reason);
            component
        };
        let components = [
            pending("Deployment/a/z", BlockReason::NotFound),
            pending("Deployment/a/b", BlockReason::NotApplied),
            component("Deployment/a/a", State::Installed),
        ];
        let found = aggregate(&components, None);
        assert_eq!(found.reason, Some(BlockReason::NotApplied));
        assert_eq!(found.message.as_deref(), Some("Deployment/a/b: NotApplied"));

        let failed = aggregate(&[components[0].clone(), component("Job/a/x", State::Failed)], None);
        assert_eq!((failed.reason, failed.error), (None, None));
        assert_eq!(failed.message.as_deref(), Some("Job/a/x: exit code 1"));

        let mut installing = component("Deployment/a/b", State::Installing);
        assert_eq!(aggregate(&[installing.clone()], None).message, None);
        installing.status.message = Some("1 of 3 pods is ready".to_owned());
        let message = aggregate(&[installing], None).message;
        assert_eq!(message.as_deref(), Some("Deployment/a/b: 1 of 3 pods is ready"));
    }

    #[test]
    fn components_are_sorted_by_severity_and_name() {
        let mut components: Vec<_> =
            ["b", "a"].iter().flat_map(|name| SEVERITY.map(|state| status(name, state))).collect();
        components.reverse();
        sort_worst_first(&mut components);
        let found: Vec<_> = components.iter().map(|component| (component.state, &*component.name)).collect();
        let expected: Vec<_> = SEVERITY.iter().flat_map(|state| [(*state, "a"), (*state, "b")]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn progress_counts_ready_pods_with_the_wanted_image() {
        use State::{Failed, Installed, Installing, Pending, Removed, Removing};
        let lacking = |component| ComponentStatus { reason: Some(BlockReason::NotApplied), ..component };
        let counted = |state, desired, updated_ready| {
            // The object has other ready pods as well.
            let (updated, ready, updated_ready) = (desired, desired, Some(updated_ready));
            ComponentStatus { desired, updated, ready, updated_ready, ..status("a", state) }
        };
        for (counted, expected) in [
            (counted(Installed, 3, 3), "3/3"),
            (counted(Installed, 3, 2), "2/3"),
            (counted(Installed, 0, 0), "0/0"),
            (counted(Installing, 3, 1), "1/3"),
            // A scale down, and a surge.
            (counted(Installed, 3, 30), "3/3"),
            (counted(Installing, 3, 4), "3/3"),
            (counted(Failed, 3, 0), "0/3"),
            (counted(Failed, 3, 1), "1/3"),
            (lacking(counted(Failed, 3, 3)), "0/3"),
            (lacking(counted(Pending, 3, 3)), "0/3"),
            (counted(Removing, 3, 3), "0/0"),
            (counted(Removed, 3, 0), "0/0"),
            (counted(Installing, -1, -1), "0/0"),
            (ComponentStatus { updated_ready: None, ..counted(Installing, 3, 3) }, "0/3"),
        ] {
            assert_eq!(progress(std::slice::from_ref(&counted)), expected, "{counted:?}");
            let running = ComponentStatus { desired: 2, updated_ready: Some(2), ..status("b", Installed) };
            let (done, of) = expected.split_once('/').unwrap();
            let sum = |text: &str| text.parse::<i64>().unwrap() + 2;
            assert_eq!(progress(&[running, counted]), format!("{}/{}", sum(done), sum(of)));
        }
        assert_eq!(progress(&[]), "0/0");
    }

    #[test]
    fn a_summary_has_a_count_for_each_state() {
        let components =
            [status("a", State::Failed), status("b", State::Installed), status("c", State::Installed)];
        let expected = Summary { total: 3, failed: 1, installed: 2, ..Summary::default() };
        assert_eq!(summary(&components), expected);
    }
}
