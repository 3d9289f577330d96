//! The pages as HTTP responses.

use std::time::{Duration, Instant};

use crate::rest::answer::client;
use crate::rest::server::Server;

use super::fleet::{self, deployment};

#[tokio::test]
async fn pages_have_a_policy_and_an_entity_tag() {
    let server = fleet::server().await;
    let client = client();
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/?state=failed&namespace=&page=1", "text/html; charset=utf-8"),
        ("/deployments/shop/failed", "text/html; charset=utf-8"),
        ("/assets/style.css", "text/css; charset=utf-8"),
        ("/assets/script.js", "text/javascript; charset=utf-8"),
    ] {
        let first = client.get(server.url(path)).send().await.unwrap();
        assert_eq!(first.status(), 200, "{path}");
        let headers = first.headers().clone();
        assert_eq!(headers["content-type"], content_type);
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-store");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        let again = client.get(server.url(path)).header("if-none-match", &headers["etag"]);
        assert_eq!(again.send().await.unwrap().status(), 304, "{path}");
    }
}

#[tokio::test]
async fn errors_are_pages() {
    let server = fleet::server().await;
    for (path, status, text) in [
        (
            "/deployments/shop/nothing",
            404,
            "there is no deployment &quot;nothing&quot; in the namespace &quot;shop&quot;",
        ),
        ("/?state=<b>", 400, "state &quot;&lt;b&gt;&quot; is invalid"),
        ("/?page=0", 400, "write a whole number of 1 or more"),
        ("/?x=1", 400, "there is no parameter &quot;x&quot;"),
        ("/deployments/shop/failed?x=1", 400, "there is no parameter &quot;x&quot;"),
        ("/deployments/%ff/b", 400, "the path is not UTF-8"),
        ("/deployments/shop", 404, "there is nothing at /deployments/shop"),
        ("/deployments/shop/failed/", 404, "there is nothing at /deployments/shop/failed/"),
        ("/healthz", 404, "there is nothing at /healthz"),
    ] {
        let answer = client().get(server.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        let page = answer.text().await.unwrap();
        assert!(page.contains(text), "{page}");
    }
}

#[tokio::test]
async fn the_page_of_an_invalid_filter_has_the_form_with_all_filters() {
    let server = fleet::server().await;
    for path in ["/?namespace=shop&selector=a+b&state=failed", "/?namespace=shop&state=failed&page=x"] {
        let answer = client().get(server.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{path}");
        let page = answer.text().await.unwrap();
        for wanted in ["name=\"namespace\" value=\"shop\"", "<option value=\"failed\" selected>"] {
            assert!(page.contains(wanted), "{wanted}: {page}");
        }
    }
}

#[tokio::test]
async fn titles_tell_deployments_of_one_name_apart() {
    let server = fleet::server().await;
    let page =
        client().get(server.url("/deployments/shop/failed")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<title>shop/failed – Tagboat</title>"), "{page}");
}

#[tokio::test]
async fn the_list_has_the_code_beside_the_message() {
    let server = fleet::server().await;
    let list = client().get(server.url("/?namespace=shop")).send().await.unwrap().text().await.unwrap();
    for row in [
        "Deployment/shop/failed: CrashLoopBackOff: exit code 1",
        "Deployment/shop/pending: NotApplied: Kustomization/shop/apps is suspended",
    ] {
        assert!(list.contains(&format!("<p>{row}</p>")), "{row}: {list}");
    }
}

#[tokio::test]
async fn a_long_list_has_several_pages() {
    let server = Server::start("").await;
    for number in 0..501 {
        server.put(&deployment("a", &format!("app-{number:03}"), 1, "installed"));
    }
    let get = async |path: &str| client().get(server.url(path)).send().await.unwrap().text().await.unwrap();
    let page = get("/?namespace=a").await;
    assert!(page.contains("501 in all") && page.contains("app-499<") && !page.contains("app-500<"), "{page}");
    assert!(page.contains(">Next page<") && !page.contains(">Previous page<"));
    let page = get("/?namespace=a&page=2").await;
    assert!(
        page.contains("app-500<") && !page.contains("app-499<") && page.contains("Previous page"),
        "{page}"
    );
    // A number behind the last page, as in a bookmark of a list that was longer.
    let last = get("/?namespace=a&page=99999").await;
    assert!(last.contains("app-500<") && last.contains("page&#x3D;1\">Previous page<"), "{last}");
    // The bound is 50 ms in a release build; here it only shows that nothing is slow out of proportion.
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        get("/").await;
        fastest = fastest.min(begin.elapsed());
    }
    println!("a page of 500 deployments takes {fastest:?}");
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
}
