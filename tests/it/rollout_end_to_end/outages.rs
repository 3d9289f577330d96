//! Clusters that go away and come back.

use std::fs;
use std::sync::Arc;

use serde_json::Value;

use super::fleet::{DEPLOYMENT, Fleet};
use super::step::{COMMITTED, INSTALLED, Step};
use crate::controller::pod::get;
use crate::rollout_controller::scene::ROLES;
use crate::support::api_server::{ApiServer, Cluster};
use crate::support::eventually::eventually;
use crate::support::workloads::{Controllers, WorkloadCluster, install_kinds};

/// Returns the names of the components.
fn names(status: &Value) -> Vec<&str> {
    let components = status["components"].as_array().unwrap().iter();
    components.map(|component| component["name"].as_str().unwrap()).collect()
}

/// Waits until the REST API and the metrics have a state of the cluster.
async fn is_counted(fleet: &Fleet, state: &str) {
    let gauge = format!("tagboat_cluster_up{{cluster=\"harbor\"}} {}", u8::from(state == "up"));
    let program = fleet.program();
    let is = async || {
        let clusters: Value = serde_json::from_str(&get(&program.status, "api/v1/clusters").await).unwrap();
        let mut clusters = clusters["items"].as_array().unwrap().iter();
        clusters.any(|cluster| cluster["name"] == "harbor" && cluster["state"] == state)
            && get(&program.metrics, "metrics").await.contains(&gauge)
    };
    eventually(&format!("the cluster is {state}"), is).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_goes_away_is_reported_alike_until_it_has_the_next_tag() {
    let mut fleet = Fleet::new(DEPLOYMENT).await;
    let server = Arc::new(ApiServer::shared().start_beside("harbor"));
    install_kinds(&server);
    let _controllers = Controllers::start(&server);
    let harbor = Cluster::named(server.clone(), fleet.namespace().to_owned()).await;
    let harbor = WorkloadCluster::of(harbor);
    let token = harbor.cluster().token_with_roles(&ROLES).await;
    let clusters = fleet.directory().join("clusters");
    fs::create_dir(&clusters).unwrap();
    fs::copy(harbor.cluster().kubeconfig(&token), clusters.join("harbor.kubeconfig")).unwrap();
    fleet.start(&[&format!("--clusters={}", clusters.display())]).await;
    let (own, remote) = (fleet.flux(), fleet.flux_of(harbor.cluster()));
    remote.install().await;
    own.reconcile().await;
    remote.reconcile().await;
    let both = Step { components: &["installed", "installed"], ..INSTALLED };
    let status = fleet.reports(&both).await;
    let name = format!("Deployment/{}/podinfo", fleet.namespace());
    let far = format!("harbor/{name}");
    assert_eq!(names(&status), [&*name, &*far], "{status:#}");

    // The rollout goes on in the own cluster.
    server.stop();
    fleet.publish("2.0.0");
    fleet.lands("2.0.0").await;
    own.reconcile().await;
    let lost = Step {
        state: "failed",
        components: &["pending", "installed"],
        cause: "HostUnavailable",
        message: "cluster harbor does not respond",
        current: "Applied failed",
        ..COMMITTED
    };
    let status = fleet.reports(&lost).await;
    assert_eq!(names(&status), [&*far, &*name], "{status:#}");
    assert_eq!(status["error"]["source"], "harbor", "{status:#}");
    is_counted(&fleet, "down").await;

    server.resume();
    let status = fleet.reports(&Step { components: lost.components, ..COMMITTED }).await;
    assert_eq!(names(&status), [&*far, &*name], "{status:#}");
    remote.reconcile().await;
    fleet.reports(&Step { tag: "2.0.0", in_git: COMMITTED.in_git, pushed: "main", ..both }).await;
    is_counted(&fleet, "up").await;
    // The outage has no event of its own. The first rollout may have ended before the program observed it.
    let outcomes = async || {
        let mut outcomes = fleet.announced().await;
        outcomes.retain(|outcome| outcome.ends_with(" 2.0.0"));
        outcomes
    };
    let is_announced = async || outcomes().await == ["RolloutSucceeded 2.0.0"];
    eventually("the next tag is announced once", is_announced).await;
    fleet.end();
}
