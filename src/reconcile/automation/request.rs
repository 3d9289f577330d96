//! What an automation asks for: which policies count, where to look, what to write.

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use tagboat_api::automation::UpdateStrategy;
use tagboat_api::{ImagePolicy, ImageRef, ImageUpdateAutomation};

use crate::reference::{ImageReference, ReferenceError};
use crate::update::{Policy, PolicyName, Setters, UpdateRequest};
use crate::yaml::Limits;

/// What to update on behalf of an automation, or of policies alone.
#[derive(Debug, Default)]
pub struct Request {
    /// What the update is to do.
    pub update: UpdateRequest,
    /// `messageTemplateValues` of the automation.
    pub values: BTreeMap<String, String>,
    /// Selected policies whose image cannot be used; they count as having none.
    pub unusable: Vec<UnusableImage>,
}

/// A policy whose latest image is no image reference.
#[derive(Debug)]
pub struct UnusableImage {
    /// The policy.
    pub policy: PolicyName,
    /// The image as its status states it.
    pub image: String,
    /// What is wrong with it.
    pub cause: ReferenceError,
}

impl fmt::Display for UnusableImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ImagePolicy {} has the latest image {:?}, which cannot be used: ",
            self.policy, self.image
        )?;
        crate::sentence::write_chain(formatter, &self.cause)
    }
}

/// Why an automation cannot be carried out as it stands.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A strategy that does not exist.
    #[error("unsupported update strategy: {strategy}")]
    UnsupportedUpdateStrategy {
        /// Its name.
        strategy: String,
    },
    /// The selector cannot be understood.
    #[error("failed to parse policy selector: {cause}")]
    InvalidPolicySelector {
        /// What is wrong.
        cause: String,
    },
}

impl RequestError {
    /// The condition reason that stands for the error (spec §1.5).
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnsupportedUpdateStrategy { .. } => "InvalidUpdateStrategy",
            Self::InvalidPolicySelector { .. } => "InvalidPolicySelector",
        }
    }

    /// Whether trying again can help; never, for only a changed spec does.
    pub fn is_retryable(&self) -> bool {
        false
    }
}

/// The images that the caller gives, over those in the policies' status.
pub type GivenImages = BTreeMap<PolicyName, ImageReference>;

/// Makes the request of an automation.
///
/// # Errors
///
/// When the automation's spec cannot be carried out.
pub fn of_automation<'a>(
    automation: &ImageUpdateAutomation,
    policies: impl Iterator<Item = &'a ImagePolicy>,
    given: &GivenImages,
) -> Result<Request, RequestError> {
    let update = &automation.spec.update;
    if update.strategy != UpdateStrategy::Setters {
        let strategy = update.strategy.as_str().to_owned();
        return Err(RequestError::UnsupportedUpdateStrategy { strategy });
    }
    let namespace = automation.namespace().unwrap_or_default();
    let selector = selector(automation)?;
    let own = policies.filter(|policy| policy.namespace().as_ref() == Some(&namespace));
    let mut request = of_policies(own, given, |policy| {
        selector.as_ref().is_none_or(|selector| selector.matches(policy.labels()))
    });
    let setters = std::mem::take(&mut request.update.setters);
    request.update.setters = setters.only_for(namespace);
    request.update.path = update.path.clone();
    if let Some(git) = &automation.spec.git {
        request.values = git.commit.message_template_values.clone();
    }
    Ok(request)
}

/// Makes the request of policies alone: every one counts, in every namespace, for the whole tree.
pub fn of_policies_alone<'a>(
    policies: impl Iterator<Item = &'a ImagePolicy>,
    given: &GivenImages,
) -> Request {
    of_policies(policies, given, |_| true)
}

fn of_policies<'a>(
    policies: impl Iterator<Item = &'a ImagePolicy>,
    given: &GivenImages,
    is_selected: impl Fn(&ImagePolicy) -> bool,
) -> Request {
    let mut request = Request::default();
    let mut known = BTreeMap::new();
    for policy in policies {
        let name = PolicyName { namespace: policy.namespace().unwrap_or_default(), name: policy.name_any() };
        let latest = policy.status.as_ref().and_then(|status| status.latest_ref.as_ref());
        let state = if !is_selected(policy) {
            Policy::NotSelected
        } else if let Some(image) = given.get(&name) {
            Policy::Image(image.clone())
        } else if let Some(latest) = latest {
            match image_of(latest) {
                Ok(image) => Policy::Image(image),
                Err(cause) => {
                    let image = latest.to_string();
                    request.unusable.push(UnusableImage { policy: name.clone(), image, cause });
                    Policy::WithoutImage
                }
            }
        } else {
            Policy::WithoutImage
        };
        known.insert(name, state);
    }
    request.update.setters = Setters::new(known);
    request.update.limits = Limits::default();
    request
}

fn image_of(latest: &ImageRef) -> Result<ImageReference, ReferenceError> {
    ImageReference::from_parts(&latest.name, &latest.tag, latest.digest.as_deref())
}

fn selector(automation: &ImageUpdateAutomation) -> Result<Option<Selector>, RequestError> {
    let Some(selector) = automation.spec.policy_selector.clone() else { return Ok(None) };
    let invalid = |cause| RequestError::InvalidPolicySelector { cause };
    for requirement in selector.match_expressions.iter().flatten() {
        let values = requirement.values.as_deref().unwrap_or_default();
        match (requirement.operator.as_str(), values.is_empty()) {
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
            ("In" | "NotIn", true) => {
                return Err(invalid(
                    "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                        .to_owned(),
                ));
            }
            ("Exists" | "DoesNotExist", false) => {
                return Err(invalid(
                    "values: Invalid value: values set must be empty for exists and does not exist"
                        .to_owned(),
                ));
            }
            (operator, _) => {
                return Err(invalid(format!("{operator:?} is not a valid label selector operator")));
            }
        }
    }
    Selector::try_from(selector).map(Some).map_err(|error| invalid(error.to_string()))
}
