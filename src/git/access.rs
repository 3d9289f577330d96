//! What a git process needs to reach a remote repository: files that only we can read, and variables that name them.
//!
//! Arguments and variables of a process can be seen by others, so no secret stands in them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tagboat_api::Reason;

use super::scrub::Scrubber;
use super::{
    ClientCertificate, Configuration, Credentials, HttpCredentials, HttpLogin, Pin, PrivateDirectory,
    PrivateError, Proxy, RemoteUrl, SshAlgorithms, Surroundings, Transport, ssh,
};
use crate::failing::Failing;
use crate::secret::Secret;

/// Whose business a login is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOwner {
    /// That of the objects: a Secret that one of them names.
    Objects,
    /// That of whoever started us.
    User,
}

/// Whose login is used.
#[derive(Debug, Clone, Copy)]
pub enum Login<'a> {
    /// The one given, and nothing that this machine knows.
    Given(&'a Credentials),
    /// That of whoever started us: the own configuration of git, its credential helpers, the agent of ssh.
    OfTheUser,
}

/// The user name of those who log in by a password alone. It is no secret, and hardly a sentence of git's is without it.
const NOBODY: &str = "git";

/// What else a way to a remote depends on.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// The proxy to go through, instead of those that the surroundings name.
    pub proxy: Option<Proxy>,
    /// The variables of this process.
    pub surroundings: Surroundings,
    /// What ssh may use.
    pub ssh_algorithms: SshAlgorithms,
    /// Where alone servers are to be looked for, over HTTP.
    pub pins: Vec<Pin>,
}

/// The way to a remote repository. Its files are gone when it is dropped, so it must outlive the git process.
#[derive(Debug)]
pub struct Access {
    owner: LoginOwner,
    environment: Vec<(OsString, OsString)>,
    scrubber: Scrubber,
    directory: PrivateDirectory,
    _programs: Option<PrivateDirectory>,
}

/// Why there is no way to a remote repository.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The files could not be written.
    #[error("cannot keep the login for git")]
    Private(#[from] PrivateError),
    /// The system's certificates cannot be read.
    #[error("cannot read the certificates in {path}: correct SSL_CERT_FILE, or the file", path = .path.display())]
    Bundle {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A path that ssh would misread.
    #[error("ssh cannot be told of the file {path:?}: set TMPDIR to a path without quotes, '$' and '\\'")]
    OddPath {
        /// The file.
        path: PathBuf,
    },
    /// A proxy where none is known to ssh.
    #[error(
        "the SSH remote {url} cannot go through a proxy: use its https URL, or take the proxy secret out"
    )]
    ProxyForSsh {
        /// The remote.
        url: String,
    },
}

impl Failing for AccessError {
    fn reason(&self) -> Reason {
        Reason::SourceManagerFailed
    }

    /// All of these lie outside of the object.
    fn is_retryable(&self) -> bool {
        true
    }
}

impl Access {
    /// Writes what git needs for this remote.
    ///
    /// # Errors
    ///
    /// When the files cannot be written, or git and ssh cannot do what is asked.
    pub fn prepare(url: &RemoteUrl, login: Login<'_>, options: &AccessOptions) -> Result<Self, AccessError> {
        let mut preparation = Preparation {
            environment: Vec::new(),
            scrubber: Scrubber::default(),
            configuration: Configuration::new(),
            directory: PrivateDirectory::create()?,
            programs: None,
        };
        preparation.set("GIT_TERMINAL_PROMPT", "0");
        // Empty, and not absent: git would look for the next program to ask with.
        preparation.set("GIT_ASKPASS", "");
        preparation.learn_user_info(url);
        match login {
            Login::OfTheUser => preparation.let_the_user_in(url, &options.surroundings),
            Login::Given(credentials) => preparation.give(url, credentials, options)?,
        }
        preparation.go_through_a_proxy(url, options)?;
        for setting in options.pins.iter().flat_map(Pin::to_settings) {
            preparation.configuration.set("http", None, "curloptResolve", setting);
        }
        preparation.finish(match login {
            Login::Given(_) => LoginOwner::Objects,
            Login::OfTheUser => LoginOwner::User,
        })
    }

