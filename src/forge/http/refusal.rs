//! The error of a response that refuses a request.

use super::transport::excerpt;
use crate::forge::error::ForgeError;
use crate::forge::exchange::ApiResponse;
use crate::forge::reading::with_remedy;

/// The parts of a call that its error names.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The host.
    pub host: &'c str,
    /// The object that has the credentials.
    pub owner: &'c str,
    /// The operation.
    pub operation: &'static str,
}

/// Returns the error of a response that refuses a request.
pub fn refusal(call: Call<'_>, response: &ApiResponse) -> ForgeError {
    let Call { host, owner, operation } = call;
    let (host, said) = (host.to_owned(), message(response));
    match response.status {
        401 => ForgeError::Unauthenticated { host, login: owner.to_owned(), detail: said },
        403 | 404 => {
            let missing = missing_permission(response);
            let advice = match (response.status, missing) {
                (404, missing) => {
                    let or = missing.map(|missing| format!(", or the permission {missing} is missing"));
                    let or = or.unwrap_or_default();
                    format!(": the repository does not exist, or is not visible to these credentials{or}")
                }
                (_, Some(missing)) => format!(": the permission {missing} is missing"),
                (_, None) => String::new(),
            };
            let detail = if advice.is_empty() { with_remedy(said) } else { format!("{said}{advice}") };
            ForgeError::Forbidden { host, operation, detail }
        }
        status => ForgeError::Refused { host, operation, status, detail: with_remedy(said) },
    }
}

/// Returns the message of a response, with the errors that it lists.
fn message(response: &ApiResponse) -> String {
    let body = &response.body;
    let mut text = body["message"].as_str().unwrap_or_default().to_owned();
    let errors = body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let details = errors.iter().filter_map(|error| {
        let named = || Some(format!("{} {}", error["field"].as_str()?, error["code"].as_str()?));
        error.as_str().or_else(|| error["message"].as_str()).map(str::to_owned).or_else(named)
    });
    for detail in details.take(5) {
        text = if text.is_empty() { detail } else { format!("{text}: {detail}") };
    }
    if text.is_empty() { format!("status {}", response.status) } else { excerpt(&text) }
}

/// Returns the permission that a forge reports as missing, in words of its settings.
fn missing_permission(response: &ApiResponse) -> Option<String> {
    let header = |name: &str| {
        response.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    // GitHub names alternatives, separated by semicolons, in each response, also if another rule forbids the request.
    let is_of_permissions = response.status == 404
        || response.body["message"].as_str().is_some_and(|text| text.contains("Resource not accessible"));
    let permissions = header("x-accepted-github-permissions").filter(|value| !value.trim().is_empty());
    if let Some(accepted) = permissions.filter(|_| is_of_permissions) {
        return Some(excerpt(accepted));
    }
    let accepted = header("x-accepted-oauth-scopes").map(str::trim).filter(|value| !value.is_empty())?;
    let granted = header("x-oauth-scopes").unwrap_or_default();
    let has_one =
        accepted.split(',').any(|scope| granted.split(',').any(|other| other.trim() == scope.trim()));
    (!has_one).then(|| excerpt(accepted))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sentence(status: u16, headers: &[(&str, &str)], body: Value) -> String {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let call = Call { host: "api.github.com", owner: "Secret apps/app", operation: "sign the commit" };
        refusal(call, &ApiResponse::new(status, headers, body)).to_string()
    }

    #[test]
    fn an_error_says_what_is_wrong_and_what_to_do() {
        let permissions = ("x-accepted-github-permissions", "contents=write");
        for (status, headers, body, expected) in [
            (
                401,
                vec![],
                json!({"message": "Bad credentials"}),
                "api.github.com refuses the credentials of Secret apps/app: Bad credentials",
            ),
            (
                403,
                vec![permissions],
                json!({"message": "Resource not accessible by integration"}),
                "api.github.com refuses to sign the commit: Resource not accessible by integration: the permission \
                 contents=write is missing",
            ),
            (
                403,
                vec![("x-accepted-oauth-scopes", "repo, public_repo"), ("x-oauth-scopes", "gist")],
                json!({"message": "no"}),
                "api.github.com refuses to sign the commit: no: the permission repo, public_repo is missing",
            ),
            (
                403,
                vec![("x-accepted-oauth-scopes", "repo"), ("x-oauth-scopes", "repo, gist")],
                json!({"message": "Repository was archived so is read-only."}),
                "api.github.com refuses to sign the commit: Repository was archived so is read-only.: unarchive the repository, or \
                 suspend the automation",
            ),
            // Each response to an App has the header; a protected branch is no missing permission.
            (
                403,
                vec![permissions],
                json!({"message": "Changes must be made through a pull request."}),
                "api.github.com refuses to sign the commit: Changes must be made through a pull request.",
            ),
            (
                404,
                vec![permissions],
                json!({"message": "Not Found"}),
                "api.github.com refuses to sign the commit: Not Found: the repository does not exist, or is not \
                 visible to these credentials, or the permission contents=write is missing",
            ),
            (
                404,
                vec![],
                json!({"message": "Not Found"}),
                "api.github.com refuses to sign the commit: Not Found: the repository does not exist, or is not \
                 visible to these credentials",
            ),
            (
                422,
                vec![],
                json!({"message": "Validation Failed", "errors": [{"message": "one"}, "two", {"field": "f", "code": "c"}]}),
                "api.github.com refuses to sign the commit: Validation Failed: one: two: f c",
            ),
            (409, vec![], json!(null), "api.github.com refuses to sign the commit: status 409"),
        ] {
            assert_eq!(sentence(status, &headers, body), expected);
        }
    }
}
