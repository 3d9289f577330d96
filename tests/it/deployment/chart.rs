//! The chart, rendered with the engine for Go templates that Tagboat has: what it makes is what kustomize makes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tagboat_go_template::Template;

use super::{folder, read};
use crate::support::api_server::{Cluster, apply, documents};

/// Values over the chart's own, as helm merges them: maps together, null takes away.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// The objects of a release by their kinds.
fn render(release: &str, namespace: &str, over: &Value) -> BTreeMap<String, Value> {
    let chart = documents(&read("chart/tagboat/Chart.yaml")).remove(0);
    let mut values = documents(&read("chart/tagboat/values.yaml")).remove(0);
    merge(&mut values, over);
    let data = json!({
        "Values": values,
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
        "Chart": {"AppVersion": chart["appVersion"]},
    });
    let names = read("chart/tagboat/templates/_names.tpl");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder().join("chart/tagboat/templates")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if file == "_names.tpl" {
            continue;
        }
        let text = read(&format!("chart/tagboat/templates/{file}"));
        let text = format!(
            "{names}{{{{ define \"it\" }}}}{text}{{{{ end }}}}{{{{ template \"it\" (mustFromJson .) }}}}"
        );
        let template = Template::parse(&file, &text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let bytes =
            template.render(&data.to_string().into()).unwrap_or_else(|error| panic!("{file}: {error}"));
        for document in documents(&String::from_utf8(bytes).unwrap()) {
            found.insert(document["kind"].as_str().unwrap().to_owned(), document);
        }
    }
    found
}

#[tokio::test]
async fn by_default_it_makes_what_the_kustomization_makes() {
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
        // A flag that is alone and one that is true mean the same.
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
async fn its_values_reach_the_objects() {
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
fn accounts_and_roles_of_others_are_left_to_them() {
    let over = json!({"serviceAccount": {"create": false}, "rbac": {"create": false}});
    let objects = render("tagboat", "ns", &over);
    assert_eq!(objects.keys().collect::<Vec<_>>(), ["Deployment"]);
    assert_eq!(objects["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"], "default");
}
