//! Tests of a hostile tenant beside a victim, on the controller as shipped.
//! There is one file for each topic.
//!
//! ```text
//! let scene = Scene::start().await;                     // the controller, a victim that is Ready, an attacker
//! let attacker = &scene.attacker;                       // a namespace, a git host, JSON for objects
//! let registry = Front::alone(|_| Reply::Silence);      // a hostile server; see `support/http_front.rs`
//! let image = format!("{}/app", registry.address());
//! scene
//!     .assert_healthy_while(async {
//!         attacker.create(Kind::Repository, "silent", &json!({"image": image, "interval": "1m"})).await;
//!         scene.victim_is_reconciled().await;           // a new image is pushed: at most 5 s, and NOISE
//!     })
//!     .await;                                           // every answer of /healthz within 1 s
//! let sentence = attacker.ready_message(Kind::Repository, "silent").await;  // the message of Ready, once it has ended
//! scene.delete_and_wait(Kind::Automation, "evil").await;  // at most 3 s, and NOISE, for the finalizer
//! scene.assert_memory_below(512 << 20);                 // the peak of RssAnon, the children included
//! assert!(scene.threads() < 100);
//! ```
//!
//! A scene has a real API server, git hosts, and a registry. The program is a process on one CPU, with the flags of
//! `deploy/deployment.yaml` and `--allow-local-addresses`, because the servers are on loopback. It watches all namespaces,
//! so two scenes cannot share an API server: there are `SCENES_AT_ONCE` of these, each for one scene at a time, and a
//! scene removes the objects that the one before it left.
//!
//! All tests together may take four minutes on a machine with two CPUs, so one test may take about five
//! seconds. Hostile inputs are as small as the defect allows, and a test waits for a state, never for a time.
//! The time limits are in `measures.rs` and nowhere else; a test that needs a limit of its own compares counts.

mod beside_a_victim;
mod expressions;
mod floods;
mod git_remotes;
mod measures;
mod plans;
mod registries;
mod rollouts;
mod scene;
mod server_pool;
mod signing_keys;
mod slots;
mod tag_lists;
mod tenant;
mod victim;
