//! The CustomResourceDefinition of NodePool on a real API server.

use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tagboat_api::{NodePool, crds};

use crate::support::api_server::{ADMIN_TOKEN, ApiServer};

/// A pool with a value in each field of its spec.
fn full_pool() -> Value {
    json!({
        "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "workers"},
        "spec": {
            "nodeSelector": {
                "matchLabels": {"node-role.kubernetes.io/worker": ""},
                "matchExpressions": [
                    {"key": "example.com/stage", "operator": "In", "values": ["live", "test"]},
                    {"key": "example.com/manual", "operator": "DoesNotExist"},
                ],
            },
            "image": {
                "ref": format!("registry.example:5000/org/os:v1.2@sha256:{}", "0a".repeat(32)),
                "pullSecretRef": {"namespace": "tagboat-system", "name": "registry"},
            },
            "paused": true,
            "rollout": {
                "maxUnavailable": "25%", "drainTimeout": "1h30m", "rebootTimeout": "15m",
                "postCompleteDelay": "0s",
                "windows": [
                    {"days": ["Mon", "Thu"], "start": "23:00", "length": "2h", "timeZone": "Europe/Berlin"},
                    {"start": "00:00", "length": "168h"},
                ],
            },
            "hooks": {
                "beforeDrain": ["backup", "example.com/Backup_1.done"], "beforeReboot": ["example.com/volumes"],
                "beforeUncordon": ["example.com/check"], "timeout": "10m",
            },
            "drain": {
                "disabled": true, "skip": {"matchLabels": {"app": "monitor"}}, "gracePeriod": "30s",
            },
        },
    })
}

fn full_status() -> Value {
    let time = "2026-11-23T10:04:11Z";
    let entry = |digest: Option<&str>, version: Option<&str>| {
        let mut entry = json!({"nodeCount": 12, "lastDeployed": time});
        for (key, value) in [("digest", digest), ("version", version)] {
            if let Some(value) = value {
                entry[key] = value.into();
            }
        }
        entry
    };
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": time});
    json!({
        "observedGeneration": 1, "targetDigest": format!("sha256:{}", "0a".repeat(32)),
        "nextTagResolutionTime": time, "nodeCount": 5, "updatedCount": 3, "updatingCount": 1, "degradedCount": 1,
        "deployHistory": [
            entry(Some("sha256:0a"), Some("v1.2")), entry(Some("sha256:0b"), None), entry(None, Some("3815.2.0")),
        ],
        "conditions": [condition("UpToDate", "AllUpdated"), condition("Degraded", "NodeDegraded")],
    })
}

