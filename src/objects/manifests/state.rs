//! What a cluster would remember of objects: their generation and their status.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::repository::ImageRepositoryStatus;
use tagboat_api::settings::PREFIX;
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation};

use crate::policy::{PolicyWishes, RepositoryWishes};

/// A directory that keeps objects as a cluster would: one JSON file each, `objects/KIND/NAMESPACE/NAME.json`.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    root: PathBuf,
}

/// Why the state could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {deed} the state in {}{}", root.display(), Place { root, culprit })]
pub struct StateError {
    /// `read` or `keep`.
    deed: &'static str,
    /// The state directory as it was given.
    root: PathBuf,
    /// The file or directory that is in the way.
    culprit: PathBuf,
    /// Why.
    #[source]
    cause: io::Error,
}

/// Prints what is in the way, where that is not the whole directory.
struct Place<'a> {
    root: &'a Path,
    culprit: &'a Path,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.culprit.strip_prefix(self.root).unwrap_or(self.culprit);
        if place.as_os_str().is_empty() { Ok(()) } else { write!(formatter, ": {}", place.display()) }
    }
}

impl StateDirectory {
    /// The state in `root`, which is made when something is written.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Gives an automation the generation and the status that it has here, as an API server would: the generation
    /// rises when the spec or an annotation has changed.
    ///
    /// # Errors
    ///
    /// When what is here cannot be read.
    pub fn recall(&self, automation: &mut ImageUpdateAutomation) -> Result<(), StateError> {
        self.recall_object(automation, |known, now| {
            known.spec == now.spec && known.annotations() == now.annotations()
        })?;
        Ok(())
    }

    /// The same for an image repository, of whose annotations only our settings count. Says whether it is known here.
    ///
    /// # Errors
    ///
    /// When what is here cannot be read.
    pub fn recall_repository(&self, repository: &mut ImageRepository) -> Result<bool, StateError> {
        self.recall_object(repository, |known, now| {
            known.spec == now.spec && settings(known) == settings(now)
        })
    }

    /// The same for a policy, whose generation rises only with what bears on its choice: no person's wish is behind a
    /// lower image because somebody let it rest. Says whether it is known here.
    ///
    /// # Errors
    ///
    /// When what is here cannot be read.
    pub fn recall_policy(&self, policy: &mut ImagePolicy) -> Result<bool, StateError> {
        self.recall_object(policy, |known, now| PolicyWishes::of(known) == PolicyWishes::of(now))
    }

    /// Keeps an automation with a new status.
    ///
    /// # Errors
    ///
    /// When it cannot be written; what was here before is still here then.
    pub fn keep(
        &self,
        automation: &ImageUpdateAutomation,
        status: &ImageUpdateAutomationStatus,
    ) -> Result<(), StateError> {
        self.keep_object(&ImageUpdateAutomation { status: Some(status.clone()), ..automation.clone() })
    }

    /// The same for an image repository.
    ///
    /// # Errors
    ///
    /// When it cannot be written; what was here before is still here then.
    pub fn keep_repository(
        &self,
        repository: &ImageRepository,
        status: &ImageRepositoryStatus,
    ) -> Result<(), StateError> {
        self.keep_object(&ImageRepository { status: Some(status.clone()), ..repository.clone() })
    }

    /// The same for a policy.
    ///
    /// # Errors
    ///
    /// When it cannot be written; what was here before is still here then.
    pub fn keep_policy(&self, policy: &ImagePolicy, status: &ImagePolicyStatus) -> Result<(), StateError> {
        self.keep_object(&ImagePolicy { status: Some(status.clone()), ..policy.clone() })
    }

