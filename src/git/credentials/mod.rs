//! The login for a remote repository, by the rules of Flux's provider `generic`.
//! For the other providers, it has the certificates of their Secrets.

mod error;

use std::sync::Arc;

use memchr::memmem::find;

use super::signature::takes_too_many_rounds;
use super::{PrivateFiles, RemoteUrl, Transport};
use crate::secrets::{Secret, SecretData};
pub use error::CredentialsError;

/// The credentials for a remote repository.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// None, for a directory of this machine.
    Local,
    /// For HTTP, plain or over TLS.
    Http(HttpCredentials),
    /// For SSH.
    Ssh(SshCredentials),
}

/// Our login over HTTP, and the certificates that we trust.
#[derive(Debug, Clone)]
pub struct HttpCredentials {
    /// The login in the header of a request.
    pub login: HttpLogin,
    /// Certificates in PEM that are trusted beside those of the system.
    pub authority: Option<Arc<Secret>>,
    /// Our certificate at the TLS handshake.
    pub certificate: Option<ClientCertificate>,
}

/// The content of the `Authorization` header.
#[derive(Debug, Clone)]
pub enum HttpLogin {
    /// Nothing.
    Anonymous,
    /// User and password.
    Basic {
        /// The user; forges take tokens here too.
        user: Secret,
        /// The password, perhaps empty.
        password: Secret,
    },
    /// A token.
    Bearer(Secret),
}

/// A certificate and its key, both in PEM.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate: Arc<Secret>,
    /// Its private key.
    pub key: Secret,
}

/// Our login over SSH, and the host keys that we trust.
#[derive(Debug, Clone)]
pub struct SshCredentials {
    /// The user on the server.
    pub user: String,
    /// The private key.
    pub identity: Secret,
    /// The keys of servers.
    pub known_hosts: Arc<Secret>,
    /// The passphrase of the private key.
    pub passphrase: Option<Secret>,
}

impl HttpCredentials {
    /// Returns true if it is empty: a secret that is named should hold something.
    fn is_empty(&self) -> bool {
        matches!(self.login, HttpLogin::Anonymous) && self.authority.is_none() && self.certificate.is_none()
    }
}

impl Credentials {
    /// Returns the object's own certificate authority, if it has one.
    pub fn authority(&self) -> Option<&Secret> {
        match self {
            Self::Http(http) => http.authority.as_deref(),
            Self::Local | Self::Ssh(_) => None,
        }
    }

    /// Reads the login of the provider `generic` from the secret.
    /// Missing values come from the URL.
    ///
    /// # Errors
    ///
    /// If the secret lacks a part or has a malformed one.
    pub fn generic(url: &RemoteUrl, secret: Option<SecretData<'_>>) -> Result<Self, CredentialsError> {
        let credentials = match url.transport() {
            Transport::Local => Self::Local,
            Transport::Ssh => Self::Ssh(ssh_credentials(url, secret)?),
            Transport::Http | Transport::Https => {
                let http = HttpCredentials {
                    login: http_login(url, secret)?,
                    authority: secret.map_or(Ok(None), authority)?,
                    certificate: secret.map_or(Ok(None), client_certificate)?,
                };
                if let Some(secret) = secret.filter(|secret| !has_app_data(secret) && http.is_empty()) {
                    return Err(CredentialsError::NothingForHttp {
                        secret: secret.name.to_owned(),
                        found: secret.keys(),
                        scheme: url.transport().scheme(),
                    });
                }
                Self::Http(http)
            }
        };
        match secret.filter(has_app_data) {
            Some(secret) => Err(CredentialsError::UnexpectedAppData { secret: secret.name.to_owned() }),
            None => Ok(credentials),
        }
    }
}

impl HttpCredentials {
    /// Reads the certificates of a provider's secret, which has no login.
    ///
    /// # Errors
    ///
    /// If a certificate is malformed.
    pub fn certificates(secret: Option<SecretData<'_>>) -> Result<Self, CredentialsError> {
        Ok(Self {
            login: HttpLogin::Anonymous,
            authority: secret.map_or(Ok(None), authority)?,
            certificate: secret.map_or(Ok(None), client_certificate)?,
        })
    }
}

