//! The images of the last run, from its status or its note.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::settings::OnRevert;
use tagboat_api::{ImageRef, ObjectName};

use super::record::{HeldPolicy, HeldRecord};
use crate::reference::ImageReference;
use crate::update::reverts::{HeldBefore, RevertQuery};

/// The last run by its status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusBaseline {
    /// The images, by the name of their policy.
    pub images: BTreeMap<String, ImageRef>,
    /// The held policies.
    pub held: Option<HeldRecord>,
}

/// The note of a push, for the run after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The images that the push wrote or found, by the name of their policy.
    pub(super) images: BTreeMap<String, String>,
    /// The images that were held; none if there were too many to be named.
    pub(super) held: Option<BTreeMap<String, String>>,
    /// The held images of policies that had none at the time.
    #[serde(default)]
    pub(super) without_image: BTreeMap<String, String>,
}

impl StatusBaseline {
    /// Reads a status.
    pub fn of(status: &ImageUpdateAutomationStatus) -> Self {
        let held = HeldRecord::of_conditions(&status.conditions);
        Self { images: status.observed_policies.clone(), held }
    }

    /// Returns the query of a run, with the note of an unreported push.
    pub(super) fn query(
        &self,
        namespace: &str,
        mode: OnRevert,
        note: Option<&Note>,
        exempt: BTreeSet<ObjectName>,
    ) -> RevertQuery {
        let name = |name: &String| ObjectName { namespace: namespace.to_owned(), name: name.clone() };
        let of_status = self.images.iter().map(|(policy, image)| (policy, text(image)));
        let mut images: BTreeMap<&String, String> = of_status.collect();
        let held_of_status = self.held.as_ref().map(HeldRecord::named).cloned().unwrap_or_default();
        let mut held: BTreeSet<ObjectName> = held_of_status.keys().map(name).collect();
        let mut is_any = self.held.as_ref().is_some_and(|record| record.policies.is_none());
        // A policy that has no image for a while keeps its hold.
        for (policy, HeldPolicy { image, .. }) in &held_of_status {
            images.entry(policy).or_insert_with(|| image.clone());
        }
        if let Some(note) = note {
            images.extend(note.images.iter().map(|(policy, image)| (policy, image.clone())));
            match &note.held {
                Some(policies) => held.extend(policies.keys().map(name)),
                None => is_any = true,
            }
            for (policy, image) in note.held.iter().flatten().chain(&note.without_image) {
                images.entry(policy).or_insert_with(|| image.clone());
            }
        }
        let parsed =
            |(policy, image): (&String, String)| Some((name(policy), ImageReference::parse(&image).ok()?));
        RevertQuery {
            mode,
            images: images.into_iter().filter_map(parsed).collect(),
            held: if is_any { HeldBefore::Any } else { HeldBefore::Policies(held) },
            exempt,
        }
    }
}

/// Returns an image of a status as a reference.
pub(super) fn text(image: &ImageRef) -> String {
    let digest = image.digest().map(|digest| format!("@{digest}")).unwrap_or_default();
    format!("{}:{}{digest}", image.name, image.tag)
}
