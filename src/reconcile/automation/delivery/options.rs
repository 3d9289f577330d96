//! The settings of a pull request, united over the automations that share it.

use tagboat_api::Reason;
use tagboat_api::settings::{self, MergeTime, PullRequestSettings};

use crate::error::ReconcileError;
use crate::forge::{ForgeKind, MergeMethod, SeparateParts};

/// The settings of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestOptions {
    /// Labels.
    pub labels: Vec<String>,
    /// Users and teams who are asked for a review.
    pub reviewers: Vec<String>,
    /// The assigned users.
    pub assignees: Vec<String>,
    /// True if it is opened as a draft.
    pub is_draft: bool,
    /// The time of the merge.
    pub merge: MergeTime,
    /// The method of the merge; the forge's default if it is none.
    pub merge_method: Option<MergeMethod>,
}

impl PullRequestOptions {
    /// Unites the settings of automations that share a pull request.
    ///
    /// Lists are united, and one wish for a draft suffices. The most cautious time of a merge wins. Different
    /// methods cancel each other.
    pub fn united<'s>(settings: impl IntoIterator<Item = &'s PullRequestSettings>) -> Self {
        let mut all = settings.into_iter().map(Self::of);
        let Some(first) = all.next() else { return Self::default() };
        all.fold(first, Self::and)
    }

    /// Returns the settings without the reviewers and assignees of others.
    #[must_use]
    pub fn without_people_of(self, others: &Self) -> Self {
        let beyond = |names: Vec<String>, known: &[String]| {
            names.into_iter().filter(|name| !known.contains(name)).collect()
        };
        Self {
            reviewers: beyond(self.reviewers, &others.reviewers),
            assignees: beyond(self.assignees, &others.assignees),
            ..self
        }
    }

    /// Returns true if something is added after a pull request was opened.
    pub(super) fn has_separate(&self, parts: SeparateParts) -> bool {
        parts.labels && !self.labels.is_empty()
            || parts.reviewers && !self.reviewers.is_empty()
            || parts.assignees && !self.assignees.is_empty()
    }

    fn of(settings: &PullRequestSettings) -> Self {
        Self {
            labels: settings.labels.names().to_vec(),
            reviewers: settings.reviewers.names().to_vec(),
            assignees: settings.assignees.names().to_vec(),
            is_draft: settings.is_draft,
            merge: settings.merge,
            merge_method: match settings.merge_method {
                settings::MergeMethod::OfForge => None,
                settings::MergeMethod::Commit => Some(MergeMethod::Commit),
                settings::MergeMethod::Squash => Some(MergeMethod::Squash),
                settings::MergeMethod::Rebase => Some(MergeMethod::Rebase),
            },
        }
    }

    fn and(self, other: Self) -> Self {
        let is_draft = self.is_draft || other.is_draft;
        // A draft cannot be merged, so the wish for one is the more cautious.
        let merge = if is_draft { MergeTime::ByHand } else { self.merge.min(other.merge) };
        Self {
            labels: joined(self.labels, other.labels),
            reviewers: joined(self.reviewers, other.reviewers),
            assignees: joined(self.assignees, other.assignees),
            is_draft,
            merge,
            merge_method: self.merge_method.filter(|method| other.merge_method == Some(*method)),
        }
    }
}

fn joined(mut names: Vec<String>, others: Vec<String>) -> Vec<String> {
    for other in others {
        if !names.contains(&other) {
            names.push(other);
        }
    }
    names
}

/// The error of a setting for which the forge has no feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedSetting {
    /// Pull requests of the forge have no labels.
    #[error("{kind} has no labels of pull requests: remove the annotation tagboat.dev/pull-request-labels")]
    Labels {
        /// The forge.
        kind: ForgeKind,
    },
    /// The forge merges nothing by itself.
    #[error(
        "{kind} merges no pull request when it is ready: set the annotation tagboat.dev/pull-request-merge to by-hand or \
         immediately"
    )]
    AutoMerge {
        /// The forge.
        kind: ForgeKind,
    },
}