    /// Whose business the login is, and so who can put it right.
    pub fn owner(&self) -> LoginOwner {
        self.owner
    }

    /// The variables for a git process, to be added to an environment without any of git's own and without `HOME`.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// A text of git's with dots for every secret, and with the names of our files alone: where they are is nothing to
    /// anybody, and they are soon gone.
    pub fn scrub(&self, text: &str) -> String {
        let place = format!("{}/", self.directory.path().display());
        self.scrubber.scrub(&text.replace(&place, ""))
    }
}

/// An access in the making.
struct Preparation {
    environment: Vec<(OsString, OsString)>,
    scrubber: Scrubber,
    configuration: Configuration,
    directory: PrivateDirectory,
    programs: Option<PrivateDirectory>,
}

impl Preparation {
    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// What a URL holds must not be seen, whether it is used or not. The user of SSH is no secret.
    fn learn_user_info(&mut self, url: &RemoteUrl) {
        let user = url.user().filter(|user| url.transport() != Transport::Ssh && *user != NOBODY);
        for secret in [user.map(str::as_bytes), url.password().map(Secret::expose)].into_iter().flatten() {
            self.scrubber.learn(secret);
        }
    }

    fn let_the_user_in(&mut self, url: &RemoteUrl, surroundings: &Surroundings) {
        for (name, value) in surroundings.of_the_user() {
            if name.as_encoded_bytes().ends_with(b"TOKEN") {
                self.scrubber.learn(value.as_encoded_bytes());
            }
            self.environment.push((name, value));
        }
        self.set("GIT_CONFIG_NOSYSTEM", "0");
        // Whatever ssh asks for, nobody answers; without this it would wait at the terminal.
        self.set("SSH_ASKPASS", "/bin/false");
        self.set("SSH_ASKPASS_REQUIRE", "force");
        for path in surroundings.own_configurations() {
            self.configuration.set("include", None, "path", path.as_os_str().as_encoded_bytes());
        }
        if matches!(url.transport(), Transport::Http | Transport::Https) {
            let origin = url.to_origin();
            match (url.user(), url.password()) {
                (Some(user), Some(password)) => self.log_in(url, user.as_bytes(), password.expose()),
                (Some(user), None) => {
                    self.configuration.set("credential", origin.as_deref(), "username", user);
                }
                (None, _) => {}
            }
        }
    }

    fn give(
        &mut self,
        url: &RemoteUrl,
        credentials: &Credentials,
        options: &AccessOptions,
    ) -> Result<(), AccessError> {
        self.set("GIT_CONFIG_NOSYSTEM", "1");
        let home = self.directory.path().to_owned();
        self.set("HOME", home);
        match credentials {
            Credentials::Local => Ok(()),
            Credentials::Http(http) => self.give_http(url, http, &options.surroundings),
            Credentials::Ssh(credentials) => {
                for secret in
                    [Some(&credentials.identity), credentials.passphrase.as_ref()].into_iter().flatten()
                {
                    self.scrubber.learn(secret.expose());
                }
                let setup = ssh::prepare(credentials, &options.ssh_algorithms, &self.directory)?;
                self.environment.extend(setup.variables);
                self.programs = setup.programs;
                Ok(())
            }
        }
    }

