//! State of a run: statuses of repositories and policies from earlier runs.
//! They are of the same types as in a cluster.

use std::path::PathBuf;

use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{ImagePolicy, ImageRef, ImageRepository};

use crate::objects::manifests::{LoadResult, StateDirectory, StateError};

/// A policy with its status at the start of the run.
#[derive(Debug)]
pub(super) struct KnownPolicy {
    /// The policy.
    pub(super) policy: ImagePolicy,
    /// The origin of its image, if it has one.
    pub(super) origin: Origin,
    /// The state file of the policy, if it is corrupt.
    pub(super) damage: Option<PathBuf>,
}

impl KnownPolicy {
    /// Returns the image that an earlier run chose.
    pub(super) fn image(&self) -> Option<ImageRef> {
        let status = self.policy.status.as_ref().filter(|_| self.origin == Origin::State)?;
        status.latest_ref.clone()
    }
}

/// The origin of the image that a policy has before it chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An earlier run chose it.
    State,
    /// Its manifest has it.
    ///
    /// The fleet may have a later image, so it does not count without a choice.
    Manifest,
}

/// The state of a run, if it has one.
#[derive(Debug)]
pub(super) struct RunState {
    state: Option<StateDirectory>,
    is_dry_run: bool,
}

impl RunState {
    /// Creates the state of a run; a dry run saves nothing.
    pub(super) fn new(state: Option<StateDirectory>, is_dry_run: bool) -> Self {
        Self { state, is_dry_run }
    }

    /// Returns a repository with its status after the previous run.
    ///
    /// The status of the manifest does not count: its tags are not in the store.
    pub(super) fn repository(&self, manifest: &ImageRepository) -> Result<ImageRepository, StateError> {
        let mut repository = ImageRepository { status: None, ..manifest.clone() };
        repository.metadata.generation = Some(1);
        if let Some(state) = &self.state {
            state.load_repository(&mut repository)?;
        }
        Ok(repository)
    }

    /// Returns a policy with its previous status, or else with that of its manifest.
    pub(super) fn policy(&self, manifest: &ImagePolicy) -> Result<KnownPolicy, StateError> {
        let mut policy = ImagePolicy { status: None, ..manifest.clone() };
        policy.metadata.generation = Some(1);
        let result = match &self.state {
            Some(state) => state.load_policy(&mut policy)?,
            None => LoadResult::Missing,
        };
        let has_image = policy.status.as_ref().is_some_and(|status| status.latest_ref.is_some());
        let (is_known, damage) = match result {
            LoadResult::Missing => (false, None),
            LoadResult::Loaded => (true, None),
            LoadResult::Corrupt(path) => (false, Some(path)),
        };
        let origin = if is_known && has_image { Origin::State } else { Origin::Manifest };
        if origin == Origin::Manifest {
            policy.status = seed(manifest).or(policy.status);
        }
        Ok(KnownPolicy { policy, origin, damage })
    }

    /// Returns true if the user changed the repository of a policy since it last chose.
    pub(super) fn intent_changed(
        &self,
        policy: &ImagePolicy,
        repository: &ImageRepository,
    ) -> Result<bool, StateError> {
        self.state.as_ref().map_or(Ok(false), |state| state.intent_changed(policy, repository))
    }

    /// Returns true if there is a state.
    pub(super) fn is_lasting(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the directory to save statuses in, unless this is a dry run.
    pub(super) fn writable(&self) -> Option<&StateDirectory> {
        self.state.as_ref().filter(|_| !self.is_dry_run)
    }
}

/// Returns the status of a manifest, for the current generation unless it states another one.
fn seed(manifest: &ImagePolicy) -> Option<ImagePolicyStatus> {
    let status = manifest.status.clone().filter(|status| status.latest_ref.is_some())?;
    let is_other = manifest
        .metadata
        .generation
        .zip(status.observed_generation)
        .is_some_and(|(generation, observed)| generation != observed);
    Some(ImagePolicyStatus { observed_generation: Some(1).filter(|_| !is_other), ..status })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(metadata: &Value, status: &Value) -> ImagePolicy {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "p"},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {"semver": {"range": "*"}}},
            "status": status,
        });
        whole["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn the_image_of_a_manifest_counts_until_the_state_has_one() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(directory.path());
        let run_state = RunState::new(Some(state.clone()), false);
        let latest = |run_state: &RunState, policy: &ImagePolicy| {
            let status = run_state.policy(policy).unwrap().policy.status;
            status.and_then(|status| status.latest_ref).map(|latest| latest.to_string())
        };
        let manifest = policy(&json!({}), &json!({"latestRef": {"name": "i", "tag": "1"}}));
        assert_eq!(latest(&run_state, &manifest).as_deref(), Some("i:1"));
        state.save_policy(&manifest, &ImagePolicyStatus::default()).unwrap();
        assert_eq!(latest(&run_state, &manifest).as_deref(), Some("i:1"));
        let status = ImagePolicyStatus { latest_ref: Some("i:2".parse().unwrap()), ..Default::default() };
        assert!(RunState::new(Some(state), true).writable().is_none());
        assert_eq!(latest(&run_state, &manifest).as_deref(), Some("i:1"));
        run_state.writable().unwrap().save_policy(&manifest, &status).unwrap();
        assert_eq!(latest(&run_state, &manifest).as_deref(), Some("i:2"));
        assert_eq!(latest(&RunState::new(None, false), &manifest).as_deref(), Some("i:1"));
        assert_eq!(latest(&run_state, &policy(&json!({"name": "q"}), &json!({}))), None);
    }

    #[test]
    fn the_status_of_a_manifest_is_that_of_its_generation() {
        let latest = json!({"name": "i", "tag": "1"});
        let run_state = RunState::new(None, false);
        for (metadata, status, observed) in [
            (json!({}), json!({"latestRef": latest}), Some(1)),
            (json!({"generation": 7}), json!({"latestRef": latest, "observedGeneration": 7}), Some(1)),
            (json!({"generation": 8}), json!({"latestRef": latest, "observedGeneration": 7}), None),
        ] {
            let known = run_state.policy(&policy(&metadata, &status)).unwrap().policy;
            assert_eq!(known.metadata.generation, Some(1));
            assert_eq!(known.status.unwrap().observed_generation, observed);
        }
    }

    #[test]
    fn settings_change_the_intent_and_other_annotations_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(directory.path());
        let run_state = RunState::new(Some(state), false);
        let repository = |image: &str, annotation: &str| -> ImageRepository {
            serde_json::from_value(json!({
                "metadata": {"namespace": "n", "name": "r", "annotations": {annotation: "x"}},
                "spec": {"image": image, "interval": "1m"},
            }))
            .unwrap()
        };
        let policy = policy(&json!({}), &json!(null));
        let known = repository("i", "other");
        assert!(!run_state.intent_changed(&policy, &known).unwrap());
        let saved = run_state.writable().unwrap();
        saved.save_intent(&policy, &known).unwrap();
        for (image, annotation, expected) in [
            ("i", "other", false),
            ("i", "another", false),
            ("j", "other", true),
            ("i", "tagboat.dev/x", true),
        ] {
            let now = repository(image, annotation);
            assert_eq!(run_state.intent_changed(&policy, &now).unwrap(), expected, "{image} {annotation}");
        }
        saved.save_repository(&known, &Default::default()).unwrap();
        let generation = |image, annotation| {
            run_state.repository(&repository(image, annotation)).unwrap().metadata.generation
        };
        assert_eq!((generation("i", "another"), generation("j", "other")), (Some(1), Some(2)));
    }
}
