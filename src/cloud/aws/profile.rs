//! Profiles of AWS's shared files, `~/.aws/config` and `~/.aws/credentials`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::region::CLOUD;
use super::signature::AwsCredentials;
use super::sts::Role;
use crate::cloud::LoginError;
use crate::cloud::environment::{CloudEnvironment, content};
use crate::secrets::Secret;

/// The profile that is used if none is named.
const DEFAULT: &str = "default";

/// The settings that are credentials.
const CREDENTIAL_SETTINGS: [&str; 3] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];

/// Settings for roles that need credentials of another source, and that source.
///
/// They are refused: a process in a cluster assumes a role with a web identity.
const ROLE_SOURCES: [(&str, &str); 2] =
    [("source_profile", "the keys of another profile"), ("credential_source", "the keys of the machine")];

/// Settings for sources of credentials that are not supported, and the reason.
const UNSUPPORTED_SOURCES: [(&str, &str); 5] = [
    ("credential_process", "a credential program"),
    ("sso_session", "a login in a browser"),
    ("sso_account_id", "a login in a browser"),
    ("sso_start_url", "a login in a browser"),
    ("login_session", "a login in a browser"),
];

/// The source of a profile's credentials.
#[derive(Debug)]
pub(super) enum Source {
    /// Credentials in the profile.
    Credentials(AwsCredentials),
    /// A role that is assumed with the token in a file.
    WebIdentity(Role, PathBuf),
}

/// The profiles of both files, by name.
#[derive(Debug, Default)]
struct Profiles(BTreeMap<String, Profile>);

/// The settings of a profile.
type Profile = BTreeMap<String, Secret>;

/// A defect of a profile, as the rest of a sentence about it.
#[derive(Debug, PartialEq, Eq)]
struct Defect(String);

/// Returns the source of the credentials in the profile that the environment names.
///
/// It is `None` if there is no profile, or if the profile names no source.
pub(super) async fn source(environment: &CloudEnvironment) -> Result<Option<Source>, LoginError> {
    let mut profiles = Profiles::default();
    for (variable, at_home, is_config) in
        [("AWS_CONFIG_FILE", ".aws/config", true), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false)]
    {
        let Some(path) = environment.path(variable, at_home) else { continue };
        let path_text = path.display().to_string();
        match content(path).await {
            Ok(content) => profiles.add(&String::from_utf8_lossy(content.expose()), is_config),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                let (setting, defect) = (format!("the file {path_text}"), format!("cannot be read: {error}"));
                return Err(LoginError::Setting { cloud: CLOUD, setting, defect });
            }
        }
    }
    let named = environment.text("AWS_PROFILE");
    if named.is_none() && !profiles.0.contains_key(DEFAULT) {
        return Ok(None);
    }
    let name = named.as_deref().unwrap_or(DEFAULT);
    profiles.source(name).map_err(|Defect(defect)| LoginError::Setting {
        cloud: CLOUD,
        setting: format!("the profile '{name}' of AWS's shared files"),
        defect,
    })
}

impl Profiles {
    /// Adds the settings of a file; a later file takes precedence.
    fn add(&mut self, text: &str, is_config: bool) {
        for (name, settings) in parse(text, is_config) {
            let known = self.0.entry(name).or_default();
            // Credentials are never combined from two files.
            if CREDENTIAL_SETTINGS.iter().any(|key| settings.contains_key(*key)) {
                known.retain(|key, _| !CREDENTIAL_SETTINGS.contains(&key.as_str()));
            }
            known.extend(settings);
        }
    }

    /// Returns the source of a profile's credentials, if it names one.
    fn source(&self, name: &str) -> Result<Option<Source>, Defect> {
        let profile = self.0.get(name).ok_or_else(|| Defect("does not exist".to_owned()))?;
        let text =
            |key: &str| profile.get(key).map(|value| String::from_utf8_lossy(value.expose()).into_owned());
        let Some(arn) = text("role_arn") else {
            return match credentials(profile)? {
                Some(credentials) => Ok(Some(Source::Credentials(credentials))),
                None => refuse(name, profile, &UNSUPPORTED_SOURCES).map(|()| None),
            };
        };
        refuse(name, profile, &ROLE_SOURCES)?;
        if profile.contains_key("mfa_serial") {
            return Err(Defect("requires an MFA code (mfa_serial), which is not supported".to_owned()));
        }
        if let Some(file) = text("web_identity_token_file") {
            return Ok(Some(Source::WebIdentity(
                Role { arn, session: text("role_session_name") },
                file.into(),
            )));
        }
        refuse(name, profile, &UNSUPPORTED_SOURCES)?;
        Err(Defect("has a role_arn without web_identity_token_file".to_owned()))
    }
}

/// Returns the credentials in a profile.
fn credentials(profile: &Profile) -> Result<Option<AwsCredentials>, Defect> {
    let [id, secret, session] = CREDENTIAL_SETTINGS.map(|key| profile.get(key));
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Some(AwsCredentials {
            id: String::from_utf8_lossy(id.expose()).into_owned(),
            secret: secret.clone(),
            session: session.cloned(),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(Defect(format!("has {} without {}", CREDENTIAL_SETTINGS[0], CREDENTIAL_SETTINGS[1])))
        }
        (None, Some(_)) => {
            Err(Defect(format!("has {} without {}", CREDENTIAL_SETTINGS[1], CREDENTIAL_SETTINGS[0])))
        }
    }
}

