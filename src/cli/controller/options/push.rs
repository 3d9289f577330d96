//! The flags of the status push.

use super::ControllerArguments;
use crate::cli::Failure;
use crate::error::chain;
use crate::secrets::redact_url;
use crate::web::{Form, InvalidEndpoint, PushOptions, TokenFile};

impl ControllerArguments {
    /// Returns the options of the status push.
    ///
    /// The token is read once, so that a wrong file is found at once.
    pub(super) fn push(&self) -> Result<Option<PushOptions>, Failure> {
        const ENDPOINT: &str = "status-endpoint";
        const FORM: &str = "status-format";
        const TOKEN: &str = "status-token-file";
        let refusal = |name: &str, value: &str, error: &(dyn std::error::Error + 'static)| {
            Failure::Usage(format!("--{name} {value:?} cannot be used: {}", chain(error)))
        };
        let form = self.value(FORM);
        let form = form.parse::<Form>().map_err(|error| refusal(FORM, form, &error))?;
        let Some(endpoint) = self.text(ENDPOINT) else {
            return Ok(None);
        };
        // The address may contain a password.
        let endpoint = endpoint
            .parse()
            .map_err(|error| refusal(ENDPOINT, &redact_url(endpoint), &error as &InvalidEndpoint))?;
        let token =
            self.text(TOKEN).map(|path| TokenFile::open(path).map_err(|error| refusal(TOKEN, path, &error)));
        Ok(Some(PushOptions { endpoint, form, token: token.transpose()? }))
    }
}
