//! Tests of secret leaks.
//! With servers that fail in many ways, nothing that the controller logs, serves or stores contains a secret.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use memchr::memmem;
use serde_json::{Value, json};

use super::delivery::Delivery;
use super::notifications::Receiver;
use super::pod::{Pod, get};
use super::scene::{Kind, Scene, condition, line};
use super::shutdown::left_behind;
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::{Access, Fault, GitHost, Operation, Settings};
use crate::support::gitea::GiteaRepository;
use crate::support::http_front::{Front, Reply};
use crate::support::ssh_host::SshHost;
use crate::support::ssh_key::SshKey;

/// Texts that occur only in Secrets and in the user part of URLs.
const PLANTED: [&str; 20] = [
    "planted-wrong-user",
    "planted-wrong-password",
    "planted-right-user",
    "planted-right-password",
    "planted-echoed-password",
    "planted-bearer-token",
    "planted-url-user",
    "planted-url-password",
    "planted-short-user",
    "planted-short-password",
    "planted-ftp-user",
    "planted-ftp-password",
    "planted-query-token",
    "planted-location-user",
    "planted-location-password",
    "planted-proxy-user",
    "planted-proxy-password",
    "planted-ssh-passphrase",
    "planted-signing-passphrase",
    // The secret of the receiver of notifications.
    "hunter2",
];

/// Everything that is served, logged, written and sent, with its source.
struct Output {
    place: String,
    bytes: Vec<u8>,
}

/// Every form of a secret from which it could be recovered.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let encoded = |before: &str| {
        let text = STANDARD_NO_PAD.encode(format!("{before}{secret}"));
        // The first and last characters of base64 depend on the neighbouring bytes.
        let begin = before.len().div_ceil(3) * 4;
        text.as_bytes()[begin..text.len() - 4].to_vec()
    };
    vec![secret.as_bytes().to_vec(), encoded(""), encoded("x"), encoded("xx")]
}

fn assert_hidden(secrets: &[String], outputs: &[Output]) {
    for secret in secrets {
        for form in forms(secret) {
            for Output { place, bytes } in outputs {
                if let Some(at) = memmem::find(bytes, &form) {
                    let around = &bytes[at.saturating_sub(200)..(at + 200).min(bytes.len())];
                    panic!("{secret:?} shows in {place}: {}", String::from_utf8_lossy(around));
                }
            }
        }
    }
}

