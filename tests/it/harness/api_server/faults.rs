//! Each fault looks to the client like the real fault of a network or server.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};

use super::{config_map, config_maps};
use crate::support::api_server::{Call, Cluster, Ending, Fault, Faults};

fn creates(call: &Call) -> bool {
    call.is("create", "configmaps")
}

/// Tries to create a config map through one fault.
async fn create(cluster: &Cluster, faults: &Faults, fault: Fault) -> Result<ConfigMap, kube::Error> {
    faults.next(1, fault, creates);
    config_maps(cluster.faulty_client(faults)).create(&PostParams::default(), &config_map("one")).await
}

async fn is_there(cluster: &Cluster) -> bool {
    config_maps(cluster.client()).get_opt("one").await.unwrap().is_some()
}

#[tokio::test]
async fn refusals_look_like_those_of_the_server() {
    let cluster = Cluster::new().await;
    for (fault, code, reason) in [
        (Fault::Conflict, 409, "Conflict"),
        (Fault::Gone, 410, "Expired"),
        (Fault::Broken, 500, "InternalError"),
    ] {
        let faults = Faults::default();
        let error = create(&cluster, &faults, fault).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{fault:?}: {error}") };
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
        assert!(!is_there(&cluster).await, "{fault:?}");
        assert_eq!(faults.calls().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_busy_server_is_retried_after_the_time_that_it_names() {
    let cluster = Cluster::new().await;
    let faults = Faults::default();
    let begin = Instant::now();
    create(&cluster, &faults, Fault::Busy(1)).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(faults.calls().len(), 2, "{:?}", faults.calls());
    assert!(is_there(&cluster).await);
}

#[tokio::test]
async fn a_request_lost_before_the_server_is_not_executed() {
    let cluster = Cluster::new().await;
    let error = create(&cluster, &Faults::default(), Fault::Unreachable).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert!(!is_there(&cluster).await);
}

#[tokio::test]
async fn an_answer_lost_after_the_server_executed_the_request() {
    let cluster = Cluster::new().await;
    let error = create(&cluster, &Faults::default(), Fault::LostAnswer).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert!(is_there(&cluster).await);
}

#[tokio::test]
async fn silence_lasts_until_the_client_gives_up() {
    let cluster = Cluster::new().await;
    let faults = Faults::default();
    let patience = Duration::from_millis(300);
    assert!(tokio::time::timeout(patience, create(&cluster, &faults, Fault::Silence)).await.is_err());
    assert!(!is_there(&cluster).await);
    assert_eq!(faults.calls().len(), 1);
}

#[tokio::test]
async fn a_late_answer_is_an_answer() {
    let cluster = Cluster::new().await;
    let begin = Instant::now();
    create(&cluster, &Faults::default(), Fault::Late(Duration::from_millis(300))).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300));
    assert!(is_there(&cluster).await);
}

#[tokio::test]
async fn faults_apply_to_their_requests_and_are_used_up() {
    let cluster = Cluster::new().await;
    let faults = Faults::default();
    let api = config_maps(cluster.faulty_client(&faults));
    faults.next(2, Fault::Conflict, creates);
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
    for _ in 0..2 {
        api.create(&PostParams::default(), &config_map("one")).await.unwrap_err();
    }
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let verbs: Vec<&str> = faults.calls().iter().map(|call| call.verb).collect();
    assert_eq!(verbs, ["list", "create", "create", "create"]);
    assert!(faults.calls().iter().all(|call| call.namespace.as_deref() == Some(cluster.namespace())));

    faults.forget_calls();
    faults.next(1000, Fault::Broken, |_| true);
    api.get("one").await.unwrap_err();
    faults.heal();
    api.get("one").await.unwrap();
    assert_eq!(faults.calls().len(), 2);
}

/// The events of a watch, beginning with that of an existing object.
async fn watch(client: Client) -> impl futures::Stream<Item = Result<WatchEvent<ConfigMap>, kube::Error>> {
    let api: Api<ConfigMap> = config_maps(client);
    let mut events = api.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    let first = events.try_next().await.unwrap();
    assert!(matches!(first, Some(WatchEvent::Added(_))), "{first:?}");
    events
}

#[tokio::test]
async fn watches_end_when_the_test_says_so() {
    let cluster = Cluster::new().await;
    config_maps(cluster.client()).create(&PostParams::default(), &config_map("one")).await.unwrap();
    let faults = Faults::default();
    let client = cluster.faulty_client(&faults);

    let mut events = Box::pin(watch(client.clone()).await);
    assert_eq!(faults.end_watches(Ending::Clean, |call| call.resource == "secrets"), 0);
    config_maps(cluster.client()).create(&PostParams::default(), &config_map("two")).await.unwrap();
    let next = events.try_next().await.unwrap();
    assert!(matches!(next, Some(WatchEvent::Added(_))), "{next:?}");
    assert_eq!(faults.end_watches(Ending::Clean, |call| call.is("watch", "configmaps")), 1);
    assert!(events.try_next().await.unwrap().is_none());

    let mut events = Box::pin(watch(client).await);
    assert_eq!(faults.end_watches(Ending::Reset, |_| true), 1);
    // Earlier events are read first.
    let ending = loop {
        match events.try_next().await {
            Ok(Some(WatchEvent::Added(_))) => {}
            ending => break ending,
        }
    };
    assert!(ending.is_err(), "{ending:?}");
}
