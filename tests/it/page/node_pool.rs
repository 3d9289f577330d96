//! The page of a node pool.

use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use tagboat::web::store::Missing;
use tagboat_api::NodePool;

use super::browser::Browser;
use super::fleet::{self, HOSTILE};
use crate::node_pools::rest::{observe, put_node, put_pool, set_known, status};
use crate::rest::answer::client;
use crate::rest::server::Server;
use crate::rest::status::{object, status as component_status};

/// Starts a server with a pool of two nodes and two other pools.
async fn server() -> Server {
    let server = fleet::server().await;
    put_pool(&server, "workers", &status("b: the node is not ready"), 1);
    put_pool(&server, "new", &Value::Null, 2);
    let mut hostile = status(HOSTILE);
    hostile["deployHistory"][0]["version"] = json!(HOSTILE);
    put_pool(&server, "hostile", &hostile, 3);
    let booted = json!({"tagboat.dev/booted-version": "v2", "tagboat.dev/booted-digest": "sha256:2"});
    put_node(&server, "a", ("workers", "idle", &booted), 4);
    let draining =
        json!({"tagboat.dev/state-since": "2026-11-23T10:00:00Z", "tagboat.dev/message": "reason of b"});
    put_node(&server, "b", ("workers", "draining", &draining), 5);
    let keys = ["message", "booted-digest", "booted-version", "staged-digest"];
    let annotations: Value = keys.iter().map(|key| (format!("tagboat.dev/{key}"), json!(HOSTILE))).collect();
    put_node(&server, "c", ("hostile", "rebooting", &annotations), 6);
    set_known(&server);
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_has_the_nodes_by_stage_also_without_scripts() {
    let (server, browser) = (server().await, Browser::start().await);
    browser.disable_scripts().await;
    browser.open(&server.url("/nodes/workers")).await;
    let text = browser.text().await;
    let mut rest = text.as_str();
    for wanted in [
        "workers",
        "✕ degraded",
        "1/2 nodes",
        "1/2 updated; 1 draining",
        "NodeDegraded: b: the node is not ready",
        "r.example/os:1",
        "draining (1)",
        "update-staged",
        "since 2026-11-23 10:00:00 UTC",
        "reason of b",
        "idle (1)",
        "v2",
        "History",
        "last deployed 2026-11-23 10:00:00 UTC",
    ] {
        let found = rest.find(wanted);
        assert!(found.is_some(), "{wanted} is not in {text}");
        rest = &rest[found.unwrap_or_default() + wanted.len()..];
    }
    browser.open(&server.url("/nodes/new")).await;
    let text = browser.text().await;
    for wanted in [
        "○ unknown",
        "No nodes are in the pool.",
        "has not reported on the last change",
        "Nothing was deployed yet.",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pools_are_listed_and_linked_from_the_first_page() {
    let (server, browser) = (server().await, Browser::start().await);
    let page = client().get(server.url("/")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<a href=\"/nodes\">Node pools (3)</a>"), "{page}");
    browser.open(&server.url("/nodes")).await;
    assert_eq!(browser.evaluate("document.title").await, "Node pools – Tagboat");
    assert_eq!(browser.evaluate("document.scripts.length + document.images.length").await, 1);
    let links = "[...document.querySelectorAll('a.name')].map(link => link.getAttribute('href')).join(' ')";
    assert_eq!(browser.evaluate(links).await, "/nodes/hostile /nodes/new /nodes/workers");
    let text = browser.text().await;
    for wanted in
        ["✕ degraded", "1/2 nodes", "NodeDegraded: b: the node is not ready", "○ unknown", "0/0 nodes"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    browser.until("document.getElementById('live').innerText === 'Changes are shown as they occur.'").await;
    put_pool(&server, "workers", &status("another problem"), 8);
    browser.until("document.body.innerText.includes('another problem')").await;
    put_pool(&server, "fourth", &Value::Null, 9);
    browser.until("document.body.innerText.includes('fourth')").await;
    browser.disable_scripts().await;
    browser.open(&server.url("/nodes")).await;
    assert!(browser.text().await.contains("another problem"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_of_hosts_is_shown_as_text() {
    let (server, browser) = (server().await, Browser::start().await);
    browser.open(&server.url("/nodes/hostile")).await;
    assert_eq!(browser.evaluate("document.title").await, "hostile (node pool) – Tagboat");
    assert_eq!(browser.evaluate("document.scripts.length + document.images.length").await, 1);
    let text = browser.text().await;
    assert!(!text.contains(|c: char| c != '\n' && tagboat::printable::is_unprintable(c)), "{text:?}");
    let escaped = r"\u{1b}[2J\u{202e}</p><script>document.title='taken'</script>";
    assert!(text.matches(escaped).count() >= 6, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_the_pool_and_its_nodes_are_shown_without_a_reload() {
    let (server, browser) = (server().await, Browser::start().await);
    browser.open(&server.url("/nodes/workers")).await;
    browser.until("document.getElementById('live').innerText === 'Changes are shown as they occur.'").await;
    browser.evaluate("window.mark = 1").await;
    put_node(&server, "b", ("workers", "before-reboot", &json!({})), 7);
    browser.until("document.body.innerText.includes('before-reboot (1)')").await;
    put_pool(&server, "workers", &status("another problem"), 8);
    browser.until("document.querySelector('.error').innerText.includes('another problem')").await;
    assert_eq!(browser.evaluate("window.mark").await, 1, "it is no reload");
    assert_eq!(json!(browser.messages().await), json!([]));
    let pool = server.stores.nodes.get("workers").unwrap().unwrap().pool;
    observe::<NodePool>(&server, Event::Delete(NodePool::clone(&pool)));
    browser.until("document.body.innerText.includes('there is no node pool')").await;
}

#[tokio::test]
async fn a_component_that_is_a_pool_links_to_its_page() {
    let server = server().await;
    for pool in ["workers", "of-another-group"] {
        let name = format!("NodePool/{pool}");
        server.put(&object(
            "shop",
            pool,
            &json!({}),
            &component_status(pool, "installing", &[(&name, "installing")]),
        ));
        let page = client().get(server.url(&format!("/deployments/shop/{pool}"))).send().await.unwrap();
        let page = page.text().await.unwrap();
        let link = format!("<a href=\"/nodes/{pool}\">NodePool/{pool}</a>");
        assert_eq!(page.contains(&link), pool == "workers", "{page}");
        assert!(page.contains(&format!("NodePool/{pool}")), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_has_no_findings_in_any_mode_and_width() {
    let (server, browser) = (server().await, Browser::start().await);
    for name in ["", "/workers", "/new", "/hostile", "/missing"] {
        for mode in ["light", "dark"] {
            for width in [1280, 320] {
                browser.show(width, 900, mode).await;
                browser.open(&server.url(&format!("/nodes{name}"))).await;
                let findings = browser.accessibility_findings().await;
                assert!(findings.is_empty(), "{name} {mode} {width}: {findings:#?}");
                let overflow =
                    browser.evaluate("document.documentElement.scrollWidth - window.innerWidth").await;
                assert!(overflow.as_i64().unwrap() <= 0, "{name} is wider than {width}");
                browser.screenshot(&format!("nodes-{}-{mode}-{width}", name.trim_start_matches('/'))).await;
            }
        }
    }
}

#[tokio::test]
async fn the_page_has_a_policy_and_an_entity_tag_and_its_errors_are_pages() {
    let server = server().await;
    let get = async |path: &str| client().get(server.url(path)).send().await.unwrap();
    let first = get("/nodes/workers").await;
    assert_eq!(
        (first.status().as_u16(), &first.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let policy = first.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    let again = client().get(server.url("/nodes/workers")).header("if-none-match", &first.headers()["etag"]);
    assert_eq!(again.send().await.unwrap().status(), 304);
    let error = async |path: &str, status: u16, text: &str| {
        let answer = get(path).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (status, &"text/html; charset=utf-8".parse().unwrap())
        );
        let page = answer.text().await.unwrap();
        assert!(page.contains(text), "{page}");
    };
    error("/nodes/<b>", 404, "there is no node pool &quot;&lt;b&gt;&quot;").await;
    error("/nodes/%ff", 400, "the path is not UTF-8").await;
    error("/nodes/workers?x=1", 400, "there is no parameter &quot;x&quot;").await;
    error("/nodes?x=1", 400, "there is no parameter &quot;x&quot;").await;
    server.stores.nodes.set_missing(Missing::NotServed("NodePool".to_owned()));
    for path in ["/nodes", "/nodes/workers"] {
        error(path, 404, "the CustomResourceDefinition of NodePool is not installed").await;
    }
    assert!(!get("/").await.text().await.unwrap().contains("Node pools"));
    server.stores.nodes.set_missing(Missing::NotPermitted("the role does not permit it".to_owned()));
    error("/nodes/workers", 503, "the role does not permit it").await;
}
