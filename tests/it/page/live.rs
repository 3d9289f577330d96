//! Parts of a page are replaced when a deployment changes.

use serde_json::json;
use tagboat::web::store::Observed;

use super::browser::Browser;
use super::fleet::{self, deployment};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_shown_without_a_reload() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    browser.open(&server.url("/deployments/shop/pending")).await;
    browser.until("document.getElementById('live').innerText === 'Changes are shown as they occur.'").await;
    // A reload would lose it.
    browser.evaluate("window.mark = 1").await;
    server.put(&deployment("shop", "pending", 2, "installing"));
    browser.until("document.querySelector('.now').innerText.includes('installing')").await;
    server.put(&deployment("shop", "pending", 3, "installed"));
    browser.until("document.querySelector('.now').innerText.includes('installed')").await;
    assert_eq!(browser.evaluate("window.mark").await, 1);
    browser.screenshot("live-installed").await;

    // A deployment that is deleted has no page any more.
    server.delete(&deployment("shop", "pending", 4, "installed"));
    browser.until("document.body.innerText.includes('there is no deployment')").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_keeps_focus_and_filters_while_it_changes() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    browser.open(&server.url("/")).await;
    browser.until("document.getElementById('live').innerText !== ''").await;
    browser.evaluate("document.querySelector('[name=namespace]').value = 'typed'").await;
    browser.evaluate("document.querySelector('a[href=\"/deployments/shop/installed\"]').focus()").await;
    server.put(&deployment("blog", "new", 5, "installing"));
    browser.until("document.querySelector('a[href=\"/deployments/blog/new\"]') !== null").await;
    assert_eq!(
        browser.evaluate("document.activeElement.getAttribute('href')").await,
        "/deployments/shop/installed"
    );
    assert_eq!(browser.evaluate("document.querySelector('[name=namespace]').value").await, "typed");
    server.delete(&deployment("blog", "new", 6, "installing"));
    browser.until("document.querySelector('a[href=\"/deployments/blog/new\"]') === null").await;
    // Neither the script nor the style nor the connection is refused by the policy of the page.
    let messages = browser.messages().await;
    assert_eq!(json!(messages), json!([]));
}

/// A browser opens at most six connections to a server.
/// Each stream of changes is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_tabs_than_a_browser_has_connections_are_loaded_and_updated() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    let url = server.url("/deployments/shop/pending");
    let is_live = "document.getElementById('live').innerText === 'Changes are shown as they occur.'";
    let mut tabs = Vec::new();
    for _ in 0..8 {
        tabs.push(browser.open_tab().await);
        browser.open(&url).await;
        browser.until(is_live).await;
    }
    server.put(&deployment("shop", "pending", 2, "installing"));
    browser.until("document.querySelector('.now').innerText.includes('installing')").await;
    // A hidden page is updated as soon as it is shown.
    assert_eq!(browser.evaluate("window.mark = 1").await, 1);
    browser.show_tab(&tabs[0]).await;
    browser.until("document.querySelector('.now').innerText.includes('installing')").await;
    server.put(&deployment("shop", "pending", 3, "installed"));
    browser.until("document.querySelector('.now').innerText.includes('installed')").await;
    browser.show_tab(tabs.last().unwrap()).await;
    browser.until("document.querySelector('.now').innerText.includes('installed')").await;
    assert_eq!(browser.evaluate("window.mark").await, 1, "it is no reload");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_page_survives_an_unavailable_server() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    browser.open(&server.url("/deployments/shop/pending")).await;
    browser.until("document.getElementById('live').innerText === 'Changes are shown as they occur.'").await;
    browser.evaluate("window.mark = 1").await;
    server.stores.deployments.set_unlisted("the role does not permit it");
    server.stores.deployments.changes().reset();
    browser
        .until("document.getElementById('live').innerText === 'The page cannot be updated at the moment.'")
        .await;
    assert!(browser.text().await.contains("Kustomization/shop/apps is suspended"));
    server.put(&deployment("shop", "pending", 2, "installed"));
    server.stores.deployments.set_known();
    browser.until("document.querySelector('.now').innerText.includes('installed')").await;
    browser.until("document.getElementById('live').innerText === 'Changes are shown as they occur.'").await;
    assert_eq!(browser.evaluate("window.mark").await, 1, "it is no reload");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_has_just_been_loaded_is_not_loaded_again() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    let loads = "JSON.stringify(performance.getEntriesByType('resource')\
                 .filter((entry) => entry.initiatorType === 'fetch').map((entry) => entry.responseStatus))";
    for path in ["/", "/deployments/shop/installed"] {
        browser.open(&server.url(path)).await;
        browser.until(&format!("{loads} !== '[]'")).await;
        assert_eq!(browser.evaluate(loads).await, "[304]", "{path}");
    }
}
