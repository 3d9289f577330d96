//! Deployments for the tests of this command.

use jiff::Timestamp;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{
    ComponentStatus, DeploymentStatusSpec, DeploymentStatusStatus, Report, State, Target,
};
use tagboat_api::reference::LocalObjectReference;

/// Returns the report of an installed deployment with one component.
pub(super) fn report() -> Report {
    let since = "2026-01-31T12:00:00Z".parse::<Timestamp>().unwrap().into();
    let component = ComponentStatus {
        desired: 2,
        updated: 2,
        ready: 2,
        updated_ready: Some(2),
        ..ComponentStatus::new("Deployment/apps/podinfo", State::Installed, since)
    };
    Report {
        state: State::Installed,
        reason: None,
        message: None,
        since: component.since.clone(),
        failed_since: None,
        error: None,
        target: Some(Target { name: "ghcr.io/org/app".to_owned(), tag: "1.2.0".to_owned(), digest: None }),
        commit: None,
        revision: None,
        summary: [component.state].into_iter().collect(),
        progress: "2/2".to_owned(),
        components: vec![component],
        omitted: 0,
        deploy_history: Vec::new(),
        conditions: Vec::new(),
    }
}

/// Returns the object of a deployment in the namespace `apps`.
pub(super) fn object(name: &str, report: Option<Report>) -> DeploymentStatus {
    let policy_ref = LocalObjectReference { name: name.to_owned() };
    let mut object = DeploymentStatus::new(name, DeploymentStatusSpec { policy_ref });
    object.metadata.namespace = Some("apps".to_owned());
    object.status = report.map(|report| DeploymentStatusStatus {
        deployment_id: "1".to_owned(),
        time_stamp: report.since.clone(),
        report,
    });
    object
}