impl Credentials {
    /// Shares the memory of values that may be large with equal ones.
    #[must_use]
    pub(super) fn shared(mut self, files: &PrivateFiles) -> Self {
        let large = match &mut self {
            Self::Local => [None, None],
            Self::Http(http) => {
                [http.authority.as_mut(), http.certificate.as_mut().map(|both| &mut both.certificate)]
            }
            Self::Ssh(ssh) => [Some(&mut ssh.known_hosts), None],
        };
        for value in large.into_iter().flatten() {
            *value = files.share(value);
        }
        self
    }
}

fn has_app_data(secret: &SecretData<'_>) -> bool {
    secret.value("githubAppID").is_some()
}

fn http_login(url: &RemoteUrl, secret: Option<SecretData<'_>>) -> Result<HttpLogin, CredentialsError> {
    let token =
        secret.filter(|secret| secret.data.contains_key("bearerToken")).map(bearer_token).transpose()?;
    let (mut user, mut password) = (None, None);
    if let Some(secret) = secret {
        (user, password) = (secret.line("username")?, secret.line("password")?);
    }
    let user = user.or_else(|| url.user().map(Secret::new));
    let password = password.or_else(|| url.password().cloned());
    match (token, user, password) {
        (_, None, Some(_)) => Err(CredentialsError::PasswordWithoutUser { scheme: url.transport().scheme() }),
        (Some(_), Some(_), _) => Err(CredentialsError::TwoLogins),
        (Some(token), None, None) => Ok(HttpLogin::Bearer(token)),
        (None, Some(user), password) => {
            Ok(HttpLogin::Basic { user, password: password.unwrap_or_else(|| Secret::new("")) })
        }
        (None, None, None) => Ok(HttpLogin::Anonymous),
    }
}

fn bearer_token(secret: SecretData<'_>) -> Result<Secret, CredentialsError> {
    let key = "bearerToken";
    let token = secret
        .line(key)?
        .ok_or_else(|| secret.malformed(key, "is empty: give the token, or remove the key"))?;
    match token.expose().iter().all(u8::is_ascii_graphic) {
        true => Ok(token),
        false => {
            Err(secret.malformed(key, "has a character that an HTTP header cannot carry: correct it").into())
        }
    }
}

fn authority(secret: SecretData<'_>) -> Result<Option<Arc<Secret>>, CredentialsError> {
    for key in ["ca.crt", "caFile"] {
        if let Some(value) = secret.value(key) {
            require_certificate(secret, key, value)?;
            return Ok(Some(Arc::new(value.clone())));
        }
    }
    Ok(None)
}

fn client_certificate(secret: SecretData<'_>) -> Result<Option<ClientCertificate>, CredentialsError> {
    let half = |present, missing| {
        Err(CredentialsError::HalfACertificate { secret: secret.name.to_owned(), present, missing })
    };
    match (secret.value("tls.crt"), secret.bounded_value("tls.key")?) {
        (None, None) => Ok(None),
        (Some(_), None) => half("tls.crt", "tls.key"),
        (None, Some(_)) => half("tls.key", "tls.crt"),
        (Some(certificate), Some(key)) => {
            require_certificate(secret, "tls.crt", certificate)?;
            if private_key(key.expose()).is_none() {
                return Err(secret.malformed("tls.key", "holds no private key in PEM").into());
            }
            if find(key.expose(), b"ENCRYPTED").is_some() {
                return Err(secret
                    .malformed("tls.key", "is encrypted: give the key without a passphrase")
                    .into());
            }
            let certificate = Arc::new(certificate.clone());
            Ok(Some(ClientCertificate { certificate, key: key.clone() }))
        }
    }
}

