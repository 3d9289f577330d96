//! The facts about an automation in a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation};

use super::facts::{Facts, Found, Origin};
use super::refused::delivery_with_refusals;
use crate::cli::Failure;
use crate::cli::cluster::{ClusterArguments, cannot_read};
use crate::cli::explain::cluster::Cluster;
use crate::cli::explain::query::ObjectQuery;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::cluster::{ClusterError, NamespaceObject, is_object_name, list};
use crate::reconcile::automation::waiting::NamespaceRules;

/// Reads the automation of a query, its policies, and the Namespaces that decide about it.
pub(super) async fn facts(
    arguments: &ClusterArguments,
    query: &ObjectQuery<'_>,
    controller: &str,
) -> Result<Found, Failure> {
    if !is_object_name(controller) {
        return Err(Failure::Usage(format!(
            "--controller-namespace {controller:?} cannot be the name of a namespace"
        )));
    }
    let cluster = Cluster::reach(arguments, "; --policies explains an automation of manifests").await?;
    let automation: ImageUpdateAutomation = cluster.find(query, "ImageUpdateAutomations").await?;
    let namespace = automation.namespace().unwrap_or_default();
    let policies: Api<ImagePolicy> = Api::namespaced(cluster.objects.client().clone(), &namespace);
    let policies = list(&policies, cluster.objects.guard(), ListParams::default()).await;
    let policies = policies.map_err(|error| cannot_read("ImagePolicies", &error))?;
    let repository = match delivery_with_refusals(&automation) {
        Some(_) => repository(&cluster, &automation).await,
        None => Ok(None),
    };
    let mut facts = Facts {
        automation,
        repository: None,
        policies: policies.into_iter().map(Arc::new).collect(),
        rules: NamespaceRules::default(),
        refusals: Vec::new(),
        unread: Vec::new(),
        notes: Vec::new(),
        origin: Origin::Cluster { controller: controller.to_owned() },
    };
    match repository {
        Ok(found) => facts.repository = found,
        Err(error) => facts.unread.push(format!(
            "the GitRepository cannot be read, so the branch that is checked out is not known: {}",
            chain(&error)
        )),
    }
    let mut annotations = |name: &str, found: Result<Option<BTreeMap<String, String>>, ClusterError>| {
        let found = found.unwrap_or_else(|error| {
            facts.unread.push(format!(
                "the annotations of namespace {name} cannot be read, so its windows and freezes are not known: {}",
                chain(&error)
            ));
            Some(BTreeMap::new())
        });
        found.unwrap_or_else(|| {
            facts.notes.push(format!(
                "the cluster has no Namespace {name}; --controller-namespace names that of the controller, whose \
                 tagboat.dev/freeze-all counts"
            ));
            BTreeMap::new()
        })
    };
    let own = annotations(&namespace, read(&cluster, &namespace).await);
    let of_controller = match controller == namespace {
        true => own.clone(),
        false => annotations(controller, read(&cluster, controller).await),
    };
    facts.rules = NamespaceRules::of(&own).with_freeze_all(controller, &of_controller);
    Ok(Found::Facts(Box::new(facts)))
}

/// Reads the GitRepository of an automation; `None` if it does not exist.
async fn repository(
    cluster: &Cluster,
    automation: &ImageUpdateAutomation,
) -> Result<Option<GitRepository>, ClusterError> {
    let ObjectName { namespace, name } = automation.git_repository();
    if !is_object_name(&namespace) || !is_object_name(&name) {
        return Ok(None);
    }
    let api: Api<GitRepository> = Api::namespaced(cluster.objects.client().clone(), &namespace);
    cluster.objects.guard().send(&namespace, api.get_opt(&name)).await
}

/// Reads our annotations of a Namespace; `None` if it does not exist.
async fn read(cluster: &Cluster, name: &str) -> Result<Option<BTreeMap<String, String>>, ClusterError> {
    let api: Api<NamespaceObject> = Api::all(cluster.objects.client().clone());
    let found = cluster.objects.guard().send(name, api.get_opt(name)).await?;
    Ok(found.map(|found| found.annotations().clone()))
}
