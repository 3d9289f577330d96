//! The settings of a pool, checked: from the spec of a NodePool to a [`Pool`].
//!
//! The API server refuses most values without a meaning, but it does not know the names of time zones, and an object can
//! be older than a rule. So each field is checked again.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt};
use tagboat_api::GoDuration;
use tagboat_api::label::key_defects;
use tagboat_api::node_pool::{NodePoolSpec, OWN_PREFIX, PoolHooks, PoolWindow};
use tagboat_api::selector;

use super::invalid_spec::NODE_SELECTOR;
use super::{Defect, Hooks, InvalidSpec, MaxUnavailable, Pool, TimeLimits, Window};
use crate::reference::{Digest, ImageName, ReferenceParts, Tag};

/// The domains of keys that Kubernetes and autoscalers need, with all below them.
const SYSTEM_DOMAINS: [&str; 3] = ["kubernetes.io", "k8s.io", "karpenter.sh"];

/// The settings of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The image, with a digest or a tag that is resolved to one.
    ///
    /// None for a pool that only coordinates reboots.
    pub target: Option<ReferenceParts>,
    /// `true` if no pod is evicted.
    pub is_drain_disabled: bool,
    /// The labels of pods that stay on their node.
    pub skip: Option<Selector>,
    /// The time that pods get to end.
    pub grace_period: Option<Duration>,
    selector: Selector,
    /// The pool, without its name and image.
    pool: Pool,
}

impl Settings {
    /// Checks the spec of a NodePool.
    ///
    /// # Errors
    ///
    /// The first field that is not valid.
    pub fn new(spec: &NodePoolSpec) -> Result<Self, InvalidSpec> {
        let selector = Self::node_selector(spec)?;
        let target = spec.image.as_ref().map(|image| checked("image.ref", || parse_target(&image.reference)));
        let rollout = spec.rollout.clone().unwrap_or_default();
        let hooks = spec.hooks.clone().unwrap_or_default();
        let drain = spec.drain.clone().unwrap_or_default();
        let windows = rollout.windows.iter().enumerate();
        let pool = Pool {
            name: String::new(),
            image: None,
            is_paused: spec.paused,
            limits: TimeLimits {
                drain: limit("rollout.drainTimeout", rollout.drain_timeout.as_ref())?,
                reboot: limit("rollout.rebootTimeout", rollout.reboot_timeout.as_ref())?,
                hooks: limit("hooks.timeout", hooks.timeout.as_ref())?,
            },
            hooks: parse_hooks(hooks, &spec.node_selector)?,
            max_unavailable: match &rollout.max_unavailable {
                Some(value) => checked("rollout.maxUnavailable", || parse_max_unavailable(value))?,
                None => MaxUnavailable::default(),
            },
            post_complete_delay: duration("rollout.postCompleteDelay", rollout.post_complete_delay.as_ref())?
                .unwrap_or_default(),
            windows: windows.map(|(index, window)| parse_window(index, window)).collect::<Result<_, _>>()?,
        };
        Ok(Self {
            target: target.transpose()?,
            is_drain_disabled: drain.disabled,
            skip: drain.skip.map(|skip| checked("drain.skip", || non_empty(&skip))).transpose()?,
            grace_period: duration("drain.gracePeriod", drain.grace_period.as_ref())?,
            selector,
            pool,
        })
    }

