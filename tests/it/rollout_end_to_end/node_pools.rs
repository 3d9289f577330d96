//! A node pool, whose OS image is a tag in a registry.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod as ClusterPod;
use kube::api::{Api, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use tagboat_api::{NodePool, crds};

use super::fleet::Fleet;
use crate::controller::pod::get;
use crate::deployment::read;
use crate::nodes::agent_access;
use crate::nodes::machine::Machine;
use crate::rest::answer::Answer;
use crate::rollout_controller::scene::ROLES;
use crate::support::api_server::{ApiServer, Audited, documents};
use crate::support::eventually::eventually;
use crate::support::program::{run, tagboat_without_cluster};
use crate::support::workloads::{WorkloadCluster, install_kinds};

const POOL: &str = r#"apiVersion: tagboat.dev/v1alpha1
kind: NodePool
metadata:
  name: workers
spec:
  nodeSelector:
    matchLabels: {tests/namespace: NAMESPACE}
  image:
    ref: IMAGE:1.0.0 # {"$imagepolicy": "NAMESPACE:podinfo"}
  # The pods of the agents have no DaemonSet here, and no kubelet ends pods.
  drain: {skip: {matchLabels: {app: tagboat-agent}}, gracePeriod: 0s}
"#;

/// The most patches of a node by the controller in a rollout.
///
/// The agent adds four at most.
const MOST_PATCHES: usize = 8;

impl Fleet {
    /// Waits until the machines and all views of the pool have a tag.
    ///
    /// Returns the status of the deployment.
    async fn runs(&self, machines: &[Machine], tag: &str, digest: &str) -> Value {
        let api: Api<tagboat_api::DeploymentStatus> = Api::default_namespaced(self.cluster().client());
        let has_tag = |status: &Value| {
            status["state"] == "installed" && status["target"]["tag"] == tag && status["progress"] == "3/3"
        };
        eventually("the deployment is installed", async || {
            has_tag(&json!(api.get_opt("podinfo").await.unwrap())["status"])
        })
        .await;
        for machine in machines {
            assert_eq!(machine.state().booted, digest, "{}", machine.name());
        }
        let command = |arguments: &[&str]| {
            let mut command = tagboat_without_cluster();
            command.args(["nodes", "workers", "--kubeconfig"]).arg(&self.kubeconfig).args(arguments);
            run(&mut command).with_status(0)
        };
        command(&["--wait", "2m"]);
        let address = &self.program().status;
        eventually("the views of the pool agree", async || {
            let pool: NodePool = Api::all(self.cluster().client()).get("workers").await.unwrap();
            let document = Answer::of(Method::GET, address, "/api/v1/nodepools/workers", &[]).await.json();
            let printed = command(&["-o", "json"]).json()["items"][0].clone();
            let status = json!(pool.status);
            let page = get(address, "nodes/workers").await;
            let shows = |text: &str| page.contains(text);
            let is_on_page = machines.iter().all(|machine| shows(machine.name())) && shows("3/3 updated");
            let is_updated = status["targetDigest"] == digest && status["updatedCount"] == 3;
            let is_document = document["updatedCount"] == 3
                && document["targetDigest"] == digest
                && document["nodes"].as_array().is_some_and(|nodes| nodes.len() == 3);
            is_updated && is_document && printed == document && is_on_page
        })
        .await;
        json!(api.get("podinfo").await.unwrap())["status"].clone()
    }
}

fn versions(entries: &Value, field: &str) -> Vec<String> {
    entries.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
}

/// The successful patches of a node by the controller and by the agent.
fn patches(fleet: &Fleet, node: &str) -> [usize; 2] {
    let is_patch = |request: &Audited| {
        request.verb == "patch" && request.resource == "nodes" && request.name == node && request.code == 200
    };
    ["tagboat", agent_access::ACCOUNT]
        .map(|account| fleet.cluster().audit(account).iter().filter(|request| is_patch(request)).count())
}

/// Verbs of the roles that the test does not need, with their reasons.
const OTHER_VERBS: [(&str, &str, &str); 4] = [
    ("get", "nodepools", "the controller reads a pool again after another client changed it"),
    ("get", "nodes", "the controller reads a node again after a patch whose answer was lost"),
    ("get", "leases", "leader election, which has tests of its own"),
    ("update", "leases", "leader election, which has tests of its own"),
];

/// The verbs of a role that no request of an account used, as `VERB RESOURCE`.
fn unused(file: &str, requests: &[Audited]) -> Vec<String> {
    let used: BTreeSet<_> =
        requests.iter().map(|request| (request.verb.as_str(), request.resource.as_str())).collect();
    let mut found = Vec::new();
    for role in documents(&read(file)) {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let texts =
                |field: &str| rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
            for resource in texts("resources") {
                let verbs = texts("verbs").filter(|verb| !used.contains(&(verb, resource)));
                found.extend(verbs.map(|verb| format!("{verb} {resource}")));
            }
        }
    }
    let has_reason =
        |verb: &String| OTHER_VERBS.iter().any(|(name, resource, _)| *verb == format!("{name} {resource}"));
    found.retain(|verb| !has_reason(verb));
    found
}

