//! The environment variables of this process that concern git.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

/// Possible paths of the system's root certificates, as one file in PEM.
const CA_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// The proxy variables that Flux's process reads too; curl reads only the lower-case names.
const PROXY_VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// The variables of a user's own git: configuration, agents, and the needs of credential helpers.
const USER_VARIABLES: [&str; 27] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_CONFIG_DIR",
    "GH_ENTERPRISE_TOKEN",
    "GH_HOST",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GIT_CONFIG_SYSTEM",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GNUPGHOME",
    "HOME",
    "LOGNAME",
    "PASSWORD_STORE_DIR",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// The environment variables of a process.
/// Some contain tokens, so only the names are printed. Clones share the variables.
#[derive(Clone, Default)]
pub struct ProcessEnv(Arc<BTreeMap<OsString, OsString>>);

impl ProcessEnv {
    /// Returns the variables of this process.
    pub fn from_process() -> Self {
        Self::new(std::env::vars_os())
    }

    /// Creates a set of the given variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(Arc::new(variables.into_iter().collect()))
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns the proxy variables for git.
    /// Upper-case names are read as well: Go accepts them, so they are in use.
    pub(super) fn proxies(&self) -> Vec<(OsString, OsString)> {
        let value = |name: &str| self.get(&name.to_ascii_uppercase()).or_else(|| self.get(name));
        let found = PROXY_VARIABLES.iter().filter_map(|name| Some(((*name).into(), value(name)?.to_owned())));
        found.collect()
    }

    /// Returns true if a proxy is set, which resolves names itself.
    pub fn has_proxy(&self) -> bool {
        self.proxies().iter().any(|(name, _)| name != "no_proxy")
    }

    /// Returns the variables of git's user set-up.
    pub(super) fn user_variables(&self) -> Vec<(OsString, OsString)> {
        let found =
            USER_VARIABLES.iter().filter_map(|name| Some(((*name).into(), self.get(name)?.to_owned())));
        found.collect()
    }

    /// Returns the configuration files that git would read for its user.
    /// They are in git's order, and need not exist.
    pub(super) fn user_config_files(&self) -> Vec<PathBuf> {
        if let Some(chosen) = self.get("GIT_CONFIG_GLOBAL") {
            return vec![chosen.into()];
        }
        let home = self.get("HOME").map(PathBuf::from);
        let shared = self.get("XDG_CONFIG_HOME").map(PathBuf::from);
        let shared = shared.or_else(|| home.as_ref().map(|home| home.join(".config")));
        let shared = shared.map(|directory| directory.join("git/config"));
        shared.into_iter().chain(home.map(|home| home.join(".gitconfig"))).collect()
    }

    /// Returns the root certificates of `SSL_CERT_FILE`, if it is set.
    pub(super) fn ssl_cert_file(&self) -> Option<PathBuf> {
        self.get("SSL_CERT_FILE").map(PathBuf::from)
    }

    /// Returns the file with the root certificates of this process.
    /// It is that of `SSL_CERT_FILE`, else the system's, if there is any.
    pub(super) fn bundle(&self) -> Option<PathBuf> {
        let of_the_system = || CA_BUNDLES.iter().map(PathBuf::from).find(|path| path.is_file());
        self.ssl_cert_file().or_else(of_the_system)
    }
}

/// Prints the names alone.
impl std::fmt::Debug for ProcessEnv {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process_env(variables: &[(&str, &str)]) -> ProcessEnv {
        ProcessEnv::new(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn show(variables: &[(OsString, OsString)]) -> Vec<String> {
        variables.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    }

    #[test]
    fn proxies_are_passed_in_lowercase_variables() {
        let found = process_env(&[
            ("HTTPS_PROXY", "a"),
            ("http_proxy", "b"),
            ("NO_PROXY", "c"),
            ("no_proxy", "d"),
            ("ALL_PROXY", ""),
        ]);
        assert_eq!(show(&found.proxies()), ["http_proxy=b", "https_proxy=a", "no_proxy=c"]);
    }

    #[test]
    fn a_users_configuration_cannot_prompt() {
        let found = process_env(&[
            ("HOME", "/home/me"),
            ("GIT_ASKPASS", "x"),
            ("SSH_ASKPASS", "x"),
            ("GIT_DIR", "x"),
            ("SSH_AUTH_SOCK", "y"),
        ]);
        assert_eq!(show(&found.user_variables()), ["HOME=/home/me", "SSH_AUTH_SOCK=y"]);
    }

    #[test]
    fn a_users_configuration_is_found_at_the_paths_of_git() {
        let check = |variables: &[(&str, &str)], expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(process_env(variables).user_config_files(), expected, "{variables:?}");
        };
        check(&[], &[]);
        check(&[("HOME", "/h")], &["/h/.config/git/config", "/h/.gitconfig"]);
        check(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], &["/x/git/config", "/h/.gitconfig"]);
        check(&[("HOME", "/h"), ("GIT_CONFIG_GLOBAL", "/c")], &["/c"]);
    }

    #[test]
    fn a_configured_bundle_has_precedence_over_that_of_the_system() {
        assert_eq!(process_env(&[("SSL_CERT_FILE", "/a")]).bundle(), Some("/a".into()));
        assert_eq!(process_env(&[]).ssl_cert_file(), None);
    }

    #[test]
    fn no_value_shows_in_debug() {
        assert_eq!(format!("{:?}", process_env(&[("GH_TOKEN", "hunter2")])), "{\"GH_TOKEN\"}");
    }
}
