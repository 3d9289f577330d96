//! The tables, the JSON, and changes as they come.

use serde_json::{Value, json};

use super::scene::Scene;
use crate::status::scene::Running;

const PROGRESS: (&str, &str) = ("RolloutInProgress", "1/2 updated; 1 draining");
const HEALTHY: (&str, &str) = ("Healthy", "no node has a problem");

/// A pool of two nodes, of which one is draining.
async fn scene() -> Scene {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    scene.add_node("a", "p", Some("idle")).await;
    scene.add_node("b", "p", Some("draining")).await;
    let digest = format!("sha256:{}", "1".repeat(64));
    scene.mark("a", &json!({"agent": "up-to-date"}), &json!({"booted-version": "v2"})).await;
    let annotations =
        json!({"booted-digest": digest, "state-since": "2020-01-01T00:00:00Z", "message": "a\u{1b}[2Jb"});
    scene.mark("b", &json!({"agent": "update-staged"}), &annotations).await;
    scene.report("p", PROGRESS, HEALTHY).await;
    scene
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_and_its_nodes_are_tables() {
    let scene = scene().await;
    scene.add_pool("new", "none").await;
    let ended = scene.all(&[]).with_status(0);
    assert!(ended.output.starts_with("NAME ") && !ended.output.contains("NODE "), "{}", ended.output);
    let expected = ["new - - - - -", "p 2 1 1 0 v2 1/2 updated; 1 draining"];
    assert_eq!(scene.own_lines(&ended.output), expected);
    let ended = scene.nodes("p", &[]).with_status(0);
    let mut lines: Vec<String> = ended.output.lines().map(|line| scene.short(line)).collect();
    // The age is that of a time long ago.
    let b = lines.pop().unwrap();
    assert!(
        b.starts_with("b draining ") && b.ends_with(r"y update-staged sha256:111111111111 a\u{1b}[2Jb"),
        "{b}"
    );
    let expected = [
        "NAME NODES UPDATED UPDATING DEGRADED VERSION MESSAGE",
        "p 2 1 1 0 v2 1/2 updated; 1 draining",
        "",
        "NODE STAGE SINCE AGENT BOOTED MESSAGE",
        "a idle - up-to-date v2",
    ];
    assert_eq!(lines, expected);
    let ended = scene.nodes("new", &[]).with_status(0);
    assert_eq!(scene.own_lines(&ended.output), ["new - - - - -"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_has_pools_with_their_nodes() {
    let scene = scene().await;
    let ended = scene.nodes("p", &["-o", "json"]).with_status(0);
    assert!(!ended.output.contains('\u{1b}'), "{}", ended.output);
    let document = ended.json();
    let pool = &document["items"][0];
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    for (pointer, expected) in [
        ("/name", json!(scene.full("p"))),
        ("/generation", json!(1)),
        ("/observedGeneration", json!(1)),
        ("/image", json!("r.example/os:1")),
        ("/paused", json!(false)),
        ("/targetDigest", json!(digest("2"))),
        ("/nodeCount", json!(2)),
        ("/updatedCount", json!(1)),
        ("/updatingCount", json!(1)),
        ("/degradedCount", json!(0)),
        ("/deployHistory/0/version", json!("v2")),
        ("/conditions/0/reason", json!("RolloutInProgress")),
        (
            "/nodes/0",
            json!({"name": scene.full("a"), "stage": "idle", "agent": "up-to-date", "bootedVersion": "v2"}),
        ),
        (
            "/nodes/1",
            json!({
                "name": scene.full("b"), "stage": "draining", "since": "2020-01-01T00:00:00Z",
                "agent": "update-staged", "bootedDigest": digest("1"), "message": r"a\u{1b}[2Jb",
            }),
        ),
        ("/nodes/2", Value::Null),
    ] {
        assert_eq!(pool.pointer(pointer).unwrap_or(&Value::Null), &expected, "{pointer}");
    }
    let all = scene.all(&["-o", "json"]).with_status(0).json();
    let all = all["items"].as_array().unwrap().clone();
    assert!(all.contains(pool), "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_shown_in_the_older_pool_and_after_the_controller_labeled_it() {
    let scene = Scene::new().await;
    scene.add_pool("z", "shared").await;
    // Pools of the same second are ordered by name.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    scene.add_pool("y", "shared").await;
    scene.add_node("a", "shared", Some("paused")).await;
    scene.add_node("b", "shared", None).await;
    let names = |pool: &str| -> Value {
        let document = scene.nodes(pool, &["-o", "json"]).with_status(0).json();
        document["items"][0]["nodes"].as_array().unwrap().iter().map(|node| node["name"].clone()).collect()
    };
    assert_eq!((names("z"), names("y")), (json!([scene.full("a")]), json!([])));
    scene.mark("b", &json!({"state": "idle"}), &json!({})).await;
    assert_eq!(names("z"), json!([scene.full("a"), scene.full("b")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_adds_a_row_until_the_command_is_interrupted() {
    let scene = scene().await;
    let mut running = Running::start(scene.command("p", &["--watch"]));
    let mut line = || scene.short(&running.line());
    for expected in ["NAME NODES", "p 2 1 1 0", "", "NODE STAGE", "a idle", "b draining"] {
        let found = line();
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{found}");
    }
    scene.mark("b", &json!({"state": "before-reboot"}), &json!({"message": null, "state-since": null})).await;
    assert_eq!(line(), "b before-reboot - update-staged sha256:111111111111");
    // A node of another pool, and a key that is not shown.
    scene.add_node("other", "q", Some("idle")).await;
    scene.mark("b", &json!({}), &json!({"attempted": "x y"})).await;
    scene.report("p", ("AllUpdated", "2/2 updated"), HEALTHY).await;
    for expected in ["", "NAME NODES UPDATED UPDATING DEGRADED VERSION MESSAGE", "p 2 1 1 0 v2 2/2 updated"] {
        assert_eq!(line(), expected);
    }
    scene.delete_pool("p").await;
    assert_eq!(line(), "p - - - - - gone");
    let mut nodes = [line(), line(), line(), line()];
    nodes[2..].sort();
    assert_eq!(nodes, ["", "NODE STAGE SINCE AGENT BOOTED MESSAGE", "a - - - - gone", "b - - - - gone"]);
    let ended = running.interrupt();
    assert_eq!((ended.status, ended.output.as_str(), ended.errors.as_str()), (None, "", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_is_a_document_on_one_line_after_each_change() {
    let scene = scene().await;
    let mut running = Running::start(scene.command("p", &["--watch", "-o", "json"]));
    let mut document = || -> Value { serde_json::from_str(&running.line()).unwrap() };
    assert_eq!(document()["items"][0]["nodes"][1]["stage"], "draining");
    scene.mark("b", &json!({"state": "before-reboot"}), &json!({})).await;
    assert_eq!(document()["items"][0]["nodes"][1]["stage"], "before-reboot");
    scene.delete_pool("p").await;
    assert_eq!(document()["items"], json!([]));
    running.interrupt();
}
