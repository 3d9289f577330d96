//! The progress line of a scan on a terminal.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::scene::Scene;
use crate::support::http_front::{Front, Reply};
use crate::support::program::{run, tagboat};

/// A person sees the progress, and the line is removed at the end.
#[test]
fn a_line_of_progress_is_shown_on_a_terminal() {
    let scene = Scene::new();
    let front = Front::before(scene.registry.port(), |request| match request.path.as_str() {
        "/v2/app/web/tags/list" => Reply::Late(Duration::from_millis(800)),
        _ => Reply::Forward,
    });
    let image = format!("{}/app/web", front.address());
    scene.repository("web", json!({"spec": {"image": image}}));
    let quoted = |command: &Command| {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| format!("'{}'", word.to_str().unwrap())).collect::<Vec<_>>().join(" ")
    };
    // `script` runs a command on a terminal.
    let shown = |command: &Command| {
        let mut terminal = Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &quoted(command), "/dev/null"]);
        run(terminal.env("TMPDIR", scene.fleet.root().join("temporary")).stdin(Stdio::null()))
            .with_status(0)
            .output
    };
    let text = shown(&scene.command());
    assert!(text.contains("\r0 of 1 image repositories scanned\u{1b}[K"), "{text:?}");
    assert!(text.contains("\r\u{1b}[K{"), "the line is gone before the document comes: {text:?}");
    let mut scan = tagboat();
    let front = Front::before(scene.registry.port(), |request| match request.path.contains("/manifests/") {
        true => Reply::Late(Duration::from_millis(500)),
        false => Reply::Forward,
    });
    let text = shown(scan.args(["scan", &format!("{}/app/web", front.address())]));
    assert!(text.contains("\r1 of 1 images looked up\u{1b}[K\r\u{1b}[K"), "{text:?}");
}
