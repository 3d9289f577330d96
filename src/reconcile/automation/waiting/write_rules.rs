//! The rules by which automations may write.

use std::sync::Arc;

use super::clock::SteadyClock;
use super::gate::WriteGate;
use super::quiet::QuietPeriod;
use super::rules::{ParsedRules, RulesReader};
use crate::objects::ObjectName;
use crate::schedule::Windows;

/// The rules by which automations may write.
#[derive(Clone, Debug, Default)]
pub struct WriteRules {
    /// Reads the annotations of Namespaces.
    pub reader: RulesReader,
    /// The lists of windows that were parsed.
    pub parsed: ParsedRules,
    /// The clock.
    pub clock: SteadyClock,
    /// True if the automation's own windows and quiet period do not count.
    pub ignores_own: bool,
}

impl WriteRules {
    /// Creates the gate of an automation with its own windows and quiet period.
    pub fn gate(
        self,
        automation: ObjectName,
        own: Option<Arc<Windows>>,
        quiet: Option<QuietPeriod>,
    ) -> WriteGate {
        let Self { reader: rules, parsed, clock, ignores_own } = self;
        WriteGate { automation, own, quiet, ignores_own, rules, parsed, clock }
    }
}
