//! The keys of a GitHub App, parsed from a Secret.

use jiff::Timestamp;
use serde::Serialize;
use url::Url;
use zeroize::Zeroizing;

use crate::cloud::jwt;
use crate::secrets::{Fingerprint, Secret, SecretData, SecretDataError};

/// The API of github.com.
const PUBLIC_API: &str = "https://api.github.com";

/// The age in seconds of a new JWT, for clocks that are behind ours.
const AGE: i64 = 30;

/// The lifetime of a JWT in seconds.
const LIFETIME: i64 = 300;

/// A GitHub App, with its key and its installation.
#[derive(Debug, Clone)]
pub struct GithubApp {
    /// The ID of the App.
    pub id: u64,
    /// Its installation.
    pub installation: Installation,
    /// The base URL of the API, without a slash at its end.
    pub api: Url,
    key: Secret,
}

/// The installation of an App.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installation {
    /// The ID of the installation.
    Id(u64),
    /// The organization or user that has it.
    Owner(String),
}

/// The error of a Secret without a usable GitHub App.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GithubAppError {
    /// The Secret has no data of an App, in Flux's words.
    #[error(
        "secretRef with github app data must be specified when provider is set to github: \
         invalid source configuration"
    )]
    NoData,
    /// A key of the Secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretDataError),
    /// Owner and ID of the installation are both set, or neither is.
    #[error(
        "secret '{secret}' needs exactly one of 'githubAppInstallationOwner' and 'githubAppInstallationID': {remedy}"
    )]
    Installation {
        /// The Secret.
        secret: String,
        /// The correction.
        remedy: &'static str,
    },
}

/// The claims of a JWT.
#[derive(Serialize)]
struct Claims {
    iss: String,
    iat: i64,
    exp: i64,
}

impl GithubApp {
    /// Parses the Secret of a GitHub App.
    ///
    /// # Errors
    ///
    /// If it has no data of an App, or a malformed value.
    pub fn from_secret(secret: SecretData<'_>) -> Result<Self, GithubAppError> {
        let id = number(secret, "githubAppID")?.ok_or(GithubAppError::NoData)?;
        let name = "githubAppPrivateKey";
        let missing = || SecretDataError::KeyMissing { secret: secret.name.to_owned(), key: name };
        let key = secret.bounded_value(name)?.ok_or_else(missing)?.clone();
        let rsa = "holds no RSA private key in PEM: give the key that GitHub generated for the App";
        jwt::sign(&claims(id, Timestamp::UNIX_EPOCH), None, &key)
            .ok_or_else(|| secret.malformed(name, rsa))?;
        let owner = text(secret, "githubAppInstallationOwner")?;
        let by_id = number(secret, "githubAppInstallationID")?;
        let wrong = |remedy| GithubAppError::Installation { secret: secret.name.to_owned(), remedy };
        let installation = match (owner, by_id) {
            (Some(owner), None) => Installation::Owner(account(secret, owner)?),
            (None, Some(id)) => Installation::Id(id),
            (Some(_), Some(_)) => return Err(wrong("remove one")),
            (None, None) => return Err(wrong("add one")),
        };
        let api = text(secret, "githubAppBaseURL")?.unwrap_or_else(|| PUBLIC_API.to_owned());
        let api = Url::parse(api.trim_end_matches('/')).ok();
        let api = api.filter(|url| matches!(url.scheme(), "http" | "https") && url.query().is_none());
        let api = api.filter(|url| url.username().is_empty() && url.password().is_none());
        let defect = "is not the base URL of an API: write it such as https://HOST/api/v3";
        let api = api.ok_or_else(|| secret.malformed("githubAppBaseURL", defect))?;
        Ok(Self { id, installation, api, key })
    }

    /// Returns a fingerprint that is equal for equal Apps, keys, installations and base URLs.
    pub fn fingerprint(&self) -> Fingerprint {
        let installation = match &self.installation {
            Installation::Id(id) => format!("id {id}"),
            Installation::Owner(owner) => format!("owner {owner}"),
        };
        let id = self.id.to_string();
        Fingerprint::of([
            id.as_bytes(),
            self.key.expose(),
            installation.as_bytes(),
            self.api.as_str().as_bytes(),
        ])
    }

    /// Returns a JWT that is valid at the time `now`.
    pub(super) fn jwt(&self, now: Timestamp) -> Zeroizing<String> {
        jwt::sign(&claims(self.id, now), None, &self.key).expect("the key was used when it was parsed")
    }

