//! Registry logins in pull secrets and Docker's configuration.
//!
//! It reads `.dockerconfigjson`, `.dockercfg`, and a user's own `~/.docker/config.json`. Logins match repositories by
//! the rules of Kubernetes, and so of Flux. Programs that a configuration names for logins (`credHelpers`,
//! `credsStore`) are not started.

use std::collections::BTreeMap;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::glob::matches_glob;
use crate::cloud::Credential;
use crate::reference::RepositoryAddress;
use crate::secrets::Secret;

/// The key in a Secret of the type `kubernetes.io/dockerconfigjson`.
pub const CONFIG_JSON: &str = ".dockerconfigjson";

/// The key in a Secret of the type `kubernetes.io/dockercfg`.
pub const CONFIG: &str = ".dockercfg";

/// Base64 with padding or without, as Docker and others write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The logins of one configuration or several.
#[derive(Debug, Clone, Default)]
pub struct DockerConfig {
    /// The logins by the registry and path that they are for.
    logins: BTreeMap<Key, Credential>,
}

/// The registry and path that a login is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key(String);

/// Errors of configurations. No message contains a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DockerConfigError {
    /// The configuration has another form.
    #[error("it is not a Docker configuration: line {line}, column {column}")]
    Malformed {
        /// The line of the defect.
        line: usize,
        /// The column of the defect.
        column: usize,
    },
    /// The field `auth` cannot be decoded, in Flux's words.
    #[error("unable to decode auth field: {defect} (the login for {server:?})")]
    Auth {
        /// The key of the login.
        server: String,
        /// The defect.
        defect: &'static str,
    },
}

#[derive(Deserialize)]
struct File {
    auths: Option<BTreeMap<String, Option<Entry>>>,
}

/// One login.
#[derive(Deserialize, Default)]
struct Entry {
    username: Option<Secret>,
    password: Option<Secret>,
    auth: Option<Secret>,
    #[serde(default, alias = "identityToken")]
    identitytoken: Option<Secret>,
    #[serde(default, alias = "registryToken")]
    registrytoken: Option<Secret>,
}

impl DockerConfig {
    /// Parses `.dockerconfigjson`, which has the logins below `auths`.
    ///
    /// # Errors
    ///
    /// If the configuration is malformed.
    pub fn from_json(bytes: &[u8]) -> Result<Self, DockerConfigError> {
        let file: File = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        Self::new(file.auths.unwrap_or_default())
    }

    /// Parses `.dockercfg`, which has only logins.
    ///
    /// # Errors
    ///
    /// If the configuration is malformed.
    pub fn from_legacy(bytes: &[u8]) -> Result<Self, DockerConfigError> {
        Self::new(serde_json::from_slice(bytes).map_err(|error| malformed(&error))?)
    }

