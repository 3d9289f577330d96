//! Environment variables that configure logins at clouds.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::error::LoginError;
use crate::directory;
use crate::secrets::Secret;

/// The variables that are read; no others are kept.
const NAMES: [&str; 24] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONFIG_FILE",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_USE_FIPS_ENDPOINT",
    "AZURE_AUTHORITY_HOST",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_ENVIRONMENT_FILEPATH",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_TENANT_ID",
    "GCE_METADATA_HOST",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HOME",
];

/// The environment variables that configure logins at clouds.
///
/// The default has none.
#[derive(Debug, Clone, Default)]
pub struct CloudEnvironment(BTreeMap<&'static str, Secret>);

impl CloudEnvironment {
    /// Reads the variables of this process.
    pub fn from_env() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    /// Reads variables with a function.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = NAMES.into_iter().filter_map(|name| Some((name, variable(name)?)));
        Self(
            set.filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name, Secret::new(value)))
                .collect(),
        )
    }

    /// Returns a variable that is set and not empty.
    pub(super) fn secret(&self, name: &'static str) -> Option<&Secret> {
        self.0.get(name)
    }

    /// Returns a variable that is not secret.
    pub(super) fn text(&self, name: &'static str) -> Option<String> {
        self.secret(name).map(|value| String::from_utf8_lossy(value.expose()).into_owned())
    }

    /// Returns the path that a variable contains, or else one in the home directory.
    pub(super) fn path(&self, variable: &'static str, at_home: &str) -> Option<PathBuf> {
        let named = self.text(variable).map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(self.text("HOME")?).join(at_home)))
    }

    pub(super) fn is_true(&self, name: &'static str) -> bool {
        self.text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Reads the file that a variable names, without trailing white space.
    ///
    /// It is read each time, because such files are renewed.
    pub(super) async fn file(
        &self,
        cloud: &'static str,
        variable: &'static str,
    ) -> Result<Option<Secret>, LoginError> {
        let Some(path) = self.text(variable).map(PathBuf::from) else { return Ok(None) };
        let path_text = path.display().to_string();
        trimmed(path).await.map(Some).map_err(|defect| LoginError::Variable {
            cloud,
            variable,
            defect: format!("names {path_text}, which {defect}"),
        })
    }
}

/// Reads a file.
pub(super) async fn content(path: PathBuf) -> io::Result<Secret> {
    let read = tokio::task::spawn_blocking(move || directory::read(&path)).await;
    read.map_err(io::Error::other)?.map(Secret::new)
}

/// Reads a token file, without surrounding white space.
///
/// It is read each time, because such files are renewed.
pub(super) async fn token_file(cloud: &'static str, path: PathBuf) -> Result<Secret, LoginError> {
    let setting = format!("the file {}", path.display());
    trimmed(path).await.map_err(|defect| LoginError::Setting { cloud, setting, defect })
}

/// Reads a file without surrounding white space.
/// An empty file is an error. The error describes the defect of the file.
async fn trimmed(path: PathBuf) -> Result<Secret, String> {
    let content = content(path).await.map_err(|error| format!("cannot be read: {error}"))?;
    match content.expose().trim_ascii() {
        [] => Err("is empty".to_owned()),
        text => Ok(Secret::new(text)),
    }
}

/// Returns a secret as text for a form.
pub(super) fn form_text(secret: &Secret) -> Zeroizing<String> {
    Zeroizing::new(String::from_utf8_lossy(secret.expose()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_variable_is_set_or_not_and_a_file_is_read_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        let path = file.display().to_string();
        let environment = CloudEnvironment::of(|name| match name {
            "AWS_WEB_IDENTITY_TOKEN_FILE" => Some(path.clone()),
            "AWS_ROLE_ARN" => Some(String::new()),
            "AWS_EC2_METADATA_DISABLED" => Some("True".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("hunter2".to_owned()),
            _ => None,
        });
        assert_eq!(environment.text("AWS_ROLE_ARN"), None);
        assert!(environment.is_true("AWS_EC2_METADATA_DISABLED"));
        assert!(!format!("{environment:?}").contains("hunter2"));
        let read = || environment.file("AWS", "AWS_WEB_IDENTITY_TOKEN_FILE");
        let error = read().await.unwrap_err().to_string();
        assert!(error.contains("the environment variable AWS_WEB_IDENTITY_TOKEN_FILE names"), "{error}");
        for token in ["one\n", "two"] {
            std::fs::write(&file, token).unwrap();
            assert_eq!(read().await.unwrap().unwrap().expose(), token.trim_end().as_bytes());
        }
        std::fs::write(&file, " \n").unwrap();
        assert!(read().await.unwrap_err().to_string().ends_with("which is empty"));
        assert!(environment.file("Azure", "AZURE_FEDERATED_TOKEN_FILE").await.unwrap().is_none());
    }
}
