//! Texts from clusters, limited to what the schema of the status accepts.
//!
//! The API server refuses a whole status for one text that is too long or empty. So every component and every error
//! passes through this module before it is reported.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{
    ComponentStatus, MAX_CODE, MAX_COMPONENTS, MAX_MESSAGE, MAX_TEXT, State, StatusError,
};

/// The end of a text that was cut.
const CUT: char = '…';

/// The code of an error that has none.
const UNKNOWN_CODE: &str = "Failed";

/// The message of an error that has none.
const UNKNOWN_MESSAGE: &str = "the rollout failed";

/// The maximum size of all components of a status, in bytes of JSON.
///
/// The API server accepts objects of about 1.5 MB.
const MAX_BYTES: usize = 768 * 1024;

/// Returns the number of components, from the first one on, that a status lists.
#[must_use]
pub fn listed(components: &[ComponentStatus]) -> usize {
    let mut bytes = 0;
    let fits = |component: &&ComponentStatus| {
        bytes += serde_json::to_vec(component).map_or(MAX_BYTES, |json| json.len());
        bytes <= MAX_BYTES
    };
    components.iter().take(MAX_COMPONENTS).take_while(fits).count()
}

/// Cuts a text to a number of characters; a cut text ends in an ellipsis.
#[must_use]
pub fn cut(mut text: String, max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max) {
        let last = text[..end].char_indices().next_back().map_or(0, |(last, _)| last);
        text.truncate(last);
        text.push(CUT);
    }
    text
}

/// Cuts the middle of a text, for which an ellipsis stands.
///
/// A quarter of it is the end.
#[must_use]
pub fn cut_middle(text: String, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text;
    }
    let end = max / 4;
    let beginning = max.saturating_sub(1) - end;
    let kept = text.chars().take(beginning).chain([CUT]);
    kept.chain(text.chars().skip(count - end)).collect()
}

/// Returns a time in whole seconds, which is the precision of a status.
///
/// Otherwise a status would differ from itself as soon as it is read back.
#[must_use]
pub fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// Limits an error, and completes empty members; `source` replaces an empty source.
#[must_use]
pub fn error(error: StatusError, source: &str) -> StatusError {
    let or = |text: String, default: &str| if text.trim().is_empty() { default.to_owned() } else { text };
    let code = or(error.code, UNKNOWN_CODE);
    let message = or(error.message, if code == UNKNOWN_CODE { UNKNOWN_MESSAGE } else { &code });
    StatusError {
        source: cut(or(error.source, source), MAX_TEXT),
        message: cut(message, MAX_MESSAGE),
        code: cut(code, MAX_CODE),
    }
}

/// Limits the texts of a component.
///
/// A failed component gets an error if it has none; any other component loses its error.
#[must_use]
pub fn component(component: ComponentStatus) -> ComponentStatus {
    let text = |text: Option<String>| text.map(|text| cut(text, MAX_TEXT));
    let name = cut(component.name, MAX_TEXT);
    let message = component.message.filter(|message| !message.trim().is_empty());
    let failure = (component.state == State::Failed).then(|| {
        let message = message.clone().unwrap_or_default();
        let unknown = || StatusError { code: String::new(), source: String::new(), message };
        error(component.error.unwrap_or_else(unknown), &name)
    });
    ComponentStatus {
        state: component.state,
        reason: component.reason,
        message: message.map(|message| cut(message, MAX_MESSAGE)),
        image: text(component.image),
        desired: component.desired,
        updated: component.updated,
        ready: component.ready,
        updated_ready: component.updated_ready,
        since: whole_seconds(component.since.0),
        last_deployed: component.last_deployed.map(|time| whole_seconds(time.0)),
        complete_since: component.complete_since.map(|time| whole_seconds(time.0)),
        automation: text(component.automation),
        place: text(component.place),
        tie: component.tie,
        applier: text(component.applier),
        applied_revision: text(component.applied_revision),
        error: failure,
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_components_of_a_status_fit_into_an_object() {
        let component = |text: &str| ComponentStatus {
            image: Some(text.to_owned()),
            ..ComponentStatus::new("Deployment/a/b", State::Installed, Time(Timestamp::UNIX_EPOCH))
        };
        let short = vec![component("a"); MAX_COMPONENTS + 1];
        assert_eq!(listed(&short), MAX_COMPONENTS);
        let long = vec![component(&"a".repeat(8 * 1024)); 100];
        let bytes = serde_json::to_vec(&long[..listed(&long)]).unwrap().len();
        assert!((MAX_BYTES - 9 * 1024..MAX_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        for (text, max, expected) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("äöü", 3, "äöü"),
            ("äöüß", 3, "äö…"),
            ("👩‍💻👩‍💻", 2, "👩…"),
            ("ab", 1, "…"),
        ] {
            let found = cut(text.to_owned(), max);
            assert_eq!(found, expected, "{text}");
            assert!(found.chars().count() <= max);
        }
    }

    #[test]
    fn no_member_of_an_error_is_empty() {
        for (code, source, message, expected) in [
            ("OOMKilled", "Deployment/a/b", "killed", ("OOMKilled", "Deployment/a/b", "killed")),
            ("OOMKilled", "", "", ("OOMKilled", "default", "OOMKilled")),
            ("", "", "\n", ("Failed", "default", "the rollout failed")),
        ] {
            let given = StatusError { code: code.into(), source: source.into(), message: message.into() };
            let found = error(given, "default");
            assert_eq!((&*found.code, &*found.source, &*found.message), expected);
        }
    }

    #[test]
    fn only_failed_components_have_an_error() {
        let given = StatusError { code: "A".into(), source: "b".into(), message: "c".into() };
        let since = Time(Timestamp::UNIX_EPOCH);
        for state in State::BY_SEVERITY {
            let with = ComponentStatus {
                error: Some(given.clone()),
                ..ComponentStatus::new("x", state, since.clone())
            };
            let without = ComponentStatus {
                message: Some("it stopped".into()),
                ..ComponentStatus::new("x", state, since.clone())
            };
            let (with, without) = (component(with).error, component(without).error);
            if state == State::Failed {
                let expected =
                    StatusError { code: "Failed".into(), source: "x".into(), message: "it stopped".into() };
                assert_eq!((with, without), (Some(given.clone()), Some(expected)));
            } else {
                assert_eq!((with, without), (None, None), "{state}");
            }
        }
    }

    #[test]
    fn every_text_of_a_component_is_limited() {
        let long = || Some("x".repeat(5000));
        let error =
            StatusError { code: "c".repeat(5000), source: "s".repeat(5000), message: "m".repeat(5000) };
        let given = ComponentStatus {
            message: long(),
            image: long(),
            automation: long(),
            place: long(),
            applier: long(),
            applied_revision: long(),
            error: Some(error),
            ..ComponentStatus::new("n".repeat(5000), State::Failed, Time(Timestamp::MAX))
        };
        let found = serde_json::to_value(component(given)).unwrap();
        let length = |path: &str| found.pointer(path).unwrap().as_str().unwrap().chars().count();
        for path in
            ["/name", "/image", "/automation", "/place", "/applier", "/appliedRevision", "/error/source"]
        {
            assert_eq!(length(path), MAX_TEXT, "{path}");
        }
        assert_eq!((length("/message"), length("/error/message")), (MAX_MESSAGE, MAX_MESSAGE));
        assert_eq!(length("/error/code"), MAX_CODE);
    }
}
