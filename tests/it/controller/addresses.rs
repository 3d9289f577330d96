//! Objects that would lead the controller to its own machine, or into its files.

use kube::api::PostParams;
use serde_json::json;
use tagboat::address::LocalAddresses;
use tagboat::controller::RetryDelays;

use super::scene::{Kind, Scene, condition};

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
    // The schema lets http, https and ssh through alone, so that nobody gets as far as our own refusal.
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
    let mut beginning = scene.controller();
    beginning.options.run.login.local_addresses = LocalAddresses::Refused;
    beginning.options.retry_delays = RetryDelays { shortest: LONG, longest: LONG };
    let controller = beginning.start();
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
    // The secret may be corrected, and nobody watches it.
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

/// Nobody is to try again while the test looks.
const LONG: std::time::Duration = std::time::Duration::from_secs(60);