impl ReconcileError for UnsupportedSetting {
    fn reason(&self) -> Reason {
        Reason::InvalidSettings
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Checks that a forge has the features for an automation's settings.
///
/// # Errors
///
/// If it lacks one.
pub fn check_support(kind: ForgeKind, settings: &PullRequestSettings) -> Result<(), UnsupportedSetting> {
    let features = kind.features();
    if !settings.labels.names().is_empty() && !features.labels {
        return Err(UnsupportedSetting::Labels { kind });
    }
    if settings.merge == MergeTime::WhenReady && !features.auto_merge {
        return Err(UnsupportedSetting::AutoMerge { kind });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tagboat_api::settings::AutomationSettings;

    use super::*;

    /// The settings of annotations without their common prefix.
    fn settings(entries: &[(&str, &str)]) -> PullRequestSettings {
        let named =
            |(name, value): &(&str, &str)| (format!("tagboat.dev/pull-request-{name}"), (*value).to_owned());
        let annotations: BTreeMap<String, String> = entries.iter().map(named).collect();
        AutomationSettings::from_annotations(&annotations).unwrap().pull_request
    }

    #[test]
    fn automations_that_share_a_pull_request_unite_their_settings() {
        use MergeTime::{ByHand, Immediately, WhenReady};
        let none = PullRequestOptions::default();
        for (one, other, expected) in [
            (vec![], vec![], none.clone()),
            (
                vec![("labels", "[a, b]"), ("reviewers", "[ann]"), ("assignees", "[bob]")],
                vec![("labels", "[b, c]"), ("reviewers", "[acme/web]")],
                PullRequestOptions {
                    labels: ["a", "b", "c"].map(str::to_owned).to_vec(),
                    reviewers: ["ann", "acme/web"].map(str::to_owned).to_vec(),
                    assignees: vec!["bob".to_owned()],
                    ..none.clone()
                },
            ),
            (vec![("draft", "true")], vec![], PullRequestOptions { is_draft: true, ..none.clone() }),
            (
                vec![("draft", "true")],
                vec![("merge", "immediately")],
                PullRequestOptions { is_draft: true, merge: ByHand, ..none.clone() },
            ),
            (vec![("merge", "when-ready")], vec![], PullRequestOptions { merge: ByHand, ..none.clone() }),
            (
                vec![("merge", "when-ready")],
                vec![("merge", "immediately")],
                PullRequestOptions { merge: WhenReady, ..none.clone() },
            ),
            (
                vec![("merge", "immediately"), ("merge-method", "squash")],
                vec![("merge", "immediately"), ("merge-method", "squash")],
                PullRequestOptions {
                    merge: Immediately,
                    merge_method: Some(MergeMethod::Squash),
                    ..none.clone()
                },
            ),
            (vec![("merge-method", "squash")], vec![("merge-method", "rebase")], none.clone()),
            (vec![("merge-method", "squash")], vec![], none.clone()),
        ] {
            let both = [settings(&one), settings(&other)];
            assert_eq!(PullRequestOptions::united(&both), expected, "{one:?} {other:?}");
            if expected.labels.is_empty() {
                assert_eq!(PullRequestOptions::united(both.iter().rev()), expected, "{one:?} {other:?}");
            }
        }
        let alone = settings(&[("merge", "when-ready"), ("merge-method", "commit")]);
        let alone = PullRequestOptions::united([&alone]);
        assert_eq!((alone.merge, alone.merge_method), (WhenReady, Some(MergeMethod::Commit)));
        assert_eq!(PullRequestOptions::united([]), none);
    }

    #[test]
    fn settings_that_a_forge_lacks_stall() {
        let (labels, when_ready) = (settings(&[("labels", "[a]")]), settings(&[("merge", "when-ready")]));
        for kind in ForgeKind::ALL {
            let lacks_labels = matches!(kind, ForgeKind::Bitbucket | ForgeKind::BitbucketDataCenter);
            assert_eq!(check_support(kind, &labels).is_err(), lacks_labels, "{kind}");
            assert_eq!(check_support(kind, &when_ready).is_err(), kind == ForgeKind::Bitbucket, "{kind}");
            for good in
                [vec![], vec![("labels", "[]")], vec![("merge", "immediately")], vec![("draft", "true")]]
            {
                assert_eq!(check_support(kind, &settings(&good)), Ok(()), "{kind} {good:?}");
            }
        }
        let error = check_support(ForgeKind::Bitbucket, &labels).unwrap_err();
        assert_eq!((error.reason(), error.is_retryable()), (Reason::InvalidSettings, false));
        assert_eq!(
            error.to_string(),
            "bitbucket has no labels of pull requests: remove the annotation tagboat.dev/pull-request-labels"
        );
    }

    /// The names are listed in the settings and in the forges.
    #[test]
    fn settings_and_forges_have_the_same_names() {
        for kind in ForgeKind::ALL {
            let name: settings::ForgeName = kind.name().parse().unwrap();
            assert_eq!(name.name().map(str::parse), Some(Ok(kind)));
        }
        let listed = settings::TABLE.iter().flat_map(|kind| kind.settings);
        let forge = listed.filter(|setting| setting.name == "forge").map(|setting| setting.allowed);
        assert_eq!(forge.collect::<Vec<_>>(), [ForgeKind::ALL.map(ForgeKind::name).join(", ")]);
    }
}
