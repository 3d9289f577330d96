//! The scheduler and kubelet of one namespace: they bind pods, report states, and complete deletions.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::pod_state::{PodState, containers};

/// The running scheduler and kubelet; they end when dropped.
/// Pods are ready unless a test says otherwise.
pub(crate) struct Kubelet {
    orders: Arc<Orders>,
    task: JoinHandle<()>,
}

/// The states that the test wants.
#[derive(Default)]
struct Orders {
    of_images: Mutex<HashMap<String, PodState>>,
    of_pods: Mutex<HashMap<String, PodState>>,
    changed: Notify,
}

impl Kubelet {
    pub(super) fn start(client: Client, namespace: &str) -> Self {
        let orders = Arc::new(Orders::default());
        let node = Node {
            api: Api::namespaced(client, namespace),
            orders: Arc::clone(&orders),
            reported: HashMap::new(),
            deleted: HashSet::new(),
        };
        Self { orders, task: tokio::spawn(node.run()) }
    }

    /// Sets the state of all pods with a container of this image, now and later.
    pub(crate) fn set_image(&self, image: &str, state: PodState) {
        self.orders.of_images.lock().unwrap().insert(image.to_owned(), state);
        self.orders.changed.notify_one();
    }

    /// Sets the state of one pod, which takes precedence over that of its image.
    pub(crate) fn set_pod(&self, name: &str, state: PodState) {
        self.orders.of_pods.lock().unwrap().insert(name.to_owned(), state);
        self.orders.changed.notify_one();
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Orders {
    fn state(&self, pod: &Pod) -> PodState {
        let own = self.of_pods.lock().unwrap().get(&pod.name_any()).cloned();
        let images = self.of_images.lock().unwrap();
        let of_image = || containers(pod).find_map(|(_, image)| images.get(image).cloned());
        own.or_else(of_image).unwrap_or(PodState::Ready)
    }
}

/// The work of scheduler and kubelet.
struct Node {
    api: Api<Pod>,
    orders: Arc<Orders>,
    /// The last reported state of each pod, by uid.
    reported: HashMap<String, PodState>,
    /// The uids of the pods whose deletion is complete.
    deleted: HashSet<String>,
}

impl Node {
    async fn run(mut self) {
        let mut pods: HashMap<String, Pod> = HashMap::new();
        let mut events = pin!(watcher(self.api.clone(), watcher::Config::default()).default_backoff());
        let orders = Arc::clone(&self.orders);
        loop {
            tokio::select! {
                event = events.try_next() => match event {
                    Ok(Some(Event::Apply(pod) | Event::InitApply(pod))) => {
                        self.serve(&pod).await;
                        pods.insert(pod.name_any(), pod);
                    }
                    Ok(Some(Event::Delete(pod))) => drop(pods.remove(&pod.name_any())),
                    Ok(Some(Event::Init | Event::InitDone)) | Err(_) => {}
                    Ok(None) => return,
                },
                () = orders.changed.notified() => {
                    for pod in pods.values() {
                        self.serve(pod).await;
                    }
                }
            }
        }
    }

    /// Takes the next step for a pod.
    /// The change of the pod leads to the step after it.
    async fn serve(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        let spec = pod.spec.as_ref().expect("a pod has a spec");
        let state = self.orders.state(pod);
        let result = if pod.metadata.deletion_timestamp.is_some() {
            self.complete_deletion(pod, uid).await
        } else if spec.node_name.is_none() && !state.is_unscheduled() {
            self.bind(pod).await
        } else if self.reported.get(&uid) != Some(&state) && !has_ended(pod) {
            self.reported.insert(uid, state.clone());
            let status =
                json!({"status": state.status(pod, &Timestamp::now().strftime("%FT%TZ").to_string())});
            let patch = Patch::Merge(status);
            self.api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.map(drop)
        } else {
            Ok(())
        };
        match result {
            Ok(()) => {}
            // It was deleted meanwhile, or the same pod was bound twice because of an older version of it.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => eprintln!("the kubelet cannot serve pod {}: {error}", pod.name_any()),
        }
    }

    async fn complete_deletion(&mut self, pod: &Pod, uid: String) -> kube::Result<()> {
        if !self.deleted.insert(uid.clone()) {
            return Ok(());
        }
        let preconditions = Some(Preconditions { uid: Some(uid), ..Preconditions::default() });
        let parameters =
            DeleteParams { grace_period_seconds: Some(0), preconditions, ..DeleteParams::default() };
        self.api.delete(&pod.name_any(), &parameters).await.map(drop)
    }

    async fn bind(&self, pod: &Pod) -> kube::Result<()> {
        let name = pod.name_any();
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": node_of(pod)});
        let binding =
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
        self.api
            .create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding)
            .await
            .map(drop)
    }
}

/// The node that the DaemonSet controller wants, or any name.
fn node_of(pod: &Pod) -> String {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = required.into_iter().flat_map(|selector| &selector.node_selector_terms);
    let mut fields = terms.flat_map(|term| term.match_fields.iter().flatten());
    let name = fields.find_map(|field| field.values.as_ref()?.first().cloned());
    name.unwrap_or_else(|| "any".to_owned())
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
