//! Objects of the whole cluster, which have no namespace, are watched and written like others.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use tagboat::objects::ObjectName;
use tagboat::objects::cluster::{ApiGuard, Cache, ObjectWriter, Scope, watch_objects};

use crate::support::api_server::Cluster;

const FINALIZER: &str = "tests.tagboat.dev/cluster-scoped";

#[tokio::test]
async fn a_cluster_scoped_object_is_cached_by_its_name_and_gets_a_finalizer() {
    let cluster = Cluster::new().await;
    let name = cluster.another_namespace().await;
    let client = cluster.client();
    let api: Api<Namespace> = Api::all(client.clone());
    let cache = Cache::<Namespace>::default();
    // A controller that is restricted to one namespace sees the objects of the cluster all the same.
    let scope = Scope { namespace: Some(cluster.namespace().to_owned()), labels: None };
    let watch = watch_objects(client.clone(), &scope, &cache, |_| ());
    let key = ObjectName { namespace: String::new(), name: name.clone() };
    assert_eq!(key.to_string(), name);
    let test = async {
        cache.wait_for_sync().await;
        let known = cache.get(&key).expect("the namespace was there before the watch");
        let writer = ObjectWriter::new(client.clone(), ApiGuard::default(), "tests");
        let written = writer.add_finalizer(known.as_ref(), FINALIZER).await.unwrap().unwrap();
        assert_eq!(written.finalizers(), [FINALIZER]);
        while cache.get(&key).unwrap().finalizers().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        writer.remove_finalizer(&written, FINALIZER).await.unwrap();
        assert!(api.get(&name).await.unwrap().finalizers().is_empty());
    };
    tokio::select! {
        () = watch => unreachable!("a watch does not end"),
        ended = tokio::time::timeout(Duration::from_secs(60), test) => ended.expect("the watch shows the change"),
    }
}
