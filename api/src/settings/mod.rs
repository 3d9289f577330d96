//! Our own settings: the annotations `tagboat.dev/…` on Flux's kinds.
//!
//! Fields of our own would break on clusters with Flux's CRDs, so settings that Flux lacks are annotations. They are
//! read once, into one struct per kind; an unknown name or an invalid value is an error that stalls the object. A new
//! setting needs one entry in the `table`, a type in `values` and one field of a struct here.

mod delivery;
mod forge;
mod reading;
mod signing;
mod table;
mod values;

use std::collections::BTreeMap;

use reading::Reader;
use table::{
    AUTOMATION, DELIVERY, EXCLUDE, FORGE, FORGE_SECRET, FORGE_URL, GIT_REPOSITORY, LONGEST_WAIT, MINIMUM_AGE,
    NAMESPACE, ON_REVERT, ORDER, POLICY, POLL_GROUP, POLL_INTERVAL, PULL_REQUEST_ASSIGNEES,
    PULL_REQUEST_BODY, PULL_REQUEST_DRAFT, PULL_REQUEST_LABELS, PULL_REQUEST_MERGE,
    PULL_REQUEST_MERGE_METHOD, PULL_REQUEST_REFRESH, PULL_REQUEST_REVIEWERS, PULL_REQUEST_TITLE, PUSH_BRANCH,
    QUIET_PERIOD, RELEASE_GROUP, REPOSITORY, SIGNED_BY, TEMPLATE_LANGUAGE, UNKNOWN_AGE, WINDOWS,
};

pub use delivery::{
    Delivery, LabelList, MergeMethod, MergeTime, NameList, REBUILD_LABEL, Refresh, SettingText,
};
pub use forge::{ForgeName, ForgeSecret, ForgeUrl};
pub use reading::{SettingError, SettingErrors};
pub use signing::SignedBy;
pub use table::{KindSettings, Setting, TABLE};
pub use values::{
    ExcludedTags, GroupName, LongDuration, OnRevert, PollInterval, TemplateLanguage, TextOrder, UnknownAge,
};

/// The longest wait by default, as a multiple of the quiet period.
const DEFAULT_LONGEST_WAIT: u32 = 6;

/// The prefix of our annotations.
pub const PREFIX: &str = "tagboat.dev/";

/// Returns the annotations that are settings of ours, by their full names.
pub fn own_annotations(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    annotations.iter().filter(|(name, _)| name.starts_with(PREFIX))
}

/// The settings of an ImageUpdateAutomation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutomationSettings {
    /// The language of the templates.
    pub template_language: TemplateLanguage,
    /// The party that signs the commits.
    pub signed_by: SignedBy,
    /// The way by which commits reach the base.
    pub delivery: Delivery,
    /// The template of the branches, with delivery by branch or pull request.
    pub push_branch: SettingText,
    /// The settings of pull requests.
    pub pull_request: PullRequestSettings,
    /// The list of windows outside of which nothing is written, as YAML.
    pub windows: SettingText,
    /// The time for which images must not change before they are written.
    pub quiet_period: LongDuration,
    /// The maximum time from the first change to the write.
    pub longest_wait: LongDuration,
    /// The treatment of values that others took back.
    pub on_revert: OnRevert,
}

/// The settings of an automation's pull requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestSettings {
    /// The template of the title.
    pub title: SettingText,
    /// The template of the body.
    pub body: SettingText,
    /// The labels.
    pub labels: LabelList,
    /// Users and teams who are asked for a review.
    pub reviewers: NameList,
    /// The assigned users.
    pub assignees: NameList,
    /// True if it is opened as a draft.
    pub is_draft: bool,
    /// The time of the merge.
    pub merge: MergeTime,
    /// The method of the merge.
    pub merge_method: MergeMethod,
    /// The rule for rebuilding the branch.
    pub refresh: Refresh,
}