/// Paths in the spec, values for them, and parts of the server's errors.
fn refused_values() -> Vec<(&'static str, Value, &'static str)> {
    let long = |length: usize| "x".repeat(length);
    let prefix = format!("{}.{}", [long(63).as_str(); 4].join("."), long(1));
    let in_nothing = json!([{"key": "a", "operator": "In", "values": []}]);
    let window = |length: &str| json!([{"start": "23:00", "length": length}]);
    vec![
        ("/nodeSelector", json!({}), "an empty selector is invalid"),
        ("/nodeSelector", json!({"matchLabels": {}, "matchExpressions": []}), "an empty selector is invalid"),
        ("/nodeSelector", Value::Null, "spec.nodeSelector: Required"),
        ("/nodeSelector/matchLabels", json!({"a": "b c"}), "write a value of a label: at most 63 letters"),
        ("/nodeSelector/matchExpressions", in_nothing, "In and NotIn need values"),
        (
            "/nodeSelector/matchExpressions",
            json!([{"key": "a", "operator": "Exists", "values": ["b"]}]),
            "take none",
        ),
        ("/nodeSelector/matchExpressions/0/operator", json!("Gt"), "Unsupported value"),
        (
            "/nodeSelector/matchExpressions/0/key",
            json!("a b"),
            "write a key of a label, such as role or example.com/role",
        ),
        ("/drain/skip", json!({}), "an empty selector is invalid"),
        ("/image/ref", json!(""), "write an image with a tag, a digest, or both"),
        ("/image/ref", json!("registry.example/os"), "write an image with a tag, a digest, or both"),
        ("/image/ref", json!("localhost:5000/os"), "write an image with a tag, a digest, or both"),
        (
            "/image/ref",
            json!("registry.example/os:v1@sha256:0a"),
            "write an image with a tag, a digest, or both",
        ),
        ("/image/ref", json!(format!("{}:v1", long(1100))), "Too long"),
        ("/image/pullSecretRef/namespace", Value::Null, "namespace: Required"),
        ("/image/pullSecretRef/name", json!(""), "at least 1"),
        ("/rollout/maxUnavailable", json!(-1), "write a number of nodes"),
        ("/rollout/maxUnavailable", json!(1u64 << 31), "write a number of nodes"),
        ("/rollout/maxUnavailable", json!(1.5), "Invalid value"),
        ("/rollout/maxUnavailable", json!("101%"), "write a number of nodes, such as 1, or a percentage"),
        ("/rollout/maxUnavailable", json!("-5%"), "write a number of nodes, such as 1, or a percentage"),
        ("/rollout/maxUnavailable", json!("1"), "write a number of nodes, such as 1, or a percentage"),
        ("/rollout/drainTimeout", json!("-1s"), "write a duration of h, m, s and ms, such as 90s"),
        ("/rollout/drainTimeout", json!("0s"), "must be more than 0"),
        ("/rollout/rebootTimeout", json!("0h0m"), "must be more than 0"),
        ("/rollout/rebootTimeout", json!("90"), "write a duration of h, m, s and ms, such as 90s"),
        ("/rollout/rebootTimeout", json!("99999999h"), "such as 90s, 5m or 1h30m, of at most 99999h"),
        ("/rollout/drainTimeout", json!("1h99999999999999s"), "such as 90s, 5m or 1h30m, of at most 99999h"),
        ("/rollout/postCompleteDelay", json!("-1m"), "write a duration of h, m, s and ms, such as 90s"),
        ("/rollout/postCompleteDelay", json!(format!("{}s", long(40).replace('x', "1"))), "Too long"),
        ("/rollout/windows", window("0s"), "more than 0 and at most a week"),
        ("/rollout/windows", window("168h1s"), "more than 0 and at most a week"),
        ("/rollout/windows", window("-2h"), "write a duration of h, m, s and ms, such as 90s"),
        ("/rollout/windows", json!([{"start": "23:00"}]), "length: Required"),
        ("/rollout/windows", json!(vec![json!({"start": "23:00", "length": "1h"}); 17]), "Too many"),
        ("/rollout/windows/0/start", json!("24:00"), "write a time of the day, such as 09:00"),
        ("/rollout/windows/0/start", json!("9:00"), "write a time of the day, such as 09:00"),
        ("/rollout/windows/0/start", json!("23:60"), "write a time of the day, such as 09:00"),
        ("/rollout/windows/0/days", json!(["Monday"]), "Unsupported value"),
        ("/rollout/windows/0/days", json!(["Mon", "Mon"]), "Duplicate value"),
        ("/rollout/windows/0/timeZone", json!("Mars Olympus"), "write a time zone of the IANA database"),
        ("/hooks/timeout", json!("0s"), "must be more than 0"),
        ("/hooks/beforeDrain", json!(["a b"]), "write a key of a label, such as example.com/drained"),
        ("/hooks/beforeDrain", json!([""]), "write a key of a label, such as example.com/drained"),
        ("/hooks/beforeDrain", json!(["a", "a"]), "Duplicate value"),
        (
            "/hooks/beforeReboot",
            json!(["Example.com/a"]),
            "write a key of a label, such as example.com/drained",
        ),
        ("/hooks/beforeReboot", json!(["a/b/c"]), "write a key of a label, such as example.com/drained"),
        ("/hooks/beforeReboot", json!([long(64)]), "write a key of a label, such as example.com/drained"),
        ("/hooks/beforeUncordon", json!([format!("{prefix}/a")]), "at most 253 characters"),
        ("/hooks/beforeUncordon", json!(["tagboat.dev/state"]), "a key of Tagboat's own"),
        ("/hooks/beforeUncordon", json!((0..17).map(|n| format!("a{n}")).collect::<Vec<_>>()), "Too many"),
        ("/drain/gracePeriod", json!("-30s"), "write a duration of h, m, s and ms, such as 90s"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_refuses_every_meaningless_value_and_keeps_a_full_pool() {
    let server = ApiServer::shared().start_beside("node-pool-definition");
    server.install(&[crds::nodes()]);
    let config = server.access().config(ADMIN_TOKEN, "default").await;
    let client = kube::Client::try_from(config).unwrap();
    let resource = kube::discovery::ApiResource::erase::<NodePool>(&());
    let dynamic: Api<kube::api::DynamicObject> = Api::all_with(client.clone(), &resource);
    let pools: Api<NodePool> = Api::all(client);

    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    for (path, value, expected) in refused_values() {
        let mut pool = full_pool();
        let (parent, field) = path.rsplit_once('/').unwrap();
        let parent = pool["spec"].pointer_mut(parent).unwrap().as_object_mut().unwrap();
        let what = format!("{path}: {value}");
        // The server drops a null.
        parent.insert(field.to_owned(), value);
        let pool = serde_json::from_value(pool).unwrap();
        let error = dynamic.create(&dry_run, &pool).await.map(drop).expect_err(&what);
        let kube::Error::Api(status) = error else { panic!("{what}: {error}") };
        assert_eq!(status.code, 422, "{what}: {}", status.message);
        assert!(status.message.contains(expected), "{what}: {}", status.message);
        // A user need not read regular expressions, and sees no error of the evaluation of a rule.
        for internal in ["should match", "^", "proto", "evaluat"] {
            assert!(!status.message.contains(internal), "{what}: {}", status.message);
        }
    }

    for reference in
        ["os:v1", "localhost:5000/os:v1", &format!("registry.example/os@sha256:{}", "0a".repeat(32))]
    {
        let mut pool = full_pool();
        pool["spec"] = json!({
            "nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            "image": {"ref": reference}, "rollout": {"maxUnavailable": 0},
        });
        let kept = dynamic.create(&dry_run, &serde_json::from_value(pool.clone()).unwrap()).await.unwrap();
        assert_eq!(kept.data["spec"], pool["spec"], "no field has a default");
    }

    let typed: NodePool = serde_json::from_value(full_pool()).unwrap();
    pools.create(&PostParams::default(), &typed).await.unwrap();
    let status = json!({"status": full_status()});
    pools.patch_status("workers", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let kept = pools.get("workers").await.unwrap();
    assert_eq!(kept.spec, typed.spec);
    assert_eq!(serde_json::to_value(&kept.spec).unwrap(), full_pool()["spec"]);
    assert_eq!(serde_json::to_value(&kept.status).unwrap(), full_status());
}
