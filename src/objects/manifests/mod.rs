//! Objects from manifest files, which replace a cluster on the command line.
//!
//! [`read`] takes files and directories (`source`), splits them into documents and lists into items (`document`), and
//! makes typed objects (`object`, `secret`) of the supported kinds (`kind`). A document of a supported kind that cannot
//! be parsed is an error, because a misread selector would change the wrong files; a command that changes nothing may
//! use the other objects ([`read_in_part`], `defect`). For a document of another kind there is a note. A
//! [`ManifestStore`] makes the objects available to a reconcile.

mod defect;
mod document;
mod error;
mod kind;
mod object;
mod secret;
mod source;
mod state;
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tagboat_api::settings::own_annotations;
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation, KnownFields};

use crate::error::chain;
use crate::objects::ObjectName;
use crate::secrets::Secret;
use kind::ManifestKind;
use source::Origin;

pub use defect::Defect;
pub use error::{FieldError, ManifestError, SyntaxError};
pub use secret::SecretError;
pub use state::{Destination, LoadResult, StateAccess, StateDirectory, StateError, StateLock};
pub use store::{ManifestStore, SecretDirectory};

/// The label with its name that each namespace of a cluster has.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The objects of a set of manifest files.
#[derive(Debug, Default)]
pub struct Manifests {
    /// All objects, in the order of files and documents.
    objects: Vec<Manifest>,
    /// Notes for the user about documents that were skipped or are incomplete, one sentence each.
    pub notes: Vec<String>,
}

/// The error of a Namespace with two values of an annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Namespace {namespace} is defined twice, with different values of {annotation}: keep one")]
pub struct NamespaceConflict {
    /// The Namespace.
    pub namespace: String,
    /// The annotation.
    pub annotation: String,
}

/// One object and the file it comes from.
#[derive(Debug)]
struct Manifest {
    /// The file; `-` is standard input.
    file: PathBuf,
    kind: ManifestKind,
    /// The name; its namespace is always set.
    name: ObjectName,
    object: Object,
}

/// The content of an object of a kind that is read.
#[derive(Debug)]
enum Object {
    Automation(Box<ImageUpdateAutomation>),
    Policy(Box<ImagePolicy>),
    Repository(Box<ImageRepository>),
    GitRepository(Box<GitRepository>),
    /// The values of a Secret by key, or the error of reading them.
    Secret(Result<BTreeMap<String, Secret>, SecretError>),
    /// The names of a ServiceAccount's pull secrets; `None` if they cannot be read.
    ServiceAccount(Option<Vec<String>>),
    /// The labels and the annotations of a Namespace.
    Namespace {
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
    },
}

impl Manifests {
    /// Iterates over the automations, in the order of files and documents.
    pub fn automations(&self) -> impl Iterator<Item = &ImageUpdateAutomation> {
        self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Automation(automation) => Some(automation.as_ref()),
            _ => None,
        })
    }

    /// Iterates over the policies, in the order of files and documents.
    pub fn policies(&self) -> impl Iterator<Item = &ImagePolicy> {
        self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Policy(policy) => Some(policy.as_ref()),
            _ => None,
        })
    }

    /// Iterates over the image repositories, in the order of files and documents.
    pub fn repositories(&self) -> impl Iterator<Item = &ImageRepository> {
        self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Repository(repository) => Some(repository.as_ref()),
            _ => None,
        })
    }

    /// Returns the GitRepository of a name.
    pub fn git_repository(&self, namespace: &str, name: &str) -> Option<&GitRepository> {
        self.named(namespace, name).find_map(|manifest| match &manifest.object {
            Object::GitRepository(repository) => Some(repository.as_ref()),
            _ => None,
        })
    }

    /// Returns the labels of a Namespace, merged from all its manifests.
    ///
    /// Returns `None` if it has no manifest.
    pub fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let found = self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Namespace { labels, .. } if manifest.name.name == name => Some(labels.clone()),
            _ => None,
        });
        found.reduce(|mut labels, more| {
            labels.extend(more);
            labels
        })
    }

    /// Returns Tagboat's annotations of Namespaces by name, each merged from all its manifests.
    ///
    /// # Errors
    ///
    /// If two manifests give one of them different values.
    pub fn namespace_annotations(
        &self,
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, NamespaceConflict> {
        let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for Manifest { name, object, .. } in &self.objects {
            let Object::Namespace { annotations, .. } = object else { continue };
            let merged = all.entry(name.name.clone()).or_default();
            for (annotation, value) in own_annotations(annotations) {
                let before = merged.insert(annotation.clone(), value.clone());
                if before.is_some_and(|before| before != *value) {
                    return Err(NamespaceConflict {
                        namespace: name.name.clone(),
                        annotation: annotation.clone(),
                    });
                }
            }
        }
        Ok(all)
    }

    /// Returns the values of the Secret of a name.
    ///
    /// # Errors
    ///
    /// If its values cannot be read, or if it is defined twice. Neither is checked before it is requested.
    pub fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<&BTreeMap<String, Secret>>, ManifestError> {
        let found = self.only(namespace, name, |object| match object {
            Object::Secret(values) => Some(values),
            _ => None,
        });
        let Some((manifest, values)) = found? else { return Ok(None) };
        values.as_ref().map(Some).map_err(|cause| ManifestError::Secret {
            file: manifest.file.clone(),
            object: manifest.to_string(),
            cause: cause.clone(),
        })
    }

    /// Returns the names of the pull secrets of a ServiceAccount.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or if it is defined twice. Neither is checked before it is requested.
    pub fn pull_secrets(&self, namespace: &str, name: &str) -> Result<Option<&[String]>, ManifestError> {
        let found = self.only(namespace, name, |object| match object {
            Object::ServiceAccount(names) => Some(names),
            _ => None,
        });
        let Some((manifest, names)) = found? else { return Ok(None) };
        names.as_deref().map(Some).ok_or_else(|| ManifestError::PullSecrets {
            file: manifest.file.clone(),
            object: manifest.to_string(),
        })
    }

    /// Returns the object of a name whose kind `content` matches, with its content.
    ///
    /// # Errors
    ///
    /// If it is defined twice.
    fn only<'m, T>(
        &'m self,
        namespace: &str,
        name: &str,
        content: impl Fn(&'m Object) -> Option<T>,
    ) -> Result<Option<(&'m Manifest, T)>, ManifestError> {
        let named = self.named(namespace, name);
        let mut found = named.filter_map(|manifest| Some((manifest, content(&manifest.object)?)));
        let Some((first, content)) = found.next() else { return Ok(None) };
        match found.next() {
            Some((second, _)) => Err(duplicate(first, &first.file, &second.file)),
            None => Ok(Some((first, content))),
        }
    }

    /// Iterates over the objects of a name, of any kind.
    fn named(&self, namespace: &str, name: &str) -> impl Iterator<Item = &Manifest> {
        self.objects
            .iter()
            .filter(move |manifest| manifest.name.namespace == namespace && manifest.name.name == name)
    }
}