    /// Whether persons have wanted a policy's repository to be another than [`StateDirectory::keep_wishes`] was last
    /// told; of what nobody told, nobody knows.
    ///
    /// # Errors
    ///
    /// When what is here cannot be read.
    pub fn has_other_wishes(
        &self,
        policy: &ImagePolicy,
        repository: &ImageRepository,
    ) -> Result<bool, StateError> {
        let place = self.place(WISHES, policy);
        let failed = |cause| self.failed("read", &place, cause);
        match fs::read(&place) {
            Ok(known) => {
                let wishes = wishes(repository).map_err(failed)?;
                // A file that was cut off is no word of any person's.
                let is_whole = known.len() == wishes.len() && known.iter().all(u8::is_ascii_hexdigit);
                Ok(is_whole && known != wishes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Keeps in mind with which repository a policy chose: what bears on its tags, as far as that tells it from others.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep_wishes(&self, policy: &ImagePolicy, repository: &ImageRepository) -> Result<(), StateError> {
        let place = self.place(WISHES, policy);
        let content = wishes(repository).map_err(|cause| self.failed("keep", &place, cause))?;
        self.write(&place, &content)
    }

    /// The directory of the tags that were found.
    pub fn tags(&self) -> PathBuf {
        self.root.join("tags")
    }

    fn recall_object<K>(
        &self,
        object: &mut K,
        is_same: impl FnOnce(&K, &K) -> bool,
    ) -> Result<bool, StateError>
    where
        K: Resource<DynamicType = ()> + HasStatus + DeserializeOwned,
    {
        *object.status_mut() = None;
        object.meta_mut().generation = Some(1);
        let Some(mut known) = self.read::<K>(&self.place(&K::kind(&()), object))? else {
            return Ok(false);
        };
        let is_same = is_same(&known, object);
        let generation = known.meta().generation.unwrap_or(1);
        object.meta_mut().generation = Some(if is_same { generation } else { generation + 1 });
        *object.status_mut() = known.status_mut().take();
        Ok(true)
    }

    fn keep_object<K: Resource<DynamicType = ()> + Serialize>(&self, object: &K) -> Result<(), StateError> {
        let place = self.place(&K::kind(&()), object);
        let content =
            serde_json::to_vec_pretty(object).map_err(|error| self.failed("keep", &place, error.into()))?;
        self.write(&place, &content)
    }

    /// Holds the state, so that nobody else writes between a reading and the writing that follows from it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or locked.
    pub fn lock(&self) -> Result<File, StateError> {
        let place = self.root.join("objects/lock");
        let lock = || {
            private_folder(&self.root.join("objects"))?;
            let lock = File::create(&place)?;
            lock.lock()?;
            Ok(lock)
        };
        lock().map_err(|cause| self.failed("keep", &place, cause))
    }

    /// Whether an automation or its source is another than [`StateDirectory::keep_success`] was last told.
    ///
    /// # Errors
    ///
    /// When what is here cannot be read.
    pub fn is_new(
        &self,
        automation: &ImageUpdateAutomation,
        source: &GitRepository,
    ) -> Result<bool, StateError> {
        let place = self.place(SUCCESSES, automation);
        let failed = |cause| self.failed("read", &place, cause);
        match fs::read(&place) {
            Ok(known) => Ok(known != fingerprint(automation, source).map_err(failed)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(failed(error)),
        }
    }

    /// Keeps in mind with which spec, annotations and source a run succeeded; one that stalled has looked at nothing.
    /// The URL may hold a password, so only what tells all of it from others is kept.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep_success(
        &self,
        automation: &ImageUpdateAutomation,
        source: &GitRepository,
    ) -> Result<(), StateError> {
        let place = self.place(SUCCESSES, automation);
        let content = fingerprint(automation, source).map_err(|cause| self.failed("keep", &place, cause))?;
        self.write(&place, &content)
    }

    fn place(&self, kind: &str, object: &impl ResourceExt) -> PathBuf {
        let namespace = file_name(&object.namespace().unwrap_or_default());
        let name = format!("{}.json", file_name(&object.name_any()));
        self.root.join("objects").join(kind).join(namespace).join(name)
    }

    /// Reads an object; one that cannot be understood counts as none, for it can be written anew.
    fn read<T: DeserializeOwned>(&self, place: &Path) -> Result<Option<T>, StateError> {
        match fs::read(place) {
            Ok(content) => {
                let value = serde_json::from_slice::<Value>(&content);
                let object = value.ok().and_then(|value| serde_json::from_value(value).ok());
                if object.is_none() {
                    tracing::warn!(
                        "the state in {} is damaged, so what was known there is forgotten",
                        place.display()
                    );
                }
                Ok(object)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", place, error)),
        }
    }

    /// Replaces a file, wholly or not at all; whoever writes holds the lock, so that the other file is nobody else's.
    fn write(&self, place: &Path, content: &[u8]) -> Result<(), StateError> {
        let folder = place.parent().unwrap_or(place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        // No object's file begins with a dot.
        let new = folder.join(format!(".new-{name}"));
        let replace = || {
            private_folder(folder)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(content)?;
            fs::rename(&new, place)
        };
        replace().map_err(|cause| {
            // What cannot be removed either is overwritten by the next who writes.
            let _ = fs::remove_file(&new);
            self.failed("keep", place, cause)
        })
    }

    /// A failure at `place`, which is put down to as much of that path as there is.
    fn failed(&self, deed: &'static str, place: &Path, cause: io::Error) -> StateError {
        let culprit = place.ancestors().find(|path| fs::symlink_metadata(path).is_ok());
        // A relative path ends in an empty one, which stands for the current directory.
        let culprit = culprit.unwrap_or(&self.root).to_owned();
        StateError { deed, root: self.root.clone(), culprit, cause }
    }
}

/// Makes a folder that only we can read: conditions quote what servers say.
fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// What stands in the place of a kind for what runs succeeded with.
const SUCCESSES: &str = "successes";

/// The same for what policies chose with.
const WISHES: &str = "wishes";

/// What tells an automation and its source from others.
fn fingerprint(automation: &ImageUpdateAutomation, source: &GitRepository) -> io::Result<Vec<u8>> {
    let source = (source.namespace(), source.name_any(), &source.spec);
    hash(&(&automation.spec, automation.annotations(), source))
}

/// What tells an image repository from others, as far as persons have a say in it.
fn wishes(repository: &ImageRepository) -> io::Result<Vec<u8>> {
    hash(&(repository.namespace(), repository.name_any(), RepositoryWishes::of(repository)))
}

/// The annotations of an object that are settings of ours.
fn settings(object: &impl ResourceExt) -> Vec<(&String, &String)> {
    object.annotations().iter().filter(|(name, _)| name.starts_with(PREFIX)).collect()
}

fn hash(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let content = serde_json::to_vec(content)?;
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, &content).map_err(io::Error::other)?;
    Ok(id.to_string().into_bytes())
}

/// A name as a file's: what a cluster would not take for a name cannot lead elsewhere.
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
            state.recall(&mut object).unwrap();
            generations.push((object.metadata.generation.unwrap(), object.status.is_some()));
            state.keep(&object, &status).unwrap();
        }
        assert_eq!(generations, [(1, false), (1, true), (2, true), (3, true), (3, true)]);
        let places: Vec<_> =
            fs::read_dir(root.path().join("objects/ImageUpdateAutomation/n")).unwrap().collect();
        assert_eq!(places.len(), 1);
    }

    #[test]
    fn a_source_is_known_again_by_name_and_spec_without_being_kept() {
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
        assert!(state.is_new(&automation, &known).unwrap());
        state.keep_success(&automation, &known).unwrap();
        assert!(!state.is_new(&automation, &known).unwrap());
        for other in [source("s", "https://bot:hunter2@git.example/r"), source("r", "https://git.example/r")]
        {
            assert!(state.is_new(&automation, &other).unwrap(), "{other:?}");
        }
        let kept = fs::read_to_string(state.place(SUCCESSES, &automation)).unwrap();
        assert!(!kept.contains("hunter2"), "{kept}");
    }

    #[test]
    fn a_state_that_cannot_be_understood_is_made_anew() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let mut object = automation("a", "1");
        state.keep(&object, &ImageUpdateAutomationStatus::default()).unwrap();
        let place = state.place("ImageUpdateAutomation", &object);
        fs::write(&place, "{").unwrap();
        state.recall(&mut object).unwrap();
        assert_eq!((object.metadata.generation, object.status), (Some(1), None));
    }

    #[test]
    fn a_state_is_nobody_elses_to_read() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(&root.path().join("state"));
        let object = automation("a", "1");
        state.keep(&object, &ImageUpdateAutomationStatus::default()).unwrap();
        let place = state.place("ImageUpdateAutomation", &object);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o600);
        for folder in place.ancestors().skip(1).take_while(|folder| *folder != root.path()) {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
    }

