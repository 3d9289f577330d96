//! The state directory: stores the generations and statuses of objects, as a cluster would.
//!
//! | file | contents |
//! |---|---|
//! | `file` | the files of objects, replaced atomically |
//! | `fingerprint` | fingerprints of objects whose content is not stored, because a URL may hold a password |
//! | `destination` | the repository and branch of the last run of an automation |
//! | `lock` | the lock: one run at a time |
//! | `error` | the errors, with the file |

mod destination;
mod error;
mod file;
mod fingerprint;
mod lock;

use std::io;
use std::path::{Path, PathBuf};

use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::repository::ImageRepositoryStatus;
use tagboat_api::settings::{AutomationSettings, OnRevert, own_annotations};
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation};

use crate::policy::PolicyIntent;
use file::Stored;
use fingerprint::{fingerprint, intent};

pub use destination::Destination;
pub use error::StateError;
pub use lock::{StateAccess, StateLock};

/// A directory that stores objects as a cluster would.
///
/// Each object has a JSON file, `objects/KIND/NAMESPACE/NAME.json`.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    root: PathBuf,
}

/// The result of loading an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadResult {
    /// There is no file.
    Missing,
    /// The object has its stored generation and status now.
    Loaded,
    /// A file with invalid content.
    Corrupt(PathBuf),
}

impl StateDirectory {
    /// Makes a state in `root`, which is created on the first write.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Sets the stored generation and status of an automation, as an API server would.
    ///
    /// The generation increases if the spec or an annotation changed.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is damaged and has what the automation's settings compare with.
    pub fn load_automation(&self, automation: &mut ImageUpdateAutomation) -> Result<(), StateError> {
        let result = self.load_object(automation, |known, now| {
            known.spec == now.spec && known.annotations() == now.annotations()
        })?;
        if let LoadResult::Corrupt(path) = &result
            && compares_with_last_run(automation)
        {
            let cause = "it is damaged, and has what tagboat.dev/on-revert holds and quiet periods delay: restore the file, \
                         or remove it to start as a first run does";
            return Err(StateError {
                operation: "use",
                root: self.root.clone(),
                path: path.clone(),
                cause: io::Error::new(io::ErrorKind::InvalidData, cause),
            });
        }
        warn_of_corruption(&result);
        Ok(())
    }

