//! Google credential files (application default credentials).
//!
//! The file is the one that GOOGLE_APPLICATION_CREDENTIALS names, or else the one that `gcloud auth
//! application-default login` writes.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::assertion::Assertion;
use super::exchange::{CLOUD, Exchange, JWT, SCOPES};
use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::environment::{content, form_text, token_file};
use crate::cloud::network::{MAX_RESPONSE, RequestLabel, form, join};
use crate::net::Host;
use crate::net::http::Request;
use crate::secrets::Secret;

const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
const AT_HOME: &str = ".config/gcloud/application_default_credentials.json";

const KEY: RequestLabel = RequestLabel { cloud: CLOUD, item: "a token for the key of the service account" };
const USER: RequestLabel = RequestLabel { cloud: CLOUD, item: "a token for the login of the user" };

/// A key of a service account.
#[derive(Deserialize)]
struct ServiceAccountKey {
    client_email: String,
    private_key: Secret,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

/// The login of a user.
#[derive(Deserialize)]
struct AuthorizedUser {
    client_id: String,
    client_secret: Secret,
    refresh_token: Secret,
    token_uri: Option<String>,
}

/// A workload identity that an external provider vouches for.
#[derive(Deserialize)]
struct ExternalAccount {
    audience: String,
    subject_token_type: Option<String>,
    token_url: String,
    service_account_impersonation_url: Option<String>,
    credential_source: TokenSource,
}

/// The location of an external token.
#[derive(Deserialize)]
struct TokenSource {
    file: Option<PathBuf>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize, Default)]
struct Format {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    subject_token_field_name: String,
}

/// A credential file, as errors name it.
struct File<'v> {
    path_text: String,
    context: LoginContext<'v>,
}

/// Requests an access token with the credential file, if there is one.
pub(super) async fn token(context: LoginContext<'_>) -> Result<Option<Expiring<Secret>>, LoginError> {
    let environment = &context.options.environment;
    let Some(path) = environment.path(VARIABLE, AT_HOME) else { return Ok(None) };
    let file = File { path_text: path.display().to_string(), context };
    let content = match content(path).await {
        Ok(content) => content,
        Err(error)
            if environment.text(VARIABLE).is_none()
                && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(file.invalid(&format!("cannot be read: {error}"))),
    };
    file.token(&content).await.map(Some)
}

impl File<'_> {
    async fn token(&self, content: &Secret) -> Result<Expiring<Secret>, LoginError> {
        let json: Value = serde_json::from_slice(content.expose()).unwrap_or_default();
        match json["type"].as_str() {
            Some("service_account") => self.token_for_key(self.parse(content)?).await,
            Some("authorized_user") => self.token_for_user(self.parse(content)?).await,
            Some("external_account") => self.token_for_external(self.parse(content)?).await,
            Some(other) => Err(self.invalid(&format!(
                "has credentials of the type '{other}': use service_account, authorized_user or external_account"
            ))),
            None => Err(self.invalid("is not JSON with Google credentials and their type")),
        }
    }

    /// The parser's message is dropped, because it may contain a secret.
    fn parse<T: serde::de::DeserializeOwned>(&self, content: &Secret) -> Result<T, LoginError> {
        serde_json::from_slice(content.expose())
            .map_err(|_| self.invalid("lacks a member that credentials of its type require"))
    }

    fn invalid(&self, defect: &str) -> LoginError {
        LoginError::Setting {
            cloud: CLOUD,
            setting: format!("the file {}", self.path_text),
            defect: defect.to_owned(),
        }
    }

    /// Parses an address in the file.
    fn address(&self, text: &str) -> Result<Url, LoginError> {
        secure_url(text)
            .ok_or_else(|| self.invalid(&format!("has the address {text:?}, which is not an https URL")))
    }

    /// Returns the token endpoint.
    fn token_endpoint(&self, given: Option<&str>) -> Result<Url, LoginError> {
        let token_endpoint = &self.context.options.endpoints.google_tokens;
        match given {
            Some(text) => self.address(text),
            None => Ok(join(token_endpoint, "token")),
        }
    }

    async fn token_for_key(&self, key: ServiceAccountKey) -> Result<Expiring<Secret>, LoginError> {
        let url = self.token_endpoint(key.token_uri.as_deref())?;
        let assertion = Assertion {
            issuer: &key.client_email,
            key_id: key.private_key_id.as_deref(),
            audience: key.token_uri.as_deref().unwrap_or(url.as_str()),
            scope: &SCOPES.join(" "),
            now: self.context.now,
        };
        let signed = assertion.sign(&key.private_key);
        let signed = signed.ok_or_else(|| self.invalid("has a private_key that is not an RSA key in PEM"))?;
        let form =
            form([("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &signed)]);
        self.request_token(KEY, url, form).await
    }

    async fn token_for_user(&self, user: AuthorizedUser) -> Result<Expiring<Secret>, LoginError> {
        let url = self.token_endpoint(user.token_uri.as_deref())?;
        let form = form([
            ("grant_type", "refresh_token"),
            ("client_id", &user.client_id),
            ("client_secret", &form_text(&user.client_secret)),
            ("refresh_token", &form_text(&user.refresh_token)),
        ]);
        self.request_token(USER, url, form).await
    }

    async fn token_for_external(&self, external: ExternalAccount) -> Result<Expiring<Secret>, LoginError> {
        let TokenSource { file, format } = &external.credential_source;
        let Some(file) = file else {
            return Err(self.invalid("has a credential_source that is not a file; only files are supported"));
        };
        let token = token_file(CLOUD, file.clone()).await?;
        let token = match format.kind.as_str() {
            "" | "text" => token,
            "json" => {
                let json: Value = serde_json::from_slice(token.expose()).unwrap_or_default();
                let field = format.subject_token_field_name.as_str();
                let token = json[field].as_str().filter(|token| !token.is_empty());
                Secret::new(token.ok_or_else(|| {
                    self.invalid(&format!("names the token file {}, which has no {field:?}", file.display()))
                })?)
            }
            other => return Err(self.invalid(&format!("has a credential_source of the format '{other}'"))),
        };
        let account = external.service_account_impersonation_url.as_deref();
        let exchange = Exchange {
            url: self.address(&external.token_url)?,
            audience: &external.audience,
            kind: external.subject_token_type.as_deref().unwrap_or(JWT),
            token: &form_text(&token),
            account: account.map(|text| self.address(text)).transpose()?,
        };
        exchange.execute(self.context).await
    }

    async fn request_token(
        &self,
        label: RequestLabel,
        url: Url,
        form: Vec<u8>,
    ) -> Result<Expiring<Secret>, LoginError> {
        let request = Request::post(url, form, MAX_RESPONSE);
        let response = self.context.service(label, request).await?;
        label.access_token(&response, self.context.now)
    }
}

/// Parses an address that secrets may be sent to: HTTPS, or this machine.
fn secure_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_local = url.scheme() == "http" && Host::read(url.host_str()?).is_local();
    (url.scheme() == "https" || is_local).then_some(url)
}