    /// Returns the address of a resource, whose segments are escaped.
    pub(super) fn address(&self, segments: &[&str]) -> Url {
        let mut url = self.api.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

fn claims(id: u64, now: Timestamp) -> Claims {
    let iat = now.as_second().saturating_sub(AGE);
    Claims { iss: id.to_string(), iat, exp: iat.saturating_add(LIFETIME) }
}

fn text(secret: SecretData<'_>, key: &'static str) -> Result<Option<String>, SecretDataError> {
    let Some(value) = secret.line(key)? else { return Ok(None) };
    let text =
        str::from_utf8(value.expose()).map_err(|_| secret.malformed(key, "is not UTF-8: correct it"))?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

fn number(secret: SecretData<'_>, key: &'static str) -> Result<Option<u64>, SecretDataError> {
    let Some(text) = text(secret, key)? else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|_| secret.malformed(key, "is not a number: give the ID that GitHub shows"))
}

/// Returns the name of an organization or user.
fn account(secret: SecretData<'_>, name: String) -> Result<String, SecretDataError> {
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Ok(name);
    }
    let defect = "is not the name of an organization or user: give the name alone, without a URL";
    Err(secret.malformed("githubAppInstallationOwner", defect))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const KEY: &str = include_str!("../../../testdata/clouds/google-key.pem");

    fn parse(items: &[(&str, &str)]) -> Result<GithubApp, GithubAppError> {
        let data: BTreeMap<String, Secret> =
            items.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        GithubApp::from_secret(SecretData { name: "apps/app", data: &data })
    }

    #[test]
    fn a_jwt_is_issued_in_the_past_and_lives_five_minutes() {
        let items = [
            ("githubAppID", "12345\n"),
            ("githubAppPrivateKey", KEY),
            ("githubAppInstallationID", "678"),
            ("githubAppBaseURL", "https://github.example/api/v3/"),
        ];
        let app = parse(&items).unwrap();
        let jwt = app.jwt("2026-01-02T03:04:05Z".parse().unwrap());
        let claims = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims, serde_json::json!({"iss": "12345", "iat": 1_767_323_015, "exp": 1_767_323_315}));
        let address = app.address(&["orgs", "a/../b", "installation"]);
        assert_eq!(address.as_str(), "https://github.example/api/v3/orgs/a%2F..%2Fb/installation");
        assert!(!format!("{app:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn each_defect_of_the_secret_is_one_sentence() {
        let id = ("githubAppID", "1");
        let key = ("githubAppPrivateKey", KEY);
        let owner = ("githubAppInstallationOwner", "org");
        let by_id = ("githubAppInstallationID", "2");
        let rows: [(&[(&str, &str)], &str); 9] = [
            (
                &[key, owner],
                "secretRef with github app data must be specified when provider is set to github: invalid source configuration",
            ),
            (
                &[("githubAppID", "x"), key, owner],
                "secret 'apps/app': key 'githubAppID' is not a number: give the ID that GitHub shows",
            ),
            (&[id, owner], "secret 'apps/app': key 'githubAppPrivateKey' not found"),
            (
                &[id, ("githubAppPrivateKey", "hunter2"), owner],
                "secret 'apps/app': key 'githubAppPrivateKey' holds no RSA private key in PEM: give the key that GitHub generated for the App",
            ),
            (
                &[id, key],
                "secret 'apps/app' needs exactly one of 'githubAppInstallationOwner' and 'githubAppInstallationID': add one",
            ),
            (
                &[id, key, owner, by_id],
                "secret 'apps/app' needs exactly one of 'githubAppInstallationOwner' and 'githubAppInstallationID': remove one",
            ),
            (
                &[id, key, ("githubAppInstallationID", "0x2")],
                "secret 'apps/app': key 'githubAppInstallationID' is not a number: give the ID that GitHub shows",
            ),
            (
                &[id, key, ("githubAppInstallationOwner", "https://github.com/org")],
                "secret 'apps/app': key 'githubAppInstallationOwner' is not the name of an organization or user: give the name alone, without a URL",
            ),
            (
                &[id, key, owner, ("githubAppBaseURL", "github.example")],
                "secret 'apps/app': key 'githubAppBaseURL' is not the base URL of an API: write it such as https://HOST/api/v3",
            ),
        ];
        for (items, message) in rows {
            assert_eq!(parse(items).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn apps_differ_by_each_of_their_keys() {
        let items = |id, owner, api| {
            let items = [
                ("githubAppID", id),
                ("githubAppPrivateKey", KEY),
                ("githubAppInstallationOwner", owner),
                ("githubAppBaseURL", api),
            ];
            parse(&items).unwrap().fingerprint()
        };
        let first = items("1", "a", "https://h");
        assert_eq!(first, items("1", "a", "https://h/"));
        for other in
            [items("2", "a", "https://h"), items("1", "b", "https://h"), items("1", "a", "https://i")]
        {
            assert_ne!(first, other);
        }
    }
}
