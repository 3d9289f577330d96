//! Tokens for git repositories of Azure DevOps.

use url::Url;

use super::{AzureCloud, custom_cloud, entra};
use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::secrets::Secret;

/// The audience of tokens for Azure DevOps, the same in all clouds.
const AUDIENCE: &str = "499b84ac-1321-427f-aa17-267ca6975798";

/// The authority of the public cloud.
const AUTHORITY: &str = "https://login.microsoftonline.com/";

/// A server of Azure DevOps, which may receive a token.
#[derive(Debug, Clone, Copy)]
pub(in crate::cloud) struct DevOps(());

/// Returns true for a URL of Azure DevOps, which may receive a token.
pub fn is_azure_dev_ops(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let is_known = host == "dev.azure.com" || host.ends_with(".visualstudio.com");
    url.scheme() == "https" && is_known && url.port().is_none()
}

impl DevOps {
    /// Checks the URL of a repository: a token is sent to no other server.
    pub(in crate::cloud) fn parse(url: &Url) -> Result<Self, LoginError> {
        if is_azure_dev_ops(url) {
            return Ok(Self(()));
        }
        let must = "begin with https://dev.azure.com/ or https://ORGANIZATION.visualstudio.com/";
        Err(LoginError::git_url("azure", url, must))
    }

    /// Requests a token of the identity that logs in.
    pub(in crate::cloud) async fn token(
        self,
        context: LoginContext<'_>,
    ) -> Result<Expiring<Secret>, LoginError> {
        let authority = custom_cloud(context).await?.and_then(|cloud| cloud.active_directory);
        let authority = authority.unwrap_or_else(|| AUTHORITY.to_owned());
        entra::token(&AzureCloud { authority, audience: AUDIENCE.to_owned() }, context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_azure_devops_get_a_token() {
        for (url, is_known) in [
            ("https://dev.azure.com/org/project/_git/fleet", true),
            ("https://org@dev.azure.com/org/project/_git/fleet", true),
            ("https://org.visualstudio.com/project/_git/fleet", true),
            ("http://dev.azure.com/org/project/_git/fleet", false),
            ("https://dev.azure.com:8443/org/project/_git/fleet", false),
            ("https://dev.azure.com.evil.example/org", false),
            ("https://evilvisualstudio.com/org", false),
            ("https://visualstudio.com/org", false),
            ("https://git.example/org", false),
        ] {
            assert_eq!(DevOps::parse(&Url::parse(url).unwrap()).is_ok(), is_known, "{url}");
        }
    }
}
