//! Access to a remote repository: private files and environment variables for a git process.
//!
//! Other users can see the arguments and variables of a process, so no secret stands in them. A request that waits
//! holds an [`AccessPlan`], in memory; the files of an [`Access`] exist only while a transaction uses them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{
    ClientCertificate, Configuration, Credentials, HttpCredentials, HttpLogin, PrivateDirectory,
    PrivateError, PrivateFile, PrivateFiles, ProcessEnv, RemoteUrl, SshAlgorithms, Transport, ssh,
};
use crate::directory;
use crate::net::{Pin, Proxy};
use crate::secrets::{Redactor, Secret};

/// The party that can correct a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOwner {
    /// The objects: one of them names a Secret.
    Objects,
    /// The user who started the process.
    User,
}

/// The login to use.
#[derive(Debug, Clone)]
pub enum Login {
    /// The given login; nothing else that this machine knows is used.
    Given(Credentials),
    /// The login of the user who started the process.
    /// It consists of their git configuration, credential helpers and SSH agent.
    OfUser,
}

/// The user name for logins that consist of a password alone.
/// It is not redacted as a secret, because almost every message of git contains this word.
const TOKEN_USER: &str = "git";

/// Options of the access to a remote besides the login.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// The proxy to use instead of those of the environment.
    pub proxy: Option<Proxy>,
    /// The environment variables of this process.
    pub process_env: ProcessEnv,
    /// The algorithms that ssh may use.
    pub ssh_algorithms: SshAlgorithms,
    /// The only addresses of servers over HTTP.
    pub pins: Vec<Pin>,
    /// The private files that are in use, which are shared.
    pub files: PrivateFiles,
}

/// A plan of the access to a remote repository, without any file.
#[derive(Debug, Clone)]
pub struct AccessPlan {
    url: RemoteUrl,
    login: Login,
    options: AccessOptions,
}

/// Access to a remote repository.
/// Its files are deleted on drop, so it must outlive the git process.
#[derive(Debug)]
pub struct Access {
    owner: LoginOwner,
    environment: Vec<(OsString, OsString)>,
    redactor: Redactor,
    /// The settings until they are written to a file.
    configuration: Configuration,
    home: PrivateDirectory,
    files: Vec<Arc<PrivateFile>>,
    _programs: Option<PrivateDirectory>,
}

/// The error of a remote repository that cannot be accessed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The files could not be written.
    #[error("cannot store the credentials for git")]
    Private(#[from] PrivateError),
    /// The system's certificates cannot be read.
    #[error("cannot read the certificates in {path}: correct SSL_CERT_FILE, or the file", path = .path.display())]
    Bundle {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A path that ssh would misread.
    #[error("cannot pass the file {path:?} to ssh: set TMPDIR to a path without quotes, '$' and '\\'")]
    UnquotablePath {
        /// The file.
        path: PathBuf,
    },
    /// A proxy for SSH, which has none.
    #[error("the SSH remote {url} cannot go through a proxy: use its https URL, or remove the proxy secret")]
    ProxyForSsh {
        /// The remote.
        url: String,
    },
}

impl AccessPlan {
    /// Plans the access to a remote.
    ///
    /// # Errors
    ///
    /// If git and ssh cannot do what is asked.
    pub fn new(url: &RemoteUrl, login: Login, options: AccessOptions) -> Result<Self, AccessError> {
        if options.proxy.is_some() && url.transport() == Transport::Ssh {
            return Err(AccessError::ProxyForSsh { url: url.to_string() });
        }
        let login = match login {
            Login::Given(credentials) => Login::Given(credentials.shared(&options.files)),
            Login::OfUser => Login::OfUser,
        };
        Ok(Self { url: url.clone(), login, options })
    }

    /// Returns the same plan with another login over HTTP, beside the same certificates.
    #[must_use]
    pub fn with_http_login(mut self, login: HttpLogin) -> Self {
        if let Login::Given(Credentials::Http(http)) = &mut self.login {
            http.login = login;
        }
        self
    }

    /// Returns the login over HTTP, unless it is that of the calling user.
    pub fn http_credentials(&self) -> Option<&HttpCredentials> {
        match &self.login {
            Login::Given(Credentials::Http(http)) => Some(http),
            Login::Given(Credentials::Local | Credentials::Ssh(_)) | Login::OfUser => None,
        }
    }

    /// Returns true for the login over SSH of an object.
    pub fn has_ssh_credentials(&self) -> bool {
        matches!(self.login, Login::Given(Credentials::Ssh(_)))
    }

    /// Returns the object's own proxy.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.options.proxy.as_ref()
    }

    /// Returns the same plan with these addresses as the only ones of servers over HTTP.
    #[must_use]
    pub fn pinned(mut self, pins: Vec<Pin>) -> Self {
        self.options.pins = pins;
        self
    }

    /// Writes the files that git needs.
    ///
    /// # Errors
    ///
    /// If they cannot be written, or ssh cannot be given a path of one.
    pub fn open(&self) -> Result<Access, AccessError> {
        let Self { url, login, options } = self;
        let owner = match login {
            Login::Given(_) => LoginOwner::Objects,
            Login::OfUser => LoginOwner::User,
        };
        let mut access = Access {
            owner,
            environment: Vec::new(),
            redactor: Redactor::default(),
            configuration: Configuration::new(),
            home: PrivateDirectory::create()?,
            files: Vec::new(),
            _programs: None,
        };
        access.set("GIT_TERMINAL_PROMPT", "0");
        // Empty, and not absent: otherwise git would look for another program that asks for passwords.
        access.set("GIT_ASKPASS", "");
        access.add_user_info(url);
        match login {
            Login::OfUser => access.use_user_setup(url, &options.process_env),
            Login::Given(credentials) => access.use_credentials(url, credentials, options)?,
        }
        access.set_proxy(url, options);
        for setting in options.pins.iter().flat_map(Pin::to_curl_resolve) {
            access.configuration.set("http", None, "curloptResolve", setting);
        }
        let configuration = std::mem::take(&mut access.configuration);
        let file = access.write("config", configuration.as_bytes(), &options.files)?;
        access.set("GIT_CONFIG_GLOBAL", file);
        Ok(access)
    }
}

