//! The role and the admission policy of the agent, on a real API server.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tagboat::nodes::keys;

use super::machine::{Machine, image};
use crate::deployment::read;
use crate::support::api_server::{Cluster, apply, documents};
use crate::support::eventually::eventually;

/// The service account of the agent.
pub(crate) const ACCOUNT: &str = "tagboat-agent";

/// Applies the role and the policy of the agent for the namespace of a cluster.
pub(crate) async fn install(cluster: &Cluster) {
    cluster.token(ACCOUNT).await;
    for file in ["nodes/agent-role.yaml", "nodes/admission.yaml"] {
        for mut object in documents(&read(file)) {
            // Cluster-scoped objects have a name of the test's own.
            let own = |name: &Value| json!(format!("{}-{}", name.as_str().unwrap(), cluster.namespace()));
            object["metadata"]["name"] = own(&object["metadata"]["name"]);
            for field in ["/roleRef/name", "/spec/policyName"] {
                if let Some(name) = object.pointer_mut(field) {
                    *name = own(name);
                }
            }
            if let Some(namespace) = object.pointer_mut("/subjects/0/namespace") {
                *namespace = json!(cluster.namespace());
            }
            apply(&cluster.client(), &object, false).await.unwrap();
        }
    }
    let client = cluster.client_with(&cluster.token(ACCOUNT).await).await;
    let nodes: Api<Node> = Api::all(client);
    eventually("the role is in force", async || nodes.list(&Default::default()).await.is_ok()).await;
}

/// Returns a token of an agent whose pod is on a node, as kubelets do.
pub(crate) async fn token(cluster: &Cluster, node: &str) -> String {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pod = json!({
        "metadata": {"generateName": "agent-", "labels": {"app": ACCOUNT}},
        "spec": {
            "serviceAccountName": ACCOUNT, "nodeName": node,
            "containers": [{"name": "agent", "image": "tagboat"}],
        },
    });
    let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    token_of(cluster, &pod).await
}

/// Returns a token of the agent in a pod.
pub(crate) async fn token_of(cluster: &Cluster, pod: &Pod) -> String {
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name_any()),
        uid: pod.uid(),
    };
    let spec = TokenRequestSpec { bound_object_ref: Some(bound), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client());
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await.unwrap();
    answer.status.expect("a token request is answered with a token").token
}

/// A node with a key of each kind, and the client of its agent.
struct Scene {
    cluster: Cluster,
    machine: Machine,
    agent: Client,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::new().await;
        install(&cluster).await;
        let machine = Machine::new(&cluster, "a", &image('1')).await;
        let annotations: serde_json::Map<String, Value> =
            keys::ANNOTATIONS.into_iter().map(|key| (key.to_owned(), json!("before"))).collect();
        let labels = json!({keys::STATE: "idle", keys::AGENT: "staging", keys::PAUSE: "false"});
        machine.patch(json!({"metadata": {"labels": labels, "annotations": annotations}})).await;
        let agent = cluster.client_with(&token(&cluster, machine.name()).await).await;
        let scene = Self { cluster, machine, agent };
        let state = json!({"metadata": {"labels": {keys::STATE: "rebooting"}}});
        // A dry run is subject to the policy, too.
        let is_in_force =
            async || scene.change(&scene.agent, scene.machine.name(), &state, true).await.is_err();
        eventually("the policy is in force", is_in_force).await;
        scene
    }

    /// Patches a node; the error has the code and the message of the answer.
    async fn change(
        &self,
        client: &Client,
        node: &str,
        patch: &Value,
        is_dry_run: bool,
    ) -> Result<Node, (u16, String)> {
        let parameters = PatchParams { dry_run: is_dry_run, ..PatchParams::default() };
        let nodes: Api<Node> = Api::all(client.clone());
        let answer = nodes.patch(node, &parameters, &Patch::Merge(patch)).await;
        answer.map_err(|error| match error {
            kube::Error::Api(status) => (status.code, status.message.clone()),
            error => panic!("{error}"),
        })
    }

    /// Asserts that the policy denies a patch of the own node with a message.
    async fn assert_denied(&self, patch: &Value, message: &str) {
        let (code, text) = self.change(&self.agent, self.machine.name(), patch, false).await.unwrap_err();
        assert_eq!(code, 422, "{patch}: {text}");
        assert!(text.ends_with(&format!("denied request: {message}")), "{patch}: {text}");
    }
}

#[tokio::test]
async fn the_agent_may_change_its_own_keys_of_its_own_node() {
    let scene = Scene::new().await;
    let own =
        [keys::BOOTED_DIGEST, keys::BOOTED_VERSION, keys::STAGED_DIGEST, keys::MESSAGE, keys::ATTEMPTED];
    for value in [json!("changed"), Value::Null, json!("added")] {
        for key in own {
            let patch = json!({"metadata": {"annotations": {key: value}}});
            let node = scene.change(&scene.agent, scene.machine.name(), &patch, false).await.unwrap();
            assert_eq!(node.annotations().get(key).map(String::as_str), value.as_str(), "{key}");
        }
        let patch = json!({"metadata": {"labels": {keys::AGENT: value}}});
        scene.change(&scene.agent, scene.machine.name(), &patch, false).await.unwrap();
    }
}

