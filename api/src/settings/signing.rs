//! The type of the setting of signatures.

use std::str::FromStr;

/// The party that signs an automation's commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignedBy {
    /// The key of the automation, if it has one.
    #[default]
    Key,
    /// The forge; nothing is pushed without its signature.
    Forge,
    /// The forge; our own commit is pushed if it does not sign.
    ForgeOrKey,
}

impl SignedBy {
    /// Returns the value of the annotation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Forge => "forge",
            Self::ForgeOrKey => "forge-or-key",
        }
    }
}

impl FromStr for SignedBy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "key" => Ok(Self::Key),
            "forge" => Ok(Self::Forge),
            "forge-or-key" => Ok(Self::ForgeOrKey),
            _ => Err(()),
        }
    }
}