    /// Returns the logins of a Secret, if it is a pull secret.
    ///
    /// # Errors
    ///
    /// If its configuration is malformed.
    pub fn from_secret(data: &BTreeMap<String, Secret>) -> Result<Option<Self>, DockerConfigError> {
        match (data.get(CONFIG_JSON), data.get(CONFIG)) {
            (Some(value), _) => Self::from_json(value.expose()).map(Some),
            (None, Some(value)) => Self::from_legacy(value.expose()).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn new(entries: BTreeMap<String, Option<Entry>>) -> Result<Self, DockerConfigError> {
        let mut logins = BTreeMap::new();
        for (server, entry) in entries {
            let credential = entry.unwrap_or_default().into_credential(&server)?;
            if let Some(key) = Key::read(&server) {
                logins.entry(key).or_insert(credential);
            }
        }
        Ok(Self { logins })
    }

    /// Adds the logins of another configuration; for the same key the existing login stays.
    pub fn add(&mut self, other: Self) {
        for (key, credential) in other.logins {
            self.logins.entry(key).or_insert(credential);
        }
    }

    /// Returns the login for a repository, or the anonymous one.
    ///
    /// Of several that match, the one counts whose key comes last in the order of bytes: the longest path.
    pub fn login(&self, address: &RepositoryAddress) -> Credential {
        let target = Key(address.canonical());
        let fitting = self.logins.iter().rev().find(|(key, _)| key.fits(&target));
        fitting.map(|(_, credential)| credential.clone()).unwrap_or_default()
    }

    /// Returns `true` if there is no login.
    pub fn is_empty(&self) -> bool {
        self.logins.is_empty()
    }
}

impl Entry {
    fn into_credential(self, server: &str) -> Result<Credential, DockerConfigError> {
        let flawed = |defect| DockerConfigError::Auth { server: server.to_owned(), defect };
        let given = |text: Option<Secret>| text.filter(|text| !text.expose().is_empty());
        let (mut user, mut password) = (given(self.username), given(self.password));
        if let Some(auth) = given(self.auth) {
            let clear = BASE64.decode(auth.expose().trim_ascii()).map_err(|_| flawed("it is not base64"))?;
            let clear = Zeroizing::new(clear);
            let colon = clear.iter().position(|byte| *byte == b':');
            let colon = colon.ok_or_else(|| flawed("it is not of the form USER:PASSWORD"))?;
            let part = |bytes: &[u8]| (!bytes.is_empty()).then(|| Secret::new(bytes));
            // Old versions of Docker wrote trailing zero bytes.
            let behind = &clear[colon + 1..];
            let end = behind.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            (user, password) = (part(&clear[..colon]), part(&behind[..end]));
        }
        if let Some(token) = given(self.registrytoken) {
            return Ok(Credential::RegistryToken(token));
        }
        if let Some(token) = given(self.identitytoken) {
            return Ok(Credential::IdentityToken(token));
        }
        Ok(match (user, password) {
            (Some(user), Some(password)) => Credential::Basic { user, password },
            _ => Credential::Anonymous,
        })
    }
}

impl Key {
    /// Parses a key into host and path.
    fn read(server: &str) -> Option<Self> {
        let rest =
            server.strip_prefix("https://").or_else(|| server.strip_prefix("http://")).unwrap_or(server);
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let is_version = path.starts_with("/v1/") || path.starts_with("/v2/");
        let path = if is_version { &path["/v1".len()..] } else { path };
        let path = if path == "/" { "" } else { path };
        (!host.is_empty()).then(|| Self(format!("{host}{path}")))
    }

    fn parts(&self) -> (&str, Option<&str>, &str) {
        let (host, path) = self.0.find('/').map_or((self.0.as_str(), ""), |at| self.0.split_at(at));
        match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port), path),
            _ => (host, None, path),
        }
    }

    /// Returns `true` if a login for this key is one for the repository.
    ///
    /// They must have the same port, each part of the host's name must match (with `*` and the like), and the path
    /// must begin with the key's.
    fn fits(&self, target: &Self) -> bool {
        let (host, port, path) = self.parts();
        let (target_host, target_port, target_path) = target.parts();
        let labels = |host: &str| host.split('.').count();
        port == target_port
            && labels(host) == labels(target_host)
            && host.split('.').zip(target_host.split('.')).all(|(glob, label)| matches_glob(glob, label))
            && target_path.starts_with(path)
    }
}

