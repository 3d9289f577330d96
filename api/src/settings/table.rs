//! The table of all annotation settings.

/// An annotation setting: its name and allowed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the annotation without [`PREFIX`].
    pub name: &'static str,
    /// Description of the allowed values.
    pub allowed: &'static str,
}

/// The settings of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindSettings {
    /// Kind of the annotated objects.
    pub kind: &'static str,
    /// Settings of the kind.
    pub settings: &'static [Setting],
}

/// The table of all settings.
pub const TABLE: &[KindSettings] = &[AUTOMATION, POLICY, REPOSITORY, GIT_REPOSITORY, NAMESPACE];

pub(super) const AUTOMATION: KindSettings = KindSettings {
    kind: "ImageUpdateAutomation",
    settings: &[
        TEMPLATE_LANGUAGE,
        SIGNED_BY,
        DELIVERY,
        PUSH_BRANCH,
        PULL_REQUEST_TITLE,
        PULL_REQUEST_BODY,
        PULL_REQUEST_LABELS,
        PULL_REQUEST_REVIEWERS,
        PULL_REQUEST_ASSIGNEES,
        PULL_REQUEST_DRAFT,
        PULL_REQUEST_MERGE,
        PULL_REQUEST_MERGE_METHOD,
        PULL_REQUEST_REFRESH,
        WINDOWS,
        QUIET_PERIOD,
        LONGEST_WAIT,
        ON_REVERT,
    ],
};

pub(super) const POLICY: KindSettings = KindSettings {
    kind: "ImagePolicy",
    settings: &[ORDER, EXCLUDE, MINIMUM_AGE, UNKNOWN_AGE, POLL_INTERVAL, POLL_GROUP, RELEASE_GROUP],
};

pub(super) const REPOSITORY: KindSettings = KindSettings { kind: "ImageRepository", settings: &[] };

pub(super) const GIT_REPOSITORY: KindSettings =
    KindSettings { kind: "GitRepository", settings: &[FORGE, FORGE_URL, FORGE_SECRET] };

pub(super) const NAMESPACE: KindSettings =
    KindSettings { kind: "Namespace", settings: &[FREEZE, FREEZE_ALL, WINDOWS] };

pub(super) const WINDOWS: Setting = Setting { name: "windows", allowed: "a YAML list of at most 50 windows" };

pub(super) const QUIET_PERIOD: Setting =
    Setting { name: "quiet-period", allowed: "a duration in w, d, h, m, s and ms, such as 90s or 5m" };

pub(super) const LONGEST_WAIT: Setting =
    Setting { name: "longest-wait", allowed: "a duration in w, d, h, m, s and ms, such as 90s or 5m" };

pub(super) const ON_REVERT: Setting = Setting { name: "on-revert", allowed: "overwrite, hold, pause" };

pub(super) const FREEZE: Setting = Setting {
    name: "freeze",
    allowed: "empty, a reason, or YAML with reason, from and until; false for none",
};

pub(super) const FREEZE_ALL: Setting = Setting {
    name: "freeze-all",
    allowed: "empty, a reason, or YAML with reason, from and until; false for none",
};

pub(super) const TEMPLATE_LANGUAGE: Setting =
    Setting { name: "template-language", allowed: "go, handlebars" };

pub(super) const SIGNED_BY: Setting = Setting { name: "signed-by", allowed: "key, forge, forge-or-key" };

pub(super) const ORDER: Setting = Setting { name: "order", allowed: "bytes, natural" };

pub(super) const EXCLUDE: Setting = Setting { name: "exclude", allowed: "a tag, or a YAML list of tags" };

pub(super) const MINIMUM_AGE: Setting =
    Setting { name: "minimum-age", allowed: "a duration in w, d, h, m, s and ms, such as 3d or 36h" };

pub(super) const UNKNOWN_AGE: Setting = Setting { name: "unknown-age", allowed: "wait, accept" };

pub(super) const POLL_INTERVAL: Setting =
    Setting { name: "poll-interval", allowed: "a duration in w, d, h, m, s and ms, such as 6h, or default" };

pub(super) const POLL_GROUP: Setting =
    Setting { name: "poll-group", allowed: "a name of letters, digits, `-`, `_` and `.`" };

pub(super) const RELEASE_GROUP: Setting =
    Setting { name: "release-group", allowed: "a name of letters, digits, `-`, `_` and `.`" };

pub(super) const DELIVERY: Setting = Setting { name: "delivery", allowed: "push, branch, pull-request" };

pub(super) const PUSH_BRANCH: Setting =
    Setting { name: "push-branch", allowed: "a template of a branch name" };

pub(super) const PULL_REQUEST_TITLE: Setting =
    Setting { name: "pull-request-title", allowed: "a template, or preset:NAME" };

pub(super) const PULL_REQUEST_BODY: Setting =
    Setting { name: "pull-request-body", allowed: "a template, or preset:NAME" };

pub(super) const PULL_REQUEST_LABELS: Setting = Setting {
    name: "pull-request-labels",
    allowed: "a YAML list of at most 50 labels, without tagboat/rebuild",
};

pub(super) const PULL_REQUEST_REVIEWERS: Setting = Setting {
    name: "pull-request-reviewers",
    allowed: "a YAML list of at most 50 users, and teams as org/team",
};

pub(super) const PULL_REQUEST_ASSIGNEES: Setting =
    Setting { name: "pull-request-assignees", allowed: "a YAML list of at most 50 users" };

pub(super) const PULL_REQUEST_DRAFT: Setting = Setting { name: "pull-request-draft", allowed: "true, false" };

pub(super) const PULL_REQUEST_MERGE: Setting =
    Setting { name: "pull-request-merge", allowed: "by-hand, when-ready, immediately" };

pub(super) const PULL_REQUEST_MERGE_METHOD: Setting =
    Setting { name: "pull-request-merge-method", allowed: "commit, squash, rebase" };

pub(super) const PULL_REQUEST_REFRESH: Setting =
    Setting { name: "pull-request-refresh", allowed: "when-needed, always" };

pub(super) const FORGE: Setting = Setting {
    name: "forge",
    allowed: "github, gitlab, gitea, forgejo, bitbucket, bitbucket-data-center, azure-devops",
};

pub(super) const FORGE_URL: Setting =
    Setting { name: "forge-url", allowed: "an https or http URL, or a path that begins with /" };

pub(super) const FORGE_SECRET: Setting =
    Setting { name: "forge-secret", allowed: "the name of a Secret in the same namespace" };