/// Refuses a profile with one of these settings.
///
/// The error names the command that exports the profile's credentials.
fn refuse(name: &str, profile: &Profile, settings: &[(&str, &str)]) -> Result<(), Defect> {
    let found = settings.iter().find(|(setting, _)| profile.contains_key(*setting));
    found.map_or(Ok(()), |(setting, source)| {
        Err(Defect(format!(
            "requires {source} ({setting}), which is not supported: export the keys into the environment, as \
             `aws configure export-credentials --profile {name} --format env` does"
        )))
    })
}

/// Parses the profiles of one file.
fn parse(text: &str, is_config: bool) -> BTreeMap<String, Profile> {
    let mut profiles: BTreeMap<String, Profile> = BTreeMap::new();
    let mut name = None;
    for line in text.lines() {
        // Indented lines belong to the value above, and the settings that are used here have one line.
        if line.starts_with(|c: char| c.is_whitespace() || c == '#' || c == ';') {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let section = rest.split(']').next().unwrap_or_default().trim();
            name = if is_config { profile_of_section(section) } else { Some(section) };
            name.map(|name| profiles.entry(name.to_owned()).or_default());
        } else if let (Some(name), Some((key, value))) = (name, line.split_once('=')) {
            let (key, value) = (key.trim().to_ascii_lowercase(), without_comment(value).trim());
            if !value.is_empty() {
                profiles.entry(name.to_owned()).or_default().insert(key, Secret::new(value));
            }
        }
    }
    profiles
}

/// Returns the profile of a section in the configuration, which has other sections as well.
fn profile_of_section(section: &str) -> Option<&str> {
    match section.split_once(char::is_whitespace) {
        Some(("profile", name)) => Some(name.trim()),
        None if section == DEFAULT => Some(section),
        _ => None,
    }
}

/// Removes a comment, which follows white space, from a value.
fn without_comment(value: &str) -> &str {
    let ends = [" #", " ;", "\t#", "\t;"].iter().filter_map(|sign| value.find(sign));
    &value[..ends.min().unwrap_or(value.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
# comment
[default]
region = eu-west-1
[profile keys] ; comment
aws_access_key_id=AKIACONFIG # comment
aws_secret_access_key = a#b;c=
aws_session_token = of the configuration
s3 =
  max_queue_size = 1
[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = keys
external_id = 7
[profile own]
role_arn = arn:aws:iam::1:role/x
source_profile = own
web_identity_token_file = /token
[profile container]
role_arn = arn:aws:iam::1:role/x
credential_source = EcsContainer
[profile token]
role_arn = arn:aws:iam::1:role/x
role_session_name = me
web_identity_token_file = /token
[profile poor]
role_arn = arn:aws:iam::1:role/x
[profile device]
role_arn = arn:aws:iam::1:role/x
web_identity_token_file = /token
mfa_serial = arn:aws:iam::1:mfa/me
[profile browser]
sso_session = corporation
[profile program]
credential_process = /bin/keys
[profile half]
aws_access_key_id = AKIA
[sso-session corporation]
sso_start_url = https://example.com
[keys]
aws_access_key_id = IGNORED
";

    const CREDENTIALS: &str = "[keys]\naws_access_key_id = AKIA\naws_secret_access_key = hunter2\n\
                               [own]\nAWS_ACCESS_KEY_ID = AKIAOWN\naws_secret_access_key = hunter3\n";

    fn profiles() -> Profiles {
        let mut profiles = Profiles::default();
        profiles.add(CONFIG, true);
        profiles.add(CREDENTIALS, false);
        profiles
    }

    #[test]
    fn a_profile_leads_to_keys() {
        let profiles = profiles();
        let source = |name: &str| profiles.source(name).unwrap();
        assert!(source("default").is_none());
        let Some(Source::Credentials(credentials)) = source("keys") else { panic!("no keys") };
        assert_eq!((credentials.id.as_str(), credentials.secret.expose()), ("AKIA", &b"hunter2"[..]));
        assert!(credentials.session.is_none(), "a part of other keys");
        let Some(Source::WebIdentity(role, file)) = source("token") else { panic!("no role") };
        let expected = Role { arn: "arn:aws:iam::1:role/x".to_owned(), session: Some("me".to_owned()) };
        assert_eq!((role, file), (expected, PathBuf::from("/token")));
        let Profiles(mut alone) = Profiles::default();
        alone.extend(parse(CONFIG, true));
        assert_eq!(alone["keys"]["aws_secret_access_key"].expose(), b"a#b;c=");
        assert_eq!(alone["keys"]["aws_access_key_id"].expose(), b"AKIACONFIG");
        assert!(!alone.contains_key("corporation") && !alone["keys"].contains_key("max_queue_size"));
    }

    #[test]
    fn a_profile_without_credentials_gives_the_reason() {
        let exported = |source: &str, name: &str| {
            format!(
                "requires {source}, which is not supported: export the keys into the environment, as `aws configure export-credentials --profile {name} \
                 --format env` does"
            )
        };
        for (name, message) in [
            ("none", "does not exist".to_owned()),
            ("role", exported("the keys of another profile (source_profile)", "role")),
            ("own", exported("the keys of another profile (source_profile)", "own")),
            ("container", exported("the keys of the machine (credential_source)", "container")),
            ("poor", "has a role_arn without web_identity_token_file".to_owned()),
            ("device", "requires an MFA code (mfa_serial), which is not supported".to_owned()),
            ("browser", exported("a login in a browser (sso_session)", "browser")),
            ("program", exported("a credential program (credential_process)", "program")),
            ("half", "has aws_access_key_id without aws_secret_access_key".to_owned()),
        ] {
            assert_eq!(profiles().source(name).unwrap_err(), Defect(message), "{name}");
        }
    }
}