    /// Sets the stored generation and status of an image repository.
    ///
    /// Of its annotations only our settings count for the generation.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn load_repository(&self, repository: &mut ImageRepository) -> Result<(), StateError> {
        let result = self.load_object(repository, |known, now| {
            known.spec == now.spec
                && own_annotations(known.annotations()).eq(own_annotations(now.annotations()))
        })?;
        warn_of_corruption(&result);
        Ok(())
    }

    /// Sets the stored generation and status of a policy.
    ///
    /// Its generation increases only with fields that affect the choice: to suspend a policy must not permit a
    /// downgrade. Unlike other kinds, damaged state is returned to the caller, because it cannot be rebuilt: it holds
    /// the image below which downgrade protection does not go.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn load_policy(&self, policy: &mut ImagePolicy) -> Result<LoadResult, StateError> {
        self.load_object(policy, |known, now| PolicyIntent::of(known) == PolicyIntent::of(now))
    }

    /// Saves an automation with a new status.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the old file remains then.
    pub fn save_automation(
        &self,
        automation: &ImageUpdateAutomation,
        status: &ImageUpdateAutomationStatus,
    ) -> Result<(), StateError> {
        self.save_object(&ImageUpdateAutomation { status: Some(status.clone()), ..automation.clone() })
    }

    /// Saves an image repository with a new status.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the old file remains then.
    pub fn save_repository(
        &self,
        repository: &ImageRepository,
        status: &ImageRepositoryStatus,
    ) -> Result<(), StateError> {
        self.save_object(&ImageRepository { status: Some(status.clone()), ..repository.clone() })
    }

    /// Saves a policy with a new status.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the old file remains then.
    pub fn save_policy(&self, policy: &ImagePolicy, status: &ImagePolicyStatus) -> Result<(), StateError> {
        self.save_object(&ImagePolicy { status: Some(status.clone()), ..policy.clone() })
    }

    /// Returns whether the user changed a policy's repository since [`StateDirectory::save_intent`].
    ///
    /// Returns false if nothing is stored.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn intent_changed(
        &self,
        policy: &ImagePolicy,
        repository: &ImageRepository,
    ) -> Result<bool, StateError> {
        let intent = intent(repository);
        // A truncated file does not show a change.
        let is_complete =
            |known: &Vec<u8>| known.len() == intent.len() && known.iter().all(u8::is_ascii_hexdigit);
        let known = self.read_bytes(&self.path_of(INTENT, policy))?.filter(is_complete);
        Ok(known.is_some_and(|known| known != intent))
    }

    /// Saves a fingerprint of the repository fields that affect a policy's tags.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save_intent(&self, policy: &ImagePolicy, repository: &ImageRepository) -> Result<(), StateError> {
        self.write(&self.path_of(INTENT, policy), &intent(repository))
    }

    /// Returns the directory of the stored tags.
    pub fn tags(&self) -> PathBuf {
        self.root.join("tags")
    }

    fn load_object<K>(
        &self,
        object: &mut K,
        is_same: impl FnOnce(&K, &K) -> bool,
    ) -> Result<LoadResult, StateError>
    where
        K: Resource<DynamicType = ()> + HasStatus + DeserializeOwned,
    {
        *object.status_mut() = None;
        object.meta_mut().generation = Some(1);
        let path = self.path_of(&K::kind(&()), object);
        let mut known = match self.read::<K>(&path)? {
            Stored::Missing => return Ok(LoadResult::Missing),
            Stored::Corrupt => return Ok(LoadResult::Corrupt(path)),
            Stored::Valid(known) => known,
        };
        let is_same = is_same(&known, object);
        let generation = known.meta().generation.unwrap_or(1);
        object.meta_mut().generation = Some(if is_same { generation } else { generation + 1 });
        *object.status_mut() = known.status_mut().take();
        Ok(LoadResult::Loaded)
    }

    fn save_object<K: Resource<DynamicType = ()> + Serialize>(&self, object: &K) -> Result<(), StateError> {
        let content = serde_json::to_vec_pretty(object).expect("an object is plain JSON");
        self.write(&self.path_of(&K::kind(&()), object), &content)
    }

    /// Returns whether an automation or its source changed since [`StateDirectory::save_success`].
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn has_changed(
        &self,
        automation: &ImageUpdateAutomation,
        source: &GitRepository,
    ) -> Result<bool, StateError> {
        let known = self.read_bytes(&self.path_of(SUCCESSES, automation))?;
        Ok(known.is_none_or(|known| known != fingerprint(automation, source)))
    }

    /// Saves a fingerprint of the spec, annotations and source of a successful run.
    ///
    /// A stalled run has examined nothing. The URL may hold a password, so only a fingerprint is stored.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save_success(
        &self,
        automation: &ImageUpdateAutomation,
        source: &GitRepository,
    ) -> Result<(), StateError> {
        self.write(&self.path_of(SUCCESSES, automation), &fingerprint(automation, source))
    }

    fn path_of(&self, kind: &str, object: &impl ResourceExt) -> PathBuf {
        let namespace = file_name(&object.namespace().unwrap_or_default());
        let name = format!("{}.json", file_name(&object.name_any()));
        self.root.join("objects").join(kind).join(namespace).join(name)
    }
}

/// The directory of fingerprints of successful runs; it replaces the directory of a kind.
const SUCCESSES: &str = "successes";

/// The directory of fingerprints of repositories with which policies chose.
const INTENT: &str = "intent";

/// Returns true if an automation holds or delays images by its last run.
fn compares_with_last_run(automation: &ImageUpdateAutomation) -> bool {
    AutomationSettings::from_annotations(automation.annotations()).is_ok_and(|settings| {
        settings.on_revert != OnRevert::Overwrite || !settings.quiet_period.duration().is_zero()
    })
}

/// Logs that a stored object is damaged; it can be rebuilt.
fn warn_of_corruption(result: &LoadResult) {
    if let LoadResult::Corrupt(path) = result {
        tracing::warn!("the state in {} is damaged and is discarded", path.display());
    }
}

