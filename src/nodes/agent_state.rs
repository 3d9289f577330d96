//! The states that the agent reports.

use schemars::JsonSchema;
use serde::Serialize;

/// The state of the agent of a node, as its label has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// The wanted image is booted, or there is no reason for a reboot.
    UpToDate,
    /// The wanted image is being staged.
    Staging,
    /// A reboot is needed: the wanted image is staged, or the host asks for it.
    UpdateStaged,
    /// The agent acknowledged the approval, and reboots the host.
    Rebooting,
    /// The agent cannot go on; the message has the reason.
    Error,
}

impl AgentState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::UpToDate, Self::Staging, Self::UpdateStaged, Self::Rebooting, Self::Error];

    /// Returns the value of the label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UpToDate => "up-to-date",
            Self::Staging => "staging",
            Self::UpdateStaged => "update-staged",
            Self::Rebooting => "rebooting",
            Self::Error => "error",
        }
    }

    /// Parses the value of the label.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_parsed_back() {
        for state in AgentState::ALL {
            assert_eq!(AgentState::parse(state.as_str()), Some(state));
        }
        assert_eq!(AgentState::parse("staged"), None);
    }
}
