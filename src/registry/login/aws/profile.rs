//! The shared files of AWS, `~/.aws/config` and `~/.aws/credentials`: what a profile says of where keys come from.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::CLOUD;
use super::keys::Keys;
use super::roles::Role;
use crate::registry::login::LoginError;
use crate::registry::login::environment::{CloudEnvironment, content};
use crate::secret::Secret;

/// The profile that counts where nobody names one.
const DEFAULT: &str = "default";

/// The settings that are keys.
const KEYS: [&str; 3] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];

/// Settings that lead to keys by ways that are not gone here, and why not.
const ELSEWHERE: [(&str, &str); 5] = [
    ("credential_process", "a program, and none is started for a login"),
    ("sso_session", "a login in a browser"),
    ("sso_account_id", "a login in a browser"),
    ("sso_start_url", "a login in a browser"),
    ("login_session", "a login in a browser"),
];

/// Where the keys of a profile come from.
#[derive(Debug)]
pub(super) enum Source {
    /// They stand there.
    Keys(Keys),
    /// A token in a file is exchanged for those of a role.
    Token(Role, PathBuf),
    /// A role is taken on by other keys.
    Role(Role, Box<Source>),
    /// They stand in the environment.
    Environment,
    /// The container has them.
    Container,
    /// The instance has them.
    Instance,
}

/// The profiles of both files, by their names.
#[derive(Debug, Default)]
struct Profiles(BTreeMap<String, Profile>);

/// The settings of a profile.
type Profile = BTreeMap<String, Secret>;

/// What is wrong with a profile.
#[derive(Debug, PartialEq, Eq)]
struct Flaw {
    profile: String,
    words: String,
}

/// Where the keys of the profile come from that the environment names; nowhere, if there is none, or it does not say.
pub(super) async fn source(environment: &CloudEnvironment) -> Result<Option<Source>, LoginError> {
    let mut profiles = Profiles::default();
    for (variable, at_home, is_config) in
        [("AWS_CONFIG_FILE", ".aws/config", true), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false)]
    {
        let Some(path) = environment.place(variable, at_home) else { continue };
        let shown = path.display().to_string();
        match content(path).await {
            Ok(content) => profiles.add(&String::from_utf8_lossy(content.expose()), is_config),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                let (what, flaw) = (format!("the file {shown}"), format!("cannot be read: {error}"));
                return Err(LoginError::Setting { cloud: CLOUD, what, flaw });
            }
        }
    }
    let named = environment.text("AWS_PROFILE");
    let found = match &named {
        None if !profiles.0.contains_key(DEFAULT) => return Ok(None),
        name => profiles.source(name.as_deref().unwrap_or(DEFAULT), &mut Vec::new()),
    };
    found.map_err(|Flaw { profile, words }| LoginError::Setting {
        cloud: CLOUD,
        what: format!("the profile '{profile}' of AWS's shared files"),
        flaw: words,
    })
}

impl Profiles {
    /// Adds what a file says; the later one counts more.
    fn add(&mut self, text: &str, is_config: bool) {
        for (name, settings) in parse(text, is_config) {
            let known = self.0.entry(name).or_default();
            // Keys are whole: no part of them comes from another file.
            if KEYS.iter().any(|key| settings.contains_key(*key)) {
                known.retain(|key, _| !KEYS.contains(&key.as_str()));
            }
            known.extend(settings);
        }
    }

    /// Where the keys of a profile come from, if it says so; `above` are those that lead to it.
    fn source(&self, name: &str, above: &mut Vec<String>) -> Result<Option<Source>, Flaw> {
        let flawed = |words: String| Flaw { profile: name.to_owned(), words };
        let profile = self.0.get(name).ok_or_else(|| flawed("is not there".to_owned()))?;
        if above.iter().any(|other| other == name) {
            return Err(flawed("leads to itself by source_profile".to_owned()));
        }
        above.push(name.to_owned());
        let text =
            |key: &str| profile.get(key).map(|value| String::from_utf8_lossy(value.expose()).into_owned());
        let Some(arn) = text("role_arn") else {
            return match keys(profile).map_err(flawed)? {
                Some(keys) => Ok(Some(Source::Keys(keys))),
                None => elsewhere(profile).map_or(Ok(None), |words| Err(flawed(words))),
            };
        };
        if profile.contains_key("mfa_serial") {
            return Err(flawed(
                "asks for the code of a device (mfa_serial), which nobody enters here".to_owned(),
            ));
        }
        let role = Role { arn, session: text("role_session_name"), external_id: text("external_id") };
        if let Some(parent) = text("source_profile") {
            let by = match parent == name {
                true => keys(profile).map_err(flawed)?.map(Source::Keys),
                false => self.source(&parent, above)?,
            };
            let by =
                by.ok_or_else(|| flawed(format!("has the source_profile '{parent}', which has no keys")))?;
            return Ok(Some(Source::Role(role, Box::new(by))));
        }
        if let Some(machine) = text("credential_source") {
            let by = match machine.as_str() {
                "Environment" => Source::Environment,
                "EcsContainer" => Source::Container,
                "Ec2InstanceMetadata" => Source::Instance,
                other => {
                    return Err(flawed(format!(
                        "has the credential_source '{other}': write Environment, EcsContainer or Ec2InstanceMetadata"
                    )));
                }
            };
            return Ok(Some(Source::Role(role, Box::new(by))));
        }
        if let Some(file) = text("web_identity_token_file") {
            return Ok(Some(Source::Token(role, file.into())));
        }
        Err(flawed(elsewhere(profile).unwrap_or_else(|| {
            "has a role_arn without source_profile, credential_source or web_identity_token_file".to_owned()
        })))
    }
}