/// Encodes a name as a file name, so that it cannot lead to another directory.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let mut text = String::new();
    for (index, c) in name.chars().enumerate() {
        if is_plain(c) && !(index == 0 && c == '.') {
            text.push(c);
        } else {
            text.extend(c.to_string().bytes().map(|byte| format!("%{byte:02x}")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn automation(path: &str, annotation: &str) -> ImageUpdateAutomation {
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "n", "name": "../a", "annotations": {"a": annotation}},
            "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}, "update": {"path": path}},
        }))
        .unwrap()
    }

    #[test]
    fn a_changed_spec_or_annotation_is_a_new_generation() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let status =
            ImageUpdateAutomationStatus { last_push_commit: Some("c".to_owned()), ..Default::default() };
        let mut generations = Vec::new();
        for (path, annotation) in [("a", "1"), ("a", "1"), ("b", "1"), ("b", "2"), ("b", "2")] {
            let mut object = automation(path, annotation);
            state.load_automation(&mut object).unwrap();
            generations.push((object.metadata.generation.unwrap(), object.status.is_some()));
            state.save_automation(&object, &status).unwrap();
        }
        assert_eq!(generations, [(1, false), (1, true), (2, true), (3, true), (3, true)]);
        let places: Vec<_> =
            fs::read_dir(root.path().join("objects/ImageUpdateAutomation/n")).unwrap().collect();
        assert_eq!(places.len(), 1);
    }

    #[test]
    fn a_source_is_recognized_by_name_and_spec_without_storing_them() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let source = |name: &str, url: &str| -> GitRepository {
            serde_json::from_value(json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1",
                "kind": "GitRepository",
                "metadata": {"namespace": "n", "name": name},
                "spec": {"interval": "1m", "url": url},
            }))
            .unwrap()
        };
        let automation = automation("a", "1");
        let known = source("r", "https://bot:hunter2@git.example/r");
        assert!(state.has_changed(&automation, &known).unwrap());
        state.save_success(&automation, &known).unwrap();
        assert!(!state.has_changed(&automation, &known).unwrap());
        for other in [source("s", "https://bot:hunter2@git.example/r"), source("r", "https://git.example/r")]
        {
            assert!(state.has_changed(&automation, &other).unwrap(), "{other:?}");
        }
        let kept = fs::read_to_string(state.path_of(SUCCESSES, &automation)).unwrap();
        assert!(!kept.contains("hunter2"), "{kept}");
    }

    #[test]
    fn an_unreadable_state_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let mut object = automation("a", "1");
        state.save_automation(&object, &ImageUpdateAutomationStatus::default()).unwrap();
        let path = state.path_of("ImageUpdateAutomation", &object);
        fs::write(&path, "{").unwrap();
        state.load_automation(&mut object).unwrap();
        assert_eq!((object.metadata.generation, object.status), (Some(1), None));
    }

    #[test]
    fn an_unchanged_status_is_not_written_again() {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let object = automation("a", "1");
        let path = state.path_of("ImageUpdateAutomation", &object);
        let (before, status) = (ImageUpdateAutomationStatus::default(), |commit: &str| {
            ImageUpdateAutomationStatus { last_push_commit: Some(commit.to_owned()), ..Default::default() }
        });
        let mut files = Vec::new();
        // Each write replaces the file, so that a reader still has the complete old one.
        for status in [before, status("a"), status("a"), status("b")] {
            state.save_automation(&object, &status).unwrap();
            files.push(fs::File::open(&path).unwrap());
        }
        let numbers: Vec<u64> = files.iter().map(|file| file.metadata().unwrap().ino()).collect();
        assert!(
            numbers[1] == numbers[2] && numbers[0] != numbers[1] && numbers[2] != numbers[3],
            "{numbers:?}"
        );
        assert!(fs::read_to_string(&path).unwrap().contains("\"b\""));
    }

    #[test]
    fn only_the_owner_can_read_the_state() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(&root.path().join("state"));
        let object = automation("a", "1");
        state.save_automation(&object, &ImageUpdateAutomationStatus::default()).unwrap();
        let path = state.path_of("ImageUpdateAutomation", &object);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != root.path()) {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
    }

    #[test]
    fn errors_of_the_state_name_the_blocking_path_and_no_temporary_file() {
        use crate::error::chain;
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let status = ImageUpdateAutomationStatus::default();
        let mut object = automation("a", "1");
        let name = "objects/ImageUpdateAutomation/n/%2e.%2fa.json";

        fs::write(at("file"), "").unwrap();
        let (whole, below) = (at("file"), at("file/state"));
        for (state, path) in [(&whole, String::new()), (&below, format!(": {}", whole.display()))] {
            let state_directory = StateDirectory::new(state);
            let message = |operation: &str| {
                format!(
                    "cannot {operation} the state in {}{path}: Not a directory (os error 20)",
                    state.display()
                )
            };
            assert_eq!(chain(&state_directory.load_automation(&mut object).unwrap_err()), message("read"));
            for access in [StateAccess::ReadWrite, StateAccess::ReadOnly] {
                assert_eq!(chain(&state_directory.try_lock(access).unwrap_err()), message("read"));
            }
            assert_eq!(
                chain(&state_directory.save_automation(&object, &status).unwrap_err()),
                message("save")
            );
        }

        fs::create_dir_all(at("state").join(name)).unwrap();
        let state = StateDirectory::new(&at("state"));
        let message = |operation: &str| {
            format!(
                "cannot {operation} the state in {}: {name}: Is a directory (os error 21)",
                at("state").display()
            )
        };
        assert_eq!(chain(&state.load_automation(&mut object).unwrap_err()), message("read"));
        assert_eq!(chain(&state.save_automation(&object, &status).unwrap_err()), message("save"));
        assert_eq!(fs::read_dir(at("state/objects/ImageUpdateAutomation/n")).unwrap().count(), 1);
    }
}
