//! Error responses of registries.

use reqwest::StatusCode;

use super::challenge::Challenge;
use super::error::RegistryError;
use super::error_response::ErrorResponse;
use crate::net::http::Response;

impl Response {
    pub(super) fn error_response(&self) -> ErrorResponse {
        let mut error_response = ErrorResponse::read(self.status, self.is_head, &self.body);
        let mut unknown = Challenge::unknown(self.challenges());
        // Names of schemes are single words: long ones and many of them are not shown.
        unknown.retain(|name| name.len() <= 32);
        unknown.truncate(4);
        if self.status == StatusCode::UNAUTHORIZED && !unknown.is_empty() {
            let names = unknown.join(", ");
            error_response.message.push_str(&format!(
                "; it requires authentication by {names}, and only Basic and Bearer are supported"
            ));
        }
        error_response
    }

    /// Converts this response into an error.
    pub(super) fn to_error(&self) -> RegistryError {
        RegistryError::Refused {
            request: self.request.clone(),
            response: self.error_response(),
            retry_after: self.retry_after(),
        }
    }
}
