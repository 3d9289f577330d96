//! Warnings about flags without an effect.

use std::collections::{BTreeMap, BTreeSet};

use super::{Controller, ControllerArguments};
use crate::cli::controller::flags::{Effect, Flag, GATES, find};

impl ControllerArguments {
    /// Returns a warning for each flag without an effect that is not its default.
    pub(super) fn idle_flags(&self, controllers: &BTreeSet<Controller>) -> Vec<String> {
        let given = self.given.iter().filter_map(|name| find(name));
        given
            .filter(|flag| self.value(flag.name) != flag.default)
            .filter_map(|flag| {
                let reason = self.idle_reason(flag, controllers)?;
                Some(format!("--{} has no effect: {reason}", flag.name))
            })
            .collect()
    }

    /// Returns the reason why a flag has no effect, by itself or beside the others.
    fn idle_reason(&self, flag: &Flag, controllers: &BTreeSet<Controller>) -> Option<&'static str> {
        if let Effect::Nothing(reason) = flag.effect {
            return Some(reason);
        }
        match flag.name {
            "status-host" if matches!(self.value("status-addr"), "" | "0") => {
                Some("it is for --status-addr, which is not given")
            }
            "status-format" | "status-token-file" if self.text("status-endpoint").is_none() => {
                Some("it is for --status-endpoint, which is not given")
            }
            "status-endpoint" if self.switch("dry-run") => Some("a dry run sends no status"),
            "status-endpoint" if !controllers.contains(&Controller::Automation) => {
                Some("the automation controller sends the status, and does not run")
            }
            "tag-resolution-interval" if self.switch("dry-run") => Some("a dry run changes no nodes"),
            "tag-resolution-interval" if !self.switch("nodes") => Some("--nodes=false changes no nodes"),
            "clusters" if self.switch("dry-run") => Some("a dry run observes no rollouts"),
            "clusters" if !self.switch("rollout") => Some("--rollout=false observes no rollouts"),
            _ => None,
        }
    }

    /// Returns true if the status push has an effect.
    pub(super) fn pushes(&self, controllers: &BTreeSet<Controller>) -> bool {
        find("status-endpoint").is_some_and(|flag| self.idle_reason(flag, controllers).is_none())
    }
}

/// Returns a warning for each feature gate without an effect that is not its default.
pub(super) fn idle_gates(gates: &BTreeMap<&'static str, bool>) -> Vec<String> {
    let set = GATES.iter().filter(|gate| gates.get(gate.name).is_some_and(|value| *value != gate.default));
    set.filter_map(|gate| match gate.effect {
        Effect::Does(_) => None,
        Effect::Nothing(why) => Some(format!("the feature gate {} has no effect: {why}", gate.name)),
    })
    .collect()
}
