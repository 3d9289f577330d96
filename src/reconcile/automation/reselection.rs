//! Selects the images of an automation again while its transaction is in flight.

use std::fmt;
use std::sync::Arc;

use tagboat_api::{ImagePolicy, ImageUpdateAutomation};

use super::request::{self, ImageOverrides, Request, RequestError};

/// Reads the policies of an automation's namespace as they stand now.
pub type PolicyReader = Arc<dyn Fn() -> Vec<Arc<ImagePolicy>> + Send + Sync>;

/// Selects the images of an automation again after a wait.
///
/// Its transaction has waited for a slot, a lock or a server.
#[derive(Clone)]
pub struct Reselection {
    automation: ImageUpdateAutomation,
    policies: PolicyReader,
    /// The policies of the last selection.
    seen: Vec<Arc<ImagePolicy>>,
    /// True if the members of release groups are held while they have different values.
    holds_groups: bool,
}

impl Reselection {
    /// Makes a reselection for an automation whose first selection was made from the policies `seen`.
    pub fn new(
        automation: ImageUpdateAutomation,
        policies: PolicyReader,
        seen: Vec<Arc<ImagePolicy>>,
    ) -> Self {
        Self { automation, policies, seen, holds_groups: true }
    }

    /// Ignores release groups, as another controller does.
    #[must_use]
    pub fn ignoring_groups(self) -> Self {
        Self { holds_groups: false, ..self }
    }

    /// Selects again; returns nothing if no policy has changed since the last selection.
    ///
    /// # Errors
    ///
    /// If the automation's spec cannot be reconciled.
    pub fn select(&mut self) -> Result<Option<Request>, RequestError> {
        let now = (self.policies)();
        let is_same = |(old, new): (&Arc<ImagePolicy>, &Arc<ImagePolicy>)| Arc::ptr_eq(old, new);
        if now.len() == self.seen.len() && self.seen.iter().zip(&now).all(is_same) {
            return Ok(None);
        }
        self.seen = now;
        let (policies, given) = (self.seen.iter().map(Arc::as_ref), ImageOverrides::new());
        let mut request = request::of_automation(&self.automation, policies.clone(), &given)?;
        if self.holds_groups {
            request.hold_groups(&self.automation, policies, &given);
        }
        Ok(Some(request))
    }
}

impl Reselection {
    /// Returns the policies of the last selection.
    pub fn policies(&self) -> &[Arc<ImagePolicy>] {
        &self.seen
    }
}

impl fmt::Debug for Reselection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reselection").field("seen", &self.seen.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;

    fn policy(tag: &str) -> Arc<ImagePolicy> {
        let policy = json!({
            "metadata": {"namespace": "n", "name": "p"},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {"alphabetical": {}}},
            "status": {"latestRef": {"name": "registry/app", "tag": tag}},
        });
        Arc::new(serde_json::from_value(policy).unwrap())
    }

    #[test]
    fn images_are_selected_again_only_if_a_policy_has_changed() {
        let automation = json!({
            "metadata": {"namespace": "n", "name": "a"},
            "spec": {
                "interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"},
                "update": {"strategy": "Setters"},
            },
        });
        let first = policy("1.0.0");
        let current = Arc::new(Mutex::new(vec![Arc::clone(&first)]));
        let reader = Arc::clone(&current);
        let mut reselection = Reselection::new(
            serde_json::from_value(automation).unwrap(),
            Arc::new(move || reader.lock().unwrap().clone()),
            vec![first],
        );
        assert!(reselection.select().unwrap().is_none());
        *current.lock().unwrap() = vec![policy("1.1.0")];
        let request = reselection.select().unwrap().expect("the policy has changed");
        let images: Vec<String> =
            request.update.setters.images().map(|(_, image)| image.to_string()).collect();
        assert_eq!(images, ["registry/app:1.1.0"]);
        assert!(reselection.select().unwrap().is_none());
    }
}
