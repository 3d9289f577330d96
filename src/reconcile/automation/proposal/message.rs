//! The source of a commit's message.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::settings::TemplateLanguage;

use super::super::proposal_error::ProposalError;
use super::super::pull_requests::BranchContent;
use super::super::waiting::Change;
use crate::message::{DEFAULT_MESSAGE, MessageData, Template, UpdateData, truncated};
use crate::objects::ObjectName;
use crate::update::{Checkpoint, PlanError, Progress, ResultV2, UpdatePlan, UpdateRequest};

/// The source of a commit's message, besides the changes.
#[derive(Clone, Debug)]
pub struct MessageSource {
    /// The automation.
    pub automation: ObjectName,
    /// `messageTemplateValues`.
    pub values: BTreeMap<String, String>,
    /// The template, if there is one.
    pub template: Option<String>,
    /// The language of the template.
    pub language: TemplateLanguage,
}

impl MessageSource {
    /// Returns the policies whose values a result changes, and the number of values.
    pub(super) fn change(&self, update: &UpdateRequest, result: &ResultV2) -> Change {
        let images = update.setters.images().collect();
        let data = MessageData::new(&self.automation, self.values.clone(), result, &images);
        let names: BTreeSet<String> = data.images().iter().map(|image| image.policy.name.clone()).collect();
        Change { policies: names.into_iter().collect(), values: result.edits() }
    }

    /// Returns the change of a branch, of which the message is made.
    pub(super) fn content(&self, update: &UpdateRequest, result: &ResultV2, message: &[u8]) -> BranchContent {
        let images = update.setters.images().collect();
        let data = MessageData::new(&self.automation, self.values.clone(), result, &images);
        let message = self.template.as_ref().map(|_| String::from_utf8_lossy(message).into_owned());
        BranchContent { data, path: update.path.clone(), message }
    }

    /// Renders the message of all changes of a plan, or of some.
    ///
    /// As in Flux, the template is not read before there is something to commit.
    pub(super) fn render(
        &self,
        update: &UpdateRequest,
        (plan, result): (&UpdatePlan, &ResultV2),
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<u8>, ProposalError> {
        let Some(template) = &self.template else { return Ok(DEFAULT_MESSAGE.into()) };
        let images = update.setters.images().collect();
        let (automation, values) = (&self.automation, &self.values);
        let update = UpdateData { automation, values, result, images: &images };
        let template = Template::compile(template, self.language)?;
        let progress = Progress { files: plan.files, edits: result.edits() };
        let (checkpoint, interrupt) = (RefCell::new(checkpoint), Cell::new(None));
        let is_interrupted = || {
            interrupt.set((checkpoint.borrow_mut())(progress).err());
            interrupt.get().is_some()
        };
        let rendered = template.render_update(&update, plan.remaining_bytes, &is_interrupted);
        match interrupt.get() {
            Some(interrupt) => Err(PlanError::Interrupted(interrupt).into()),
            None => Ok(truncated(rendered?)),
        }
    }
}