fn require_certificate(
    secret: SecretData<'_>,
    key: &'static str,
    value: &Secret,
) -> Result<(), CredentialsError> {
    match find(value.expose(), b"-----BEGIN CERTIFICATE-----") {
        Some(_) => Ok(()),
        None => Err(secret.malformed(key, "holds no certificate in PEM").into()),
    }
}

fn ssh_credentials(
    url: &RemoteUrl,
    secret: Option<SecretData<'_>>,
) -> Result<SshCredentials, CredentialsError> {
    let missing = |key| CredentialsError::SshKeyMissing { key };
    let secret = secret.ok_or(missing("identity"))?;
    let identity = secret.bounded_value("identity")?.ok_or(missing("identity"))?;
    let known_hosts = secret.value("known_hosts").ok_or(missing("known_hosts"))?;
    let passphrase = secret.line("password")?;
    let Some(key) = private_key(identity.expose()) else {
        return Err(secret
            .malformed("identity", "holds no private key: give one in PEM or OpenSSH form")
            .into());
    };
    if find(key, b"BEGIN ENCRYPTED").is_some() {
        let defect = "is in encrypted PKCS#8, which Flux does not read either: rewrite it in OpenSSH's form with \
                    `ssh-keygen -p -f FILE`, of OpenSSH 9.6 or newer if it is an Ed25519 key";
        return Err(secret.malformed("identity", defect).into());
    }
    if takes_too_many_rounds(key) {
        let defect = "takes more than 256 rounds to unlock: rewrite it with `ssh-keygen -p -a 16 -f FILE`";
        return Err(secret.malformed("identity", defect).into());
    }
    if passphrase.is_none() && is_encrypted(key) {
        return Err(secret
            .malformed("identity", "is encrypted: give its passphrase in the key 'password'")
            .into());
    }
    // A carriage return within a line separates no words, because ssh gets the text without it.
    let known_hosts = as_ssh_reads_it(known_hosts.expose());
    if !has_known_host(known_hosts.expose()) {
        let defect = "has no line of host, key type and key: fill it with ssh-keyscan, and verify the keys";
        return Err(secret.malformed("known_hosts", defect).into());
    }
    Ok(SshCredentials {
        user: url.user().unwrap_or("git").to_owned(),
        identity: as_ssh_reads_it(key),
        known_hosts: Arc::new(known_hosts),
        passphrase,
    })
}

/// Returns the text from the start of a private key.
fn private_key(text: &[u8]) -> Option<&[u8]> {
    let start = find(text, b"-----BEGIN ")?;
    let text = &text[start..];
    let line = text.split(|byte| b"\r\n".contains(byte)).next()?;
    line.trim_ascii_end().ends_with(b"PRIVATE KEY-----").then_some(text)
}

fn is_encrypted(key: &[u8]) -> bool {
    use base64::Engine as _;
    if find(key, b"ENCRYPTED").is_some() {
        return true;
    }
    // OpenSSH's own format begins with a magic word and the name of the cipher.
    let Some(rest) = key.strip_prefix(b"-----BEGIN OPENSSH PRIVATE KEY-----") else { return false };
    let start: Vec<u8> = rest.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(32).collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(start).unwrap_or_default();
    let cipher = bytes.strip_prefix(b"openssh-key-v1\0");
    cipher.is_some_and(|cipher| !cipher.starts_with(b"\0\0\0\x04none"))
}

/// Returns true if a `known_hosts` text has a line of host, key type and key.
pub fn has_known_host(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(names_a_host)
}

fn names_a_host(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| !word.starts_with(b"#")) && words.nth(1).is_some()
}

/// Returns a text with plain line breaks, and with one at its end.
/// OpenSSH refuses a key otherwise, and Flux accepts it.
fn as_ssh_reads_it(text: &[u8]) -> Secret {
    let mut lines: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'\r').collect();
    if !lines.ends_with(b"\n") {
        lines.push(b'\n');
    }
    Secret::new(lines)
}

#[cfg(test)]
mod tests;
