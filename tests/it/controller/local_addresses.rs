//! SSRF: objects that would lead the controller to its own machine, or into its files.

use kube::api::PostParams;
use serde_json::{Value, json};
use tagboat::backoff::Backoff;
use tagboat::net::LocalAddresses;

use super::pod::Pod;
use super::scene::{Kind, Scene, condition};
use crate::support::eventually::eventually;
use crate::support::http_front::{Front, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_cannot_lead_to_this_machine_or_its_link() {
    let scene = Scene::new(&[]).await;
    let url = scene.host.url("fleet.git");
    let port = url.rsplit_once(':').unwrap().1;
    let local = [
        url.clone(),
        format!("http://localhost:{port}"),
        format!("http://LocalHost.:{port}"),
        format!("http://git.localhost:{port}"),
        format!("http://127.1:{port}"),
        format!("http://0x7f000001:{port}"),
        format!("http://2130706433:{port}"),
        format!("http://0.0.0.0:{port}"),
        format!("http://[::1]:{port}"),
        format!("http://[::ffff:127.0.0.1]:{port}"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "ssh://git@localhost/fleet.git".to_owned(),
        "ssh://git@[fe80::1]/fleet.git".to_owned(),
        "ssh://git@127.1:2222/fleet.git".to_owned(),
    ];
    for (number, url) in local.iter().enumerate() {
        scene.create_with_source(&format!("local-{number}"), &json!({"url": url})).await;
    }
    let files = [format!("file://{}", scene.root().join("served/fleet.git").display()), "/etc".to_owned()];
    // The schema allows http, https and ssh only, so such an object does not get as far as our own check.
    for url in &files {
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": "files"},
            "spec": {"url": url, "interval": "1m"},
        });
        let object = serde_json::from_value(object).unwrap();
        let refused = scene.api(Kind::Source).create(&PostParams::default(), &object).await;
        assert!(refused.unwrap_err().to_string().contains("spec.url"), "{url}");
    }
    scene.create_secret(scene.cluster.namespace(), "proxy", &[("address", &url)]).await;
    let behind = json!({"url": "http://192.0.2.1/fleet.git", "proxySecretRef": {"name": "proxy"}});
    scene.create_with_source("proxied", &behind).await;
    scene.create_with_source("unknown", &json!({"url": "http://nowhere.invalid/fleet.git"})).await;
    let mut builder = scene.controller();
    builder.options.run.login.local_addresses = LocalAddresses::Refused;
    builder.options.controller.backoff = Backoff { first: LONG, longest: LONG };
    let controller = builder.start();
    for (number, url) in local.iter().enumerate() {
        let status = scene.not_ready(&format!("local-{number}"), "AccessDenied").await;
        let stalled = condition(&status, "Stalled").unwrap_or_else(|| panic!("{url}: {status:#}"));
        let message = stalled["message"].as_str().unwrap();
        let begin = format!(
            "the URL of GitRepository {}/local-{number} cannot be used: the host '",
            scene.cluster.namespace()
        );
        assert!(message.starts_with(&begin) && message.ends_with("--allow-local-addresses"), "{message}");
    }
    // The Secret may be corrected, and Secrets are not watched.
    let status = scene.not_ready("proxied", "SourceManagerFailed").await;
    let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("/proxy' cannot be used: the host '127.0.0.1' is"), "{message}");
    assert_eq!(condition(&status, "Stalled"), None);
    let status = scene.not_ready("unknown", "GitOperationFailed").await;
    let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("cannot find the address of the host 'nowhere.invalid': "), "{message}");
    controller.end().await;
    assert!(scene.host.requests().is_empty());
}

/// Images cannot lead to this machine or its network link.
/// Registries of another network are behind the proxy of the controller's environment, which may be local.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_cannot_lead_to_this_machine_or_its_link() {
    let scene = Scene::new(&[]).await;
    let inner = Front::alone(|_| Reply::body(200, r#"{"tags": ["1.0.0"], "token": "x"}"#));
    let (redirect, realm) = (inner.url("/elsewhere"), inner.url("/token"));
    let proxy = Front::alone(move |request| match request.path.as_str() {
        "http://10.0.0.1:5000/v2/" => Reply::status(200),
        "http://10.0.0.1:5000/v2/redirect/tags/list" => Reply::redirect(&redirect),
        "http://10.0.0.1:5000/v2/fine/tags/list" => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        path if path.starts_with("http://10.0.0.2:5000/v2/") => {
            Reply::status(401).with("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))
        }
        _ => Reply::status(404),
    });
    let port = inner.address().rsplit_once(':').unwrap().1.to_owned();
    let image = |image: &str| json!({"image": image, "interval": "10m", "insecure": true});
    let local = ["127.0.0.1", "localhost", "127.1", "a.localhost"];
    for (number, host) in local.iter().enumerate() {
        let name = format!("local-{number}");
        scene.create(Kind::Repository, &name, &image(&format!("{host}:{port}/app"))).await;
    }
    scene.create(Kind::Repository, "redirect", &image("10.0.0.1:5000/redirect")).await;
    scene.create(Kind::Repository, "fine", &image("10.0.0.1:5000/fine")).await;
    scene.create(Kind::Repository, "realm", &image("10.0.0.2:5000/realm")).await;
    scene.create_secret(scene.cluster.namespace(), "proxy", &[("address", &inner.url(""))]).await;
    let mut behind = image("10.0.0.1:5000/fine");
    behind["proxySecretRef"] = json!({"name": "proxy"});
    scene.create(Kind::Repository, "proxied", &behind).await;
    let token = scene.cluster.token_with_the_roles().await;
    let address = proxy.url("");
    let environment = [("HTTP_PROXY", address.as_str()), ("NO_PROXY", "127.0.0.1")];
    let arguments = [
        "controller",
        "--watch-all-namespaces=false",
        "--controllers=reflector",
        "--allow-local-addresses=false",
    ];
    let pod = Pod::start_in(&scene, &scene.cluster.kubeconfig(&token), &environment, &arguments);
    let ready = async |name: &str, reason: &str| {
        let status = async || scene.api(Kind::Repository).get(name).await.unwrap().data["status"].clone();
        let is = |status: &Value| condition(status, "Ready").is_some_and(|ready| ready["reason"] == reason);
        eventually(&format!("{name} has the reason {reason}"), async || is(&status().await)).await;
        let status = status().await;
        (condition(&status, "Ready").unwrap()["message"].as_str().unwrap().to_owned(), status)
    };
    for (number, host) in local.iter().enumerate() {
        let (message, status) = ready(&format!("local-{number}"), "AccessDenied").await;
        assert!(message.starts_with("the registry of spec.image cannot be used: the host '"), "{message}");
        assert!(message.ends_with("--allow-local-addresses"), "{host}: {message}");
        assert!(condition(&status, "Stalled").is_some(), "{status:#}");
    }
    ready("fine", "Succeeded").await;
    let (message, _) = ready("redirect", "ReadOperationFailed").await;
    assert!(message.contains("the host '127.0.0.1' is the controller's own machine"), "{message}");
    let (message, _) = ready("realm", "ReadOperationFailed").await;
    assert!(message.contains("the host '127.0.0.1' is the controller's own machine"), "{message}");
    let (message, _) = ready("proxied", "AuthenticationFailed").await;
    assert!(message.contains("the proxy cannot be used: the host '127.0.0.1' is"), "{message}");
    drop(pod);
    assert!(inner.requests().is_empty());
}

/// Interval that keeps the controller from retrying during the test.
const LONG: std::time::Duration = std::time::Duration::from_secs(60);