impl AutomationSettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(AUTOMATION, annotations);
        let pull_request = PullRequestSettings {
            title: reader.read(PULL_REQUEST_TITLE),
            body: reader.read(PULL_REQUEST_BODY),
            labels: reader.read(PULL_REQUEST_LABELS),
            reviewers: reader.read(PULL_REQUEST_REVIEWERS),
            assignees: reader.read(PULL_REQUEST_ASSIGNEES),
            is_draft: reader.read(PULL_REQUEST_DRAFT),
            merge: reader.read(PULL_REQUEST_MERGE),
            merge_method: reader.read(PULL_REQUEST_MERGE_METHOD),
            refresh: reader.read(PULL_REQUEST_REFRESH),
        };
        if pull_request.is_draft && pull_request.merge != MergeTime::ByHand {
            let conflict = "a draft cannot be merged: remove one of them";
            reader.conflict(PULL_REQUEST_DRAFT, PULL_REQUEST_MERGE, conflict);
        }
        let quiet_period: LongDuration = reader.read(QUIET_PERIOD);
        let longest_wait = reader.read_optional(LONGEST_WAIT);
        let settings = Self {
            template_language: reader.read(TEMPLATE_LANGUAGE),
            signed_by: reader.read(SIGNED_BY),
            delivery: reader.read(DELIVERY),
            push_branch: reader.read(PUSH_BRANCH),
            pull_request,
            windows: reader.read(WINDOWS),
            quiet_period,
            longest_wait: longest_wait.unwrap_or_else(|| quiet_period.times(DEFAULT_LONGEST_WAIT)),
            on_revert: reader.read(ON_REVERT),
        };
        reader.finish(settings)
    }
}

/// The settings of an ImagePolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySettings {
    /// The comparison of an alphabetical policy.
    pub order: TextOrder,
    /// Tags that are never chosen.
    pub exclude: ExcludedTags,
    /// The minimum age of a tag that may be chosen.
    pub minimum_age: LongDuration,
    /// The treatment of a tag of unknown age.
    pub unknown_age: UnknownAge,
    /// The interval between two lookups of the digest, if it is set here.
    pub poll_interval: PollInterval,
    /// The group whose members get their digests together, if any.
    pub poll_group: GroupName,
    /// The group whose members move to the same value together, if any.
    pub release_group: GroupName,
}

impl PolicySettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(POLICY, annotations);
        let settings = Self {
            order: reader.read(ORDER),
            exclude: reader.read(EXCLUDE),
            minimum_age: reader.read(MINIMUM_AGE),
            unknown_age: reader.read(UNKNOWN_AGE),
            poll_interval: reader.read(POLL_INTERVAL),
            poll_group: reader.read(POLL_GROUP),
            release_group: reader.read(RELEASE_GROUP),
        };
        reader.finish(settings)
    }

    /// Returns whether annotations have the group of a policy, valid or not.
    pub fn has_group(annotations: &BTreeMap<String, String>) -> bool {
        annotations.keys().any(|key| key.strip_prefix(PREFIX) == Some(POLL_GROUP.name))
    }

    /// Returns the value of the annotation for the release group, valid or not.
    ///
    /// A policy with another invalid setting is still a member.
    pub fn release_group(annotations: &BTreeMap<String, String>) -> Option<&str> {
        let own = |(key, _): &(&String, &String)| key.strip_prefix(PREFIX) == Some(RELEASE_GROUP.name);
        annotations.iter().find(own).map(|(_, value)| value.as_str())
    }
}

/// The settings of an ImageRepository: none so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySettings {}

impl RepositorySettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        Reader::new(REPOSITORY, annotations).finish(Self {})
    }
}

/// The settings of a Namespace, whose values their readers parse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSettings {}

impl NamespaceSettings {
    /// Checks the names of an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        Reader::new(NAMESPACE, annotations).finish(Self {})
    }
}

/// The settings of a GitRepository, which decide where its credentials are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitRepositorySettings {
    /// The forge that serves the repository.
    pub forge: ForgeName,
    /// The base URL of the forge's API.
    pub forge_url: ForgeUrl,
    /// The Secret with the login at the API.
    pub forge_secret: ForgeSecret,
}

