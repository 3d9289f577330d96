//! Logins at the git server by a provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;
use tagboat::cloud::ServiceAccounts;
use tagboat::objects::cluster::{ClusterObjects, Scope};
use tagboat::reconcile::repository::request::ObjectIdentity;

use super::scene::{Kind, Scene, condition};
use crate::support::git_host::{Access, Operation, Settings};
use crate::support::http_front::{Front, Reply};

const KEY: &str = include_str!("../../../testdata/clouds/google-key.pem");
const TOKEN: &str = "ghs_planted-hunter2";

/// GitHub's API, whose first token the git server does not accept.
fn github(tokens: &Arc<AtomicUsize>) -> Front {
    let tokens = Arc::clone(tokens);
    Front::alone(move |request| {
        if request.method == "GET" {
            return Reply::body(200, r#"{"id":678}"#);
        }
        let token = match tokens.fetch_add(1, Ordering::SeqCst) {
            0 => "ghs_stale-hunter2",
            _ => TOKEN,
        };
        let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
        Reply::body(201, format!(r#"{{"token":"{token}","expires_at":"{expires_at}"}}"#))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_is_replaced_once_and_then_serves_all_runs() {
    let (tokens, members) = (Arc::<AtomicUsize>::default(), ["a", "b"]);
    let front = github(&tokens);
    let settings = Settings { access: Access::basic("x-access-token", TOKEN), ..Settings::default() };
    let scene = Scene::with_host(settings, &members).await;
    let namespace = scene.cluster.namespace();
    let api = front.url("/");
    let app = [
        ("githubAppID", "12345"),
        ("githubAppPrivateKey", KEY),
        ("githubAppInstallationID", "678"),
        ("githubAppBaseURL", api.as_str()),
    ];
    scene.create_secret(namespace, "app", &app).await;
    scene.create_secret(namespace, "other", &[("username", "u"), ("password", "p")]).await;
    let spec = json!({"spec": {"provider": "github", "secretRef": {"name": "app"}}});
    scene.patch(Kind::Source, "fleet", &spec).await;
    let controller = scene.controller().start();
    for member in members {
        scene.ready(member).await;
    }
    assert_eq!(tokens.load(Ordering::SeqCst), 2);
    for member in members {
        scene.choose(member, "2.0.0").await;
        scene.lands(member, "2.0.0").await;
        scene.ready(member).await;
    }
    assert_eq!(tokens.load(Ordering::SeqCst), 2);
    assert!(!scene.host.requests_for(Operation::Push).is_empty());
    let mut all = scene.events("a").await.join("\n");
    for member in members {
        all += &scene.status(member).await.to_string();
    }
    let line = KEY.lines().nth(1).unwrap();
    assert!(["hunter2", line, "eyJ"].iter().all(|secret| !all.contains(secret)), "{all}");

    let spec = json!({"spec": {"secretRef": {"name": "other"}}});
    scene.patch(Kind::Source, "fleet", &spec).await;
    scene.request("a", "now").await;
    // The requested run begins without the condition of the run before.
    let is_stalled = |object: &DynamicObject| condition(&object.data["status"], "Stalled").is_some();
    let status = scene.until("a", "stalled", is_stalled).await;
    let stalled = condition(&status, "Stalled").expect("it was awaited");
    assert_eq!(
        stalled["message"],
        "secretRef with github app data must be specified when provider is set to github: invalid source configuration"
    );
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_account_needs_its_feature_gate() {
    let scene = Scene::with_host(Settings::default(), &["a"]).await;
    let spec = json!({"spec": {
        "url": "https://dev.azure.com/org/project/_git/fleet", "provider": "azure", "serviceAccountName": "robot",
    }});
    scene.patch(Kind::Source, "fleet", &spec).await;
    let controller = scene.controller().start();
    let status = scene.not_ready("a", "FeatureGateDisabled").await;
    let stalled = condition(&status, "Stalled").expect("only another object helps");
    assert_eq!(
        stalled["message"],
        "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity feature \
         gate in the controller"
    );
    controller.end().await;
}

/// The user and the password of the Secret are ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_account_is_beside_the_automation_and_the_secret_beside_the_repository() {
    let scene = Scene::new(&["a"]).await;
    let here = scene.cluster.namespace().to_owned();
    let elsewhere = scene.cluster.another_namespace().await;
    let (client, resource) = (scene.cluster.client(), Kind::Source.resource());
    let sources: Api<DynamicObject> = Api::namespaced_with(client.clone(), &elsewhere, &resource);
    let source = |account: Option<&str>, provider: &str| {
        let url = match provider {
            "aws" => "https://git-codecommit.us-east-1.amazonaws.com/v1/repos/fleet",
            _ => "https://dev.azure.com/org/project/_git/fleet",
        };
        json!({"spec": {
            "url": url, "interval": "1m", "provider": provider, "serviceAccountName": account,
            "secretRef": {"name": "login"},
        }})
    };
    let object = DynamicObject::new("shared", &resource).data(source(Some("robot"), "azure"));
    sources.create(&PostParams::default(), &object).await.unwrap();
    let automation = json!({
        "metadata": {"labels": {"scene": here}},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "shared", "namespace": elsewhere}},
    });
    scene.patch(Kind::Automation, "a", &automation).await;

    let mut builder = scene.controller();
    builder.options.controller.scope = Scope { namespace: None, labels: Some(format!("scene={here}")) };
    let accounts = Arc::new(ClusterObjects::new(client.clone()).accounts());
    let git = &mut builder.options.run.login.git;
    git.accounts = Some(ServiceAccounts { accounts, default: Some("tenant".to_owned()) });
    git.identity = ObjectIdentity::On;
    let controller = builder.start();
    let says = async |sentence: &str| {
        let is = |object: &DynamicObject| {
            let ready = condition(&object.data["status"], "Ready");
            ready.is_some_and(|ready| ready["message"].as_str().unwrap().contains(sentence))
        };
        scene.until("a", sentence, is).await
    };
    says(&format!("failed to get auth secret '{elsewhere}/login'")).await;
    let secrets: Api<Secret> = Api::namespaced(client, &elsewhere);
    let secret = json!({
        "metadata": {"name": "login"}, "stringData": {"username": "u", "password": "planted-hunter2"},
    });
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    for (number, provider) in ["azure", "aws"].into_iter().enumerate() {
        for (account, sentence) in [
            (Some("robot"), format!("cannot log in as the service account '{here}/robot'")),
            (
                None,
                format!(
                    "cannot log in as '{here}/tenant': the specified default service account does not exist in the object \
                     namespace"
                ),
            ),
        ] {
            let patch = kube::api::Patch::Merge(source(account, provider));
            sources.patch("shared", &kube::api::PatchParams::default(), &patch).await.unwrap();
            scene.request("a", &format!("{number}{account:?}")).await;
            let status = says(&sentence).await;
            assert!(!status.to_string().contains("hunter2"), "{status:#}");
        }
    }
    controller.end().await;
}
