//! Objects from manifest files, which replace a cluster on the command line.
//!
//! [`read`] takes files and directories (`source`), splits them into documents and lists into items (`document`), and
//! makes typed objects (`object`, `secret`, `service_account`) of the supported kinds (`kind`). A document of a
//! supported kind that cannot be parsed is an error, because a misread selector would change the wrong files; a
//! command that changes nothing may use the other objects ([`read_in_part`], `defect`). A document of another kind is a
//! [`Note`]. A [`ManifestStore`] makes the objects available to a reconcile.

mod defect;
mod document;
mod error;
mod kind;
mod object;
mod secret;
mod service_account;
mod source;
mod state;
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::ResourceExt;
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation, Kind, KnownFields};

use crate::objects::ObjectName;
use crate::secrets::Secret;
use kind::ManifestKind;
use source::Origin;

pub use defect::Defect;
pub use error::{FieldError, ManifestError, Note, SyntaxError};
pub use secret::{SecretError, SecretManifest};
pub use service_account::ServiceAccountManifest;
pub use state::{Destination, LoadResult, StateAccess, StateDirectory, StateError, StateLock};
pub use store::{ManifestStore, SecretDirectory};

/// The label with its name that each namespace of a cluster has.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The objects of a set of manifest files.
#[derive(Debug, Default)]
pub struct Manifests {
    /// All objects, in the order of files and documents.
    pub objects: Vec<Manifest>,
    /// Notes about documents that were skipped or are incomplete.
    pub notes: Vec<Note>,
}

/// One object and the file it comes from.
#[derive(Debug)]
pub struct Manifest {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// The object; its namespace is always set.
    pub object: Object,
}

/// An object of a kind that is read.
#[derive(Debug)]
pub enum Object {
    /// An ImageUpdateAutomation.
    Automation(Box<ImageUpdateAutomation>),
    /// An ImagePolicy.
    Policy(Box<ImagePolicy>),
    /// An ImageRepository.
    Repository(Box<ImageRepository>),
    /// A GitRepository.
    GitRepository(Box<GitRepository>),
    /// A Secret.
    Secret(SecretManifest),
    /// A ServiceAccount.
    ServiceAccount(ServiceAccountManifest),
    /// A Namespace.
    Namespace(NamespaceManifest),
}

/// A Namespace of a manifest.
#[derive(Debug)]
pub struct NamespaceManifest {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
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
        self.objects.iter().find_map(|manifest| match &manifest.object {
            Object::GitRepository(repository)
                if repository.metadata.namespace.as_deref() == Some(namespace)
                    && repository.metadata.name.as_deref() == Some(name) =>
            {
                Some(repository.as_ref())
            }
            _ => None,
        })
    }

    /// Returns the labels of a Namespace, merged from all its manifests.
    ///
    /// Returns `None` if it has no manifest.
    pub fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let found = self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Namespace(namespace) if namespace.name == name => Some(namespace.labels.clone()),
            _ => None,
        });
        found.reduce(|mut labels, more| {
            labels.extend(more);
            labels
        })
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
        let mut found = self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Secret(secret) if secret.namespace == namespace && secret.name == name => {
                Some((manifest, &secret.values))
            }
            _ => None,
        });
        let Some((first, values)) = found.next() else { return Ok(None) };
        if let Some((second, _)) = found.next() {
            return Err(duplicate(&first.object, &first.file, &second.file));
        }
        values.as_ref().map(Some).map_err(|cause| ManifestError::Secret {
            file: first.file.clone(),
            object: first.object.to_string(),
            cause: cause.clone(),
        })
    }
}

impl Manifests {
    /// Returns the names of the pull secrets of a ServiceAccount.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or if it is defined twice. Neither is checked before it is requested.
    pub fn pull_secrets(&self, namespace: &str, name: &str) -> Result<Option<&[String]>, ManifestError> {
        let mut found = self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::ServiceAccount(account) if account.namespace == namespace && account.name == name => {
                Some((manifest, &account.pull_secrets))
            }
            _ => None,
        });
        let Some((first, names)) = found.next() else { return Ok(None) };
        if let Some((second, _)) = found.next() {
            return Err(duplicate(&first.object, &first.file, &second.file));
        }
        names.as_deref().map(Some).ok_or_else(|| ManifestError::PullSecrets {
            file: first.file.clone(),
            object: first.object.to_string(),
        })
    }
}

/// Reads all objects in `paths`: files, directories, or `-` for standard input.
///
/// Of a directory it reads all YAML and JSON files, those of subdirectories included.
///
/// # Errors
///
/// The errors of all files and objects, not only the first; no objects are returned then.
pub fn read(paths: &[PathBuf]) -> Result<Manifests, Vec<ManifestError>> {
    let (manifests, defects) = read_in_part(paths);
    if defects.is_empty() {
        Ok(manifests)
    } else {
        Err(defects.into_iter().map(|defect| defect.error).collect())
    }
}

/// Reads the valid objects in `paths`, and returns the errors of the others.
pub fn read_in_part(paths: &[PathBuf]) -> (Manifests, Vec<Defect>) {
    let mut manifests = Manifests::default();
    let mut defects: Vec<Defect> = Vec::new();
    let mut sources = source::Sources::default();
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
        manifests.notes.push(Note::FilesSkipped { files: sources.skipped });
    }
    defects.extend(duplicates(&manifests.objects));
    (manifests, defects)
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
            Ok(object::Parsed { object, notes }) => {
                manifests.notes.extend(notes);
                let file = source.file.clone();
                manifests.objects.extend(object.map(|object| Manifest { file, object }));
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
        let identity = manifest.object.identity();
        if matches!(identity.0, ManifestKind::Flux(_))
            && let Some(first) = seen.insert(manifest.object.to_string(), &manifest.file)
        {
            let error = duplicate(&manifest.object, first, &manifest.file);
            defects.push(Defect::of(Some(identity), error));
        }
    }
    defects
}

fn duplicate(object: &Object, first: &Path, second: &Path) -> ManifestError {
    let (first, second) = (first.to_owned(), second.to_owned());
    ManifestError::Duplicate { object: object.to_string(), first, second }
}

impl Object {
    /// Returns its kind, namespace and name.
    fn identity(&self) -> (ManifestKind, ObjectName) {
        let (kind, namespace, name) = match self {
            Self::Automation(object) => (Kind::Automation.into(), object.namespace(), object.name_any()),
            Self::Policy(object) => (Kind::Policy.into(), object.namespace(), object.name_any()),
            Self::Repository(object) => (Kind::Repository.into(), object.namespace(), object.name_any()),
            Self::GitRepository(object) => {
                (Kind::GitRepository.into(), object.namespace(), object.name_any())
            }
            Self::Secret(SecretManifest { namespace, name, .. }) => {
                (ManifestKind::Secret, Some(namespace.clone()), name.clone())
            }
            Self::ServiceAccount(ServiceAccountManifest { namespace, name, .. }) => {
                (ManifestKind::ServiceAccount, Some(namespace.clone()), name.clone())
            }
            Self::Namespace(NamespaceManifest { name, .. }) => (ManifestKind::Namespace, None, name.clone()),
        };
        (kind, ObjectName { namespace: namespace.unwrap_or_default(), name })
    }
}

/// Formats an object as `Kind namespace/name`.
impl std::fmt::Display for Object {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, ObjectName { namespace, name }) = self.identity();
        let separator = if namespace.is_empty() { "" } else { "/" };
        write!(formatter, "{} {namespace}{separator}{name}", kind.name())
    }
}
