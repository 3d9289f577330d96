//! Rollouts that wait for a person.

use serde_json::json;

use super::fleet::{DEPLOYMENT, Fleet};
use super::step::{COMMITTED, INSTALLED, Step, UNAPPLIED};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_kustomization_is_reported_alike_until_it_goes_on() {
    let mut fleet = Fleet::new(DEPLOYMENT).await;
    fleet.start(&[]).await;
    fleet.reports(&UNAPPLIED).await;
    fleet.flux().reconcile().await;
    fleet.reports(&INSTALLED).await;
    fleet.flux().suspend(true).await;
    fleet.publish("2.0.0");
    let message = format!("Kustomization/{}/apps is suspended", fleet.namespace());
    fleet.reports(&Step { message: &message, ..COMMITTED }).await;
    fleet.flux().reconcile().await;
    fleet.reports(&Step { message: &message, ..COMMITTED }).await;
    fleet.flux().suspend(false).await;
    fleet.reports(&COMMITTED).await;
    fleet.flux().reconcile().await;
    fleet.reports(&Step { tag: "2.0.0", in_git: COMMITTED.in_git, pushed: "main", ..INSTALLED }).await;
    fleet.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_branch_is_reported_alike_until_it_is_merged() {
    let mut fleet = Fleet::new(DEPLOYMENT).await;
    fleet.patch_automation(&json!({"spec": {"git": {"push": {"branch": "proposals"}}}})).await;
    fleet.start(&[]).await;
    fleet.reports(&UNAPPLIED).await;
    fleet.flux().reconcile().await;
    fleet.reports(&INSTALLED).await;
    fleet.publish("2.0.0");
    let proposed = Step {
        cause: "AwaitingMerge",
        message: "on branch proposals is not merged into branch main",
        in_git: &["1.0.0"],
        pushed: "proposals",
        current: "Committed blocked",
        ..COMMITTED
    };
    fleet.reports(&proposed).await;
    // Flux applies the branch without the proposal.
    fleet.flux().reconcile().await;
    fleet.reports(&proposed).await;

    fleet.merge("proposals");
    // As the receiver of a webhook requests it.
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "1"}}});
    fleet.patch_automation(&request).await;
    fleet.reports(&Step { pushed: "proposals", ..COMMITTED }).await;
    fleet.flux().reconcile().await;
    let installed = Step { tag: "2.0.0", in_git: COMMITTED.in_git, pushed: "proposals", ..INSTALLED };
    fleet.reports(&installed).await;
    fleet.end();
}