    fn give_http(
        &mut self,
        url: &RemoteUrl,
        credentials: &HttpCredentials,
        surroundings: &Surroundings,
    ) -> Result<(), AccessError> {
        match &credentials.login {
            HttpLogin::Anonymous => {}
            HttpLogin::Basic { user, password } => self.log_in(url, user.expose(), password.expose()),
            HttpLogin::Bearer(token) => {
                self.scrubber.learn(token.expose());
                self.set_header(url, &[b"Authorization: Bearer ".as_slice(), token.expose()].concat());
            }
        }
        let origin = url.to_origin();
        let origin = origin.as_deref();
        if let Some(ClientCertificate { certificate, key }) = &credentials.certificate {
            self.scrubber.learn(key.expose());
            let certificate = self.directory.write("client.crt", certificate.expose())?;
            let key = self.directory.write("client.key", key.expose())?;
            self.configuration.set("http", origin, "sslCert", certificate.as_os_str().as_encoded_bytes());
            self.configuration.set("http", origin, "sslKey", key.as_os_str().as_encoded_bytes());
        }
        let bundle = match &credentials.authority {
            Some(authority) => Some(self.write_bundle(authority, surroundings)?),
            // Git takes the system's by itself, but knows nothing of this variable.
            None => surroundings.chosen_bundle(),
        };
        if let Some(bundle) = bundle {
            self.configuration.set("http", None, "sslCAInfo", bundle.as_os_str().as_encoded_bytes());
        }
        Ok(())
    }

    /// Sends user and password with the first request: no refusal comes first, and git never has to ask for them.
    fn log_in(&mut self, url: &RemoteUrl, user: &[u8], password: &[u8]) {
        let both = Secret::new([user, b":".as_slice(), password].concat());
        for secret in [password, both.expose()] {
            self.scrubber.learn(secret);
        }
        // It may be a token.
        if user != NOBODY.as_bytes() {
            self.scrubber.learn(user);
        }
        self.set_header(url, format!("Authorization: Basic {}", STANDARD.encode(both.expose())).as_bytes());
    }

    /// Sets a header for this server alone.
    fn set_header(&mut self, url: &RemoteUrl, header: &[u8]) {
        self.configuration.set("http", url.to_origin().as_deref(), "extraHeader", header);
    }

    /// Writes the given certificates below those that are trusted anyway: git knows one file.
    fn write_bundle(&self, authority: &Secret, surroundings: &Surroundings) -> Result<PathBuf, AccessError> {
        let mut bundle = match surroundings.bundle() {
            Some(path) => fs::read(&path).map_err(|cause| AccessError::Bundle { path, cause })?,
            None => Vec::new(),
        };
        bundle.push(b'\n');
        bundle.extend_from_slice(authority.expose());
        Ok(self.directory.write("ca.crt", &bundle)?)
    }

    fn go_through_a_proxy(&mut self, url: &RemoteUrl, options: &AccessOptions) -> Result<(), AccessError> {
        match (&options.proxy, url.transport()) {
            (_, Transport::Local) => Ok(()),
            (Some(_), Transport::Ssh) => Err(AccessError::ProxyForSsh { url: url.to_string() }),
            (None, Transport::Ssh) => Ok(()),
            (Some(proxy), Transport::Http | Transport::Https) => {
                for secret in proxy.secrets() {
                    self.scrubber.learn(secret.expose());
                }
                self.configuration.set("http", None, "proxy", proxy.to_setting().expose());
                self.configuration.set("http", None, "proxyAuthMethod", "basic");
                Ok(())
            }
            (None, Transport::Http | Transport::Https) => {
                for (name, value) in options.surroundings.proxies() {
                    if let Some(secret) = user_info(&value.to_string_lossy()) {
                        self.scrubber.learn(secret.as_bytes());
                    }
                    self.environment.push((name, value));
                }
                Ok(())
            }
        }
    }

    fn finish(mut self, owner: LoginOwner) -> Result<Access, AccessError> {
        let file = self.directory.write("config", self.configuration.as_bytes())?;
        self.set("GIT_CONFIG_GLOBAL", file);
        Ok(Access {
            owner,
            environment: self.environment,
            scrubber: self.scrubber,
            directory: self.directory,
            _programs: self.programs,
        })
    }
}

/// What stands before the `@` of a URL.
fn user_info(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').map(|(user_info, _)| user_info)
}