/// Returns the error of a malformed configuration. The parser's message may contain a value.
fn malformed(error: &serde_json::Error) -> DockerConfigError {
    DockerConfigError::Malformed { line: error.line(), column: error.column() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Returns the password of the login that a configuration has for an image.
    fn password(config: &DockerConfig, image: &str) -> Option<String> {
        match config.login(&RepositoryAddress::parse(image, false).unwrap()) {
            Credential::Basic { password, .. } => {
                Some(String::from_utf8(password.expose().to_vec()).unwrap())
            }
            Credential::Anonymous => None,
            other => panic!("{other:?}"),
        }
    }

    fn config(servers: &[(&str, &str)]) -> DockerConfig {
        let auths: serde_json::Map<String, serde_json::Value> = servers
            .iter()
            .map(|(server, password)| ((*server).to_owned(), json!({"username": "u", "password": password})))
            .collect();
        DockerConfig::from_json(json!({ "auths": auths }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_longest_path_that_fits_has_the_login() {
        let nested = config(&[
            ("fake.registry.io", "root"),
            ("fake.registry.io/nested", "nested"),
            ("fake.registry.io/nested/repo", "leaf"),
            ("fake.registry.io/par", "partial"),
        ]);
        for (image, expected) in [
            ("fake.registry.io/other", Some("root")),
            ("fake.registry.io/nested", Some("nested")),
            ("fake.registry.io/nested/repo", Some("leaf")),
            ("fake.registry.io/nested/repo/dirt", Some("leaf")),
            ("fake.registry.io/partial", Some("partial")),
            ("fake.registry.io:443/nested", None),
            ("alpine", None),
        ] {
            assert_eq!(password(&nested, image).as_deref(), expected, "{image}");
        }
    }

    #[test]
    fn hosts_match_label_by_label() {
        for (server, image, fits) in [
            ("fake.registry.io:5000", "fake.registry.io:1000/repo", false),
            ("fake.registry.io:5000", "fake.registry.io:5000/repo", true),
            ("https://fake.registry.io/v1/", "fake.registry.io/repo", true),
            ("https://fake2.registry.io/v2/", "fake2.registry.io/repo", true),
            ("https://index.docker.io/v1/", "ubuntu", true),
            ("index.docker.io", "knative/serving", true),
            ("docker.io", "ubuntu", false),
            ("fake.registry.io", "2.fake.registry.io/repo", false),
            ("*.registry.io", "fake.registry.io/repo", true),
            ("*.registry.io", "a.fake.registry.io/repo", false),
            ("*.*.registry.io", "a.fake.registry.io/repo", true),
            ("f*e.[q-s]egistry.io", "fake.registry.io/repo", true),
            (
                "http://registry.gitlab.com/dprotaso/test/nginx",
                "registry.gitlab.com/dprotaso/test/nginx",
                true,
            ),
            ("https://registry.gitlab.com/dprotaso/", "registry.gitlab.com/dprotaso/test/nginx", true),
            ("registry.gitlab.com/dprotaso/test", "registry.gitlab.com/dprotaso/test/nginx", true),
            ("registry.gitlab.com/other", "registry.gitlab.com/dprotaso/test/nginx", false),
            ("", "fake.registry.io/repo", false),
            ("https://", "fake.registry.io/repo", false),
            ("/", "fake.registry.io/repo", false),
        ] {
            let found = password(&config(&[(server, "yes")]), image);
            assert_eq!(found.is_some(), fits, "{server} {image}");
        }
    }

    #[test]
    fn logins_have_several_forms() {
        let read = |entry: serde_json::Value| {
            let config = DockerConfig::from_legacy(json!({ "r.io": entry }).to_string().as_bytes())?;
            Ok::<_, DockerConfigError>(config.login(&RepositoryAddress::parse("r.io/app", false).unwrap()))
        };
        let shown = |credential: Credential| match credential {
            Credential::Anonymous => "anonymous".to_owned(),
            Credential::Basic { user, password } => {
                String::from_utf8([user.expose(), b" ", password.expose()].concat()).unwrap()
            }
            Credential::IdentityToken(token) => {
                format!("identity {}", String::from_utf8_lossy(token.expose()))
            }
            Credential::RegistryToken(token) => {
                format!("registry {}", String::from_utf8_lossy(token.expose()))
            }
        };
        for (entry, expected) in [
            (json!({"username": "u", "password": "p"}), "u p"),
            (json!({"username": "x", "password": "y", "auth": "dTpwOnE="}), "u p:q"),
            (json!({"auth": "dTpwOnE"}), "u p:q"),
            (json!({"auth": "dTpwAAA="}), "u p"),
            (json!({"username": "u"}), "anonymous"),
            (json!({"password": "p"}), "anonymous"),
            (json!({"auth": "dTo="}), "anonymous"),
            (json!({}), "anonymous"),
            (json!(null), "anonymous"),
            (json!({"auth": "PHRva2VuPjo=", "identitytoken": "i"}), "identity i"),
            (json!({"registrytoken": "r", "username": "u", "password": "p"}), "registry r"),
            (json!({"username": "u", "password": "p", "email": "e", "unknown": [1]}), "u p"),
        ] {
            assert_eq!(shown(read(entry.clone()).unwrap()), expected, "{entry}");
        }
        for (entry, message) in [
            (
                json!({"auth": "hunter2!"}),
                "unable to decode auth field: it is not base64 (the login for \"r.io\")",
            ),
            (json!({"auth": "aHVudGVyMg=="}), "it is not of the form USER:PASSWORD"),
            (json!({"auth": 7}), "it is not a Docker configuration: line 1, column"),
            (json!("hunter2"), "it is not a Docker configuration"),
        ] {
            let error = read(entry.clone()).unwrap_err().to_string();
            assert!(error.contains(message) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_first_secret_counts_for_one_server() {
        let mut first = config(&[("r.io", "first")]);
        first.add(config(&[("https://r.io/v2/", "second"), ("q.io", "second")]));
        assert_eq!(password(&first, "r.io/app").as_deref(), Some("first"));
        assert_eq!(password(&first, "q.io/app").as_deref(), Some("second"));
    }

    #[test]
    fn a_secret_of_another_type_has_no_logins() {
        let secret = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), Secret::new(value))]);
        assert!(DockerConfig::from_secret(&secret("username", "u")).unwrap().is_none());
        assert!(DockerConfig::from_secret(&secret(CONFIG_JSON, "{}")).unwrap().unwrap().is_empty());
        let legacy = secret(CONFIG, r#"{"r.io": {"username": "u", "password": "p"}}"#);
        assert!(!DockerConfig::from_secret(&legacy).unwrap().unwrap().is_empty());
        assert!(DockerConfig::from_secret(&secret(CONFIG_JSON, "")).is_err());
    }

    proptest! {
        #[test]
        fn any_server_is_read(server in "(https?://)?([a-z*?.:/@\\[\\]-]|\\PC){0,30}") {
            let config = config(&[(&server, "p")]);
            let _ = config.login(&RepositoryAddress::parse("ghcr.io/org/app", false).unwrap());
        }

        #[test]
        fn any_bytes_are_a_configuration_or_an_error(bytes: Vec<u8>) {
            let _ = DockerConfig::from_json(&bytes);
            let _ = DockerConfig::from_legacy(&bytes);
        }
    }
}
