//! The states of objects, by the rule of each kind.

use jiff::ToSpan;
use tagboat_api::deployment_status::State;

use super::super::testing::Scene;
use super::{
    APP, NEW, OLD, deployment, insert, named_deployment, of_app, scene, scene_of, template, workload,
};
use crate::rollout::watched::{GroupKind, WatchedId};

/// A kind without a rule: any other field may have the same text by chance.
#[test]
fn a_value_of_any_kind_counts_at_the_keys_of_its_marker() {
    const PLACES: &str = r#"
policies: {app: "ghcr.io/org/app:2"}
automations:
  - name: fleet
    places:
      - {policy: app, at: "apps/app.yaml:7", document: "a.example/v1 Widget apps/app", field: tag, pointer: POINTER}
"#;
    let of = |pointer: &str, spec: &str| {
        let mut scene = Scene::new(&PLACES.replace("POINTER", pointer));
        scene.insert(&format!(
            "{{apiVersion: a.example/v1, kind: Widget, metadata: {{name: app, namespace: apps}}, spec: {spec}}}"
        ));
        scene.lines("app").join("; ")
    };
    for (pointer, spec, expected) in [
        ("/spec/tag", "{tag: '2'}", "installed"),
        ("/spec/tag", "{tag: 2}", "installed"),
        ("/spec/tag", "{tag: '1', replicas: 2}", "pending NotApplied"),
        ("/spec/tag", "{tag: '1', other: {tag: '2'}}", "pending NotApplied"),
        ("/spec/tag", "{}", "pending NotApplied"),
        ("/spec/tag", "{tag: {a: '2'}}", "pending NotApplied"),
        ("/spec/a~1b/tag", "{a/b: {tag: '2'}}", "installed"),
        // An entry of a list counts at its position.
        ("/spec/apps/1/tag", "{apps: [{tag: '1'}, {tag: '2'}]}", "installed"),
        ("/spec/apps/0/tag", "{apps: [{tag: '1'}, {tag: '2'}]}", "pending NotApplied"),
        ("/spec/apps/2/tag", "{apps: [{tag: '2'}, {tag: '2'}]}", "pending NotApplied"),
        // Outside of the spec nothing is known.
        ("/metadata/name", "{tag: '2'}", "pending NotApplied"),
        // Without keys, any text counts.
        ("null", "{tag: '1', replicas: 2}", "installed"),
    ] {
        assert_eq!(of(pointer, spec), format!("Widget/apps/app {expected}"), "{pointer} {spec}");
    }
    // Each of several equal markers counts.
    let two = PLACES.replace("POINTER", "/spec/a/tag")
        + "      - {policy: app, at: \"apps/app.yaml:9\", document: \"a.example/v1 Widget apps/app\", field: tag, pointer: /spec/b/tag}\n";
    for (spec, expected) in [
        ("{a: {tag: '2'}, b: {tag: '2'}}", "installed"),
        ("{a: {tag: '2'}, b: {tag: '1'}}", "pending NotApplied"),
    ] {
        let mut scene = Scene::new(&two);
        scene.insert(&format!(
            "{{apiVersion: a.example/v1, kind: Widget, metadata: {{name: app, namespace: apps}}, spec: {spec}}}"
        ));
        assert_eq!(scene.lines("app"), [format!("Widget/apps/app {expected}")], "{spec}");
    }
}

