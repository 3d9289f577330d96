//! Objects in a cluster.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::query::ObjectQuery;
use super::subject::{RepositoryLookup, Subject};
use crate::cli::Failure;
use crate::cli::cluster::{ClusterArguments, Connection, cannot_read};
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::cluster::{ClusterError, ClusterObjects, is_object_name, list};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::group::other_members;
use crate::reconcile::policy::request::repository_of;

/// A cluster with objects that are explained.
pub(super) struct Cluster {
    pub(super) objects: ClusterObjects,
    /// The namespace of the kubeconfig's context.
    namespace: String,
}

impl Cluster {
    /// Reads the policy of a query, and without tags its repository.
    pub(super) async fn subject(
        arguments: &ClusterArguments,
        query: &ObjectQuery<'_>,
        has_tags: bool,
    ) -> Result<(Subject, ClusterObjects), Failure> {
        let cluster = Self::reach(arguments, "; --policies explains a policy of manifests").await?;
        let policy: ImagePolicy = cluster.find(query, "ImagePolicies").await?;
        if has_tags {
            let (repository, labels) = (RepositoryLookup::NotNeeded, BTreeMap::new());
            return Ok((Subject { policy, repository, labels, members: Vec::new() }, cluster.objects));
        }
        let others = cluster.members(&policy).await?;
        let mut subject = cluster.with_repository(policy).await?;
        for member in others {
            subject.members.push(cluster.with_repository(member).await?);
        }
        Ok((subject, cluster.objects))
    }

    /// Reads the repository of a policy.
    async fn with_repository(&self, policy: ImagePolicy) -> Result<Subject, Failure> {
        let mut labels = BTreeMap::new();
        let repository = match self.repository(&policy).await? {
            None => RepositoryLookup::Missing,
            Some(repository) => {
                let own = policy.namespace().unwrap_or_default();
                if needs_labels(&own, &repository) {
                    labels = self.labels(&own).await?;
                }
                RepositoryLookup::Found(Box::new(repository))
            }
        };
        Ok(Subject { policy, repository, labels, members: Vec::new() })
    }

    /// Lists the other members of a policy's release group.
    async fn members(&self, policy: &ImagePolicy) -> Result<Vec<ImagePolicy>, Failure> {
        if PolicySettings::release_group(policy.annotations()).is_none() {
            return Ok(Vec::new());
        }
        let namespace = policy.namespace().unwrap_or_default();
        let api: Api<ImagePolicy> = Api::namespaced(self.objects.client().clone(), &namespace);
        let all = list(&api, self.objects.guard(), ListParams::default()).await;
        let all = all.map_err(|error| cannot_read("the ImagePolicies of the release group", &error))?;
        Ok(other_members(policy, all))
    }

    /// Connects to the cluster; `advice` ends the sentence that says that there is none.
    pub(super) async fn reach(arguments: &ClusterArguments, advice: &str) -> Result<Self, Failure> {
        let Connection { client, namespace, .. } = arguments.connect(advice).await?;
        Ok(Self { objects: ClusterObjects::new(client), namespace })
    }

    /// Reads the object of a query; `plural` is the name of its kind in sentences.
    pub(super) async fn find<K: ClusterObject>(
        &self,
        query: &ObjectQuery<'_>,
        plural: &str,
    ) -> Result<K, Failure> {
        let found = match query.namespace {
            Some(namespace) => self.named(namespace, query.name).await,
            None => match self.anywhere(query.name).await {
                Err(error) if error.is_forbidden() => {
                    let own = &self.namespace;
                    say(&format!(
                        "note: you may not list {plural} in all namespaces, so {} is searched in {own}, the namespace \
                         of the kubeconfig; --namespace names another",
                        query.name
                    ));
                    self.named(own, query.name).await
                }
                found => found,
            },
        };
        let kind = K::kind(&());
        let found = found.map_err(|error| match error {
            error if error.is_not_found() => Failure::new(format!(
                "the cluster has no kind {kind} of {}/{}: its CustomResourceDefinition is not installed",
                K::group(&()),
                K::version(&())
            )),
            error => cannot_read(plural, &error),
        })?;
        query.only(found, ObjectName::of)?.ok_or_else(|| {
            Failure::Usage(format!("the cluster has no {kind} {}{}", query.name, query.in_namespace()))
        })
    }

    /// Lists the objects of that name in all namespaces.
    async fn anywhere<K: ClusterObject>(&self, name: &str) -> Result<Vec<K>, ClusterError> {
        if !is_object_name(name) {
            return Ok(Vec::new());
        }
        let api: Api<K> = Api::all(self.objects.client().clone());
        let parameters = ListParams::default().fields(&format!("metadata.name={name}"));
        list(&api, self.objects.guard(), parameters).await
    }

    async fn named<K: ClusterObject>(&self, namespace: &str, name: &str) -> Result<Vec<K>, ClusterError> {
        if !is_object_name(namespace) || !is_object_name(name) {
            return Ok(Vec::new());
        }
        let api: Api<K> = Api::namespaced(self.objects.client().clone(), namespace);
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

/// A kind of objects with a namespace.
pub(super) trait ClusterObject:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static
{
}

impl<K> ClusterObject for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static
{
}
