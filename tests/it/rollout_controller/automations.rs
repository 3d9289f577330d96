//! Several automations with markers of one policy.

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::scene::{Scene, deployment, image};
use crate::controller::scene::Kind;
use crate::support::eventually::eventually;

/// Returns the automations of the components with their places, in the order of names.
fn markers<'s>(status: &'s Value) -> Vec<(&'s str, &'s str)> {
    let mut components: Vec<&'s Value> = status["components"].as_array().into_iter().flatten().collect();
    components.sort_by_key(|component| component["name"].as_str());
    let marker = |component: &'s Value| {
        (component["automation"].as_str().unwrap(), component["place"].as_str().unwrap())
    };
    components.into_iter().map(marker).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_automations_of_one_policy_share_one_object_whose_components_name_their_own() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    scene.commit("podinfo.yaml", None);
    for name in ["east", "west"] {
        let text = deployment("podinfo", 1).replace("name: podinfo\n", &format!("name: {name}\n"));
        let text = text.replace("app: podinfo", &format!("app: {name}"));
        scene.commit(&format!("{name}/{name}.yaml"), Some(&text));
        scene.create_automation_of(name, &format!("./{name}")).await;
    }
    scene.delete(Kind::Automation, "fleet").await;
    let mut program = scene.start().await;
    let expected = [("east", "east/east.yaml:13"), ("west", "west/west.yaml:13")];
    let both = |status: &Value, state: &str| status["summary"][state] == 2 && markers(status) == expected;
    scene.until("podinfo", "pending twice", |status| both(status, "pending")).await;
    scene.apply_tree().await;
    scene.until("podinfo", "installed twice", |status| both(status, "installed")).await;

    // Each automation writes its own file.
    scene.choose("podinfo", "2.0.0").await;
    let wanted = format!("image: {}:2.0.0 ", image("podinfo"));
    let has = |name: &str| {
        let text = scene.repository.file("main", &format!("{name}/{name}.yaml"));
        String::from_utf8(text).unwrap().contains(&wanted)
    };
    eventually("both files have the image", async || has("east") && has("west")).await;
    scene.apply_tree().await;
    let is_installed = |status: &Value| status["target"]["tag"] == "2.0.0" && both(status, "installed");
    let status = scene.until("podinfo", "installed twice with 2.0.0", is_installed).await;
    let deployed = &status["deployHistory"][0];
    assert_eq!((&deployed["version"], &deployed["objectCount"]), (&json!("2.0.0"), &json!(2)), "{status:#}");
    let objects = scene.statuses().list(&ListParams::default()).await.unwrap().items;
    let names: Vec<String> = objects.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["podinfo"]);
    let running = format!("Normal RolloutSucceeded {}:2.0.0 is running: 2 objects", image("podinfo"));
    let events = scene.events("podinfo").await;
    assert_eq!(events.iter().filter(|event| event.contains(":2.0.0 ")).count(), 1, "{events:#?}");
    assert!(events.last().unwrap().starts_with(&running), "{events:#?}");

    // The other one keeps the object, with its own component.
    let before = scene.object("podinfo").await.unwrap();
    scene.delete(Kind::Automation, "east").await;
    let alone = |status: &Value| markers(status) == expected[1..];
    scene.until("podinfo", "that of one automation", alone).await;
    assert_eq!(scene.object("podinfo").await.unwrap().metadata.uid, before.metadata.uid);
    scene.delete(Kind::Automation, "west").await;
    scene.gone("podinfo").await;
    assert_eq!(program.terminate().0, Some(0));
}
