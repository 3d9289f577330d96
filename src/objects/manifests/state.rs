//! What a cluster would remember of objects: their generation and their status.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kube::ResourceExt;
use serde_json::Value;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{GitRepository, ImageUpdateAutomation};

/// A directory that keeps objects as a cluster would: one JSON file each, `objects/KIND/NAMESPACE/NAME.json`.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    root: PathBuf,
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
    pub fn recall(&self, automation: &mut ImageUpdateAutomation) -> io::Result<()> {
        automation.status = None;
        automation.metadata.generation = Some(1);
        let Some(known) = self.read::<ImageUpdateAutomation>(&self.place(KIND, automation))? else {
            return Ok(());
        };
        let is_same = known.spec == automation.spec && known.annotations() == automation.annotations();
        let generation = known.metadata.generation.unwrap_or(1);
        automation.metadata.generation = Some(if is_same { generation } else { generation + 1 });
        automation.status = known.status;
        Ok(())
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
    ) -> io::Result<()> {
        let object = ImageUpdateAutomation { status: Some(status.clone()), ..automation.clone() };
        write(&self.place(KIND, automation), &serde_json::to_vec_pretty(&object)?)
    }

    /// Holds the state, so that nobody else writes between a reading and the writing that follows from it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or locked.
    pub fn lock(&self) -> io::Result<File> {
        fs::create_dir_all(self.root.join("objects"))?;
        let lock = File::create(self.root.join("objects/lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Whether an automation or its source is another than [`StateDirectory::keep_success`] was last told.
    ///
    /// # Errors
    ///
    /// When what is here cannot be read.
    pub fn is_new(&self, automation: &ImageUpdateAutomation, source: &GitRepository) -> io::Result<bool> {
        match fs::read(self.place(SUCCESSES, automation)) {
            Ok(known) => Ok(known != fingerprint(automation, source)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Keeps in mind with which spec, annotations and source a run succeeded; one that stalled has looked at nothing.
    /// The URL may hold a password, so only what tells all of it from others is kept.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep_success(&self, automation: &ImageUpdateAutomation, source: &GitRepository) -> io::Result<()> {
        write(&self.place(SUCCESSES, automation), &fingerprint(automation, source)?)
    }

    fn place(&self, kind: &str, object: &impl ResourceExt) -> PathBuf {
        let namespace = file_name(&object.namespace().unwrap_or_default());
        let name = format!("{}.json", file_name(&object.name_any()));
        self.root.join("objects").join(kind).join(namespace).join(name)
    }

    /// Reads an object; one that cannot be understood counts as none, for it can be written anew.
    fn read<T: serde::de::DeserializeOwned>(&self, place: &Path) -> io::Result<Option<T>> {
        match fs::read(place) {
            Ok(content) => Ok(serde_json::from_slice::<Value>(&content)
                .ok()
                .and_then(|value| serde_json::from_value(value).ok())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

const KIND: &str = "ImageUpdateAutomation";

/// What stands in the place of a kind for what runs succeeded with.
const SUCCESSES: &str = "successes";

/// Replaces a file, wholly or not at all.
fn write(place: &Path, content: &[u8]) -> io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    fs::create_dir_all(folder)?;
    let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    new.write_all(content)?;
    new.persist(place).map_err(|error| error.error)?;
    Ok(())
}

/// What tells an automation and its source from others.
fn fingerprint(automation: &ImageUpdateAutomation, source: &GitRepository) -> io::Result<Vec<u8>> {
    let source = (source.namespace(), source.name_any(), &source.spec);
    let content = serde_json::to_vec(&(&automation.spec, automation.annotations(), source))?;
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
        let place = state.place(KIND, &object);
        fs::write(&place, "{").unwrap();
        state.recall(&mut object).unwrap();
        assert_eq!((object.metadata.generation, object.status), (Some(1), None));
    }
}
