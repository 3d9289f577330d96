//! A policy in a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tagboat_api::{ImagePolicy, ImageRepository};

use super::subject::{PolicyQuery, RepositoryLookup, Subject};
use crate::cli::Failure;
use crate::cli::cluster::{ClusterArguments, Connection, cannot_read};
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::cluster::{ClusterError, ClusterObjects, is_object_name, list};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::request::repository_of;

/// Ends the sentence that says that there is no cluster.
const ADVICE: &str = "; --policies explains a policy of manifests";

/// A cluster with policies.
pub(super) struct Cluster {
    objects: ClusterObjects,
    /// The namespace of the kubeconfig's context.
    namespace: String,
}

impl Cluster {
    /// Reads the policy of a query and its repository.
    pub(super) async fn subject(
        arguments: &ClusterArguments,
        query: &PolicyQuery<'_>,
    ) -> Result<(Subject, ClusterObjects), Failure> {
        let cluster = Self::reach(arguments).await?;
        let policy = cluster.policy(query).await?;
        let mut labels = BTreeMap::new();
        let repository = if query.has_tags {
            RepositoryLookup::NotNeeded
        } else {
            match cluster.repository(&policy).await? {
                None => RepositoryLookup::Missing,
                Some(repository) => {
                    let own = policy.namespace().unwrap_or_default();
                    if needs_labels(&own, &repository) {
                        labels = cluster.labels(&own).await?;
                    }
                    RepositoryLookup::Found(Box::new(repository))
                }
            }
        };
        Ok((Subject { policy, repository, labels }, cluster.objects))
    }

    async fn reach(arguments: &ClusterArguments) -> Result<Self, Failure> {
        let Connection { client, namespace, .. } = arguments.connect(ADVICE).await?;
        Ok(Self { objects: ClusterObjects::new(client), namespace })
    }

    async fn policy(&self, query: &PolicyQuery<'_>) -> Result<ImagePolicy, Failure> {
        let found = match query.namespace {
            Some(namespace) => self.named(namespace, query.name).await,
            None => match self.anywhere(query.name).await {
                Err(error) if error.is_forbidden() => {
                    let own = &self.namespace;
                    say(&format!(
                        "note: you may not list ImagePolicies in all namespaces, so {} is searched in {own}, the namespace \
                         of the kubeconfig; --namespace names another",
                        query.name
                    ));
                    self.named(own, query.name).await
                }
                found => found,
            },
        };
        let found = found.map_err(|error| match error {
            error if error.is_not_found() => Failure::new(format!(
                "the cluster has no kind ImagePolicy of {}/{}: its CustomResourceDefinition is not installed",
                tagboat_api::IMAGE_GROUP,
                tagboat_api::VERSION
            )),
            error => cannot_read("ImagePolicies", &error),
        })?;
        query.only(found, ObjectName::of)?.ok_or_else(|| {
            Failure::Usage(format!("the cluster has no ImagePolicy {}{}", query.name, query.in_namespace()))
        })
    }

    /// Lists the policies of that name in all namespaces.
    async fn anywhere(&self, name: &str) -> Result<Vec<ImagePolicy>, ClusterError> {
        if !is_object_name(name) {
            return Ok(Vec::new());
        }
        let api: Api<ImagePolicy> = Api::all(self.objects.client().clone());
        let parameters = ListParams::default().fields(&format!("metadata.name={name}"));
        list(&api, self.objects.guard(), parameters).await
    }

    async fn named(&self, namespace: &str, name: &str) -> Result<Vec<ImagePolicy>, ClusterError> {
        if !is_object_name(namespace) || !is_object_name(name) {
            return Ok(Vec::new());
        }
        let api: Api<ImagePolicy> = Api::namespaced(self.objects.client().clone(), namespace);
        Ok(self.objects.guard().send(namespace, api.get_opt(name)).await?.into_iter().collect())
    }

    async fn repository(&self, policy: &ImagePolicy) -> Result<Option<ImageRepository>, Failure> {
        let name = repository_of(policy);
        if !is_object_name(&name.namespace) || !is_object_name(&name.name) {
            return Ok(None);
        }
        let api: Api<ImageRepository> = Api::namespaced(self.objects.client().clone(), &name.namespace);
        let found = self.objects.guard().send(&name.namespace, api.get_opt(&name.name)).await;
        found.map_err(|error| cannot_read(&format!("the ImageRepository {name}"), &error))
    }

    /// Reads the labels of the policy's namespace.
    async fn labels(&self, own: &str) -> Result<BTreeMap<String, String>, Failure> {
        let api: Api<Namespace> = Api::all(self.objects.client().clone());
        let namespace = self.objects.guard().send(own, api.get(own)).await;
        let what =
            format!("the labels of the namespace {own}, which decide about access to the ImageRepository");
        let namespace = namespace.map_err(|error| cannot_read(&what, &error))?;
        Ok(namespace.metadata.labels.unwrap_or_default())
    }
}