    /// Returns `true` if the pool selects a node with these labels.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.matches(labels)
    }

    /// Returns the tag to resolve; none without an image or with a digest.
    #[must_use]
    pub fn unresolved_tag(&self) -> Option<(&ImageName, &Tag)> {
        let target = self.target.as_ref().filter(|target| target.digest.is_none())?;
        Some((&target.name, target.tag.as_ref()?))
    }

    /// Returns the pool, without its name.
    ///
    /// There is none before its tag is resolved for the first time.
    ///
    /// `resolved` is the image with the digest of the tag.
    #[must_use]
    pub fn pool(&self, resolved: Option<&str>) -> Option<Pool> {
        let Some(target) = &self.target else { return Some(self.pool.clone()) };
        let image = match &target.digest {
            Some(digest) => image_of(&target.name, digest),
            None => resolved?.to_owned(),
        };
        Some(Pool { image: Some(image), ..self.pool.clone() })
    }

    /// Returns the keys of hooks that are valid, also if other fields are not.
    #[must_use]
    pub fn valid_hooks(spec: &NodePoolSpec) -> Hooks {
        let PoolHooks { before_drain, before_reboot, before_uncordon, timeout: _ } =
            spec.hooks.clone().unwrap_or_default();
        let [before_drain, before_reboot, before_uncordon] = [before_drain, before_reboot, before_uncordon]
            .map(|mut keys| {
                keys.retain(|key| check_key(key, &spec.node_selector).is_ok());
                keys
            });
        Hooks { before_drain, before_reboot, before_uncordon }
    }

    /// Checks the node selector alone, which decides to which pool a node belongs.
    ///
    /// # Errors
    ///
    /// The selector is not valid.
    pub fn node_selector(spec: &NodePoolSpec) -> Result<Selector, InvalidSpec> {
        checked(NODE_SELECTOR, || {
            let selector = non_empty(&spec.node_selector)?;
            match selected_keys(&spec.node_selector).find(|key| key.starts_with(OWN_PREFIX)) {
                Some(key) => Err(Defect::SelectsOwnKey(key.to_owned())),
                None => Ok(selector),
            }
        })
    }
}

/// Returns the image that nodes get: `NAME@DIGEST`.
///
/// It has no tag: programs on hosts refuse one beside a digest, and a node whose image gets another tag needs no reboot.
#[must_use]
pub fn image_of(name: &ImageName, digest: &Digest) -> String {
    format!("{name}@{digest}")
}

fn checked<T>(field: &str, check: impl FnOnce() -> Result<T, Defect>) -> Result<T, InvalidSpec> {
    check().map_err(|defect| InvalidSpec { field: field.to_owned(), defect })
}

fn non_empty(selector: &LabelSelector) -> Result<Selector, Defect> {
    let selector = selector::parse(selector).map_err(Defect::Selector)?;
    if selector.selects_all() { Err(Defect::EmptySelector) } else { Ok(selector) }
}

fn parse_target(text: &str) -> Result<ReferenceParts, Defect> {
    let last = text.rsplit('/').next().unwrap_or(text);
    if !text.contains('@') && !last.contains(':') {
        return Err(Defect::Unpinned(text.to_owned()));
    }
    ReferenceParts::parse(text).map_err(Defect::Reference)
}

fn parse_max_unavailable(value: &IntOrString) -> Result<MaxUnavailable, Defect> {
    let parsed = match value {
        IntOrString::Int(number) => usize::try_from(*number).ok().map(MaxUnavailable::Count),
        IntOrString::String(text) => {
            let digits =
                text.strip_suffix('%').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            let percent = digits.and_then(|digits| digits.parse().ok()).filter(|percent| *percent <= 100);
            percent.map(MaxUnavailable::Percent)
        }
    };
    parsed.ok_or_else(|| {
        Defect::MaxUnavailable(match value {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(text) => text.clone(),
        })
    })
}

fn duration(field: &str, text: Option<&GoDuration>) -> Result<Option<Duration>, InvalidSpec> {
    text.map(|text| checked(field, || text.to_duration().map_err(Defect::Duration))).transpose()
}

/// Returns the time limit of a stage.
fn limit(field: &str, text: Option<&GoDuration>) -> Result<Option<Duration>, InvalidSpec> {
    match duration(field, text)? {
        Some(Duration::ZERO) => checked(field, || Err(Defect::NoTime)),
        limit => Ok(limit),
    }
}

fn parse_window(index: usize, window: &PoolWindow) -> Result<Window, InvalidSpec> {
    let path = format!("rollout.windows[{index}]");
    let zone = window.time_zone.as_deref().unwrap_or_default();
    let length =
        checked(&format!("{path}.length"), || window.length.to_duration().map_err(Defect::Duration))?;
    Window::new(&window.days, &window.start, length, zone).map_err(|error| InvalidSpec {
        field: format!("{path}.{}", error.field()),
        defect: Defect::Window(error),
    })
}

