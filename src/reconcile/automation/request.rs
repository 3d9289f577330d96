//! Parses the request of an automation: selected policies, paths, and values to write.

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use kube::core::SelectorExt;
use tagboat_api::automation::UpdateStrategy;
use tagboat_api::{ImagePolicy, ImageRef, ImageUpdateAutomation, Reason};

use super::waiting::{GroupHolds, Images};
use crate::error::ReconcileError;
use crate::objects::ObjectName;
use crate::reference::{ImageReference, ReferenceError};
use crate::update::{PolicyState, UpdateRequest};
use crate::yaml::Limits;
use tagboat_api::selector::{self, SelectorError};

/// The maximum size of all keys and values of `messageTemplateValues`, in bytes.
///
/// Each run that waits keeps them.
const LARGEST_VALUES: usize = 64 * 1024;

/// An update on behalf of an automation, or of policies alone.
#[derive(Debug, Default)]
pub struct Request {
    /// The update.
    pub update: UpdateRequest,
    /// `messageTemplateValues` of the automation.
    pub values: BTreeMap<String, String>,
    /// Selected policies whose image cannot be used; they count as having none.
    pub unusable: Vec<UnusableImage>,
    /// The release groups of the selected policies, once they were looked at.
    pub groups: GroupHolds,
}

impl Request {
    /// Holds the policies of release groups whose members have different values.
    ///
    /// `policies` are those that the request was made from, and `given` replaces their images.
    pub fn hold_groups<'a>(
        &mut self,
        automation: &ImageUpdateAutomation,
        policies: impl Iterator<Item = &'a ImagePolicy>,
        given: &ImageOverrides,
    ) {
        let namespace = automation.namespace();
        let none = BTreeMap::new();
        let observed = automation.status.as_ref().map_or(&none, |status| &status.observed_policies);
        let own = policies.filter(|policy| policy.namespace() == namespace);
        self.groups = GroupHolds::hold(&mut self.update.setters, own, Images { given, observed });
    }
}

/// A policy whose latest image is no image reference.
#[derive(Debug)]
pub struct UnusableImage {
    /// The policy.
    pub policy: ObjectName,
    /// The image as its status states it.
    pub image: String,
    /// The defect.
    pub cause: ReferenceError,
}

impl fmt::Display for UnusableImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ImagePolicy {} has the latest image {:?}, which cannot be used: ",
            self.policy, self.image
        )?;
        crate::error::write_chain(formatter, &self.cause)
    }
}

/// The error of an automation that cannot be reconciled as it is.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A strategy that does not exist.
    #[error("unsupported update strategy: {strategy}")]
    UnsupportedUpdateStrategy {
        /// The name.
        strategy: String,
    },
    /// The selector cannot be parsed.
    #[error("failed to parse policy selector")]
    InvalidPolicySelector {
        /// The cause.
        #[from]
        cause: SelectorError,
    },
    /// More values for the message than it can use.
    #[error(
        "the keys and values of spec.git.commit.messageTemplateValues take more than {} KiB: remove what the message does \
         not need", LARGEST_VALUES >> 10
    )]
    LargeValues,
}

/// Reasons are Flux's (`docs/flux-behaviour.md`, Failures). Only a changed spec helps.
impl ReconcileError for RequestError {
    fn reason(&self) -> Reason {
        match self {
            Self::UnsupportedUpdateStrategy { .. } => Reason::InvalidUpdateStrategy,
            Self::InvalidPolicySelector { .. } => Reason::InvalidPolicySelector,
            Self::LargeValues => Reason::InvalidSourceConfiguration,
        }
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// The images that the caller sets, in place of those in the policies' status.
///
/// `None` is a policy without an image, independently of its status.
pub type ImageOverrides = BTreeMap<ObjectName, Option<ImageReference>>;

/// Makes the request of an automation.
///
/// # Errors
///
/// If the automation's spec cannot be reconciled.
pub fn of_automation<'a>(
    automation: &ImageUpdateAutomation,
    policies: impl Iterator<Item = &'a ImagePolicy>,
    given: &ImageOverrides,
) -> Result<Request, RequestError> {
    let update = &automation.spec.update;
    if update.strategy != UpdateStrategy::Setters {
        let strategy = update.strategy.as_str().to_owned();
        return Err(RequestError::UnsupportedUpdateStrategy { strategy });
    }
    let namespace = automation.namespace().unwrap_or_default();
    let selector = automation.spec.policy_selector.as_ref().map(selector::parse).transpose()?;
    let own = policies.filter(|policy| policy.namespace().as_ref() == Some(&namespace));
    let mut request = of_policies(own, given, |policy| {
        selector.as_ref().is_none_or(|selector| selector.matches(policy.labels()))
    });
    let setters = std::mem::take(&mut request.update.setters);
    request.update.setters = setters.only_for(namespace);
    request.update.path = update.path.clone();
    if let Some(git) = &automation.spec.git {
        let values = &git.commit.message_template_values;
        if values.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > LARGEST_VALUES {
            return Err(RequestError::LargeValues);
        }
        request.values.clone_from(values);
    }
    Ok(request)
}

/// Creates a request from policies alone.
///
/// Every policy counts, in every namespace, for the whole tree.
pub fn of_policies_alone<'a>(
    policies: impl Iterator<Item = &'a ImagePolicy>,
    given: &ImageOverrides,
) -> Request {
    of_policies(policies, given, |_| true)
}