impl Access {
    /// Returns the party that can correct the login.
    pub fn owner(&self) -> LoginOwner {
        self.owner
    }

    /// Returns the variables for a git process.
    /// They are added to an environment without git variables and without `HOME`.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Redacts secrets from a text of git, and shortens our file paths to names.
    /// The directory of these files is of no use to a reader, and is deleted soon.
    pub fn redact(&self, text: &str) -> String {
        let directories = self.files.iter().map(|file| file.directory()).chain([self.home.path()]);
        let names = directories
            .fold(text.to_owned(), |text, directory| text.replace(&format!("{}/", directory.display()), ""));
        self.redactor.redact(&names)
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Adds the user info of a URL to the secrets, even if it is unused.
    /// The user name of an SSH URL is not a secret.
    fn add_user_info(&mut self, url: &RemoteUrl) {
        let user = url.user().filter(|_| url.transport() != Transport::Ssh);
        user.into_iter().for_each(|user| self.add_user(url, user.as_bytes()));
        url.password().into_iter().for_each(|password| self.redactor.add_secret(password.expose()));
    }

    /// Adds a user name to the secrets, unless the path of the URL shows it.
    /// It may be a token.
    fn add_user(&mut self, url: &RemoteUrl, user: &[u8]) {
        if user != TOKEN_USER.as_bytes() && !url.has_segment(user) {
            self.redactor.add_secret(user);
        }
    }

    fn use_user_setup(&mut self, url: &RemoteUrl, process_env: &ProcessEnv) {
        for (name, value) in process_env.user_variables() {
            if name.as_encoded_bytes().ends_with(b"TOKEN") {
                self.redactor.add_secret(value.as_encoded_bytes());
            }
            self.environment.push((name, value));
        }
        self.set("GIT_CONFIG_NOSYSTEM", "0");
        // Nothing answers the questions of ssh; without this variable it would wait at the terminal.
        self.set("SSH_ASKPASS", "/bin/false");
        self.set("SSH_ASKPASS_REQUIRE", "force");
        for path in process_env.user_config_files() {
            self.configuration.set("include", None, "path", path.as_os_str().as_encoded_bytes());
        }
        if matches!(url.transport(), Transport::Http | Transport::Https) {
            let origin = url.to_origin();
            match (url.user(), url.password()) {
                (Some(user), Some(password)) => self.add_basic_auth(url, user.as_bytes(), password.expose()),
                (Some(user), None) => {
                    self.configuration.set("credential", origin.as_deref(), "username", user);
                }
                (None, _) => {}
            }
        }
    }

    fn use_credentials(
        &mut self,
        url: &RemoteUrl,
        credentials: &Credentials,
        options: &AccessOptions,
    ) -> Result<(), AccessError> {
        self.set("GIT_CONFIG_NOSYSTEM", "1");
        let home = self.home.path().to_owned();
        self.set("HOME", home);
        match credentials {
            Credentials::Local => Ok(()),
            Credentials::Http(http) => self.use_http_credentials(url, http, options),
            Credentials::Ssh(given) => {
                let credentials = ssh::with_readable_key(given);
                let secrets = [Some(&given.identity), given.passphrase.as_ref(), Some(&credentials.identity)];
                for secret in secrets.into_iter().flatten() {
                    self.redactor.add_secret(secret.expose());
                }
                let setup =
                    ssh::prepare(&credentials, &options.ssh_algorithms, &options.files, self.home.path())?;
                self.environment.extend(setup.variables);
                self.files.extend(setup.files);
                self._programs = setup.programs;
                Ok(())
            }
        }
    }

    fn use_http_credentials(
        &mut self,
        url: &RemoteUrl,
        credentials: &HttpCredentials,
        options: &AccessOptions,
    ) -> Result<(), AccessError> {
        match &credentials.login {
            HttpLogin::Anonymous => {}
            HttpLogin::Basic { user, password } => self.add_basic_auth(url, user.expose(), password.expose()),
            HttpLogin::Bearer(token) => {
                self.redactor.add_secret(token.expose());
                self.set_header(url, &[b"Authorization: Bearer ".as_slice(), token.expose()].concat());
            }
        }
        let origin = url.to_origin();
        let origin = origin.as_deref();
        if let Some(ClientCertificate { certificate, key }) = &credentials.certificate {
            self.redactor.add_secret(key.expose());
            let certificate = self.write("client.crt", certificate.expose(), &options.files)?;
            let key = self.write("client.key", key.expose(), &options.files)?;
            self.configuration.set("http", origin, "sslCert", certificate.as_os_str().as_encoded_bytes());
            self.configuration.set("http", origin, "sslKey", key.as_os_str().as_encoded_bytes());
        }
        let bundle = match &credentials.authority {
            Some(authority) => {
                let bundle = bundle(authority, &options.process_env)?;
                Some(self.write("ca.crt", &bundle, &options.files)?)
            }
            // Git takes the system's bundle by itself, but does not know this variable.
            None => options.process_env.ssl_cert_file(),
        };
        if let Some(bundle) = bundle {
            self.configuration.set("http", None, "sslCAInfo", bundle.as_os_str().as_encoded_bytes());
        }
        Ok(())
    }

    /// Sends the user name and the password with the first request.
    /// So the server does not refuse a first request, and git never has to ask for them.
    fn add_basic_auth(&mut self, url: &RemoteUrl, user: &[u8], password: &[u8]) {
        let both = Secret::new([user, b":".as_slice(), password].concat());
        for secret in [password, both.expose()] {
            self.redactor.add_secret(secret);
        }
        self.add_user(url, user);
        self.set_header(url, format!("Authorization: Basic {}", STANDARD.encode(both.expose())).as_bytes());
    }

    /// Sets a header for this server alone.
    fn set_header(&mut self, url: &RemoteUrl, header: &[u8]) {
        self.configuration.set("http", url.to_origin().as_deref(), "extraHeader", header);
    }

    /// Writes a file for as long as the access is used.
    fn write(
        &mut self,
        name: &'static str,
        content: &[u8],
        files: &PrivateFiles,
    ) -> Result<PathBuf, AccessError> {
        let file = files.write(name, content)?;
        let path = file.path().to_owned();
        self.files.push(file);
        Ok(path)
    }

    /// Sets the proxy; the plan has made sure that there is none for SSH.
    fn set_proxy(&mut self, url: &RemoteUrl, options: &AccessOptions) {
        if matches!(url.transport(), Transport::Local | Transport::Ssh) {
            return;
        }
        match &options.proxy {
            Some(proxy) => {
                for secret in proxy.secrets() {
                    self.redactor.add_secret(secret.expose());
                }
                self.configuration.set("http", None, "proxy", proxy.to_url().expose());
                self.configuration.set("http", None, "proxyAuthMethod", "basic");
            }
            None => {
                for (name, value) in options.process_env.proxies() {
                    if let Some(secret) = user_info(&value.to_string_lossy()) {
                        self.redactor.add_secret(secret.as_bytes());
                    }
                    self.environment.push((name, value));
                }
            }
        }
    }
}

/// Joins the given certificates and the trusted ones, because git reads one file only.
fn bundle(authority: &Secret, process_env: &ProcessEnv) -> Result<Vec<u8>, AccessError> {
    let mut bundle = match process_env.bundle() {
        Some(path) => directory::read(&path).map_err(|cause| AccessError::Bundle { path, cause })?,
        None => Vec::new(),
    };
    bundle.push(b'\n');
    bundle.extend_from_slice(authority.expose());
    Ok(bundle)
}

/// Returns the user info of a URL: the part before the `@`.
fn user_info(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').map(|(user_info, _)| user_info)
}
