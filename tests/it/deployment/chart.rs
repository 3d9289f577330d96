//! Tests of the chart, rendered by helm.
//! It has the same objects as by kustomize, and is installed in and removed from a real API server.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use serde_json::{Value, json};
use tagboat::permissions::{ELECTED, lease_name};

use super::read;
use super::rendering::{Helm, chart};
use crate::support::api_server::{Cluster, apply, documents};
use crate::support::program::run;

/// The objects of a release by their kinds.
fn render(release: &str, namespace: &str, over: &Value) -> BTreeMap<String, Value> {
    let objects = Helm::new(namespace).template(release, over).into_iter();
    objects.map(|object| (object["kind"].as_str().unwrap().to_owned(), object)).collect()
}

#[test]
fn helm_lint_accepts_the_chart() {
    let lint = run(Helm::new("ns").command(&["lint", "--strict"], &json!({})).arg(chart())).with_status(0);
    assert!(lint.output.contains("1 chart(s) linted, 0 chart(s) failed"), "{lint:?}");
}

/// There are no nodes, so it does not wait for pods.
#[tokio::test]
async fn the_chart_is_installed_changed_and_removed() {
    let cluster = Cluster::new().await;
    let helm = Helm::new(cluster.namespace());
    let kubeconfig = cluster.administrators_kubeconfig();
    // Cluster-scoped objects have the name of the release.
    let release = format!("of-{}", cluster.namespace());
    let call = |arguments: &[&str], over: Value, with_chart: bool| {
        let mut command = helm.command(arguments, &over);
        if with_chart {
            command.arg(chart());
        }
        run(command.env("KUBECONFIG", &kubeconfig)).with_status(0)
    };
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    call(&["install", &release], json!({}), true);
    let installed = deployments.get(&format!("{release}-tagboat")).await.unwrap().spec.unwrap();
    call(&["upgrade", &release], json!({"flags": {"concurrent": 8}}), true);
    let upgraded = deployments.get(&format!("{release}-tagboat")).await.unwrap().spec.unwrap();
    let arguments = |spec: &k8s_openapi::api::apps::v1::DeploymentSpec| {
        spec.template.spec.as_ref().unwrap().containers[0].args.clone().unwrap()
    };
    let added = arguments(&upgraded).into_iter().filter(|flag| !arguments(&installed).contains(flag));
    assert_eq!(added.collect::<Vec<_>>(), ["--concurrent=8"]);
    assert_eq!(installed.selector, upgraded.selector);
    call(&["uninstall", &release], json!({}), false);
    assert!(deployments.get_opt(&format!("{release}-tagboat")).await.unwrap().is_none());
}

#[tokio::test]
async fn by_default_the_chart_renders_the_objects_of_the_kustomization() {
    let cluster = Cluster::new().await;
    let objects = render("tagboat", cluster.namespace(), &json!({}));
    let kinds: Vec<&str> = objects.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        ["ClusterRole", "ClusterRoleBinding", "Deployment", "Role", "RoleBinding", "ServiceAccount"]
    );
    for object in objects.values() {
        let applied = apply(&cluster.client(), object, true).await;
        assert!(applied.is_ok(), "{object}: {applied:?}");
    }
    for (kind, file) in [("ClusterRole", "rbac/cluster-role.yaml"), ("Role", "rbac/role.yaml")] {
        assert_eq!(objects[kind]["rules"], documents(&read(file))[0]["rules"]);
        let binding = &objects[&format!("{kind}Binding")];
        assert_eq!(binding["roleRef"]["name"], objects[kind]["metadata"]["name"]);
        assert_eq!(binding["subjects"][0]["name"], objects["ServiceAccount"]["metadata"]["name"]);
        assert_eq!(binding["subjects"][0]["namespace"], cluster.namespace());
    }

    let mut plain = documents(&read("deployment.yaml")).remove(0)["spec"]["template"]["spec"].take();
    let mut pod = objects["Deployment"]["spec"]["template"]["spec"].clone();
    assert_eq!(pod["containers"][0]["image"], format!("tagboat:{}", env!("CARGO_PKG_VERSION")));
    let sorted = |pod: &mut Value| {
        let container = &mut pod["containers"][0];
        container["image"].take();
        let mut arguments: Vec<String> = serde_json::from_value(container["args"].take()).unwrap();
        // A flag without a value is the same as `true`.
        arguments.sort();
        container["args"] = json!(arguments);
    };
    sorted(&mut plain);
    sorted(&mut pod);
    for empty in ["imagePullSecrets", "tolerations", "affinity"] {
        pod.as_object_mut().unwrap().remove(empty);
    }
    assert_eq!(pod, plain);
}

