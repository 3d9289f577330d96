//! The table of all settings, for documentation and errors.

/// A setting, for documentation and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the annotation without [`PREFIX`].
    pub name: &'static str,
    /// Description of the allowed values.
    pub allowed: &'static str,
    /// Value if the annotation is absent.
    pub default: &'static str,
    /// Description of the setting, in a sentence.
    pub meaning: &'static str,
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
pub const TABLE: &[KindSettings] = &[AUTOMATION, POLICY, REPOSITORY];

pub(super) const AUTOMATION: KindSettings =
    KindSettings { kind: "ImageUpdateAutomation", settings: &[TEMPLATE_LANGUAGE] };
pub(super) const POLICY: KindSettings = KindSettings {
    kind: "ImagePolicy",
    settings: &[ORDER, EXCLUDE, MINIMUM_AGE, UNKNOWN_AGE, POLL_INTERVAL, POLL_GROUP],
};
pub(super) const REPOSITORY: KindSettings = KindSettings { kind: "ImageRepository", settings: &[] };

pub(super) const TEMPLATE_LANGUAGE: Setting = Setting {
    name: "template-language",
    allowed: "go, handlebars",
    default: "go",
    meaning: "The language of the commit message's template.",
};

pub(super) const ORDER: Setting = Setting {
    name: "order",
    allowed: "bytes, natural",
    default: "bytes",
    meaning: "How an alphabetical policy compares: byte by byte as Flux does, or as people read versions (`rc9` before `rc10`).",
};
pub(super) const EXCLUDE: Setting = Setting {
    name: "exclude",
    allowed: "a tag, or a YAML list of tags",
    default: "[]",
    meaning: "Tags that are never chosen, so that a rollback holds.",
};
pub(super) const MINIMUM_AGE: Setting = Setting {
    name: "minimum-age",
    allowed: "a duration in w, d, h, m, s and ms, such as 3d or 36h",
    default: "0s",
    meaning: "How long a tag must be known, or else its image exist, before it can be chosen.",
};
pub(super) const UNKNOWN_AGE: Setting = Setting {
    name: "unknown-age",
    allowed: "wait, accept",
    default: "wait",
    meaning: "What becomes of a tag whose age is not known where a minimum age is set.",
};
pub(super) const POLL_INTERVAL: Setting = Setting {
    name: "poll-interval",
    allowed: "a duration in w, d, h, m, s and ms, such as 6h, or default",
    default: "the policy's spec.interval",
    meaning: "How often the digest of a policy with `digestReflectionPolicy: Always` is looked up; `0s` is never, `default` is `UPDATE_POLLING_INTERVAL` of the controller.",
};
pub(super) const POLL_GROUP: Setting = Setting {
    name: "poll-group",
    allowed: "a name of letters, digits, `-`, `_` and `.`",
    default: "none",
    meaning: "Policies of a namespace with the same group and `digestReflectionPolicy: Always` get their digests together or not at all.",
};