#[test]
fn an_image_is_compared_before_the_rule_of_its_kind() {
    let complete = "{observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, currentRevision: a, updateRevision: a, currentReplicas: 1}";
    let daemons = "{observedGeneration: 2, desiredNumberScheduled: 1, currentNumberScheduled: 1, updatedNumberScheduled: 1, numberReady: 1, numberAvailable: 1}";
    let pods = |spec: &str| format!("{{{spec} template: TEMPLATE}}");
    let selected = pods("selector: {matchLabels: {app: app}},");
    let jobs = "{jobTemplate: {spec: {template: TEMPLATE}}}".to_owned();
    let done = "{succeeded: 1, conditions: [{type: Complete, status: 'True'}]}";
    let failed = "{conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: m}]}";
    // Kind, spec, status, and the state with the wanted image.
    let table = [
        ("apps/v1", "Deployment", &selected, complete, "installed"),
        ("apps/v1", "Deployment", &selected, "{observedGeneration: 1}", "installing"),
        (
            "apps/v1",
            "Deployment",
            &selected,
            "{observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', message: quota}]}",
            "failed ReplicaFailure of Deployment/apps/app",
        ),
        ("apps/v1", "StatefulSet", &selected, complete, "installed"),
        (
            "apps/v1",
            "StatefulSet",
            &selected,
            "{observedGeneration: 2, currentRevision: a, updateRevision: b}",
            "installing",
        ),
        ("apps/v1", "DaemonSet", &selected, daemons, "installed"),
        (
            "apps/v1",
            "DaemonSet",
            &selected,
            "{observedGeneration: 2, desiredNumberScheduled: 1}",
            "installing",
        ),
        ("batch/v1", "Job", &selected, done, "installed"),
        ("batch/v1", "Job", &selected, "{active: 1}", "installing"),
        ("batch/v1", "Job", &selected, failed, "failed BackoffLimitExceeded of Job/apps/app"),
        ("batch/v1", "CronJob", &jobs, "{}", "installed"),
        (
            "argoproj.io/v1alpha1",
            "Rollout",
            &selected,
            "{observedGeneration: '2', phase: Healthy}",
            "installed",
        ),
        (
            "argoproj.io/v1alpha1",
            "Rollout",
            &selected,
            "{observedGeneration: '2', phase: Paused}",
            "installing",
        ),
        (
            "argoproj.io/v1alpha1",
            "Rollout",
            &selected,
            "{observedGeneration: '2', phase: Degraded, message: m}",
            "failed Degraded of Rollout/apps/app",
        ),
    ];
    for (api_version, kind, spec, status, expected) in table {
        for (image, expected) in [(NEW, expected), (OLD, "pending NotApplied")] {
            let mut scene = scene_of(api_version, kind);
            let spec = spec.replace("TEMPLATE", &template(image));
            insert(&mut scene, &[workload(api_version, kind, &spec, status)]);
            assert_eq!(scene.lines("app"), [format!("{kind}/apps/app {expected}")], "{status} {image}");
        }
    }
}

/// Objects report updated and ready pods, not which of them are both.
#[test]
fn the_old_pods_of_a_stuck_rollout_are_no_progress() {
    let pods = |replicas: u8, updated: u8, ready: u8| {
        format!(
            "observedGeneration: 2, replicas: {replicas}, updatedReplicas: {updated}, readyReplicas: {ready}"
        )
    };
    let progressing =
        |reason: &str| format!("conditions: [{{type: Progressing, status: 'True', reason: {reason}}}]");
    let (waiting, complete) = (progressing("ReplicaSetUpdated"), progressing("NewReplicaSetAvailable"));
    let daemons = |updated: u8, ready: u8| {
        format!(
            "observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: {updated}, numberReady: {ready}, numberAvailable: {ready}"
        )
    };
    let revisions = "currentRevision: a, updateRevision: b";
    let table = [
        ("apps/v1 Deployment", format!("{}, {waiting}", pods(4, 1, 3)), "installing 0/3"),
        ("apps/v1 Deployment", format!("{}, {waiting}", pods(4, 1, 4)), "installing 1/3"),
        ("apps/v1 Deployment", format!("{}, {waiting}", pods(4, 3, 3)), "installing 2/3"),
        ("apps/v1 Deployment", format!("{}, {complete}", pods(3, 3, 3)), "installed 3/3"),
        ("apps/v1 Deployment", format!("{}, {complete}", pods(3, 3, 2)), "installed 2/3"),
        // The numbers are those of the template before.
        (
            "apps/v1 Deployment",
            pods(3, 3, 3).replace("observedGeneration: 2", "observedGeneration: 1"),
            "installing 0/3",
        ),
        ("apps/v1 StatefulSet", format!("{}, {revisions}", pods(3, 1, 2)), "installing 0/3"),
        ("apps/v1 StatefulSet", format!("{}, {revisions}", pods(3, 2, 3)), "installing 2/3"),
        ("apps/v1 DaemonSet", daemons(1, 2), "installing 0/3"),
        ("apps/v1 DaemonSet", daemons(2, 3), "installing 2/3"),
        ("apps/v1 DaemonSet", daemons(3, 3), "installed 3/3"),
        (
            "argoproj.io/v1alpha1 Rollout",
            format!("phase: Progressing, {}", pods(4, 1, 3).replace("Generation: 2", "Generation: '2'")),
            "installing 0/3",
        ),
    ];
    let spec = format!(
        "{{replicas: 3, progressDeadlineSeconds: 600, selector: {{matchLabels: {{app: app}}}}, template: {}}}",
        template(NEW)
    );
    for (kind, status, expected) in table {
        let (version, kind) = kind.split_once(' ').unwrap();
        let mut scene = scene_of(version, kind);
        insert(&mut scene, &[workload(version, kind, &spec, &format!("{{{status}}}"))]);
        let components = scene.report("app");
        let report = &scene.previous["app"].report;
        assert_eq!(format!("{} {}", components[0].state, report.progress), expected, "{kind} {status}");
    }
}

