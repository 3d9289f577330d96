//! The pages without scripts.

use super::browser::{Browser, ENTER};
use super::fleet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_are_complete_without_scripts() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    browser.disable_scripts().await;
    browser.open(&server.url("/")).await;
    let text = browser.text().await;
    for wanted in
        ["Deployments", "7 in all", "✕ 2 failed", "shop", "web", "installing", "removed", "1.2.0", "2/3 pods"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("Changes are shown"), "a script has run: {text}");
    browser.screenshot("without-scripts-list").await;

    // The form leads to a URL with the filter.
    browser.evaluate("document.querySelector('[name=namespace]').focus()").await;
    browser.press(&format!("web{ENTER}")).await;
    browser.until("location.search.includes('namespace=web')").await;
    let names = "[...document.querySelectorAll('.cards .name')].map((name) => name.innerText)";
    assert_eq!(browser.evaluate(names).await, serde_json::json!(["hostile"]));
    assert!(browser.text().await.contains("1 in all"));
    assert_eq!(browser.evaluate("document.querySelector('[name=namespace]').value").await, "web");

    browser.open(&server.url("/deployments/shop/pending")).await;
    let text = browser.text().await;
    for wanted in [
        "Chosen",
        "ghcr.io/org/app:1.2.0",
        "Committed",
        "aaaaaaa on main by fleet",
        "2026-11-23 10:00:00 UTC",
        "Applied",
        "! blocked",
        "The applier is at another revision, is suspended, or does not synchronize automatically.",
        "Kustomization/shop/apps is suspended",
        "Running",
        "Components",
        "Deployment/shop/pending",
        "apps/app.yaml:12",
        "History",
        "last deployed",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    browser.screenshot("without-scripts-deployment").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_of_a_cluster_is_shown_as_text() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    for path in ["/", "/deployments/web/hostile", "/?namespace=web&selector=team%3D%3Cscript%3E"] {
        browser.open(&server.url(path)).await;
        assert_ne!(browser.evaluate("document.title").await, "taken", "{path}");
        let scripts = browser.evaluate("document.scripts.length + document.images.length").await;
        assert_eq!(scripts, 1, "{path}");
        let text = browser.text().await;
        assert!(!text.contains(|c: char| c != '\n' && tagboat::printable::is_unprintable(c)), "{text:?}");
        assert!(!text.contains("password"), "{text}");
        if !path.contains('?') {
            assert!(text.contains(r"\u{1b}[2J\u{202e}</p><script>document.title='taken'</script>"), "{text}");
        }
    }
}