#[tokio::test]
async fn the_agent_may_change_nothing_else_of_its_node() {
    const LABELS: &str = "the agent may change only the label tagboat.dev/agent";
    const ANNOTATIONS: &str = "the agent may change only its own annotations";
    const METADATA: &str = "the agent may not change finalizers and owner references";
    const SPEC: &str = "the agent may not change the spec of a node";
    let scene = Scene::new().await;
    let before = scene.machine.node().await;
    for key in [keys::STATE, keys::PAUSE, "tests/namespace", "example.com/hook", "node-role.kubernetes.io/x"]
    {
        let is_present = before.labels.contains_key(key);
        for value in [json!("changed"), Value::Null] {
            if is_present || !value.is_null() {
                scene.assert_denied(&json!({"metadata": {"labels": {key: value}}}), LABELS).await;
            }
        }
    }
    let of_controller = [
        keys::DESIRED_IMAGE,
        keys::STATE_SINCE,
        keys::POOL,
        keys::MADE_UNSCHEDULABLE,
        keys::MADE_ANNOTATIONS,
        keys::LAST_DEPLOYED,
        keys::LAST_DEPLOYED_AT,
    ];
    for key in of_controller {
        for value in [json!("changed"), Value::Null] {
            scene.assert_denied(&json!({"metadata": {"annotations": {key: value}}}), ANNOTATIONS).await;
        }
    }
    for key in keys::AUTOSCALER_GUARDS.into_iter().chain(["example.com/hook"]) {
        scene.assert_denied(&json!({"metadata": {"annotations": {key: "true"}}}), ANNOTATIONS).await;
    }
    let taint = json!([{"key": "a", "effect": "NoExecute"}]);
    for (field, value) in [
        ("unschedulable", json!(true)),
        ("taints", taint),
        ("podCIDR", json!("10.0.0.0/24")),
        ("providerID", json!("x")),
    ] {
        scene.assert_denied(&json!({"spec": {field: value}}), SPEC).await;
    }
    scene.assert_denied(&json!({"metadata": {"finalizers": ["example.com/x"]}}), METADATA).await;
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "1"}]);
    scene.assert_denied(&json!({"metadata": {"ownerReferences": owner}}), METADATA).await;
    // A change that is denied in part is denied as a whole.
    let both = json!({"metadata": {"labels": {keys::AGENT: "error", keys::STATE: "idle-2"}}});
    scene.assert_denied(&both, LABELS).await;
    let after = scene.machine.node().await;
    assert_eq!((after.labels, after.annotations), (before.labels, before.annotations));
}

/// An overlay of kustomize renames the account, but changes no text of the policy.
#[tokio::test]
async fn an_agent_whose_account_has_a_prefix_or_a_suffix_may_change_nothing_else_either() {
    let scene = Scene::new().await;
    let (own, node) = (scene.cluster.namespace(), scene.machine.name());
    let patch = json!({"spec": {"unschedulable": true}});
    for (namespace, account, is_agent) in [
        (own, "acme-tagboat-agent", true),
        (own, "tagboat-agent-two", true),
        (own, "acme-tagboat-agent-two", true),
        (own, "other", false),
        ("tagboat-agent", "other", false),
    ] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{own}-{namespace}-{account}")},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": format!("{ACCOUNT}-{own}"),
            },
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        });
        apply(&scene.cluster.client(), &binding, false).await.unwrap();
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let client = scene.cluster.client_as(&user);
        let nodes: Api<Node> = Api::all(client.clone());
        eventually("the role is in force", async || nodes.get(node).await.is_ok()).await;
        let answer = scene.change(&client, node, &patch, true).await;
        assert_eq!(answer.err().map(|(code, _)| code), is_agent.then_some(422), "{user}");
    }
}

#[tokio::test]
async fn the_agent_may_change_no_other_node_and_no_other_kind() {
    const OTHER: &str = "the agent may change only the node on which it runs";
    let scene = Scene::new().await;
    let other = Machine::new(&scene.cluster, "b", &image('1')).await;
    let patch = json!({"metadata": {"labels": {keys::AGENT: "error"}}});
    // A token without a pod has no node.
    let unbound = scene.cluster.client_with(&scene.cluster.token(ACCOUNT).await).await;
    for (client, node) in
        [(&scene.agent, other.name()), (&unbound, other.name()), (&unbound, scene.machine.name())]
    {
        let (code, text) = scene.change(client, node, &patch, false).await.unwrap_err();
        assert_eq!(code, 422, "{text}");
        assert!(text.ends_with(OTHER), "{text}");
    }
    let nodes: Api<Node> = Api::all(scene.agent.clone());
    let name = scene.machine.name();
    let status = Patch::Merge(json!({"status": {"addresses": []}}));
    let refused = [
        nodes.patch_status(name, &PatchParams::default(), &status).await.map(drop),
        nodes.delete(name, &Default::default()).await.map(drop),
        Api::<Pod>::default_namespaced(scene.agent.clone()).list(&Default::default()).await.map(drop),
        Api::<ValidatingAdmissionPolicy>::all(scene.agent.clone()).list(&Default::default()).await.map(drop),
    ];
    for answer in refused {
        assert!(matches!(&answer, Err(kube::Error::Api(status)) if status.code == 403), "{answer:?}");
    }
    // Other users are not affected.
    scene
        .change(&scene.cluster.client(), name, &json!({"spec": {"unschedulable": true}}), false)
        .await
        .unwrap();
}
