//! Parses names of AWS registries into region and service endpoints.

use super::region::AwsRegion;
use crate::cloud::error::LoginError;
use crate::cloud::pattern::HostPattern;

/// The pattern of AWS's private registry names.
pub(super) const HOSTS: &str = concat!(
    r"^([0-9]{12})\.dkr[.-]ecr(?:-fips)?\.([a-zA-Z0-9][a-zA-Z0-9_-]{0,99})\.",
    r"(amazonaws\.(?:com(?:\.cn)?|eu)|on\.(?:aws|amazonwebservices\.com\.cn)|sc2s\.sgov\.gov|c2s\.ic\.gov",
    r"|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$",
);

/// The names of the public registry, and the region that issues its tokens.
const PUBLIC: [&str; 2] = ["public.ecr.aws", "ecr-public.aws.com"];
const PUBLIC_REGION: &str = "us-east-1";

const COMMERCIAL: &str = "amazonaws.com";
const CHINESE: &str = "amazonaws.com.cn";

/// An ECR registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EcrRegistry {
    pub(super) region: AwsRegion,
    is_public: bool,
}

impl EcrRegistry {
    /// Parses the name of a registry, with the pattern [`HOSTS`].
    pub(super) fn parse(hosts: &HostPattern, host: &str) -> Result<Self, LoginError> {
        if PUBLIC.contains(&host) {
            return Ok(Self {
                region: AwsRegion { name: PUBLIC_REGION.to_owned(), domain: COMMERCIAL.to_owned() },
                is_public: true,
            });
        }
        let found = hosts.captures(host)?;
        let part = |number: usize| found.get(number).map_or("", |part| &host[part.range()]);
        // Dual-stack names belong to the same services.
        let domain = match part(3) {
            "on.aws" => COMMERCIAL,
            "on.amazonwebservices.com.cn" => CHINESE,
            domain => domain,
        };
        let region = AwsRegion { name: part(2).to_owned(), domain: domain.to_owned() };
        Ok(Self { region, is_public: false })
    }

    /// Returns the host that issues tokens for registries.
    pub(super) fn api_host(&self, is_fips: bool) -> String {
        let Self { region: AwsRegion { name: region, domain }, is_public } = self;
        match (is_public, is_fips) {
            (true, _) => format!("api.ecr-public.{region}.{domain}"),
            (false, false) => format!("api.ecr.{region}.{domain}"),
            (false, true) => format!("ecr-fips.{region}.{domain}"),
        }
    }

    /// Returns the service's name in signatures.
    pub(super) fn service(&self) -> &'static str {
        if self.is_public { "ecr-public" } else { "ecr" }
    }

    /// Returns the operation's name in `X-Amz-Target`.
    pub(super) fn target(&self) -> &'static str {
        if self.is_public {
            "SpencerFrontendService.GetAuthorizationToken"
        } else {
            "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::aws::region::CLOUD;

    #[test]
    fn a_registry_names_its_region() {
        let hosts = HostPattern::new(CLOUD, HOSTS);
        for (host, region, api_host) in [
            ("012345678901.dkr.ecr.us-east-1.amazonaws.com", "us-east-1", "api.ecr.us-east-1.amazonaws.com"),
            (
                "012345678901.dkr.ecr.cn-north-1.amazonaws.com.cn",
                "cn-north-1",
                "api.ecr.cn-north-1.amazonaws.com.cn",
            ),
            (
                "012345678901.dkr.ecr-fips.us-gov-west-1.amazonaws.com",
                "us-gov-west-1",
                "api.ecr.us-gov-west-1.amazonaws.com",
            ),
            (
                "012345678901.dkr.ecr.eusc-de-east-1.amazonaws.eu",
                "eusc-de-east-1",
                "api.ecr.eusc-de-east-1.amazonaws.eu",
            ),
            ("557238627320.dkr-ecr.us-west-2.on.aws", "us-west-2", "api.ecr.us-west-2.amazonaws.com"),
            (
                "012345678901.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn",
                "cn-north-1",
                "api.ecr.cn-north-1.amazonaws.com.cn",
            ),
            (
                "012345678901.dkr.ecr.us-secret-region.sc2s.sgov.gov",
                "us-secret-region",
                "api.ecr.us-secret-region.sc2s.sgov.gov",
            ),
            (
                "012345678901.dkr.ecr-fips.us-ts-region.c2s.ic.gov",
                "us-ts-region",
                "api.ecr.us-ts-region.c2s.ic.gov",
            ),
            (
                "012345678901.dkr.ecr.uk-region.cloud.adc-e.uk",
                "uk-region",
                "api.ecr.uk-region.cloud.adc-e.uk",
            ),
            (
                "012345678901.dkr.ecr.us-ts-region.csp.hci.ic.gov",
                "us-ts-region",
                "api.ecr.us-ts-region.csp.hci.ic.gov",
            ),
            ("public.ecr.aws", "us-east-1", "api.ecr-public.us-east-1.amazonaws.com"),
            ("ecr-public.aws.com", "us-east-1", "api.ecr-public.us-east-1.amazonaws.com"),
        ] {
            let registry = EcrRegistry::parse(&hosts, host).unwrap();
            assert_eq!(
                (registry.region.name.as_str(), registry.api_host(false).as_str()),
                (region, api_host)
            );
        }
        let registry = EcrRegistry::parse(&hosts, "012345678901.dkr.ecr.us-east-1.amazonaws.com").unwrap();
        assert_eq!(registry.api_host(true), "ecr-fips.us-east-1.amazonaws.com");
        assert_eq!(registry.region.sts_host(true), "sts-fips.us-east-1.amazonaws.com");
        assert_eq!(registry.region.sts_host(false), "sts.us-east-1.amazonaws.com");
    }

    #[test]
    fn another_registry_is_refused_with_the_message_of_flux() {
        let hosts = HostPattern::new(CLOUD, HOSTS);
        for host in [
            "ghcr.io",
            "index.docker.io",
            "gcr.io",
            "foo.azurecr.io",
            "dkr.ecr.us-east-1.amazonaws.com",
            "01234567890.dkr.ecr.us-east-1.amazonaws.com",
            "012345678901.dkr.ecr.us-east-1.amazonaws.com.example.com",
            "012345678901.dkr.ecr.us-east-1.amazonaws.com:443",
            "evil.example.012345678901.dkr.ecr.us-east-1.amazonaws.com",
        ] {
            let error = EcrRegistry::parse(&hosts, host).unwrap_err().to_string();
            assert_eq!(error, format!("invalid AWS registry: '{host}'. must match {HOSTS}"));
        }
    }
}