/// The keys that stand in a profile.
fn keys(profile: &Profile) -> Result<Option<Keys>, String> {
    let [id, secret, session] = KEYS.map(|key| profile.get(key));
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Some(Keys {
            id: String::from_utf8_lossy(id.expose()).into_owned(),
            secret: secret.clone(),
            session: session.cloned(),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(format!("has {} without {}", KEYS[0], KEYS[1])),
        (None, Some(_)) => Err(format!("has {} without {}", KEYS[1], KEYS[0])),
    }
}

/// Why the keys that a profile leads to are not had here.
fn elsewhere(profile: &Profile) -> Option<String> {
    let (setting, what) = ELSEWHERE.iter().find(|(setting, _)| profile.contains_key(*setting))?;
    Some(format!(
        "wants {what} ({setting}): export the keys into the environment, as `aws configure export-credentials --format env` \
         does"
    ))
}

/// The profiles of one file.
fn parse(text: &str, is_config: bool) -> BTreeMap<String, Profile> {
    let mut profiles: BTreeMap<String, Profile> = BTreeMap::new();
    let mut name = None;
    for line in text.lines() {
        // Indented lines belong to the value above, and no value that counts here has several.
        if line.starts_with(|c: char| c.is_whitespace() || c == '#' || c == ';') {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let section = rest.split(']').next().unwrap_or_default().trim();
            name = if is_config { of_config(section) } else { Some(section) };
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

/// The profile of a section of the configuration, where there are others as well.
fn of_config(section: &str) -> Option<&str> {
    match section.split_once(char::is_whitespace) {
        Some(("profile", name)) => Some(name.trim()),
        None if section == DEFAULT => Some(section),
        _ => None,
    }
}

/// A value without what follows after white space and a sign for comments.
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
role_session_name = me
[profile over]
role_arn = arn:aws:iam::2:role/y
source_profile = role
[profile own]
role_arn = arn:aws:iam::1:role/x
source_profile = own
[profile token]
role_arn = arn:aws:iam::1:role/x
web_identity_token_file = /token
[profile container]
role_arn = arn:aws:iam::1:role/x
credential_source = EcsContainer
[profile odd]
role_arn = arn:aws:iam::1:role/x
credential_source = Moon
[profile circle]
role_arn = arn:aws:iam::1:role/x
source_profile = circles
[profile circles]
role_arn = arn:aws:iam::1:role/x
source_profile = circle
[profile poor]
role_arn = arn:aws:iam::1:role/x
[profile orphan]
role_arn = arn:aws:iam::1:role/x
source_profile = nobody
[profile empty]
role_arn = arn:aws:iam::1:role/x
source_profile = default
[profile device]
role_arn = arn:aws:iam::1:role/x
source_profile = keys
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
        let source = |name: &str| profiles.source(name, &mut Vec::new()).unwrap();
        assert!(source("default").is_none());
        let Some(Source::Keys(keys)) = source("keys") else { panic!("no keys") };
        assert_eq!((keys.id.as_str(), keys.secret.expose()), ("AKIA", &b"hunter2"[..]));
        assert!(keys.session.is_none(), "a part of other keys");
        let role = |number: u8, name: &str, session: Option<&str>, id: Option<&str>| Role {
            arn: format!("arn:aws:iam::{number}:role/{name}"),
            session: session.map(str::to_owned),
            external_id: id.map(str::to_owned),
        };
        let Some(Source::Role(last, by)) = source("over") else { panic!("no role") };
        let Source::Role(first, by) = *by else { panic!("no role below") };
        assert_eq!((last, first), (role(2, "y", None, None), role(1, "x", Some("me"), Some("7"))));
        assert!(matches!(*by, Source::Keys(_)));
        let Some(Source::Role(_, by)) = source("own") else { panic!("no role") };
        assert!(matches!(*by, Source::Keys(keys) if keys.id == "AKIAOWN"));
        let Some(Source::Role(_, by)) = source("container") else { panic!("no role") };
        assert!(matches!(*by, Source::Container));
        assert!(
            matches!(source("token"), Some(Source::Token(_, file)) if file == std::path::Path::new("/token"))
        );
        let Profiles(mut alone) = Profiles::default();
        alone.extend(parse(CONFIG, true));
        assert_eq!(alone["keys"]["aws_secret_access_key"].expose(), b"a#b;c=");
        assert_eq!(alone["keys"]["aws_access_key_id"].expose(), b"AKIACONFIG");
        assert!(!alone.contains_key("corporation") && !alone["keys"].contains_key("max_queue_size"));
    }

    #[test]
    fn a_profile_that_leads_nowhere_says_why() {
        for (name, profile, words) in [
            ("none", "none", "is not there"),
            (
                "odd",
                "odd",
                "has the credential_source 'Moon': write Environment, EcsContainer or Ec2InstanceMetadata",
            ),
            ("circle", "circle", "leads to itself by source_profile"),
            (
                "poor",
                "poor",
                "has a role_arn without source_profile, credential_source or web_identity_token_file",
            ),
            ("orphan", "nobody", "is not there"),
            ("empty", "empty", "has the source_profile 'default', which has no keys"),
            ("device", "device", "asks for the code of a device (mfa_serial), which nobody enters here"),
            (
                "browser",
                "browser",
                "wants a login in a browser (sso_session): export the keys into the environment, as \
                 `aws configure export-credentials --format env` does",
            ),
            (
                "program",
                "program",
                "wants a program, and none is started for a login (credential_process): export the keys into the \
                 environment, as `aws configure export-credentials --format env` does",
            ),
            ("half", "half", "has aws_access_key_id without aws_secret_access_key"),
        ] {
            let flaw = profiles().source(name, &mut Vec::new()).unwrap_err();
            assert_eq!(flaw, Flaw { profile: profile.to_owned(), words: words.to_owned() }, "{name}");
        }
    }
}