#[tokio::test]
async fn a_value_of_the_chart_adds_the_role_for_rollouts() {
    let cluster = Cluster::new().await;
    let helm = Helm::new(cluster.namespace());
    let name = |object: &Value| format!("{}/{}", object["kind"], object["metadata"]["name"]).replace('"', "");
    let names = |over: &Value| -> Vec<String> { helm.template("x", over).iter().map(name).collect() };
    let (before, over) = (names(&json!({})), json!({"rollout": {"enabled": true}}));
    let mut added = names(&over);
    added.retain(|name| !before.contains(name));
    added.sort();
    assert_eq!(
        added,
        ["ClusterRole/x-tagboat-rollout", "ClusterRoleBinding/x-tagboat-rollout", "NetworkPolicy/x-tagboat"]
    );
    for object in helm.template("x", &over) {
        apply(&cluster.client(), &object, true).await.unwrap();
        if name(&object) == "ClusterRole/x-tagboat-rollout" {
            assert_eq!(object["rules"], documents(&read("rollout/cluster-role.yaml"))[0]["rules"]);
        }
    }
}

#[tokio::test]
async fn a_value_of_the_chart_adds_the_objects_of_the_component_for_nodes() {
    let cluster = Cluster::new().await;
    let helm = Helm::new(cluster.namespace());
    let over = json!({"nodes": {"enabled": true}, "image": {"repository": "tagboat", "tag": "1"}});
    let before = helm.template("tagboat", &json!({}));
    let objects = helm.template("tagboat", &over);
    let find = |objects: &[Value], kind: &str, name: &str| {
        let mut found = objects.iter().filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.next().unwrap_or_else(|| panic!("no {kind} {name}")).clone()
    };
    let plain: Vec<Value> = ["cluster-role", "role", "agent-role", "agent", "admission"]
        .iter()
        .flat_map(|name| documents(&read(&format!("nodes/{name}.yaml"))))
        .collect();
    assert_eq!(objects.len(), before.len() + plain.len());
    for mut expected in plain {
        let (kind, name) = (&expected["kind"], &expected["metadata"]["name"]);
        let mut object = find(&objects, kind.as_str().unwrap(), name.as_str().unwrap());
        apply(&cluster.client(), &object, true).await.unwrap();
        for object in [&mut expected, &mut object] {
            // These name the release, or the namespace.
            object["metadata"].take();
            for field in [
                "/subjects/0/namespace",
                "/spec/matchConditions/0/expression",
                "/spec/selector/matchLabels",
                "/spec/template/metadata/labels",
                "/spec/template/spec/containers/0/image",
                "/spec/template/spec/imagePullSecrets",
            ] {
                if let Some((parent, key)) = field.rsplit_once('/')
                    && let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut)
                {
                    parent.remove(key);
                }
            }
        }
        assert_eq!(object, expected);
    }
    let policy = find(&objects, "ValidatingAdmissionPolicy", "tagboat-agent");
    let account = format!("system:serviceaccount:{}:tagboat-agent", cluster.namespace());
    let expression = policy["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
    assert_eq!(expression, format!("request.userInfo.username == '{account}'"));
    let agent = find(&objects, "DaemonSet", "tagboat-agent");
    assert_eq!(agent["spec"]["template"]["spec"]["containers"][0]["image"], "tagboat:1");
    let tolerations = &find(&objects, "Deployment", "tagboat")["spec"]["template"]["spec"]["tolerations"];
    assert_eq!(tolerations[0]["key"], "node.kubernetes.io/unschedulable");
    let flags = json!({"nodes": {"enabled": true, "agentFlags": {"host": "bootc", "metrics-addr": null}}});
    let agent = find(&helm.template("tagboat", &flags), "DaemonSet", "tagboat-agent");
    assert_eq!(agent["spec"]["template"]["spec"]["containers"][0]["args"], json!(["--host=bootc"]));
}

