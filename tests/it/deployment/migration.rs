//! The patches of `docs/migrate-from-flux.md`, applied by kustomize.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::rendering::kustomize;
use super::{folder, read};
use crate::support::api_server::documents;

/// The manifest in the document that begins with this title.
fn manifest(title: &str) -> Value {
    let text = read("../docs/migrate-from-flux.md");
    let begin = format!("```yaml\n# patch: {title}\n");
    let (_, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no manifest begins {begin:?}"));
    documents(rest.split_once("```").expect("a manifest has an end").0).remove(0)
}

/// Flux's two image controllers: their Deployments have the shape of ours.
fn of_flux() -> Vec<Value> {
    let deployment = |name: &str| {
        let mut deployment = documents(&read("deployment.yaml")).remove(0);
        deployment["metadata"] = json!({"name": name, "namespace": "flux-system"});
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] =
            json!(format!("ghcr.io/fluxcd/{name}:v1.2.1"));
        deployment
    };
    ["image-automation-controller", "image-reflector-controller"].map(deployment).into()
}

/// The objects of a kustomization of Flux's controllers, by kind and name.
fn with_flux(kustomization: &Value) -> BTreeMap<String, Value> {
    let directory = tempfile::tempdir().unwrap();
    for (number, file) in kustomization["resources"].as_array().unwrap().iter().enumerate() {
        let documents = if number == 0 {
            of_flux()
        } else {
            vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sync"}})]
        };
        let text: Vec<String> = documents.iter().map(Value::to_string).collect();
        fs::write(directory.path().join(file.as_str().unwrap()), text.join("\n---\n")).unwrap();
    }
    built(directory.path(), kustomization)
}

fn built(directory: &Path, kustomization: &Value) -> BTreeMap<String, Value> {
    fs::write(directory.join("kustomization.yaml"), kustomization.to_string()).unwrap();
    let name = |object: &Value| {
        let text = |pointer: &str| object.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        format!("{}/{}", text("/kind"), text("/metadata/name"))
    };
    kustomize(directory).into_iter().map(|object| (name(&object), object)).collect()
}

#[test]
fn each_route_changes_the_image_and_nothing_else() {
    for title in ["bootstrap", "FluxInstance", "manifests"] {
        let manifest = manifest(title);
        let kustomization = match manifest.pointer("/spec/kustomize/patches") {
            Some(patches) => json!({"resources": ["flux.yaml"], "patches": patches}),
            None => manifest.clone(),
        };
        let mut plain = kustomization.clone();
        plain["patches"] = json!([]);
        let mut expected = with_flux(&plain);
        assert!(expected.len() >= 2, "{title}: {:?}", expected.keys());
        let image = expected
            .get_mut("Deployment/image-automation-controller")
            .and_then(|deployment| deployment.pointer_mut("/spec/template/spec/containers/0/image"))
            .unwrap();
        *image = json!(format!("registry.example.com/tagboat:{}", env!("CARGO_PKG_VERSION")));
        assert_eq!(with_flux(&kustomization), expected, "{title}");
    }
}

#[test]
fn compare_mode_gets_one_more_flag_and_may_only_read() {
    let root = tempfile::tempdir().unwrap();
    let overlay = root.path().join("compare");
    for directory in [&overlay, &root.path().join("tagboat")] {
        fs::create_dir(directory).unwrap();
    }
    copy(&folder(), &root.path().join("tagboat/deploy"));
    let manifest = manifest("compare");
    let mut plain = manifest.clone();
    plain["patches"] = json!([]);
    let (mut expected, found) = (built(&overlay, &plain), built(&overlay, &manifest));
    let deployment = expected.get_mut("Deployment/tagboat").unwrap();
    let arguments = deployment.pointer_mut("/spec/template/spec/containers/0/args").unwrap();
    arguments.as_array_mut().unwrap().push(json!("--dry-run"));
    let image = deployment.pointer("/spec/template/spec/containers/0/image").unwrap();
    assert_eq!(*image, format!("registry.example.com/tagboat:{}", env!("CARGO_PKG_VERSION")));
    for role in ["ClusterRole/tagboat", "Role/tagboat"] {
        let rules = found[role]["rules"].clone();
        let verbs = rules.as_array().unwrap().iter().flat_map(|rule| rule["verbs"].as_array().unwrap());
        for verb in verbs {
            assert!(["get", "list", "watch"].iter().any(|read| verb == read), "{role}: {verb}");
        }
        expected.get_mut(role).unwrap()["rules"] = rules;
    }
    assert_eq!(found, expected);
}

/// Copies a directory, because a base must be beside its overlay.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for item in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy(&item.path(), &target);
        } else {
            fs::copy(item.path(), target).unwrap();
        }
    }
}
