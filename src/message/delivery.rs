//! The data of templates of branches and pull requests.

use std::collections::BTreeMap;

use tagboat_api::ObjectName;
use tagboat_go_template::Limits;

use super::data::MessageData;
use super::escape::escape;
use super::image::PolicyImage;
use super::limits::LIMITS;

/// The limits of a rendering of a branch's name.
///
/// A run renders one for each policy.
pub(super) const BRANCH_LIMITS: Limits =
    Limits { steps: 100_000, output: 64 << 10, value: 64 << 10, memory: 4 << 20, ..LIMITS };

/// The maximum number of steps in handlebars for a branch's name.
pub(super) const HANDLEBARS_BRANCH_STEPS: usize = 20_000;

/// The data of the template of a branch.
#[derive(Clone, Copy, Debug)]
pub struct BranchData<'d> {
    /// The automation.
    pub automation: &'d ObjectName,
    /// `messageTemplateValues`.
    pub values: &'d BTreeMap<String, String>,
    /// The name of the base.
    pub base: &'d str,
    /// The labels of the policy.
    pub labels: &'d BTreeMap<String, String>,
    /// The policy with its image.
    pub image: &'d PolicyImage,
}

/// The data of the templates of a pull request's title and body.
#[derive(Clone, Copy, Debug)]
pub struct PullRequestData<'d> {
    /// The data of the commit's message.
    pub message: &'d MessageData,
    /// The name of the branch.
    pub branch: &'d str,
    /// The name of the base.
    pub base: &'d str,
}

/// The data of any template.
#[derive(Clone, Copy, Debug)]
pub(super) enum TemplateData<'d> {
    /// Of a commit message.
    Message(&'d MessageData),
    /// Of a pull request.
    PullRequest(&'d PullRequestData<'d>),
    /// Of a branch.
    Branch(&'d BranchData<'d>),
}

impl<'d> TemplateData<'d> {
    /// Returns the automation.
    pub(super) fn automation(&self) -> &'d ObjectName {
        match self {
            Self::Message(data) | Self::PullRequest(PullRequestData { message: data, .. }) => {
                data.automation()
            }
            Self::Branch(data) => data.automation,
        }
    }

    /// Returns `messageTemplateValues`.
    pub(super) fn values(&self) -> &'d BTreeMap<String, String> {
        match self {
            Self::Message(data) | Self::PullRequest(PullRequestData { message: data, .. }) => data.values(),
            Self::Branch(data) => data.values,
        }
    }
}

impl BranchData<'_> {
    /// Returns the labels with foreign text made harmless.
    pub(super) fn escaped_labels(&self) -> impl Iterator<Item = (String, String)> {
        self.labels.iter().map(|(key, value)| (escape(key), escape(value)))
    }
}
