//! Accessibility of both pages, in both modes and two widths.

use serde_json::json;

use super::browser::{Browser, ENTER, TAB};
use super::fleet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_has_no_findings_in_any_mode_and_width() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    for (name, path) in [
        ("list", "/"),
        ("list-filtered", "/?namespace=shop&state=failed"),
        ("list-empty", "/?namespace=nowhere"),
        ("list-invalid", "/?selector=a+b&state=failed"),
        ("pending", "/deployments/shop/pending"),
        ("failed", "/deployments/shop/failed"),
        ("installed", "/deployments/shop/installed"),
        ("hostile", "/deployments/web/hostile"),
        ("missing", "/deployments/shop/nothing"),
    ] {
        for mode in ["light", "dark"] {
            for width in [1280, 320] {
                browser.show(width, 900, mode).await;
                browser.open(&server.url(path)).await;
                let findings = browser.accessibility_findings().await;
                assert!(findings.is_empty(), "{path} {mode} {width}: {findings:#?}");
                let overflow = "document.documentElement.scrollWidth - window.innerWidth";
                assert!(
                    browser.evaluate(overflow).await.as_i64().unwrap() <= 0,
                    "{path} is wider than {width}"
                );
                browser.screenshot(&format!("{name}-{mode}-{width}")).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_have_other_colors_and_every_state_has_a_word_and_a_symbol() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    let color = "getComputedStyle(document.body).backgroundColor";
    let mut colors = Vec::new();
    for mode in ["light", "dark"] {
        browser.show(1280, 900, mode).await;
        browser.open(&server.url("/")).await;
        colors.push(browser.evaluate(color).await);
    }
    assert_ne!(colors[0], colors[1]);
    let states =
        browser.evaluate("[...document.querySelectorAll('.cards .state')].map((e) => e.innerText)").await;
    let mut states: Vec<&str> =
        states.as_array().unwrap().iter().map(|state| state.as_str().unwrap()).collect();
    states.sort_unstable();
    states.dedup();
    let mut expected = ["✕ failed", "↻ installing", "✓ installed", "○ pending", "↓ removing", "– removed"];
    expected.sort_unstable();
    assert_eq!(states, expected);
    browser.open(&server.url("/deployments/shop/pending")).await;
    let steps = browser.evaluate("[...document.querySelectorAll('.steps li')].map((e) => e.innerText)").await;
    for (step, (name, progress)) in steps.as_array().unwrap().iter().zip([
        ("Chosen", "✓ done"),
        ("Committed", "✓ done"),
        ("Applied", "! blocked"),
        ("Running", "○ waiting"),
    ]) {
        let text = step.as_str().unwrap();
        assert!(text.starts_with(name) && text.contains(progress), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_reached_with_the_keyboard() {
    let (server, browser) = (fleet::server().await, Browser::start().await);
    browser.open(&server.url("/")).await;
    let focused = "document.activeElement.getAttribute('href') ?? document.activeElement.name ?? document.activeElement.tagName";
    let mut reached = Vec::new();
    for _ in 0..30 {
        browser.press(TAB).await;
        let element = browser.evaluate(focused).await;
        let outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle").await;
        assert_eq!(outline, "solid", "the focus on {element} is not visible");
        reached.push(element);
        if reached.last() == Some(&json!("/deployments/web/hostile")) {
            break;
        }
    }
    for wanted in
        ["#main", "/", "namespace", "selector", "automation", "cluster", "state", "/deployments/shop/failed"]
    {
        assert!(reached.contains(&json!(wanted)), "{wanted}: {reached:?}");
    }
    assert_eq!(reached[0], "#main");
    browser.press(ENTER).await;
    browser.until("location.pathname === '/deployments/web/hostile'").await;
}
