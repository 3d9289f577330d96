//! Caches follow the API server, page by page, and also back to a restored backup.

use std::sync::Arc;

use serde_json::json;

use super::scene::{Kind, Scene};
use crate::support::api_server::{ApiServer, Call, Faults};
use crate::support::eventually::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_a_restored_api_server_replace_the_cache() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap();
    let server = Arc::new(server);
    let scene = Scene::on(Arc::clone(&server), &["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    let during_an_outage = async |work: fn(&ApiServer)| {
        let server = Arc::clone(&server);
        tokio::task::spawn_blocking(move || work(&server)).await.unwrap();
    };
    during_an_outage(ApiServer::back_up).await;
    // Many resource versions are used that the backup does not have.
    for number in 0..50 {
        scene
            .patch(Kind::Policy, "app", &json!({"metadata": {"labels": {"number": number.to_string()}}}))
            .await;
    }
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    during_an_outage(ApiServer::restore).await;
    // The next resource versions are lower than the cached ones.
    scene.choose("app", "3.0.0").await;
    scene.lands("app", "3.0.0").await;
    scene.ready("app").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_read_in_pages_of_fifty() {
    let scene = Scene::new(&["app"]).await;
    // The last of three pages has the policy that the automation follows.
    for number in 0..104 {
        scene.create_policy(&format!("a{number:03}"), "1.0.0").await;
    }
    let faults = Faults::default();
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
    let calls = faults.calls();
    let lists: Vec<&Call> = calls.iter().filter(|call| call.verb == "list").collect();
    for list in &lists {
        assert!(list.target.contains("limit=50&") || list.target.ends_with("limit=50"), "{list:?}");
        // The server would ignore the limit.
        assert!(!list.target.contains("resourceVersion="), "{list:?}");
    }
    let pages = lists.iter().filter(|call| call.resource == "imagepolicies");
    assert_eq!(pages.count(), 3, "{lists:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_after_an_outage_lack_the_objects_that_were_deleted_meanwhile() {
    let server = Arc::new(tokio::task::spawn_blocking(ApiServer::start).await.unwrap());
    let scene = Scene::on(Arc::clone(&server), &["app"]).await;
    let faults = Faults::default();
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    scene.ready("app").await;
    faults.forget_calls();
    let outage = Arc::clone(&server);
    let outage = tokio::task::spawn_blocking(move || {
        outage.stop();
        outage.resume();
    });
    outage.await.unwrap();
    let is_listed = |plural: &str| faults.calls().iter().any(|call| call.is("list", plural));
    for plural in ["imageupdateautomations", "imagepolicies", "gitrepositories"] {
        eventually("it is listed again", async || is_listed(plural)).await;
    }
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}
