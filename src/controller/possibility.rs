//! Whether a cluster has what a half of the controller needs: kinds that are served, and a role that allows it.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Client, Resource};
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation};

use crate::objects::cluster::{ClusterError, Scope};

/// How long it takes until it is seen that something is there by now.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// One half of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The one that carries out automations.
    Automation,
    /// The same where it writes nothing.
    Shadow,
    /// The one that scans repositories and carries out policies.
    Reflector,
}

/// What is done with the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reading,
    Writing,
}

impl Half {
    fn needs(self) -> Vec<(ApiResource, Use)> {
        fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
            ApiResource::erase::<K>(&())
        }
        let writing = if self == Self::Shadow { Use::Reading } else { Use::Writing };
        match self {
            Self::Automation | Self::Shadow => vec![
                (kind::<ImageUpdateAutomation>(), writing),
                (kind::<ImagePolicy>(), Use::Reading),
                (kind::<GitRepository>(), Use::Reading),
            ],
            Self::Reflector => vec![(kind::<ImageRepository>(), writing), (kind::<ImagePolicy>(), writing)],
        }
    }

    fn objects(self) -> &'static str {
        match self {
            Self::Automation | Self::Shadow => "automations",
            Self::Reflector => "repositories and policies",
        }
    }
}

/// The API server refuses the label selector of the objects to reconcile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--watch-label-selector {selector:?} cannot be used: {refusal}")]
pub struct SelectorRefused {
    /// The selector, as it was given.
    selector: String,
    /// The message of the API server.
    refusal: String,
}

/// Waits until a half can work, and says once why it cannot.
///
/// So one process may serve a cluster that has the kinds of one half only.
///
/// # Errors
///
/// When the API server refuses the label selector of `scope`.
pub async fn is_possible(half: Half, client: &Client, scope: &Scope) -> Result<(), SelectorRefused> {
    let mut is_said = false;
    while let Some(words) = obstacle(half, client, scope).await? {
        if !is_said {
            tracing::info!("{} are left alone: {words}", half.objects());
            is_said = true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Why a half cannot work.
async fn obstacle(half: Half, client: &Client, scope: &Scope) -> Result<Option<String>, SelectorRefused> {
    let (needs, namespace) = (half.needs(), scope.namespace.as_deref());
    let looks = needs.iter().map(|(resource, use_)| async move {
        let verbs: &[(&str, Option<&str>)] = match use_ {
            Use::Reading => &[("list", None), ("watch", None)],
            Use::Writing => &[("list", None), ("watch", None), ("patch", None), ("patch", Some("status"))],
        };
        let refusals = verbs.iter().map(|(verb, part)| refusal(client, namespace, resource, verb, *part));
        let refusal = join_all(refusals).await.into_iter().flatten().next();
        match refusal {
            Some(words) => Ok(Some(words)),
            None => first_list(client, scope, resource).await,
        }
    });
    Ok(try_join_all(looks).await?.into_iter().flatten().next())
}

/// What the role does not allow.
async fn refusal(
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
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            non_resource_attributes: None,
        },
        ..Default::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    // Whoever cannot even ask is shown by the watch what is wrong.
    let status = api.create(&PostParams::default(), &review).await.ok()?.status;
    let plural = &resource.plural;
    let name = part.map_or(plural.clone(), |part| format!("{plural}/{part}"));
    (!status.is_some_and(|status| status.allowed))
        .then(|| format!("the role of the controller does not allow it to {verb} {name}"))
}

/// Lists one object of a kind, and returns the reason why that must be tried again before the kind can be watched.
///
/// The selector is validated by the API server alone, so an outage leaves it undecided.
async fn first_list(
    client: &Client,
    scope: &Scope,
    resource: &ApiResource,
) -> Result<Option<String>, SelectorRefused> {
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
            Err(SelectorRefused { selector: selector.clone(), refusal: error.to_string() })
        }
        Some(_) if error.is_transient() => Ok(Some(error.to_string())),
        _ => Ok(None),
    }
}