/// Returns the keys of the labels by which a selector selects.
fn selected_keys(selector: &LabelSelector) -> impl Iterator<Item = &str> {
    let labels = selector.match_labels.iter().flat_map(|labels| labels.keys());
    let expressions = selector.match_expressions.iter().flatten().map(|expression| &expression.key);
    labels.chain(expressions).map(String::as_str)
}

fn parse_hooks(hooks: PoolHooks, selector: &LabelSelector) -> Result<Hooks, InvalidSpec> {
    let PoolHooks { before_drain, before_reboot, before_uncordon, timeout: _ } = hooks;
    for (stage, keys) in [
        ("beforeDrain", &before_drain),
        ("beforeReboot", &before_reboot),
        ("beforeUncordon", &before_uncordon),
    ] {
        for (index, key) in keys.iter().enumerate() {
            checked(&format!("hooks.{stage}[{index}]"), || check_key(key, selector))?;
        }
    }
    Ok(Hooks { before_drain, before_reboot, before_uncordon })
}

/// Checks the key of a hook.
///
/// It must not be one that others need: the keys of hooks are removed.
fn check_key(key: &str, selector: &LabelSelector) -> Result<(), Defect> {
    let defects = key_defects(key);
    if !defects.is_empty() {
        return Err(Defect::Key { key: key.to_owned(), defects });
    }
    if key.starts_with(OWN_PREFIX) {
        return Err(Defect::OwnKey(key.to_owned()));
    }
    if selected_keys(selector).any(|selected| selected == key) {
        return Err(Defect::SelectedKey(key.to_owned()));
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_system = SYSTEM_DOMAINS
        .iter()
        .any(|system| domain.strip_suffix(system).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    if is_system { Err(Defect::SystemKey(key.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn digest(hex: &str) -> String {
        format!("sha256:{}", hex.repeat(32))
    }

    fn settings(spec: Value) -> Result<Settings, InvalidSpec> {
        Settings::new(&serde_json::from_value(spec).unwrap())
    }

    /// Returns a valid spec with some other fields.
    fn spec(fields: &Value) -> Value {
        let mut spec = json!({"nodeSelector": {"matchLabels": {"role": "worker"}}});
        for (name, value) in fields.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        spec
    }

    #[test]
    fn a_spec_becomes_a_pool() {
        let spec = spec(&json!({
            "paused": true,
            "rollout": {
                "maxUnavailable": "25%", "drainTimeout": "1h", "rebootTimeout": "10m", "postCompleteDelay": "30s",
                "windows": [{"days": ["Sat"], "start": "23:00", "length": "2h", "timeZone": "Europe/Berlin"}],
            },
            "hooks": {"beforeDrain": ["a"], "beforeReboot": ["b.c/d"], "beforeUncordon": ["e"], "timeout": "5m"},
            "drain": {"disabled": true, "skip": {"matchLabels": {"app": "x"}}, "gracePeriod": "0s"},
        }));
        let settings = settings(spec).unwrap();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let expected = Pool {
            name: String::new(),
            image: None,
            is_paused: true,
            hooks: Hooks {
                before_drain: vec!["a".to_owned()],
                before_reboot: vec!["b.c/d".to_owned()],
                before_uncordon: vec!["e".to_owned()],
            },
            limits: TimeLimits { drain: seconds(3600), reboot: seconds(600), hooks: seconds(300) },
            max_unavailable: MaxUnavailable::Percent(25),
            post_complete_delay: Duration::from_secs(30),
            windows: vec![
                Window::new(&["Sat".to_owned()], "23:00", Duration::from_hours(2), "Europe/Berlin").unwrap(),
            ],
        };
        assert_eq!(settings.pool(None), Some(expected));
        assert!(settings.is_drain_disabled);
        assert_eq!(settings.skip.unwrap().to_string(), "app=x");
        assert_eq!(settings.grace_period, Some(Duration::ZERO));
    }

    #[test]
    fn a_selector_is_enough() {
        let settings = settings(spec(&json!({}))).unwrap();
        assert_eq!(settings.pool(None), Some(Pool::default()));
        assert_eq!((&settings.target, &settings.skip, settings.grace_period), (&None, &None, None));
    }

    #[test]
    fn nodes_are_selected_by_all_requirements() {
        let selector = json!({
            "matchLabels": {"role": "worker"},
            "matchExpressions": [
                {"key": "stage", "operator": "NotIn", "values": ["test"]}, {"key": "zone", "operator": "Exists"},
            ],
        });
        let settings = settings(json!({"nodeSelector": selector})).unwrap();
        for (labels, expected) in [
            (json!({"role": "worker", "zone": "a"}), true),
            (json!({"role": "worker", "zone": "", "stage": "live"}), true),
            (json!({"role": "worker", "zone": "a", "stage": "test"}), false),
            (json!({"role": "worker"}), false),
            (json!({"role": "master", "zone": "a"}), false),
            (json!({}), false),
        ] {
            let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap();
            assert_eq!(settings.selects(&labels), expected, "{labels:?}");
        }
    }

    /// A pool without an image would let hosts reboot for their own updates.
    #[test]
    fn a_tag_that_was_never_resolved_gives_no_pool() {
        let (own, resolved) = (digest("0a"), Digest::parse(&digest("0b")).unwrap());
        let image = |reference: &str, resolved: Option<&Digest>| {
            let settings = settings(spec(&json!({"image": {"ref": reference}}))).unwrap();
            let resolved = resolved.map(|digest| image_of(&settings.target.as_ref().unwrap().name, digest));
            settings.pool(resolved.as_deref()).map(|pool| pool.image.unwrap())
        };
        for (reference, before, after) in [
            ("r.example/os:v1".to_owned(), None, "r.example/os@".to_owned() + resolved.as_str()),
            (format!("r.example:5000/os@{own}"), Some(&own), format!("r.example:5000/os@{own}")),
            (format!("r.example:5000/os:v1@{own}"), Some(&own), format!("r.example:5000/os@{own}")),
        ] {
            let before = before.map(|_| after.clone());
            assert_eq!(image(&reference, None), before, "{reference}");
            assert_eq!(image(&reference, Some(&resolved)), Some(after), "{reference}");
        }
    }

    #[test]
    fn the_number_of_unavailable_nodes_is_a_number_or_a_percentage() {
        for (value, expected) in [
            (json!(0), MaxUnavailable::Count(0)),
            (json!(3), MaxUnavailable::Count(3)),
            (json!("0%"), MaxUnavailable::Percent(0)),
            (json!("100%"), MaxUnavailable::Percent(100)),
        ] {
            let settings = settings(spec(&json!({"rollout": {"maxUnavailable": value}}))).unwrap();
            assert_eq!(settings.pool(None).unwrap().max_unavailable, expected);
        }
    }

    #[test]
    fn an_invalid_field_is_named() {
        let window =
            |window: Value| json!({"rollout": {"windows": [{"start": "01:00", "length": "1h"}, window]}});
        let rollout = |name: &str, value: Value| json!({"rollout": {name: value}});
        let image = |reference: &str| json!({"image": {"ref": reference}});
        let percent = "is neither a number of nodes nor a percentage from 0% to 100%";
        for (fields, expected) in [
            (json!({"nodeSelector": {}}), "spec.nodeSelector: an empty selector is invalid"),
            (
                json!({"nodeSelector": {"matchLabels": {"a b": "c"}}}),
                "spec.nodeSelector: key: Invalid value: \"a b\"",
            ),
            (
                json!({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}}),
                "spec.nodeSelector: values: Invalid value: []",
            ),
            (
                json!({"nodeSelector": {"matchExpressions": [{"key": "tagboat.dev/state", "operator": "Exists"}]}}),
                "spec.nodeSelector: \"tagboat.dev/state\" is a key of Tagboat's own, which changes during a rollout",
            ),
            (
                json!({"hooks": {"beforeDrain": ["role"]}}),
                "spec.hooks.beforeDrain[0]: \"role\" is a key of spec.nodeSelector, and",
            ),
            (
                json!({"hooks": {"beforeReboot": ["a", "node-role.kubernetes.io/worker"]}}),
                "spec.hooks.beforeReboot[1]: \"node-role.kubernetes.io/worker\" is a key of Kubernetes or of an",
            ),
            (
                json!({"hooks": {"beforeUncordon": ["karpenter.sh/do-not-disrupt"]}}),
                "spec.hooks.beforeUncordon[0]: \"karpenter.sh/do-not-disrupt\" is a key of Kubernetes or of",
            ),
            (json!({"drain": {"skip": {}}}), "spec.drain.skip: an empty selector is invalid"),
            (image("r.example/os"), "spec.image.ref: \"r.example/os\" has neither a tag nor a digest"),
            (image("r.example:5000/os"), "spec.image.ref: \"r.example:5000/os\" has neither"),
            (image("R/os:v1"), "spec.image.ref: \"R/os\" is not an image name"),
            (image("r.example/os:v 1"), "spec.image.ref: \"v 1\" is not a tag"),
            (image("r.example/os@sha256:0a"), "spec.image.ref: \"sha256:0a\" is not a digest"),
            (image(""), "spec.image.ref: \"\" has neither"),
            (rollout("maxUnavailable", json!(-1)), &format!("spec.rollout.maxUnavailable: `-1` {percent}")),
            (
                rollout("maxUnavailable", json!("101%")),
                &format!("spec.rollout.maxUnavailable: `101%` {percent}"),
            ),
            (
                rollout("maxUnavailable", json!("+5%")),
                &format!("spec.rollout.maxUnavailable: `+5%` {percent}"),
            ),
            (rollout("maxUnavailable", json!("%")), &format!("spec.rollout.maxUnavailable: `%` {percent}")),
            (rollout("maxUnavailable", json!("2")), &format!("spec.rollout.maxUnavailable: `2` {percent}")),
            (rollout("drainTimeout", json!("-1s")), "spec.rollout.drainTimeout: `-1s` is not a duration"),
            (rollout("rebootTimeout", json!("0s")), "spec.rollout.rebootTimeout: must be more than 0"),
            (
                rollout("postCompleteDelay", json!("1d")),
                "spec.rollout.postCompleteDelay: `1d` is not a duration",
            ),
            (json!({"hooks": {"timeout": "0m"}}), "spec.hooks.timeout: must be more than 0"),
            (json!({"drain": {"gracePeriod": "x"}}), "spec.drain.gracePeriod: `x` is not a duration"),
            (window(json!({"start": "9:00", "length": "1h"})), "spec.rollout.windows[1].start: `9:00`"),
            (window(json!({"start": "09:00", "length": "0s"})), "spec.rollout.windows[1].length: the length"),
            (
                window(json!({"start": "09:00", "length": "1"})),
                "spec.rollout.windows[1].length: `1` is not a",
            ),
            (
                window(json!({"start": "09:00", "length": "1h", "days": ["Mon", "Xyz"]})),
                "spec.rollout.windows[1].days: `Xyz`",
            ),
            (
                window(json!({"start": "09:00", "length": "1h", "timeZone": "Mars/Olympus"})),
                "spec.rollout.windows[1].timeZone: `Mars/Olympus`",
            ),
            (json!({"hooks": {"beforeDrain": ["a", ""]}}), "spec.hooks.beforeDrain[1]: \"\" is not a key"),
            (
                json!({"hooks": {"beforeReboot": ["a/b/c"]}}),
                "spec.hooks.beforeReboot[0]: \"a/b/c\" is not a key",
            ),
            (
                json!({"hooks": {"beforeUncordon": ["tagboat.dev/state"]}}),
                "spec.hooks.beforeUncordon[0]: \"tagboat.dev/state\" is a key of Tagboat's own",
            ),
        ] {
            let error = settings(spec(&fields)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{fields}: {error}");
        }
    }
}