/// Creates a pod on the node of a machine, without a controller and a kubelet.
async fn create_pod(pods: &Api<ClusterPod>, machine: &Machine) {
    let pod = json!({
        "metadata": {"name": format!("work-{}", machine.name())},
        "spec": {"nodeName": machine.name(), "containers": [{"name": "main", "image": "work"}]},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

/// The nodes that the controller patched from a request on, each run once.
fn order(fleet: &Fleet, start: usize) -> Vec<String> {
    let requests = fleet.cluster().audit("tagboat").into_iter().skip(start);
    let patches = requests
        .filter(|request| request.verb == "patch" && request.resource == "nodes" && request.code == 200);
    let mut names: Vec<String> = patches.map(|request| request.name).collect();
    names.dedup();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_that_moves_in_the_registry_is_booted_on_one_machine_after_the_other_and_back() {
    let server = Arc::new(ApiServer::shared().start_beside("fleet-nodes"));
    install_kinds(&server);
    server.install(&[crds::nodes()]);
    let mut fleet = Fleet::on(WorkloadCluster::on(server).await, POOL).await;
    let first = fleet.publish_created("1.0.0", "2026-01-02T03:04:05Z");
    agent_access::install(fleet.cluster()).await;
    let image = fleet.image("1.0.0").trim_end_matches(":1.0.0").to_owned();
    let booted = format!("{image}@{first}");
    let machines = join_all(["a", "b", "c"].map(|name| Machine::new(fleet.cluster(), name, &booted))).await;
    for machine in &machines {
        let token = agent_access::token(fleet.cluster(), machine.name()).await;
        machine.start_agent(&fleet.cluster().kubeconfig(&token));
    }
    fleet
        .start_with_roles(&[&ROLES[..], &["nodes/cluster-role.yaml", "nodes/role.yaml"]].concat(), &[])
        .await;
    fleet.flux().reconcile().await;
    fleet.runs(&machines, "1.0.0", &first).await;
    let before: Vec<_> = machines.iter().map(|machine| patches(&fleet, machine.name())).collect();
    let start = fleet.cluster().audit("tagboat").len();
    let pods: Api<ClusterPod> = Api::default_namespaced(fleet.cluster().client());
    for machine in &machines {
        create_pod(&pods, machine).await;
    }

    let second = fleet.publish_created("2.0.0", "2026-02-02T03:04:05Z");
    assert_ne!(first, second);
    fleet.lands("2.0.0").await;
    fleet.flux().reconcile().await;
    let status = fleet.runs(&machines, "2.0.0", &second).await;
    // Machines that had their first image before they were observed are no record of it.
    let deployed = versions(&status["deployHistory"], "version");
    let all = ["2.0.0", "1.0.0"].map(str::to_owned);
    assert!(all.starts_with(&deployed) && !deployed.is_empty(), "{status:#}");
    assert!(machines.iter().all(|machine| machine.state().boots == 1));
    for machine in &machines {
        let name = format!("work-{}", machine.name());
        assert!(pods.get_opt(&name).await.unwrap().is_none(), "{name} was not evicted");
    }
    // All nodes get the wanted image first. Then each is taken through all stages, and no other meanwhile. The first one
    // is that which has staged the image first.
    let order = order(&fleet, start);
    let names: Vec<&str> = machines.iter().map(Machine::name).collect();
    let mut last = order[order.len() - 3..].to_vec();
    last.sort_unstable();
    assert!(order.len() <= 6 && last == names, "{order:?}");
    let counts: Vec<_> = machines.iter().map(|machine| patches(&fleet, machine.name())).collect();
    for (count, before) in counts.iter().zip(before) {
        let [by_controller, by_agent] = [0, 1].map(|writer| count[writer] - before[writer]);
        assert!(by_controller <= MOST_PATCHES && by_agent <= 4, "{by_controller} and {by_agent} patches");
    }
    // At rest, the agents read their hosts, and write nothing.
    let readings = machines[0].calls("cat").len();
    eventually("the host is read", async || machines[0].calls("cat").len() >= readings + 3).await;
    let at_rest: Vec<_> = machines.iter().map(|machine| patches(&fleet, machine.name())).collect();
    assert_eq!(at_rest, counts);

    // The content of the first tag comes back as a newer one.
    let third = fleet.publish_created("3.0.0", "2026-01-02T03:04:05Z");
    assert_eq!(first, third);
    fleet.lands("3.0.0").await;
    fleet.flux().reconcile().await;
    fleet.runs(&machines, "3.0.0", &first).await;
    let pool: NodePool = Api::all(fleet.cluster().client()).get("workers").await.unwrap();
    let history = json!(pool.status.unwrap().deploy_history);
    assert_eq!(versions(&history, "digest"), [first, second], "{history:#}");
    assert!(machines.iter().all(|machine| machine.state().boots == 2));

    machines.iter().for_each(Machine::kill_agent);
    let requests = fleet.cluster().audit(agent_access::ACCOUNT);
    let refused: Vec<_> = requests.iter().filter(|request| matches!(request.code, 401 | 403)).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(requests.iter().all(|request| request.resource == "nodes"), "{requests:#?}");
    assert_eq!(unused("nodes/agent-role.yaml", &requests), [""; 0]);
    // The deletion of the pool releases the nodes.
    Api::<NodePool>::all(fleet.cluster().client()).delete("workers", &Default::default()).await.unwrap();
    eventually("the pool is gone", async || {
        Api::<NodePool>::all(fleet.cluster().client()).get_opt("workers").await.unwrap().is_none()
    })
    .await;
    let requests = fleet.cluster().audit("tagboat");
    for file in ["nodes/cluster-role.yaml", "nodes/role.yaml"] {
        assert_eq!(unused(file, &requests), [""; 0], "{file}");
    }
    fleet.end();
}