#[test]
fn another_kind_has_the_value_in_its_spec_and_is_judged_by_kstatus() {
    let stalled =
        "{observedGeneration: 2, conditions: [{type: Stalled, status: 'True', reason: Bad, message: m}]}";
    let table = [
        ("reference", "{image: 'ghcr.io/org/app:2'}", "{}", "installed"),
        ("reference", "{image: 'mirror.example/ghcr.io/org/app:2'}", "{}", "installed"),
        ("reference", "{image: 'ghcr.io/org/app:1'}", "{}", "pending NotApplied"),
        ("tag", "{image: {tag: 2}}", "{observedGeneration: 2}", "installed"),
        ("tag", "{image: {tag: '2'}}", "{observedGeneration: 1}", "installing"),
        ("tag", "{image: {tag: '2'}}", stalled, "failed Bad of NodePool/apps/app"),
        ("tag", "{image: {tag: '1'}}", stalled, "pending NotApplied"),
    ];
    for (field, spec, status, expected) in table {
        let policies = APP.replace("apps/v1 Deployment", "infra.example/v1 NodePool").replace(
            "field: reference, former: \"ghcr.io/org/app:1\"",
            &format!("field: {field}, former: \"1\""),
        );
        let mut scene = Scene::new(&policies);
        insert(&mut scene, &[workload("infra.example/v1", "NodePool", spec, status)]);
        assert_eq!(scene.lines("app"), [format!("NodePool/apps/app {expected}")], "{field} {spec} {status}");
    }
}

/// A name has no group. Formerly, the last group decided.
#[test]
fn of_objects_of_one_name_in_two_groups_the_worse_one_is_reported() {
    for (stalled, other) in [("a.example", "b.example"), ("b.example", "a.example")] {
        let place = |group: &str| {
            format!(
                "{{policy: app, at: '{group}.yaml:7', document: '{group}/v1 Widget apps/app', field: reference}}"
            )
        };
        let mut scene = Scene::new(&format!(
            "policies: {{app: '{NEW}'}}\nautomations: [{{name: fleet, places: [{}, {}]}}]",
            place(stalled),
            place(other)
        ));
        let status = "{conditions: [{type: Stalled, status: 'True', reason: Bad, message: m}]}";
        let widget = |group: &str, status: &str| {
            workload(&format!("{group}/v1"), "Widget", &format!("{{image: '{NEW}'}}"), status)
        };
        insert(&mut scene, &[widget(stalled, status), widget(other, "{}")]);
        assert_eq!(scene.lines("app"), ["Widget/apps/app failed Bad of Widget/apps/app"], "{stalled}");
        insert(&mut scene, &[widget(stalled, "{}")]);
        assert_eq!(scene.lines("app"), ["Widget/apps/app installed"], "{stalled}");
    }
}

#[test]
fn a_cluster_scoped_object_has_no_namespace_in_its_name() {
    let mut scene =
        Scene::new(&APP.replace("apps/v1 Deployment apps/app", "infra.example/v1 NodePool workers"));
    scene.insert("{apiVersion: infra.example/v1, kind: NodePool, metadata: {name: workers}, spec: {image: 'ghcr.io/org/app:2'}}");
    assert_eq!(scene.lines("app"), ["NodePool/workers installed"]);
}

