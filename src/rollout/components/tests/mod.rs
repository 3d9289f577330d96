//! Tables of the rules of components.

mod absent;
mod clusters;
mod matching;
mod pods;
mod reasons;
mod removal;
mod restart;
mod states;
mod tenants;

use super::testing::Scene;

/// The image before.
const OLD: &str = "ghcr.io/org/app:1";

/// The image that the policy has selected.
const NEW: &str = "ghcr.io/org/app:2";

/// The line of the component of [`deployment`] in a state.
fn of_app(state: &str) -> String {
    format!("Deployment/apps/app {state}")
}

/// One policy with a place in a Deployment.
const APP: &str = r#"
policies: {app: "ghcr.io/org/app:2"}
automations:
  - name: fleet
    places:
      - {policy: app, at: "apps/app.yaml:7", document: "apps/v1 Deployment apps/app", field: reference, former: "ghcr.io/org/app:1"}
"#;

/// Returns a scene with the policy of [`APP`] and objects.
fn scene(objects: &[String]) -> Scene {
    let mut scene = Scene::new(APP);
    insert(&mut scene, objects);
    scene
}

/// Returns a scene whose place is in a document of a kind.
fn scene_of(api_version: &str, kind: &str) -> Scene {
    Scene::new(&APP.replace("apps/v1 Deployment", &format!("{api_version} {kind}")))
}

/// Adds or replaces objects in Tagboat's own cluster.
fn insert(scene: &mut Scene, objects: &[String]) {
    scene.insert(&documents(objects));
}

fn documents(objects: &[String]) -> String {
    objects.join("\n---\n")
}

/// Returns a Deployment `apps/app` with a complete rollout.
fn deployment(image: &str) -> String {
    named_deployment("apps/app", image, "")
}

/// Returns a Deployment with a complete rollout, and with further fields of metadata.
fn named_deployment(name: &str, image: &str, metadata: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}, generation: 1, {metadata}}}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  selector: {{matchLabels: {{app: {name}}}}}
  template: {{spec: {{containers: [{{name: app, image: "{image}"}}]}}}}
status:
  {{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2,
    conditions: [{{type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-11-02T10:04:11Z"}}]}}
"#
    )
}

/// Returns an object of a kind with a pod template.
fn workload(api_version: &str, kind: &str, spec: &str, status: &str) -> String {
    format!(
        "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: app, namespace: apps, generation: 2}}\nspec: {spec}\nstatus: {status}\n"
    )
}

/// Returns the pod template with an image, as a flow mapping.
fn template(image: &str) -> String {
    format!(r#"{{spec: {{containers: [{{name: app, image: "{image}"}}]}}}}"#)
}

/// Returns a Kustomization `flux-system/apps` of the directory `apps`, and its GitRepository.
fn kustomization(spec: &str, revision: &str, condition: &str) -> String {
    format!(
        r#"
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: apps, namespace: flux-system, generation: 1}}
spec: {{path: ./apps, sourceRef: {{kind: GitRepository, name: fleet}}, {spec}}}
status: {{observedGeneration: 1, lastAppliedRevision: "{revision}", conditions: [{condition}]}}
"#
    )
}

/// Returns a HelmRelease `apps/app` with a condition.
fn helm_release(metadata: &str, spec: &str, condition: &str) -> String {
    format!(
        r#"
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: app, namespace: apps, generation: 1, {metadata}}}
spec: {{{spec}}}
status: {{observedGeneration: 1, history: [{{chartVersion: 1.2.3, status: deployed}}], conditions: [{condition}]}}
"#
    )
}

/// Returns an Application `argocd/app` of the directory `apps`.
fn application(spec: &str, status: &str) -> String {
    format!(
        r#"
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: app, namespace: argocd}}
spec: {{source: {{repoURL: "https://git.example/org/fleet", path: apps}}, {spec}}}
status: {{{status}}}
"#
    )
}

/// Returns a Widget `apps/app`, whose kind has no rule of its own.
fn widget() -> String {
    format!(
        "{{apiVersion: a.example/v1, kind: Widget, metadata: {{name: app, namespace: apps}}, spec: {{image: '{NEW}'}}}}"
    )
}

/// Returns a condition as a flow mapping.
fn condition(kind: &str, status: &str, reason: &str) -> String {
    format!(
        r#"{{type: {kind}, status: "{status}", reason: {reason}, message: "the message", lastTransitionTime: "2026-11-02T10:05:00Z"}}"#
    )
}

/// The labels of the objects of the Kustomization, as a field of metadata.
const KUSTOMIZED: &str =
    "labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}";

/// The labels of the objects of the HelmRelease, as a field of metadata.
const RELEASED: &str = "labels: {helm.toolkit.fluxcd.io/name: app, helm.toolkit.fluxcd.io/namespace: apps}";

/// The revision of scans.
const SCANNED: &str = "main@sha1:1111111";

/// The GitRepository of the automation, in the namespace of Flux.
const GIT: &str = "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: fleet, namespace: flux-system}, spec: {url: 'https://git.example/org/fleet'}}";

/// Returns the API version of a workload.
fn version(kind: &str) -> &'static str {
    if kind == "CronJob" { "batch/v1" } else { "apps/v1" }
}

/// Returns a CronJob `apps/app`.
fn cron_job(image: &str) -> String {
    format!(
        r#"
apiVersion: batch/v1
kind: CronJob
metadata: {{name: app, namespace: apps, generation: 1}}
spec: {{jobTemplate: {{spec: {{template: {{spec: {{containers: [{{name: app, image: "{image}"}}]}}}}}}}}}}
"#
    )
}

/// Returns a StatefulSet `apps/app` with two updated pods, of which some are ready.
fn stateful_set(image: &str, ready: u32) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: app, namespace: apps, generation: 1}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: app}}}}
  template: {{spec: {{containers: [{{name: app, image: "{image}"}}]}}}}
status:
  {{observedGeneration: 1, replicas: 2, currentReplicas: 2, updatedReplicas: 2, readyReplicas: {ready},
    currentRevision: app-{digits}, updateRevision: app-{digits}}}
"#,
        digits = image.len()
    )
}

/// Returns a DaemonSet `apps/app` on three nodes, of which some have a ready pod.
fn daemon_set(image: &str, ready: u32) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: app, namespace: apps, generation: 1}}
spec:
  selector: {{matchLabels: {{app: app}}}}
  template: {{spec: {{containers: [{{name: app, image: "{image}"}}]}}}}
status:
  {{observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3,
    numberReady: {ready}, numberAvailable: {ready}}}
"#
    )
}
