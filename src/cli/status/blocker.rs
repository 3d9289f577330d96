//! The cause for which a deployment is not installed, as a sentence.

use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{ComponentStatus, State};

use super::image::AwaitedImage;
use crate::rollout::cause::{cause, component_cause};

/// Returns the cause for which a deployment is not installed.
///
/// It may not have reached the awaited image. `None` if it is installed.
pub(super) fn blocker(object: &DeploymentStatus, image: Option<&AwaitedImage>) -> Option<String> {
    let Some(status) = &object.status else { return Some("it has no status yet".to_owned()) };
    let report = &status.report;
    if let Some(image) = image.filter(|image| !image.is_reached(report)) {
        let target = match &report.target {
            None => format!("its policy has selected no image, and not {image}"),
            Some(target) if !image.is_of_repository(target) => {
                format!("its image is {target}, of another repository than {image}")
            }
            Some(target) if image.needs_digest(target) => format!(
                "its image {target} has no digest to compare with {image}: its policy needs digestReflectionPolicy"
            ),
            Some(target) => format!("its image is {target}, and not {image} or a later one"),
        };
        let cause = cause(report).filter(|_| report.state != State::Installed);
        return Some(cause.map_or_else(|| target.clone(), |cause| format!("{target}: {cause}")));
    }
    if report.state == State::Installed {
        return None;
    }
    let cause = cause(report);
    Some(match (report.components.first().filter(|_| report.error.is_none()), cause) {
        (Some(worst), cause) => {
            let ComponentStatus { name, state, ready, desired, .. } = worst;
            let state = predicate(*state);
            let detail = component_cause(worst).or(cause);
            detail.map_or_else(
                || format!("{name} {state}, {ready} of {desired} pods are ready"),
                |detail| format!("{name} {state}: {detail}"),
            )
        }
        (None, Some(cause)) => format!("it {}: {cause}", predicate(report.state)),
        (None, None) => format!("it {}", predicate(report.state)),
    })
}

/// Returns what a sentence says about a state.
fn predicate(state: State) -> String {
    match state {
        State::Failed => state.to_string(),
        _ => format!("is {state}"),
    }
}

#[cfg(test)]
mod tests {
    use tagboat_api::deployment_status::{BlockReason, Report, StatusError};

    use super::super::examples::{object, report};
    use super::*;

    fn error(code: &str, message: &str) -> Option<StatusError> {
        let source = "ImagePolicy/apps/podinfo".to_owned();
        Some(StatusError { code: code.to_owned(), source, message: message.to_owned() })
    }

    /// Returns the blocker and the cause of a report.
    fn texts(report: Report, image: Option<&str>) -> [Option<String>; 2] {
        let image = image.map(|image| AwaitedImage::parse(image).unwrap());
        let cause = cause(&report);
        [blocker(&object("podinfo", Some(report)), image.as_ref()), cause]
    }

    fn check(found: &[Option<String>; 2], expected: [Option<&str>; 2]) {
        assert_eq!(found.each_ref().map(Option::as_deref), expected);
    }

    #[test]
    fn an_installed_deployment_has_no_blocker() {
        check(&texts(report(), None), [None, None]);
        check(&texts(report(), Some("ghcr.io/org/app:1.2.0")), [None, None]);
        let new = object("podinfo", None);
        assert_eq!(blocker(&new, None).as_deref(), Some("it has no status yet"));
    }

    #[test]
    fn the_worst_component_blocks() {
        let mut report = report();
        report.state = State::Installing;
        report.components[0].state = State::Installing;
        let pods = "Deployment/apps/podinfo is installing, 2 of 2 pods are ready";
        check(&texts(report.clone(), None), [Some(pods), None]);
        report.components[0].message = Some("waits".to_owned());
        let waits = ["Deployment/apps/podinfo is installing: waits", "Deployment/apps/podinfo: waits"];
        check(&texts(report.clone(), None), waits.map(Some));
        report.components[0].reason = Some(BlockReason::NotApplied);
        let [found, _] = texts(report.clone(), None);
        assert_eq!(found.as_deref(), Some("Deployment/apps/podinfo is installing: NotApplied: waits"));
        report.components[0].error = error("ImagePullBackOff", "no such tag");
        report.components[0].state = State::Failed;
        let [found, message] = texts(report, None);
        let failed = "Deployment/apps/podinfo failed: ImagePullBackOff: no such tag";
        assert_eq!(found.as_deref(), Some(failed));
        assert_eq!(message.as_deref(), Some("Deployment/apps/podinfo: ImagePullBackOff: no such tag"));
    }

    #[test]
    fn an_error_before_the_rollout_blocks_first() {
        let mut report = report();
        report.state = State::Failed;
        report.components[0].state = State::Pending;
        report.error = error("GitPushRejected", "denied");
        check(
            &texts(report.clone(), None),
            [Some("it failed: GitPushRejected: denied"), Some("GitPushRejected: denied")],
        );
        report.error = None;
        report.components.clear();
        report.state = State::Pending;
        check(&texts(report.clone(), None), [Some("it is pending"), None]);
        report.reason = Some(BlockReason::NotChosen);
        check(&texts(report, None), [Some("it is pending: NotChosen"), Some("NotChosen")]);
    }

    #[test]
    fn another_image_blocks_with_the_cause_of_its_state() {
        let newer = Some("ghcr.io/org/app:1.3.0");
        let target = "its image is ghcr.io/org/app:1.2.0, and not ghcr.io/org/app:1.3.0 or a later one";
        let [found, _] = texts(report(), newer);
        assert_eq!(found.as_deref(), Some(target));
        let [found, _] = texts(report(), Some("ghcr.io/org/other:1.2.0"));
        let other = "its image is ghcr.io/org/app:1.2.0, of another repository than ghcr.io/org/other:1.2.0";
        assert_eq!(found.as_deref(), Some(other));
        let mut report = report();
        report.state = State::Failed;
        report.error = error("PolicyNotReady", "the scan failed");
        let [found, _] = texts(report.clone(), newer);
        assert_eq!(found, Some(format!("{target}: PolicyNotReady: the scan failed")));
        report.target = None;
        let [found, _] = texts(report, newer);
        let none = "its policy has selected no image, and not ghcr.io/org/app:1.3.0: PolicyNotReady: the scan failed";
        assert_eq!(found.as_deref(), Some(none));
    }
}
