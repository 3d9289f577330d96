//! Assumes roles with a web identity token (STS).

use super::registry::{CLOUD, EcrRegistry, endpoint};
use super::signature::Keys;
use crate::registry::login::LoginError;
use crate::registry::login::account::CloudAccount;
use crate::registry::login::context::LoginContext;
use crate::registry::login::kept::Lasting;
use crate::registry::login::network::{LARGEST, Matter, element, form};
use crate::registry::login::pattern::is_like;
use crate::registry::request::Request;
use crate::registry::response::Response;
use crate::secrets::Secret;

pub(super) const OF_THE_ENVIRONMENT: Matter =
    Matter { cloud: CLOUD, what: "the role of AWS_ROLE_ARN (AssumeRoleWithWebIdentity)" };
pub(super) const OF_A_PROFILE: Matter =
    Matter { cloud: CLOUD, what: "the role of the profile (AssumeRoleWithWebIdentity)" };
const OF_AN_ACCOUNT: Matter =
    Matter { cloud: CLOUD, what: "the role of the service account (AssumeRoleWithWebIdentity)" };

/// The default session name, which the logs of a role show.
const SESSION: &str = "tagboat";

/// The maximum length of a session name.
const LONGEST: usize = 64;

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
pub(super) async fn of_an_account(
    registry: &EcrRegistry,
    account: &CloudAccount,
    context: LoginContext<'_>,
) -> Result<Lasting<Keys>, LoginError> {
    let arn = account.needed(CLOUD, ANNOTATION)?;
    if !is_like(ARN, arn) {
        return Err(account.flawed(CLOUD, ANNOTATION, format!("is '{arn}', and must match {ARN}")));
    }
    let token = account.token(CLOUD, AUDIENCE).await?;
    let session = session_of(account, &registry.region);
    let role = Role { arn: arn.to_owned(), session: Some(session) };
    assume(registry, &role, (OF_AN_ACCOUNT, &token), context).await
}

/// Returns the session name of Flux, cut at the length that AWS allows.
fn session_of(account: &CloudAccount, region: &str) -> String {
    let whole = format!("{}.{}.{region}.fluxcd.io", account.name, account.namespace);
    whole.chars().take(LONGEST).collect()
}

/// Assumes a role with a web identity token, which the label names in messages.
pub(super) async fn assume(
    registry: &EcrRegistry,
    role: &Role,
    (matter, token): (Matter, &str),
    context: LoginContext<'_>,
) -> Result<Lasting<Keys>, LoginError> {
    let is_fips = context.options.environment.is_true("AWS_USE_FIPS_ENDPOINT");
    let url = endpoint(registry.roles(is_fips), context)?;
    let pairs = [
        ("Version", "2011-06-15"),
        ("RoleArn", role.arn.as_str()),
        ("RoleSessionName", role.session.as_deref().unwrap_or(SESSION)),
        ("Action", "AssumeRoleWithWebIdentity"),
        ("WebIdentityToken", token),
    ];
    let response = context.service(matter, Request::post(url, form(pairs), LARGEST)).await?;
    read(matter, &response)
}

fn read(matter: Matter, response: &Response) -> Result<Lasting<Keys>, LoginError> {
    let text = String::from_utf8_lossy(&response.body);
    let part = |name| element(&text, name).filter(|part| !part.is_empty());
    let found = (part("AccessKeyId"), part("SecretAccessKey"), part("SessionToken"), part("Expiration"));
    let (Some(id), Some(secret), Some(session), Some(ends)) = found else {
        return Err(matter.malformed("has no keys in it"));
    };
    let ends = ends.parse().map_err(|_| matter.malformed("does not say until when the keys hold"))?;
    let keys = Keys { id, secret: Secret::new(secret), session: Some(Secret::new(session)) };
    Ok(Lasting { value: keys, ends: Some(ends) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_an_account_looks_like_one() {
        for (arn, expected) in [
            ("arn:aws:iam::012345678901:role/tagboat", true),
            ("arn:aws-us-gov:iam::0:role/path/x", true),
            ("arn:aws:iam::012345678901:user/tagboat", false),
            ("arn:aws:iam::012345678901:role/", false),
            ("arn:aws:iam::x:role/tagboat", false),
            (" arn:aws:iam::0:role/tagboat", false),
        ] {
            assert_eq!(is_like(ARN, arn), expected, "{arn}");
        }
    }
}
