//! The clouds that logins are made at.

/// A cloud that has registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloudProvider {
    /// Amazon, with the Elastic Container Registry, private and public.
    Aws,
    /// Microsoft, with the Azure Container Registry.
    Azure,
    /// Google, with Artifact Registry and Container Registry.
    Google,
}

impl CloudProvider {
    /// Returns the name in `spec.provider`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Google => "gcp",
        }
    }
}