fn of_policies<'a>(
    policies: impl Iterator<Item = &'a ImagePolicy>,
    given: &ImageOverrides,
    is_selected: impl Fn(&ImagePolicy) -> bool,
) -> Request {
    let mut request = Request::default();
    let mut known = Vec::new();
    for policy in policies {
        let name = ObjectName::of(policy);
        let latest = policy.status.as_ref().and_then(|status| status.latest_ref.as_ref());
        let state = if !is_selected(policy) {
            PolicyState::NotSelected
        } else if let Some(image) = given.get(&name) {
            image.clone().map_or(PolicyState::WithoutImage, PolicyState::Image)
        } else if let Some(latest) = latest {
            match image_of(latest) {
                Ok(image) => PolicyState::Image(image),
                Err(cause) => {
                    let image = latest.to_string();
                    request.unusable.push(UnusableImage { policy: name.clone(), image, cause });
                    PolicyState::WithoutImage
                }
            }
        } else {
            PolicyState::WithoutImage
        };
        known.push((name, state));
    }
    request.update.setters = known.into_iter().collect();
    request.update.limits = Limits::default();
    request
}

fn image_of(latest: &ImageRef) -> Result<ImageReference, ReferenceError> {
    ImageReference::from_parts(&latest.name, &latest.tag, latest.digest.as_deref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(
        namespace: &str,
        name: &str,
        labels: &serde_json::Value,
        latest: &serde_json::Value,
    ) -> ImagePolicy {
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImagePolicy",
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {}},
            "status": {"latestRef": latest},
        }))
        .unwrap()
    }

    fn automation(spec: &serde_json::Value) -> ImageUpdateAutomation {
        let mut whole = json!({"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "n", "name": "a"},
            "spec": whole,
        }))
        .unwrap()
    }

    fn policies() -> Vec<ImagePolicy> {
        let image = json!({"name": "reg.io/app", "tag": "1.0"});
        vec![
            policy("n", "one", &json!({"team": "x"}), &image),
            policy("n", "two", &json!({"team": "y"}), &image),
            policy("n", "none", &json!({"team": "x"}), &json!(null)),
            policy("n", "bad", &json!({"team": "x"}), &json!({"name": "img/UPPER CASE", "tag": "1"})),
            policy("other", "one", &json!({"team": "x"}), &image),
        ]
    }

    fn images(request: &Request) -> Vec<String> {
        request.update.setters.images().map(|(policy, image)| format!("{policy}={image}")).collect()
    }

    #[test]
    fn an_automation_selects_by_namespace_and_label() {
        let policies = policies();
        for (selector, expected) in [
            (json!({}), vec!["n/one=reg.io/app:1.0", "n/two=reg.io/app:1.0"]),
            (json!({"policySelector": {"matchLabels": {"team": "x"}}}), vec!["n/one=reg.io/app:1.0"]),
            (
                json!({"policySelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}}),
                vec!["n/two=reg.io/app:1.0"],
            ),
            (json!({"policySelector": {"matchLabels": {"team": "z"}}}), vec![]),
        ] {
            let request =
                of_automation(&automation(&selector), policies.iter(), &ImageOverrides::new()).unwrap();
            assert_eq!(images(&request), expected, "{selector}");
        }
    }

    #[test]
    fn one_unusable_image_leaves_the_others() {
        let policies = policies();
        let request =
            of_automation(&automation(&json!({})), policies.iter(), &ImageOverrides::new()).unwrap();
        let sentences: Vec<String> = request.unusable.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), 1);
        assert!(
            sentences[0].starts_with("ImagePolicy n/bad has the latest image \"img/UPPER CASE:1\""),
            "{sentences:?}"
        );
    }

    #[test]
    fn an_image_override_has_precedence_over_the_status() {
        let policies = policies();
        let name = ObjectName { namespace: "n".to_owned(), name: "none".to_owned() };
        let given = ImageOverrides::from([(name, ImageReference::parse("reg.io/app:9").ok())]);
        let request = of_policies_alone(policies.iter(), &given);
        assert!(images(&request).contains(&"n/none=reg.io/app:9".to_owned()));
        assert!(images(&request).contains(&"other/one=reg.io/app:1.0".to_owned()));
    }

    #[test]
    fn unsupported_specs_are_refused_with_the_messages_of_flux() {
        for (spec, reason, message) in [
            (
                json!({"update": {"strategy": "Magic"}}),
                Reason::InvalidUpdateStrategy,
                "unsupported update strategy: Magic",
            ),
            (
                json!({"policySelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}),
                Reason::InvalidPolicySelector,
                "failed to parse policy selector: \"Bogus\" is not a valid label selector operator",
            ),
            (
                json!({"policySelector": {"matchLabels": {"/a": "b"}}}),
                Reason::InvalidPolicySelector,
                "failed to parse policy selector: key: Invalid value: \"/a\": prefix part must be non-empty",
            ),
            (
                json!({"policySelector": {"matchLabels": {"a": "b".repeat(20_000)}}}),
                Reason::InvalidPolicySelector,
                "failed to parse policy selector: its keys and values take more than 16 KiB: select by fewer of them, or \
                 give the objects one label of their own",
            ),
            (
                json!({"git": {"commit": {
                    "author": {"email": "bot@example.com"}, "messageTemplateValues": {"a": "b".repeat(65_536)},
                }}}),
                Reason::InvalidSourceConfiguration,
                "the keys and values of spec.git.commit.messageTemplateValues take more than 64 KiB: remove what the \
                 message does not need",
            ),
        ] {
            let error = of_automation(&automation(&spec), [].iter(), &ImageOverrides::new()).unwrap_err();
            assert_eq!(crate::error::chain(&error), message);
            assert_eq!((error.reason(), error.is_retryable()), (reason, false));
        }
    }
}
