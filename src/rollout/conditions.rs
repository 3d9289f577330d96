//! The conditions of a deployment, as in kstatus.
//!
//! So `kubectl wait --for=condition=Ready` and Flux's waits work on the object.
//!
//! `Ready` is always present, and True for an installed deployment. `Stalled` is True for a failed one, `Reconciling`
//! for any other: the rollout is in progress or still to come. As in kstatus, both are absent unless they are True.
//!
//! The reason is the name of the state, the reason that blocks a pending deployment, or the code of the error.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::Condition;
use tagboat_api::deployment_status::{Report, State, StatusError};

/// Returns the conditions of a report, whose own conditions are ignored.
///
/// A condition keeps the time of `previous` as long as its status does not change.
#[must_use]
pub fn conditions(report: &Report, previous: &[Condition], now: &Time) -> Vec<Condition> {
    let (reason, message) = (reason(report), message(report));
    let condition = |type_: &str, status: &str| {
        let same = previous.iter().find(|known| known.type_ == type_ && known.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.clone(),
            message: message.clone(),
            last_transition_time: same
                .map_or_else(|| now.clone(), |known| known.last_transition_time.clone()),
            observed_generation: None,
        }
    };
    match report.state {
        State::Installed => vec![condition("Ready", "True")],
        State::Failed => vec![condition("Stalled", "True"), condition("Ready", "False")],
        State::Pending | State::Installing | State::Removing | State::Removed => {
            vec![condition("Reconciling", "True"), condition("Ready", "False")]
        }
    }
}

/// Returns the reason of all conditions.
fn reason(report: &Report) -> String {
    match report.state {
        State::Pending => report.reason.map_or_else(|| "Pending".to_owned(), |reason| reason.to_string()),
        State::Installing => "Installing".to_owned(),
        State::Installed => "Installed".to_owned(),
        State::Removing => "Removing".to_owned(),
        State::Removed => "Removed".to_owned(),
        State::Failed => {
            let code = error(report).map(|error| error.code.as_str()).filter(|code| is_reason(code));
            code.unwrap_or("Failed").to_owned()
        }
    }
}

/// Returns the error of a failed deployment: its own, or that of the worst component.
fn error(report: &Report) -> Option<&StatusError> {
    report.error.as_ref().or_else(|| report.components.first()?.error.as_ref())
}

/// Returns true for a code that is accepted as the reason of a condition.
///
/// A code can come from an object of a tenant, such as a Job.
fn is_reason(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_alphabetic())
        && !code.ends_with([',', ':'])
        && code.chars().all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c))
}

/// Returns the message of all conditions.
fn message(report: &Report) -> String {
    let target = report.target.as_ref();
    let default = || match report.state {
        State::Pending => "the wanted image is not in the cluster yet".to_owned(),
        State::Installing => "the rollout is in progress".to_owned(),
        State::Installed => {
            target.map_or_else(|| "installed".to_owned(), |image| format!("{image} is installed"))
        }
        State::Failed => "the rollout failed".to_owned(),
        State::Removing => "objects are being removed".to_owned(),
        State::Removed => "objects were removed".to_owned(),
    };
    report.message.clone().unwrap_or_else(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_the_api_server_accepts_are_reasons() {
        for (code, expected) in [
            ("ImagePullBackOff", true),
            ("OOM_Killed:137", true),
            ("A", true),
            ("", false),
            ("1st", false),
            ("Failed:", false),
            ("two words", false),
            ("ä", false),
        ] {
            assert_eq!(is_reason(code), expected, "{code}");
        }
    }
}