impl GitRepositorySettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(GIT_REPOSITORY, annotations);
        let settings = Self {
            forge: reader.read(FORGE),
            forge_url: reader.read(FORGE_URL),
            forge_secret: reader.read(FORGE_SECRET),
        };
        reader.finish(settings)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        AutomationSettings, DELIVERY, Delivery, ExcludedTags, FORGE, ForgeName, GitRepositorySettings,
        LongDuration, MergeMethod, MergeTime, NameList, PULL_REQUEST_MERGE, PULL_REQUEST_MERGE_METHOD,
        PULL_REQUEST_REFRESH, PolicySettings, Refresh, RepositorySettings, SIGNED_BY, SignedBy,
        TEMPLATE_LANGUAGE, TemplateLanguage, TextOrder, UnknownAge,
    };

    fn annotations(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn automation_error(entries: &[(&str, &str)]) -> String {
        AutomationSettings::from_annotations(&annotations(entries)).unwrap_err().to_string()
    }

    #[test]
    fn reads_the_settings_and_leaves_the_rest_alone() {
        let none = annotations(&[("reconcile.fluxcd.io/requestedAt", "1"), ("x.tagboat.dev/y", "z")]);
        let settings = AutomationSettings::from_annotations(&none).unwrap();
        assert_eq!(settings.template_language, TemplateLanguage::Go);
        assert!(PolicySettings::from_annotations(&none).is_ok());
        assert!(RepositorySettings::from_annotations(&none).is_ok());
        for (value, language) in [("go", TemplateLanguage::Go), ("handlebars", TemplateLanguage::Handlebars)]
        {
            let given = annotations(&[("tagboat.dev/template-language", value)]);
            assert_eq!(AutomationSettings::from_annotations(&given).unwrap().template_language, language);
        }
    }

    #[test]
    fn an_invalid_setting_has_a_helpful_message() {
        assert_eq!(
            automation_error(&[("tagboat.dev/template-language", "jinja")]),
            "annotation tagboat.dev/template-language has the value `jinja`: allowed are go, handlebars"
        );
        assert_eq!(
            automation_error(&[("tagboat.dev/template-langauge", "go")]),
            "annotation tagboat.dev/template-langauge (value `go`) is not a setting of ImageUpdateAutomation: did \
             you mean tagboat.dev/template-language?"
        );
        assert_eq!(
            automation_error(&[("tagboat.dev/nothing-like-it", "x")]),
            "annotation tagboat.dev/nothing-like-it (value `x`) is not a setting of ImageUpdateAutomation: allowed are \
             tagboat.dev/template-language, tagboat.dev/signed-by, tagboat.dev/delivery, tagboat.dev/push-branch, \
             tagboat.dev/pull-request-title, tagboat.dev/pull-request-body, tagboat.dev/pull-request-labels, \
             tagboat.dev/pull-request-reviewers, tagboat.dev/pull-request-assignees, \
             tagboat.dev/pull-request-draft, tagboat.dev/pull-request-merge, tagboat.dev/pull-request-merge-method, \
             tagboat.dev/pull-request-refresh, tagboat.dev/windows, tagboat.dev/quiet-period, tagboat.dev/longest-wait, \
             tagboat.dev/on-revert"
        );
        let elsewhere = annotations(&[("tagboat.dev/template-language", "go")]);
        assert_eq!(
            PolicySettings::from_annotations(&elsewhere).unwrap_err().to_string(),
            "annotation tagboat.dev/template-language (value `go`) is not a setting of ImagePolicy: it belongs to \
             ImageUpdateAutomation"
        );
        let unknown = annotations(&[("tagboat.dev/", "")]);
        assert_eq!(
            RepositorySettings::from_annotations(&unknown).unwrap_err().to_string(),
            "annotation tagboat.dev/ (value ``) is not a setting of ImageRepository: this kind has no settings"
        );
    }

    #[test]
    fn all_errors_of_an_object_are_reported() {
        let given = annotations(&[("tagboat.dev/template-language", "Go"), ("tagboat.dev/x", "1")]);
        let errors = AutomationSettings::from_annotations(&given).unwrap_err();
        assert_eq!(errors.errors().len(), 2);
        assert!(errors.to_string().contains("`Go`: allowed are go, handlebars; annotation tagboat.dev/x"));
    }

    /// A suggestion was computed for each of 15,000 annotations.
    ///
    /// The error message had megabytes.
    #[test]
    fn a_sentence_has_a_bounded_number_of_errors_and_the_begin_of_a_long_value() {
        let many: Vec<String> = (0..15_000).map(|number| format!("tagboat.dev/{number}")).collect();
        let given: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "x")).collect();
        let message = automation_error(&given);
        assert!(message.ends_with("; and 14992 more") && message.len() < 8_000, "{message}");
        assert_eq!(
            AutomationSettings::from_annotations(&annotations(&given)).unwrap_err().errors().len(),
            15_000
        );
        let long = "é".repeat(200_000);
        let message = automation_error(&[("tagboat.dev/template-language", &long)]);
        let value = format!("{}...", "é".repeat(100));
        assert_eq!(
            message,
            format!(
                "annotation tagboat.dev/template-language has the value `{value}`: allowed are go, handlebars"
            )
        );
    }

    #[test]
    fn the_table_and_the_documented_defaults_match_the_types() {
        for value in TEMPLATE_LANGUAGE.allowed.split(", ") {
            assert!(value.parse::<TemplateLanguage>().is_ok(), "{value}");
        }
        for value in SIGNED_BY.allowed.split(", ") {
            assert!(value.parse::<SignedBy>().is_ok(), "{value}");
        }
        assert_eq!("key".parse(), Ok(SignedBy::default()));
        assert_eq!("go".parse(), Ok(TemplateLanguage::default()));
        assert_eq!("bytes".parse(), Ok(TextOrder::default()));
        assert_eq!("wait".parse(), Ok(UnknownAge::default()));
        assert_eq!("0s".parse(), Ok(LongDuration::default()));
        assert_eq!("[]".parse(), Ok(ExcludedTags::default()));
        for value in DELIVERY.allowed.split(", ") {
            assert!(value.parse::<Delivery>().is_ok(), "{value}");
        }
        for value in PULL_REQUEST_MERGE.allowed.split(", ") {
            assert!(value.parse::<MergeTime>().is_ok(), "{value}");
        }
        for value in PULL_REQUEST_MERGE_METHOD.allowed.split(", ") {
            assert!(value.parse::<MergeMethod>().is_ok(), "{value}");
        }
        for value in PULL_REQUEST_REFRESH.allowed.split(", ") {
            assert!(value.parse::<Refresh>().is_ok(), "{value}");
        }
        for value in FORGE.allowed.split(", ") {
            assert!(value.parse::<ForgeName>().is_ok(), "{value}");
        }
        assert_eq!("push".parse(), Ok(Delivery::default()));
        assert_eq!("by-hand".parse(), Ok(MergeTime::default()));
        assert_eq!("when-needed".parse(), Ok(Refresh::default()));
        assert_eq!("[]".parse(), Ok(NameList::default()));
    }

    #[test]
    fn the_settings_of_a_delivery_are_read() {
        let given = annotations(&[
            ("tagboat.dev/delivery", "pull-request"),
            ("tagboat.dev/push-branch", "tagboat/{{ .Policy.Name }}"),
            ("tagboat.dev/pull-request-title", "preset:summary"),
            ("tagboat.dev/pull-request-labels", "[images, 'area: apps']"),
            ("tagboat.dev/pull-request-reviewers", "- ann\n- acme/web\n"),
            ("tagboat.dev/pull-request-merge", "when-ready"),
            ("tagboat.dev/pull-request-merge-method", "squash"),
            ("tagboat.dev/pull-request-refresh", "always"),
        ]);
        let read = AutomationSettings::from_annotations(&given).unwrap();
        assert_eq!(read.delivery, Delivery::PullRequest);
        assert_eq!(read.push_branch.text(), Some("tagboat/{{ .Policy.Name }}"));
        let pull_request = read.pull_request;
        assert_eq!((pull_request.title.text(), pull_request.body.text()), (Some("preset:summary"), None));
        assert_eq!(pull_request.labels.names(), ["images", "area: apps"]);
        assert_eq!(pull_request.reviewers.names(), ["ann", "acme/web"]);
        assert!(pull_request.assignees.names().is_empty() && !pull_request.is_draft);
        assert_eq!(
            (pull_request.merge, pull_request.merge_method, pull_request.refresh),
            (MergeTime::WhenReady, MergeMethod::Squash, Refresh::Always)
        );
    }

    #[test]
    fn a_draft_cannot_be_merged_by_us() {
        for (merge, is_good) in [("by-hand", true), ("when-ready", false), ("immediately", false)] {
            let entries =
                [("tagboat.dev/pull-request-draft", "true"), ("tagboat.dev/pull-request-merge", merge)];
            assert_eq!(
                AutomationSettings::from_annotations(&annotations(&entries)).is_ok(),
                is_good,
                "{merge}"
            );
            if !is_good {
                assert_eq!(
                    automation_error(&entries),
                    "annotations tagboat.dev/pull-request-draft and tagboat.dev/pull-request-merge contradict each \
                     other: a draft cannot be merged: remove one of them"
                );
            }
        }
    }

    #[test]
    fn the_longest_wait_is_six_quiet_periods_by_default() {
        for (quiet, longest, expected) in [
            (None, None, (0, 0)),
            (Some("5m"), None, (300, 1_800)),
            (Some("1w"), Some("2w1d"), (604_800, 1_296_000)),
            (Some("5m"), Some("0s"), (300, 0)),
            (None, Some("5m"), (0, 300)),
        ] {
            let given: Vec<(&str, &str)> =
                [("tagboat.dev/quiet-period", quiet), ("tagboat.dev/longest-wait", longest)]
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value?)))
                    .collect();
            let read = AutomationSettings::from_annotations(&annotations(&given)).unwrap();
            let seconds = |duration: LongDuration| duration.duration().as_secs();
            assert_eq!((seconds(read.quiet_period), seconds(read.longest_wait)), expected, "{given:?}");
        }
        for name in ["tagboat.dev/quiet-period", "tagboat.dev/longest-wait"] {
            for value in ["", "5", "-5m", "soon"] {
                assert!(automation_error(&[(name, value)]).contains(": allowed is a duration "), "{value}");
            }
        }
    }

    #[test]
    fn a_git_repository_has_settings_of_its_forge() {
        let given = annotations(&[
            ("tagboat.dev/forge", "gitea"),
            ("tagboat.dev/forge-url", "/git/api/v1"),
            ("tagboat.dev/forge-secret", "forge-token"),
        ]);
        let read = GitRepositorySettings::from_annotations(&given).unwrap();
        assert_eq!(
            (read.forge.name(), read.forge_url.text(), read.forge_secret.name()),
            (Some("gitea"), Some("/git/api/v1"), Some("forge-token"))
        );
        let error = |name: &str, value: &str| {
            GitRepositorySettings::from_annotations(&annotations(&[(name, value)])).unwrap_err().to_string()
        };
        assert_eq!(
            error("tagboat.dev/forge", "GitHub"),
            "annotation tagboat.dev/forge has the value `GitHub`: allowed are github, gitlab, gitea, forgejo, \
             bitbucket, bitbucket-data-center, azure-devops"
        );
        assert!(error("tagboat.dev/delivery", "push").ends_with("it belongs to ImageUpdateAutomation"));
        // Credentials of a GitRepository go where only its own namespace says.
        assert!(
            automation_error(&[("tagboat.dev/forge-url", "https://git.example/api/v1")])
                .ends_with("it belongs to GitRepository")
        );
    }
}
