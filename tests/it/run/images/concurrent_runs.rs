//! Two concurrent runs on one state, with scans.

use std::fs::{self, File};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::scene::{MADE, Scene};
use crate::support::http_front::{Front, Reply};

/// Timeout of any step; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(60);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < TIMEOUT, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_earlier_run_never_reverts_the_selection_of_a_later_one() {
    let scene = Scene::new();
    let is_answered = Arc::new(AtomicBool::new(false));
    let may_go_on = Arc::clone(&is_answered);
    // The answer for the digest of the first run's image is delayed, so the first run has made its selection and
    // waits.
    let front = Front::before(scene.registry.port(), move |request| {
        if request.path.ends_with("/manifests/1.0.0") {
            until("the first run may go on", || may_go_on.load(Ordering::SeqCst));
        }
        Reply::Forward
    });
    let image = format!("{}/app/web", front.address());
    scene.repository("web", json!({"spec": {"image": image, "timeout": "1m"}}));
    scene.policy("web", json!({"spec": {"digestReflectionPolicy": "IfNotPresent"}}));
    let start = |name: &str| {
        let errors = File::create(scene.fleet.root().join(name)).unwrap();
        scene.command().stdout(Stdio::null()).stderr(errors).spawn().unwrap()
    };
    let errors = |name: &str| fs::read_to_string(scene.fleet.root().join(name)).unwrap();

    let mut first = start("first");
    until("the first run asks for a digest", || {
        front.requests().iter().any(|request| request.path.ends_with("/manifests/1.0.0"))
    });
    scene.registry.push("app/web", "1.1.0", MADE);
    let mut second = start("second");
    // The second run waits, or it has pushed the newer image before the first run goes on.
    until("the second run waits or has ended", || {
        errors("second").ends_with('\n') || second.try_wait().unwrap().is_some()
    });
    is_answered.store(true, Ordering::SeqCst);
    assert!(first.wait().unwrap().success(), "{}", errors("first"));
    assert!(second.wait().unwrap().success(), "{}", errors("second"));

    assert_eq!(errors("first"), "");
    let place = scene.fleet.state();
    let waited = format!("waiting for another run that uses the state in {}, up to 1m0s\n", place.display());
    assert_eq!(errors("second"), waited);
    let text = String::from_utf8(scene.fleet.repository.file("main", "app.yaml")).unwrap();
    assert!(text.contains(&format!("{image}:1.1.0@sha256:")), "{text}");
    assert_eq!(scene.commits().len(), 2, "one commit to 1.0.0, one to 1.1.0");
    assert_eq!(scene.state_of("ImagePolicy", "web")["status"]["latestRef"]["tag"], "1.1.0");
}
