//! Preflight checks of a cluster and of the controller's role.
//!
//! The cluster must serve the kinds that the controller needs, and the role must allow their use.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Client, Resource};

use super::error::ControllerError;
use crate::objects::cluster::{ClusterError, Scope};

/// The time between two checks.
const INTERVAL: Duration = Duration::from_secs(30);

/// The use that a controller makes of the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Their metadata, their spec and their status are written.
    Write,
    /// Their metadata and their spec are written.
    Patch,
    /// They are listed and evicted.
    Evict,
}

/// A kind that a controller needs.
#[derive(Clone, Debug)]
pub(crate) struct Requirement {
    resource: ApiResource,
    access: Access,
}

impl Requirement {
    /// Requires a kind.
    pub(crate) fn of<K: Resource<DynamicType = ()>>(access: Access) -> Self {
        Self { resource: ApiResource::erase::<K>(&()), access }
    }

    /// Returns the verbs that the role must allow.
    ///
    /// Each verb has the part of the object that it is for.
    fn verbs(&self) -> &'static [(&'static str, Option<&'static str>)] {
        match self.access {
            Access::Read => &[("list", None), ("watch", None)],
            Access::Patch => &[("list", None), ("watch", None), ("patch", None)],
            Access::Evict => &[("list", None), ("create", Some("eviction"))],
            Access::Write => &[("list", None), ("watch", None), ("patch", None), ("patch", Some("status"))],
        }
    }
}

/// Waits until a controller can work, and logs once why it cannot.
///
/// So one process may serve a cluster that has the kinds of one controller only.
///
/// # Errors
///
/// If the API server refuses the label selector of `scope`.
pub(crate) async fn wait_until_ready(
    name: &str,
    requirements: &[Requirement],
    client: &Client,
    scope: &Scope,
) -> Result<(), ControllerError> {
    let mut is_logged = false;
    while let Some(reason) = unmet(requirements, client, scope).await? {
        if !is_logged {
            tracing::info!("{name} controller disabled: {reason}");
            is_logged = true;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

/// Returns the reason for which a controller cannot work.
///
/// The first requirement that is not met ends the checks, so an optional controller costs few requests.
async fn unmet(
    requirements: &[Requirement],
    client: &Client,
    scope: &Scope,
) -> Result<Option<String>, ControllerError> {
    let namespace = scope.namespace.as_deref();
    for requirement in requirements {
        let resource = &requirement.resource;
        let verbs = requirement.verbs().iter();
        let reviews = verbs.map(|(verb, part)| forbidden(client, namespace, resource, verb, *part));
        let reason = match join_all(reviews).await.into_iter().flatten().next() {
            Some(reason) => Some(reason),
            None => first_list(client, scope, resource).await?,
        };
        if reason.is_some() {
            return Ok(reason);
        }
    }
    Ok(None)
}

/// Returns the permission that the role lacks for a verb, if it does.
///
/// If the API server does not answer, it is `None`: the use of the kind shows what is forbidden.
pub(crate) async fn forbidden(
    client: &Client,
    namespace: Option<&str>,
    resource: &ApiResource,
    verb: &str,
    part: Option<&str>,
) -> Option<String> {
    let attributes = ResourceAttributes {
        group: Some(resource.group.clone()),
        namespace: namespace.map(str::to_owned),
        resource: Some(resource.plural.clone()),
        subresource: part.map(str::to_owned),
        verb: Some(verb.to_owned()),
        ..Default::default()
    };
    let is_permitted = is_permitted(client, attributes).await?;
    let plural = &resource.plural;
    let name = part.map_or(plural.clone(), |part| format!("{plural}/{part}"));
    (!is_permitted).then(|| format!("the role of the controller does not allow it to {verb} {name}"))
}

/// Returns whether the role permits a request.
///
/// If the API server does not answer, or does not permit the question, it is `None`.
pub(crate) async fn is_permitted(client: &Client, attributes: ResourceAttributes) -> Option<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            non_resource_attributes: None,
        },
        ..Default::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let status = api.create(&PostParams::default(), &review).await.ok()?.status;
    Some(status.is_some_and(|status| status.allowed))
}

/// Lists one object of a kind, to check that the kind can be watched.
///
/// Returns the reason for which the listing must be tried again first, if there is one. The selector is
/// validated by the API server alone, so an outage leaves it undecided.
async fn first_list(
    client: &Client,
    scope: &Scope,
    resource: &ApiResource,
) -> Result<Option<String>, ControllerError> {
    let api: Api<DynamicObject> = match &scope.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let mut parameters = ListParams::default().limit(1);
    parameters.label_selector.clone_from(&scope.labels);
    let Err(error) = api.list(&parameters).await.map_err(ClusterError::from) else { return Ok(None) };
    match &scope.labels {
        _ if error.is_not_found() => {
            Ok(Some(format!("the CustomResourceDefinition of {} is not installed", resource.kind)))
        }
        Some(selector) if error.is_bad_request() => {
            Err(ControllerError::SelectorRefused { selector: selector.clone(), refusal: error.to_string() })
        }
        Some(_) if error.is_transient() => Ok(Some(error.to_string())),
        _ => Ok(None),
    }
}