#[test]
fn a_rollout_with_a_workload_reference_runs_the_template_of_a_deployment() {
    let rollout = |observed: i64| {
        workload(
            "argoproj.io/v1alpha1",
            "Rollout",
            "{replicas: 3, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: app}}",
            &format!(
                "{{observedGeneration: '2', workloadObservedGeneration: '{observed}', phase: Healthy, updatedReplicas: 3, readyReplicas: 2}}"
            ),
        )
    };
    let mut scene = scene(&[deployment(OLD), rollout(1)]);
    assert_eq!(scene.lines("app"), ["Rollout/apps/app pending NotApplied"]);
    insert(&mut scene, &[deployment(NEW).replace("generation: 1,", "generation: 2,")]);
    assert_eq!(scene.lines("app"), ["Rollout/apps/app installing"]);
    insert(&mut scene, &[rollout(2)]);
    assert_eq!(scene.lines("app"), ["Rollout/apps/app installed"]);
    let component = &scene.previous["app"].report.components[0];
    assert_eq!((component.desired, component.ready, component.image.as_deref()), (3, 2, Some(NEW)));
    // The pods have the labels of the Deployment.
    let wanted = scene.components("app").pods_wanted;
    assert_eq!(wanted[0].object, WatchedId::new(GroupKind::ARGO_ROLLOUT, "apps", "app"));
    assert_eq!(wanted[0].selector, "app=app");
}

#[test]
fn the_target_of_a_canary_is_judged_by_the_canary() {
    let canary = |phase: &str, time: &str| {
        format!(
            "{{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {{name: app, namespace: apps}}, spec: {{targetRef: {{apiVersion: apps/v1, kind: Deployment, name: app}}}}, status: {{phase: {phase}, lastTransitionTime: '{time}'}}}}"
        )
    };
    let owner = "ownerReferences: [{apiVersion: flagger.app/v1beta1, kind: Canary, name: app, uid: u, controller: true}]";
    let primary = |image: &str| named_deployment("apps/app-primary", image, owner);
    let target = |image: &str| deployment(image).replace("replicas: 2\n", "replicas: 0\n");
    let before = "2026-11-02T10:00:00Z";

    let mut scene = scene(&[target(OLD), primary(OLD), canary("Succeeded", before)]);
    assert_eq!(scene.lines("app"), ["Deployment/apps/app pending NotApplied"], "the primary is no component");
    insert(&mut scene, &[target(NEW)]);
    assert_eq!(scene.lines("app"), ["Deployment/apps/app installing"], "the phase of the image before");
    insert(&mut scene, &[canary("Failed", before)]);
    assert_eq!(scene.lines("app"), ["Deployment/apps/app installing"], "the failure of the image before");
    scene.now += 60.seconds();
    insert(&mut scene, &[canary("Progressing", "2026-11-02T10:30:30Z")]);
    assert_eq!(scene.lines("app"), ["Deployment/apps/app installing"]);
    insert(&mut scene, &[canary("Failed", "2026-11-02T10:30:50Z")]);
    let failed = ["Deployment/apps/app failed CanaryFailed of Deployment/apps/app"];
    assert_eq!(scene.lines("app"), failed);
    assert_eq!(scene.lines("app"), failed, "it stays failed");
    insert(&mut scene, &[canary("Succeeded", "2026-11-02T10:30:55Z"), primary(NEW)]);
    assert_eq!(scene.lines("app"), ["Deployment/apps/app installed"]);
    assert_eq!(scene.previous["app"].report.components[0].desired, 2, "the counts of the primary");
}

