//! Long lists of tags, many at once, with policies that select from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::json;

use super::measures::TIMEOUT;
use super::scene::Scene;
use super::tenant::Tenant;
use crate::controller::scene::Kind;
use crate::support::http_front::{Front, Reply};

/// The repositories of one namespace.
const REPOSITORIES: usize = 3;

/// The tags of one repository, of 120 bytes each.
const TAGS: usize = 20_000;

/// Lists whose policies wait for a silent registry are not held in memory.
///
/// Formerly, each policy held its list, and all tags once more, while it waited for its registry.
/// `registry/ages.rs` counts the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_whose_policies_wait_for_a_silent_registry_are_not_held_in_memory() {
    let scene = Scene::start().await;
    let tags: Vec<String> = (0..TAGS).map(|number| format!("{number:0>120}")).collect();
    let list: Arc<[u8]> = serde_json::json!({ "tags": tags }).to_string().into_bytes().into();
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let registry = Front::alone(move |request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        path if path.ends_with("/tags/list") => Reply::body(200, &*list),
        _ => {
            counted.fetch_add(1, Ordering::Relaxed);
            Reply::Silence
        }
    });
    let second = Tenant::new(
        scene.cluster.client(),
        scene.cluster.another_namespace().await,
        scene.temporary().join("second"),
    );
    let tenants = [&scene.attacker, &second];
    for tenant in tenants {
        for number in 0..REPOSITORIES {
            let (name, image) = (format!("evil{number}"), format!("{}/evil{number}", registry.address()));
            let spec =
                json!({"image": image, "interval": "1h", "timeout": "10m", "exclusionList": ["^0*7$"]});
            tenant.create(Kind::Repository, &name, &spec).await;
            let age = json!({"tagboat.dev/minimum-age": "1d"});
            let spec = json!({"imageRepositoryRef": {"name": name}, "policy": {"alphabetical": {}}});
            tenant.create_with(Kind::Policy, &name, &age, &spec).await;
        }
    }
    let all = tenants.len() * REPOSITORIES;
    let begin = Instant::now();
    while looks.load(Ordering::Relaxed) < all {
        assert!(begin.elapsed() < TIMEOUT, "{} of {all} policies ask", looks.load(Ordering::Relaxed));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for tenant in tenants {
        let status = tenant.status(Kind::Repository, "evil0").await;
        assert_eq!(status["lastScanResult"]["tagCount"], TAGS - 1);
    }
    scene.assert_memory_below(512 << 20);
    scene.victim_is_reconciled().await;
}
