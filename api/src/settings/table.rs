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
pub const TABLE: &[KindSettings] = &[AUTOMATION, POLICY, REPOSITORY];

pub(super) const AUTOMATION: KindSettings =
    KindSettings { kind: "ImageUpdateAutomation", settings: &[TEMPLATE_LANGUAGE] };

pub(super) const POLICY: KindSettings = KindSettings {
    kind: "ImagePolicy",
    settings: &[ORDER, EXCLUDE, MINIMUM_AGE, UNKNOWN_AGE, POLL_INTERVAL, POLL_GROUP],
};

pub(super) const REPOSITORY: KindSettings = KindSettings { kind: "ImageRepository", settings: &[] };

pub(super) const TEMPLATE_LANGUAGE: Setting =
    Setting { name: "template-language", allowed: "go, handlebars" };

pub(super) const ORDER: Setting = Setting { name: "order", allowed: "bytes, natural" };

pub(super) const EXCLUDE: Setting = Setting { name: "exclude", allowed: "a tag, or a YAML list of tags" };

pub(super) const MINIMUM_AGE: Setting =
    Setting { name: "minimum-age", allowed: "a duration in w, d, h, m, s and ms, such as 3d or 36h" };

pub(super) const UNKNOWN_AGE: Setting = Setting { name: "unknown-age", allowed: "wait, accept" };

pub(super) const POLL_INTERVAL: Setting =
    Setting { name: "poll-interval", allowed: "a duration in w, d, h, m, s and ms, such as 6h, or default" };

pub(super) const POLL_GROUP: Setting =
    Setting { name: "poll-group", allowed: "a name of letters, digits, `-`, `_` and `.`" };