fn files_below(directory: &Path, outputs: &mut Vec<Output>) {
    for item in fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            files_below(&path, outputs);
        } else {
            outputs.push(Output { place: path.display().to_string(), bytes: fs::read(&path).unwrap() });
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_any_output_of_the_controller() {
    let scene = Scene::new(&[]).await;
    let own = scene.cluster.namespace().to_owned();
    let served = scene.root().join("served");
    scene.repository.commit("main", "App", &[file("fleet.yaml", line(&own, "right", "1.0.0"))]);
    let start = |access| GitHost::start(&served, Settings { access, tls: None });
    let basic = start(Access::basic("planted-right-user", "planted-right-password"));
    let echo = start(Access::basic("git", "planted-echoed-password"));
    let bearer = start(Access::bearer("planted-bearer-token"));
    bearer.always(Operation::ListForFetch, Fault::Status(500));
    let location = "http://planted-location-user:planted-location-password@127.0.0.1:1/x.git";
    let redirecting = start(Access::Anonymous);
    let to = format!("{location}/info/refs?service=git-upload-pack");
    redirecting.always(Operation::ListForFetch, Fault::Redirect { status: 301, to });
    let ssh = SshHost::start();
    let directory = tempfile::tempdir().unwrap();
    let signer = SshKey::generate(directory.path(), "signer", "ed25519", "planted-signing-passphrase");
    let url = |host: &GitHost| host.url("fleet.git");
    let with_user_info = |url: &str| url.replacen("://", "://planted-url-user:planted-url-password@", 1);

    // Secrets, by their names.
    let (key, locked, known) = (ssh.key().private(), ssh.locked_key().private(), ssh.known_hosts());
    let strange =
        "[127.0.0.1]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7yLr3cVwQpTzUMzfvzXVb8XQvDqGm4YqTQfYkqGm4Y";
    let secrets: [(&str, &[(&str, &str)]); 12] = [
        ("wrong", &[("username", "planted-wrong-user"), ("password", "planted-wrong-password")]),
        ("right", &[("username", "planted-right-user"), ("password", "planted-right-password")]),
        ("echo", &[("username", "git"), ("password", "planted-echoed-password")]),
        ("bearer", &[("bearerToken", "planted-bearer-token")]),
        ("bad-bearer", &[("bearerToken", "planted-bearer-token\nplanted-bearer-token")]),
        ("half", &[("password", "planted-wrong-password")]),
        ("tls", &[("tls.crt", "planted-wrong-password"), ("tls.key", "planted-wrong-password")]),
        ("ssh", &[("identity", &key), ("known_hosts", strange)]),
        ("locked", &[("identity", &locked), ("known_hosts", &known), ("password", "planted-ssh-passphrase")]),
        (
            "proxy",
            &[
                ("address", "http://planted-url-user:planted-url-password@127.0.0.1:1"),
                ("username", "planted-proxy-user"),
                ("password", "planted-proxy-password"),
            ],
        ),
        ("bad-proxy", &[("address", "ftp://planted-proxy-user:planted-proxy-password@127.0.0.1")]),
        ("signer", &[("identity", &signer.private()), ("password", "planted-ssh-passphrase")]),
    ];
    for (name, data) in secrets {
        scene.create_secret(&own, name, data).await;
    }

    // Automations, each with a source of its own, the reason of its end, and the text of its message.
    let (plain, echoing, path) = (url(&scene.host), url(&echo), scene.repository.path().to_owned());
    let cases = [
        ("wrong", json!({"url": url(&basic), "secretRef": {"name": "wrong"}}), "GitOperationFailed"),
        ("bearer", json!({"url": url(&bearer), "secretRef": {"name": "bearer"}}), "GitOperationFailed"),
        (
            "bad-bearer",
            json!({"url": url(&bearer), "secretRef": {"name": "bad-bearer"}}),
            "SourceManagerFailed",
        ),
        ("half", json!({"url": plain, "secretRef": {"name": "half"}}), "SourceManagerFailed"),
        ("tls", json!({"url": plain, "secretRef": {"name": "tls"}}), "SourceManagerFailed"),
        ("user-info", json!({"url": with_user_info(&url(&basic))}), "GitOperationFailed"),
        ("nobody", json!({"url": with_user_info("http://127.0.0.1:1/x.git")}), "GitOperationFailed"),
        (
            "unknown-host",
            json!({"url": with_user_info("http://nowhere.invalid/x.git")}),
            "GitOperationFailed",
        ),
        ("no-url", json!({"url": with_user_info("http://127.0.0.1:none/x.git")}), "SourceManagerFailed"),
        (
            "query",
            json!({"url": format!("{plain}?private_token=planted-query-token")}),
            "SourceManagerFailed",
        ),
        ("redirect", json!({"url": with_user_info(&url(&redirecting))}), "GitOperationFailed"),
        (
            "ssh-user",
            json!({"url": format!("ssh://git:planted-url-password@127.0.0.1:1{}", path.display()), "secretRef": {"name": "ssh"}}),
            "GitOperationFailed",
        ),
        ("ssh", json!({"url": ssh.url(&path), "secretRef": {"name": "ssh"}}), "GitOperationFailed"),
        ("locked", json!({"url": ssh.url(&path), "secretRef": {"name": "locked"}}), "GitOperationFailed"),
        (
            "proxy",
            json!({"url": "http://192.0.2.1/x.git", "proxySecretRef": {"name": "proxy"}}),
            "GitOperationFailed",
        ),
        ("bad-proxy", json!({"url": plain, "proxySecretRef": {"name": "bad-proxy"}}), "SourceManagerFailed"),
        ("echo", json!({"url": echoing, "secretRef": {"name": "echo"}}), "GitOperationFailed"),
        ("signer", json!({"url": plain}), "SourceManagerFailed"),
    ];
    for (name, source, _) in &cases {
        scene.create_with_source(name, source).await;
    }
    let follow = |member: &str| json!({"spec": {"policySelector": {"matchLabels": {"app": member}}}});
    // A server that prints the password upon a push.
    scene.repository.hook(
        "pre-receive",
        "test \"$REMOTE_USER\" = planted-right-user && exit 0\necho 'no entry for planted-echoed-password, git:planted-echoed-password' >&2\nexit 1",
    );
    scene.patch(Kind::Automation, "echo", &follow("right")).await;
    let key = json!({"spec": {"git": {"commit": {"signingKey": {"type": "ssh", "secretRef": {"name": "signer"}}}}}});
    scene.patch(Kind::Automation, "signer", &key).await;

    let receiver = Receiver::start(&[500, 503]).await;
    let events = format!("--events-addr={}", receiver.address);
    let arguments = ["--watch-all-namespaces=false", "--log-level=trace", "--min-retry-delay=200ms", &events];
    scene.create_policy("right", "2.0.0").await;
    let mut pod = Pod::start(&scene, &arguments).await;
    let mut outputs = Vec::new();
    for (name, _, reason) in &cases {
        let status = scene.not_ready(name, reason).await;
        let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap().to_owned();
        println!("{name}: {message}");
    }
    // One succeeds, and logs in with a Secret, too.
    let source = json!({"url": url(&basic), "secretRef": {"name": "right"}});
    scene.create_with_source("right", &source).await;
    scene.lands("right", "2.0.0").await;
    scene.ready("right").await;
    let is_posted = async || receiver.taken.lock().unwrap().len() > cases.len();
    eventually("all are posted", is_posted).await;
    let metrics = get(&pod.metrics, "metrics").await;
    assert!(metrics.contains("tagboat_runs_total{outcome=\"failed\"}"), "{metrics}");
    assert_eq!(pod.terminate().0, Some(0), "{:#?}", pod.lines());
    let lines = pod.lines();
    assert!(lines.iter().any(|line| line["level"] == "debug"), "the log is as long as it gets");

    for name in cases.iter().map(|(name, ..)| *name).chain(["right"]) {
        let object = serde_json::to_vec(&scene.get(name).await.unwrap()).unwrap();
        outputs.push(Output { place: format!("the automation {name}"), bytes: object });
    }
    let api: Api<Event> = Api::namespaced(scene.cluster.client(), &own);
    let recorded = api.list(&ListParams::default()).await.unwrap().items;
    assert!(recorded.len() > cases.len());
    outputs.push(Output { place: "events".to_owned(), bytes: serde_json::to_vec(&recorded).unwrap() });
    let posts: Vec<Value> = receiver.taken.lock().unwrap().clone();
    outputs.push(Output { place: "posts".to_owned(), bytes: serde_json::to_vec(&posts).unwrap() });
    outputs.push(Output { place: "metrics".to_owned(), bytes: metrics.into_bytes() });
    for line in lines {
        outputs.push(Output { place: "the log".to_owned(), bytes: line.to_string().into_bytes() });
    }
    assert_eq!(left_behind(&scene), ["mirrors"]);
    files_below(&scene.root().join("temporary"), &mut outputs);
    for commit in scene.repository.log("main") {
        outputs.push(Output { place: "a commit".to_owned(), bytes: format!("{commit:?}").into_bytes() });
    }
    let mut secrets: Vec<String> = PLANTED.map(str::to_owned).into();
    // Each line of the keys, and the controller's own credentials of the cluster.
    for text in [&ssh.key().private(), &locked, &signer.private()] {
        let lines = text.lines().filter(|line| !line.starts_with("-----") && line.len() > 40);
        // The first line of every key is the same.
        secrets.extend(lines.skip(1).map(str::to_owned));
    }
    // The beginning of every service account's token.
    secrets.push("eyJhbGciOiJSUzI1NiIs".to_owned());
    assert_hidden(&secrets, &outputs);
}

/// The API sends back the login of each call, until the forge has another login.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_token_of_a_forge_is_in_any_output_of_the_controller() {
    let own = Delivery::new("leaks").await;
    let scene = &own.scene;
    let namespace = scene.cluster.namespace().to_owned();
    let echoed = "planted-echoed-forge-token";
    let front = Front::before(own.forge.port(), move |request| {
        let login = request.authorization().unwrap_or_default().to_owned();
        let is_wrong = login.contains(echoed);
        if is_wrong && request.path.starts_with("/api/") {
            let text = json!({"message": format!("no user for {login} or {echoed}"), "url": login});
            let found = Reply::body(422, text.to_string()).with("Content-Type", "application/json");
            return found.with("Location", &format!("http://bot:{echoed}@127.0.0.1/"));
        }
        Reply::Forward
    });
    own.reach_by(&front.address()).await;
    scene.create_secret(&namespace, "forge", &[("token", echoed)]).await;
    let secret = |name: Value| json!({"metadata": {"annotations": {"tagboat.dev/forge-secret": name}}});
    scene.patch(Kind::Source, "fleet", &secret(json!("forge"))).await;
    scene.choose("app", "2.0.0").await;
    let receiver = Receiver::start(&[]).await;
    let events = format!("--events-addr={}", receiver.address);
    let arguments = ["--watch-all-namespaces=false", "--log-level=trace", "--min-retry-delay=200ms", &events];
    let mut pod = Pod::start(scene, &arguments).await;
    let mut outputs = Vec::new();
    let mut note = |place: &str, value: &Value| {
        outputs.push(Output { place: place.to_owned(), bytes: serde_json::to_vec(value).unwrap() });
    };
    note("the status after a failure", &own.until("False ForgeUnavailable").await);
    scene.patch(Kind::Source, "fleet", &secret(Value::Null)).await;
    note("the status", &own.until("True Current 1 open: #1").await);
    eventually("the event", async || !own.events().await.is_empty()).await;
    note("events", &json!(scene.events("app").await));
    note("pull requests", &json!(own.pulls().await));
    note("posts", &json!(receiver.taken.lock().unwrap().clone()));
    note("metrics", &json!(get(&pod.metrics, "metrics").await));
    assert_eq!(pod.terminate().0, Some(0), "{:#?}", pod.lines());
    let lines = pod.lines();
    assert!(lines.iter().any(|line| line["level"] == "debug"), "the log is as long as it gets");
    note("the log", &json!(lines));
    files_below(&scene.root().join("temporary"), &mut outputs);
    let secrets = [echoed, GiteaRepository::token(), "eyJhbGciOiJSUzI1NiIs"].map(str::to_owned);
    assert_hidden(&secrets, &outputs);
}