#[tokio::test]
async fn a_value_of_the_chart_mounts_the_kubeconfigs_of_other_clusters() {
    let cluster = Cluster::new().await;
    let over = json!({"rollout": {"enabled": true, "clustersSecret": "edges"}});
    let objects = render("x", cluster.namespace(), &over);
    apply(&cluster.client(), &objects["Deployment"], true).await.unwrap();
    let pod = &objects["Deployment"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let arguments = container["args"].as_array().unwrap();
    assert_eq!(arguments.last().unwrap(), "--clusters=/etc/tagboat/clusters");
    let mount = json!({"name": "clusters", "mountPath": "/etc/tagboat/clusters", "readOnly": true});
    assert_eq!(container["volumeMounts"][1], mount);
    assert_eq!(pod["volumes"][1], json!({"name": "clusters", "secret": {"secretName": "edges"}}));
}

#[tokio::test]
async fn values_of_the_chart_reach_the_objects() {
    let cluster = Cluster::new().await;
    let over = json!({
        "image": {"repository": "registry.example.com/tagboat", "digest": "sha256:0123"},
        "imagePullSecrets": ["login", "other"],
        "flags": {"log-level": "debug", "enable-leader-election": null, "watch-all-namespaces": false, "concurrent": 8},
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy: \"8080\""}],
        "serviceAccount": {"name": "robot", "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}},
        "stateVolume": {"persistentVolumeClaim": {"claimName": "state"}},
        "podLabels": {"team": "1"},
        "priorityClassName": "system-cluster-critical",
        "tolerations": [{"operator": "Exists"}],
    });
    let objects = render("images", cluster.namespace(), &over);
    for object in objects.values() {
        let applied = apply(&cluster.client(), object, true).await;
        assert!(applied.is_ok(), "{object}: {applied:?}");
    }
    assert_eq!(objects["Deployment"]["metadata"]["name"], "images-tagboat");
    assert_eq!(objects["Deployment"]["spec"]["template"]["metadata"]["labels"]["team"], "1");
    assert_eq!(objects["ServiceAccount"]["metadata"]["name"], "robot");
    assert_eq!(objects["ClusterRoleBinding"]["subjects"][0]["name"], "robot");
    let pod = &objects["Deployment"]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "robot");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "login"}, {"name": "other"}]));
    assert_eq!(pod["volumes"][0], json!({"name": "temp", "persistentVolumeClaim": {"claimName": "state"}}));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.example.com/tagboat@sha256:0123");
    assert_eq!(container["env"][1]["value"], "http://proxy: \"8080\"");
    assert_eq!(
        container["args"],
        json!(["--concurrent=8", "--log-encoding=json", "--log-level=debug", "--watch-all-namespaces=false"])
    );
}

#[test]
fn misspelled_values_of_the_chart_are_refused() {
    let helm = Helm::new("ns");
    for (over, misspelled) in [
        (json!({"rollouts": {"enabled": true}}), "rollouts"),
        (json!({"rollout": {"enable": true}}), "enable"),
        (json!({"image": {"name": "tagboat"}}), "name"),
        (json!({"rbac": {"enabled": false}}), "enabled"),
        (json!({"serviceAccount": {"created": false}}), "created"),
    ] {
        let refused = run(helm.command(&["template", "x"], &over).arg(chart())).with_status(1);
        let expected = format!("additional properties '{misspelled}' not allowed");
        assert!(refused.errors.contains(&expected), "{refused:?}");
    }
    // A parent chart passes these to all of its charts.
    assert!(!helm.template("x", &json!({"global": {"region": "eu"}})).is_empty());
}

#[test]
fn hostile_chart_values_add_no_members() {
    // Without quoting, each would end its line and begin a member of its own.
    let hostile = "x\"'\n    privileged: true # {{ .Values }}";
    let over = json!({
        "env": [{"name": "PROXY", "value": hostile}],
        "flags": {"log-level": hostile, "concurrent": 1_000_000, "kube-api-qps": 20.5},
        "podAnnotations": {hostile: hostile},
        "podLabels": {hostile: hostile},
        "nodeSelector": {hostile: hostile},
        "serviceAccount": {"annotations": {hostile: hostile}},
        "tolerations": [{"key": hostile}],
        "resources": {"limits": {"cpu": hostile}},
    });
    let objects = render("tagboat", "ns", &over);
    let template = &objects["Deployment"]["spec"]["template"];
    assert_eq!(template["metadata"]["labels"][hostile], hostile);
    assert_eq!(template["metadata"]["annotations"][hostile], hostile);
    let pod = &template["spec"];
    assert_eq!(pod["nodeSelector"][hostile], hostile);
    assert_eq!(pod["tolerations"], json!([{"key": hostile}]));
    let container = &pod["containers"][0];
    assert_eq!(container["env"][1], json!({"name": "PROXY", "value": hostile}));
    assert_eq!(container["resources"]["limits"], json!({"cpu": hostile, "memory": "1Gi"}));
    let flags: Vec<&str> = container["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for flag in ["--concurrent=1000000", "--kube-api-qps=20.5", &format!("--log-level={hostile}")] {
        assert!(flags.contains(&flag), "{flags:?}");
    }
    assert_eq!(objects["ServiceAccount"]["metadata"]["annotations"], json!({hostile: hostile}));
}

