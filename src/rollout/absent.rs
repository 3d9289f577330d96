//! The components of a previous status that had no object.
//!
//! Such a component has the name of its document or its file. An object that its place gets may have another name, and
//! did not run before: its rollout is observed from the beginning.

use std::collections::HashMap;

use tagboat_api::deployment_status::{ComponentStatus, State};

/// The components of a previous status that had no object.
///
/// One with the name of a file stands for all markers of the file that have no object, any other one for its place.
#[derive(Debug, Default)]
pub struct Absent<'r>(HashMap<(Option<&'r str>, &'r str), &'r ComponentStatus>);

impl<'r> Absent<'r> {
    /// Finds the components without an object.
    #[must_use]
    pub fn new(components: &'r [ComponentStatus]) -> Self {
        let absent = components.iter().filter(|component| {
            component.tie.is_none() && matches!(component.state, State::Pending | State::Failed)
        });
        let with_key = absent.filter_map(|component| {
            let (automation, place) = place(component)?;
            let key = file(place).filter(|file| *file == component.name).unwrap_or(place);
            Some(((automation, key), component))
        });
        Self(with_key.collect())
    }

    /// Returns the component that stood for the place of another one.
    #[must_use]
    pub fn of(&self, component: &ComponentStatus) -> Option<&'r ComponentStatus> {
        let (automation, place) = place(component)?;
        let mut keys = [Some(place), file(place)].into_iter().flatten();
        keys.find_map(|key| self.0.get(&(automation, key)).copied())
    }
}

/// Returns the automation and the location of the marker of a component.
fn place(component: &ComponentStatus) -> Option<(Option<&str>, &str)> {
    Some((component.automation.as_deref(), component.place.as_deref()?))
}

/// Returns the file of a location.
fn file(place: &str) -> Option<&str> {
    place.rsplit_once(':').map(|(file, _)| file)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tagboat_api::deployment_status::Tie;

    use super::*;

    fn component(name: &str, state: State, place: &str) -> ComponentStatus {
        let automation = Some("fleet".to_owned());
        let new = ComponentStatus::new(name, state, Timestamp::UNIX_EPOCH.into());
        ComponentStatus { automation, place: Some(place.to_owned()), ..new }
    }

    #[test]
    fn an_object_is_found_by_its_place_or_file() {
        let tied = ComponentStatus {
            tie: Some(Tie::Object),
            ..component("Deployment/a/d", State::Pending, "d.yaml:1")
        };
        let components = [
            component("a.yaml", State::Pending, "a.yaml:7"),
            component("Deployment/b", State::Failed, "b.yaml:7"),
            component("c.yaml", State::Removed, "c.yaml:7"),
            tied,
        ];
        let absent = Absent::new(&components);
        let of = |place: &str| {
            let found = absent.of(&component("DaemonSet/a/x", State::Installed, place));
            found.map(|component| component.name.as_str())
        };
        let table = [
            ("a.yaml:7", Some("a.yaml")),
            ("a.yaml:30", Some("a.yaml")),
            ("b.yaml:7", Some("Deployment/b")),
            ("b.yaml:30", None),
            ("c.yaml:7", None),
            ("d.yaml:1", None),
        ];
        for (place, expected) in table {
            assert_eq!(of(place), expected, "{place}");
        }
        let other = component("DaemonSet/a/x", State::Installed, "a.yaml:7");
        let other = ComponentStatus { automation: Some("other".to_owned()), ..other };
        assert_eq!(absent.of(&other), None);
    }
}
