//! Assumes roles with a web identity token (STS).

use super::region::{AwsRegion, CLOUD, endpoint};
use super::signature::AwsCredentials;
use crate::cloud::LoginError;
use crate::cloud::account::CloudAccount;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::network::{MAX_RESPONSE, RequestLabel, element, form};
use crate::cloud::pattern::is_match;
use crate::net::http::Request;
use crate::net::http::Response;
use crate::secrets::Secret;

pub(super) const ENVIRONMENT_ROLE: RequestLabel =
    RequestLabel { cloud: CLOUD, item: "the role of AWS_ROLE_ARN (AssumeRoleWithWebIdentity)" };
pub(super) const PROFILE_ROLE: RequestLabel =
    RequestLabel { cloud: CLOUD, item: "the role of the profile (AssumeRoleWithWebIdentity)" };
const ACCOUNT_ROLE: RequestLabel =
    RequestLabel { cloud: CLOUD, item: "the role of the service account (AssumeRoleWithWebIdentity)" };

/// The default session name, which the logs of a role show.
const DEFAULT_SESSION: &str = "tagboat";

/// The maximum length of a session name.
const MAX_SESSION_NAME: usize = 64;

/// The annotation with the role of a service account, and its pattern.
const ANNOTATION: &str = "eks.amazonaws.com/role-arn";
const ARN: &str = r"^arn:aws[\w-]*:iam::[0-9]{1,30}:role/.{1,200}$";

/// The audience of service account tokens for AWS.
const AUDIENCE: &str = "sts.amazonaws.com";

/// A role, and the name of the session in which it is assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) arn: String,
    /// The name of the session.
    pub(super) session: Option<String>,
}

/// Assumes the role of a service account.
pub(super) async fn for_account(
    region: &AwsRegion,
    account: &CloudAccount,
    context: LoginContext<'_>,
) -> Result<Expiring<AwsCredentials>, LoginError> {
    let arn = account.required(CLOUD, ANNOTATION)?;
    if !is_match(ARN, arn) {
        return Err(account.invalid_annotation(
            CLOUD,
            ANNOTATION,
            format!("is '{arn}', and must match {ARN}"),
        ));
    }
    let token = account.token(CLOUD, AUDIENCE).await?;
    let session = session_name(account, &region.name);
    let role = Role { arn: arn.to_owned(), session: Some(session) };
    assume(region, &role, (ACCOUNT_ROLE, &token), context).await
}

/// Returns the session name of Flux, cut at the length that AWS allows.
fn session_name(account: &CloudAccount, region: &str) -> String {
    let whole = format!("{}.{}.{region}.fluxcd.io", account.name, account.namespace);
    whole.chars().take(MAX_SESSION_NAME).collect()
}

/// Assumes a role with a web identity token, which the label names in messages.
pub(super) async fn assume(
    region: &AwsRegion,
    role: &Role,
    (label, token): (RequestLabel, &str),
    context: LoginContext<'_>,
) -> Result<Expiring<AwsCredentials>, LoginError> {
    let is_fips = context.options.environment.is_true("AWS_USE_FIPS_ENDPOINT");
    let url = endpoint(region.sts_host(is_fips), context)?;
    let pairs = [
        ("Version", "2011-06-15"),
        ("RoleArn", role.arn.as_str()),
        ("RoleSessionName", role.session.as_deref().unwrap_or(DEFAULT_SESSION)),
        ("Action", "AssumeRoleWithWebIdentity"),
        ("WebIdentityToken", token),
    ];
    let response = context.service(label, Request::post(url, form(pairs), MAX_RESPONSE)).await?;
    parse(label, &response)
}

fn parse(label: RequestLabel, response: &Response) -> Result<Expiring<AwsCredentials>, LoginError> {
    let text = String::from_utf8_lossy(&response.body);
    let part = |name| element(&text, name).filter(|part| !part.is_empty());
    let found = (part("AccessKeyId"), part("SecretAccessKey"), part("SessionToken"), part("Expiration"));
    let (Some(id), Some(secret), Some(session), Some(expires_at)) = found else {
        return Err(label.malformed("contains no keys"));
    };
    let expires_at =
        expires_at.parse().map_err(|_| label.malformed("has no valid expiration time of the keys"))?;
    let credentials = AwsCredentials { id, secret: Secret::new(secret), session: Some(Secret::new(session)) };
    Ok(Expiring { value: credentials, expires_at: Some(expires_at) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_an_account_must_be_a_role_arn() {
        for (arn, expected) in [
            ("arn:aws:iam::012345678901:role/tagboat", true),
            ("arn:aws-us-gov:iam::0:role/path/x", true),
            ("arn:aws:iam::012345678901:user/tagboat", false),
            ("arn:aws:iam::012345678901:role/", false),
            ("arn:aws:iam::x:role/tagboat", false),
            (" arn:aws:iam::0:role/tagboat", false),
        ] {
            assert_eq!(is_match(ARN, arn), expected, "{arn}");
        }
    }
}