#[test]
fn an_invalid_value_is_refused_and_named() {
    let hostile = "x\n  y: z";
    for (over, name) in [
        (json!({"image": {"repository": hostile}}), "repository"),
        (json!({"image": {"tag": hostile}}), "tag"),
        (json!({"image": {"tag": 1.1}}), "tag"),
        (json!({"image": {"digest": hostile}}), "digest"),
        (json!({"image": {"pullPolicy": hostile}}), "pullPolicy"),
        (json!({"imagePullSecrets": [hostile]}), "imagePullSecrets"),
        (json!({"flags": {hostile: "x"}}), "invalid propertyName"),
        (json!({"flags": {"concurrent": [1]}}), "concurrent"),
        (json!({"serviceAccount": {"name": hostile}}), "name"),
        (json!({"rbac": {"accountTokens": [hostile]}}), "accountTokens"),
        (json!({"rbac": {"create": "no"}}), "create"),
        (json!({"podLabels": {"x": 1}}), "podLabels"),
        (json!({"stateSizeLimit": hostile}), "stateSizeLimit"),
        (json!({"priorityClassName": hostile}), "priorityClassName"),
    ] {
        let helm = Helm::new("ns");
        let refused = run(helm.command(&["template", "tagboat"], &over).arg(chart())).with_status(1);
        assert!(refused.errors.contains(name), "{over}: {refused:?}");
    }
}

#[test]
fn the_role_names_the_leases_of_the_selector() {
    for (over, selector) in [
        (json!({}), None),
        (json!({"flags": {"watch-label-selector": null}}), None),
        (json!({"flags": {"watch-label-selector": ""}}), None),
        (json!({"flags": {"watch-label-selector": "team=x,!shard"}}), Some("team=x,!shard")),
    ] {
        let objects = render("tagboat", "ns", &over);
        let expected = ELECTED.map(|controller| lease_name(controller, selector));
        assert_eq!(objects["Role"]["rules"][0]["resourceNames"], json!(expected), "{over}");
    }
}

#[tokio::test]
async fn tokens_of_accounts_may_be_created_in_the_namespaces_of_a_list_only() {
    let cluster = Cluster::new().await;
    let namespace = cluster.namespace();
    let over = json!({"rbac": {"accountTokens": [namespace, "other"]}});
    let all = Helm::new("ns").template("images", &over);
    let named = |kind: &str| -> Vec<&Value> {
        let fits = |object: &&Value| {
            object["kind"] == kind && object["metadata"]["name"] == "images-tagboat-account-tokens"
        };
        all.iter().filter(fits).collect()
    };
    let bindings = named("RoleBinding");
    let namespaces: Vec<_> = bindings.iter().map(|binding| &binding["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, [&json!(namespace), &json!("other")]);
    let account = json!({"kind": "ServiceAccount", "name": "images-tagboat", "namespace": "ns"});
    assert_eq!(bindings[0]["subjects"][0], account);
    assert_eq!(bindings[0]["roleRef"]["name"], "images-tagboat-account-tokens");
    let role = named("ClusterRole")[0];
    assert_eq!(role["rules"], documents(&read("rbac/account-tokens.yaml"))[0]["rules"]);
    assert!(named("ClusterRoleBinding").is_empty());
    for object in [role, bindings[0]] {
        apply(&cluster.client(), object, true).await.unwrap();
    }
    // Without the list there is no such object.
    let none = Helm::new("ns").template("images", &json!({}));
    assert!(none.iter().all(|object| !object["metadata"]["name"].as_str().unwrap().contains("tokens")));
}

#[test]
fn accounts_and_roles_of_others_are_left_to_them() {
    let over = json!({"serviceAccount": {"create": false}, "rbac": {"create": false}});
    let objects = render("tagboat", "ns", &over);
    assert_eq!(objects.keys().collect::<Vec<_>>(), ["Deployment"]);
    assert_eq!(objects["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"], "default");
}