    #[test]
    fn what_is_in_the_way_of_the_state_is_named_and_nothing_temporary() {
        use crate::sentence::chain;
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let status = ImageUpdateAutomationStatus::default();
        let mut object = automation("a", "1");
        let name = "objects/ImageUpdateAutomation/n/%2e.%2fa.json";

        fs::write(at("file"), "").unwrap();
        let (whole, below) = (at("file"), at("file/state"));
        for (state, place) in [(&whole, String::new()), (&below, format!(": {}", whole.display()))] {
            let state_directory = StateDirectory::new(state);
            let words = |deed: &str| {
                format!(
                    "cannot {deed} the state in {}{place}: Not a directory (os error 20)",
                    state.display()
                )
            };
            assert_eq!(chain(&state_directory.recall(&mut object).unwrap_err()), words("read"));
            assert_eq!(chain(&state_directory.lock().unwrap_err()), words("keep"));
            assert_eq!(chain(&state_directory.keep(&object, &status).unwrap_err()), words("keep"));
        }

        fs::create_dir_all(at("state").join(name)).unwrap();
        let state = StateDirectory::new(&at("state"));
        let words = |deed: &str| {
            format!(
                "cannot {deed} the state in {}: {name}: Is a directory (os error 21)",
                at("state").display()
            )
        };
        assert_eq!(chain(&state.recall(&mut object).unwrap_err()), words("read"));
        assert_eq!(chain(&state.keep(&object, &status).unwrap_err()), words("keep"));
        assert_eq!(fs::read_dir(at("state/objects/ImageUpdateAutomation/n")).unwrap().count(), 1);
    }
}