/// Reads all objects in `paths`: files, directories, or `-` for standard input.
///
/// Of a directory it reads all YAML and JSON files, those of subdirectories included, except those in the directory
/// `state`, which stores copies of the objects.
///
/// # Errors
///
/// The errors of all files and objects, not only the first; no objects are returned then.
pub fn read(paths: &[PathBuf], state: Option<&Path>) -> Result<Manifests, Vec<ManifestError>> {
    let (manifests, defects) = read_from(paths, source::Sources::without(state));
    if defects.is_empty() {
        Ok(manifests)
    } else {
        Err(defects.into_iter().map(|defect| defect.error).collect())
    }
}

/// Reads the valid objects in `paths`, and returns the errors of the others.
pub fn read_in_part(paths: &[PathBuf], state: Option<&Path>) -> (Manifests, Vec<Defect>) {
    read_from(paths, source::Sources::without(state))
}

fn read_from(paths: &[PathBuf], mut sources: source::Sources) -> (Manifests, Vec<Defect>) {
    let mut manifests = Manifests::default();
    let mut defects: Vec<Defect> = Vec::new();
    let known = KnownFields::default();
    for path in paths {
        defects.extend(sources.collect(path).err().map(Defect::from));
    }
    for source in std::mem::take(&mut sources.files) {
        match document::split(&source) {
            Ok(documents)
                if source.origin == Origin::Optional
                    && !documents.iter().any(document::Document::is_core) =>
            {
                sources.skip(source.file);
            }
            Err(_) if source.origin == Origin::Optional => sources.skipped.push(source.file),
            Err(error) => defects.push(error.into()),
            Ok(documents) => take(&source, documents, &known, &mut manifests, &mut defects),
        }
    }
    manifests.notes.extend(sources.notes);
    sources.skipped.sort();
    if !sources.skipped.is_empty() {
        manifests.notes.push(skipped(&sources.skipped));
    }
    defects.extend(duplicates(&manifests.objects));
    (manifests, defects)
}

/// Returns the note about files of a directory without any object of Flux's.
fn skipped(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().take(3).map(|file| file.display().to_string()).collect();
    format!(
        "skipped {} without an object of image.toolkit.fluxcd.io or source.toolkit.fluxcd.io: {}{}",
        if files.len() == 1 { "a file".to_owned() } else { format!("{} files", files.len()) },
        names.join(", "),
        if files.len() > names.len() { ", …" } else { "" }
    )
}

fn take(
    source: &source::Source,
    documents: Vec<document::Document>,
    known: &KnownFields,
    manifests: &mut Manifests,
    defects: &mut Vec<Defect>,
) {
    let before = manifests.objects.len() + defects.len();
    for document in documents {
        match object::parse(&source.file, document, known) {
            Ok((manifest, notes)) => {
                manifests.notes.extend(notes);
                manifests.objects.extend(manifest);
            }
            // It has no setting of ours, and other tools may render it.
            Err(defect) if source.origin == Origin::Optional => {
                manifests.notes.push(format!("{}; the object is skipped", chain(&defect.error)));
            }
            Err(defect) => defects.push(*defect),
        }
    }
    if manifests.objects.len() + defects.len() == before && source.origin == Origin::Named {
        defects.push(ManifestError::NothingToRead { file: source.file.clone() }.into());
    }
}

/// Returns errors for objects that are defined twice, since either could be meant.
///
/// Secrets and ServiceAccounts are checked when they are requested, and the labels of Namespaces are merged.
fn duplicates(objects: &[Manifest]) -> Vec<Defect> {
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut defects = Vec::new();
    for manifest in objects {
        if matches!(manifest.kind, ManifestKind::Flux(_))
            && let Some(first) = seen.insert(manifest.to_string(), &manifest.file)
        {
            let error = duplicate(manifest, first, &manifest.file);
            defects.push(Defect::of(Some((manifest.kind, manifest.name.clone())), error));
        }
    }
    defects
}

fn duplicate(object: &Manifest, first: &Path, second: &Path) -> ManifestError {
    let (first, second) = (first.to_owned(), second.to_owned());
    ManifestError::Duplicate { object: object.to_string(), first, second }
}

/// Formats an object as `Kind namespace/name`.
impl std::fmt::Display for Manifest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.kind.name(), self.name)
    }
}