#[test]
fn a_finished_rollout_stays_installed_while_pods_come_and_go() {
    let mut scene = scene(&[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    let since = scene.previous["app"].report.components[0].since.clone();
    assert_eq!(
        since.0.to_string(),
        "2026-11-02T10:04:11Z",
        "the end of the rollout, as the object reports it"
    );
    assert_eq!(scene.components("app").pods_wanted, []);

    scene.now += 60.seconds();
    insert(&mut scene, &[deployment(NEW).replace("readyReplicas: 2", "readyReplicas: 1")]);
    let wanted = scene.components("app").pods_wanted;
    assert_eq!((wanted.len(), wanted[0].namespace.as_str(), wanted[0].cluster.as_deref()), (1, "apps", None));
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    let component = &scene.previous["app"].report.components[0];
    assert_eq!((component.ready, &component.since), (1, &since));
}

/// Its condition stays that of the image before.
#[test]
fn another_image_of_a_deployment_without_replicas_is_deployed_now() {
    let idle = |image: &str| deployment(image).replace("replicas: 2", "replicas: 0");
    let mut scene = scene(&[idle(OLD)]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
    insert(&mut scene, &[idle(NEW).replace("generation: 1,", "generation: 2,")]);
    scene.now += 60.seconds();
    let now = scene.now;
    for second in 0..2 {
        assert_eq!(scene.lines("app"), [of_app("installed")]);
        let report = &scene.previous["app"].report;
        let component = &report.components[0];
        assert_eq!(
            (component.since.0, component.last_deployed.as_ref().map(|time| time.0), component.desired),
            (now, Some(now), 0),
            "observation {second}"
        );
        assert_eq!(report.deploy_history[0].last_deployed.0, now);
        scene.now += 60.seconds();
    }
}

#[test]
fn a_deployment_without_replicas_that_ran_before_has_the_time_that_it_reports() {
    let mut scene = scene(&[deployment(NEW).replace("replicas: 2", "replicas: 0")]);
    let component = scene.report("app").remove(0);
    assert_eq!((component.state, component.last_deployed), (State::Installed, None));
    assert_eq!(component.since.0.to_string(), "2026-11-02T10:04:11Z");
}

#[test]
fn an_object_with_a_deletion_timestamp_is_removing() {
    for image in [OLD, NEW] {
        let mut scene =
            scene(&[named_deployment("apps/app", image, "deletionTimestamp: '2026-11-02T10:20:00Z'")]);
        let component = scene.report("app").remove(0);
        assert_eq!(component.state, State::Removing);
        assert_eq!(component.since.0.to_string(), "2026-11-02T10:20:00Z");
    }
}

#[test]
fn every_container_with_a_marker_needs_the_image() {
    let two = APP.replace(
        "      - {policy",
        "      - {policy: app, at: \"apps/app.yaml:9\", document: \"apps/v1 Deployment apps/app\", field: reference, former: \"ghcr.io/org/app:1\"}\n      - {policy",
    );
    let object = |init: &str, image: &str| {
        deployment(image).replace(
            "containers:",
            &format!("initContainers: [{{name: init, image: \"{init}\"}}], containers:"),
        )
    };
    // Markers, init container, container, shown image, state.
    let table = [
        (APP, OLD, NEW, NEW, State::Installed),
        (APP, NEW, OLD, NEW, State::Installed),
        (APP, OLD, OLD, OLD, State::Pending),
        (&two, OLD, NEW, OLD, State::Pending),
        (&two, NEW, NEW, NEW, State::Installed),
        (&two, "busybox:1", NEW, NEW, State::Installed),
    ];
    for (policies, init, image, shown, state) in table {
        let mut scene = Scene::new(policies);
        insert(&mut scene, &[object(init, image)]);
        let component = scene.report("app").remove(0);
        assert_eq!((component.image.as_deref(), component.state), (Some(shown), state), "{init} {image}");
    }
}

#[test]
fn invalid_objects_affect_their_own_component_only() {
    let other = "      - {policy: app, at: \"apps/b.yaml:7\", document: \"apps/v1 Deployment apps/b\", field: reference}\n      - {policy";
    let table = [
        (deployment("UPPER:1"), "an image of the object is invalid"),
        (deployment(NEW).replace("template:", "template: 7 #"), "the object cannot be read: spec.template"),
        (
            deployment(NEW)
                .replace("status:\n  {", "status:\n  {replicas: many, x: {")
                .replace("]}\n", "]}}\n"),
            "the object cannot be read: status.replicas",
        ),
    ];
    for (object, text) in table {
        let mut scene = Scene::new(&APP.replace("      - {policy", other));
        insert(&mut scene, &[object.clone(), named_deployment("apps/b", NEW, "")]);
        let components = scene.report("app");
        let message = components[0].message.as_deref().unwrap();
        assert!(message.starts_with(text), "{message}\n{object}");
        assert_eq!(
            (components[1].name.as_str(), components[1].state),
            ("Deployment/apps/b", State::Installed)
        );
    }
}
