//! The seven stages of a node.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The stage of a node in the rollout of its pool.
///
/// The order is that in which a node passes them; `Paused` stands beside `Idle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The node waits for an update or for a slot.
    Idle,
    /// A user paused the node, or its pool while an update is staged.
    Paused,
    /// The hooks before the drain run.
    BeforeDrain,
    /// The node is cordoned, and its pods are evicted.
    Draining,
    /// The hooks before the reboot run.
    BeforeReboot,
    /// The reboot is approved.
    Rebooting,
    /// The hooks before the node is uncordoned run.
    BeforeUncordon,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::Paused,
        Self::BeforeDrain,
        Self::Draining,
        Self::BeforeReboot,
        Self::Rebooting,
        Self::BeforeUncordon,
    ];

    /// Returns the value of the label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::BeforeDrain => "before-drain",
            Self::Draining => "draining",
            Self::BeforeReboot => "before-reboot",
            Self::Rebooting => "rebooting",
            Self::BeforeUncordon => "before-uncordon",
        }
    }

    /// Parses the value of the label.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text)
    }

    /// Returns `true` if a node in this stage holds a slot.
    #[must_use]
    pub fn holds_slot(self) -> bool {
        self >= Self::BeforeDrain
    }
}

/// Formats the value of the label.
impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_parsed_back_and_are_in_order() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(stage.as_str()), Some(stage));
        }
        assert!(Stage::ALL.is_sorted());
        assert_eq!(Stage::parse("reboot-needed"), None);
        let holding: Vec<_> = Stage::ALL.into_iter().filter(|stage| stage.holds_slot()).collect();
        assert_eq!(holding, Stage::ALL[2..]);
    }
}
