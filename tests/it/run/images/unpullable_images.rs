//! Winners that cannot be pulled yet.
//!
//! A run without a state checks the manifest of the winner first, because some registries list a tag before it can be
//! pulled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::json;

use super::scene::{MADE, Scene};
use crate::support::http_front::{Front, Reply};
use crate::support::remote_fleet::only_outcome;

/// Creates a scene with a registry that answers requests for manifests with a status.
/// The status 200 forwards them.
fn scene() -> (Scene, Front, Arc<AtomicU16>) {
    let (scene, status) = (Scene::new(), Arc::new(AtomicU16::new(200)));
    let shared = status.clone();
    let front = Front::before(scene.registry.port(), move |request| match shared.load(Ordering::SeqCst) {
        status if status != 200 && request.method == "HEAD" => Reply::status(status),
        _ => Reply::Forward,
    });
    scene.repository("web", json!({"spec": {"image": format!("{}/app/web", front.address())}}));
    (scene, front, status)
}

fn looks(front: &Front) -> usize {
    front.requests().iter().filter(|request| request.method == "HEAD").count()
}

#[test]
fn a_winner_that_cannot_be_pulled_yet_is_not_written() {
    let (scene, front, status) = scene();
    let image = format!("{}/app/web:1.0.0", front.address());
    status.store(404, Ordering::SeqCst);
    // A second run with a state knows no more than the first.
    for ended in [scene.run_without_state(&[]), scene.run(&[]), scene.run(&[])] {
        let ended = ended.with_status(1);
        let wanted = format!(
            "ImagePolicy default/web: {image} is listed but cannot be pulled yet, and no previous image is known, so \
             markers are left alone; try again later: "
        );
        assert!(ended.only_error().contains(&wanted), "{ended:?}");
        let outcome = only_outcome(&ended);
        assert_eq!(outcome["choices"][0].get("latest"), None, "{outcome}");
        assert_eq!(scene.value("app"), "app/web:0.9.0");
    }
    assert_eq!(looks(&front), 3);
    // Once it can be pulled it is written, and an image of the state is not checked again.
    status.store(200, Ordering::SeqCst);
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), image);
    assert_eq!((scene.outcome_name(&[]), looks(&front)), ("skipped".to_owned(), 4));
}

#[test]
fn any_other_answer_accepts_a_winner() {
    let (scene, front, status) = scene();
    status.store(403, Ordering::SeqCst);
    let ended = scene.run_without_state(&[]).with_status(0);
    assert_eq!(only_outcome(&ended)["outcome"], "pushed");
    assert_eq!(scene.value("app"), format!("{}/app/web:1.0.0", front.address()));
}

#[test]
fn policies_with_the_same_winner_share_a_lookup() {
    let scene = Scene::new();
    // While the first check is in flight, all other policies ask, and share the next one.
    let front = Front::before(scene.registry.port(), |request| match request.method.as_str() {
        "HEAD" => Reply::Late(Duration::from_secs(2)),
        _ => Reply::Forward,
    });
    scene.repository("web", json!({"spec": {"image": format!("{}/app/web", front.address())}}));
    for number in 0..5 {
        scene.policy(&format!("more-{number}"), json!({"spec": {"imageRepositoryRef": {"name": "web"}}}));
    }
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert!((1..=2).contains(&looks(&front)), "{}", looks(&front));
}

/// A lower winner that the user wants counts once it can be pulled.
/// An image that the registry does not have yet is delayed, and stays the user's intent.
#[test]
fn a_lower_winner_of_a_user_change_counts_once_it_can_be_pulled() {
    let (scene, front, status) = scene();
    scene.registry.push("app/web", "1.1.0", MADE);
    let image = |tag: &str| format!("{}/app/web:{tag}", front.address());
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), image("1.1.0"));
    let without = json!({"metadata": {"annotations": {"tagboat.dev/exclude": "[1.1.0]"}}});
    scene.policy("web", without);
    status.store(404, Ordering::SeqCst);
    for _ in 0..2 {
        scene.run(&[]).with_status(1);
        assert_eq!(scene.value("app"), image("1.1.0"));
    }
    status.store(200, Ordering::SeqCst);
    assert_eq!(scene.outcome_name(&[]), "pushed");
    assert_eq!(scene.value("app"), image("1.0.0"));
}
