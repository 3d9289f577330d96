//! Objects from manifest files: what the command line has in place of a cluster.
//!
//! [`read`] takes files and directories ([`source`]), splits them into documents and lists into items, and makes
//! typed objects of those that are ours to read ([`object`]). A document that is ours and cannot be understood is an error, because a
//! misread selector would change the wrong files; a document of somebody else is a [`Note`].

mod document;
mod error;
mod object;
mod source;

use std::path::{Path, PathBuf};

use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation, KnownFields};

pub use error::{FieldError, ManifestError, Note, SyntaxError};

/// The objects of a set of manifest files.
#[derive(Debug, Default)]
pub struct Manifests {
    /// All objects, in the order of files and documents.
    pub objects: Vec<Manifest>,
    /// What was passed over, and what is incomplete.
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
}

impl Manifests {
    /// The automations, in the order of files and documents.
    pub fn automations(&self) -> impl Iterator<Item = &ImageUpdateAutomation> {
        self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Automation(automation) => Some(automation.as_ref()),
            _ => None,
        })
    }

    /// The policies, in the order of files and documents.
    pub fn policies(&self) -> impl Iterator<Item = &ImagePolicy> {
        self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Policy(policy) => Some(policy.as_ref()),
            _ => None,
        })
    }

    /// The image repositories, in the order of files and documents.
    pub fn repositories(&self) -> impl Iterator<Item = &ImageRepository> {
        self.objects.iter().filter_map(|manifest| match &manifest.object {
            Object::Repository(repository) => Some(repository.as_ref()),
            _ => None,
        })
    }
}

/// Reads all objects in `paths`: files, directories (all YAML files below them), or `-` for standard input.
///
/// # Errors
///
/// The problems of all files and objects, not only the first; no objects are given then.
pub fn read(paths: &[PathBuf]) -> Result<Manifests, Vec<ManifestError>> {
    let mut manifests = Manifests::default();
    let mut errors = Vec::new();
    let mut sources = source::Sources::default();
    let known = KnownFields::default();
    for path in paths {
        errors.extend(sources.collect(path).err());
    }
    for source in sources.files {
        match document::split(&source) {
            Err(error) => errors.push(error),
            Ok(documents) => take(&source, documents, &known, &mut manifests, &mut errors),
        }
    }
    manifests.notes.extend(sources.notes);
    if !sources.passed_over.is_empty() {
        manifests.notes.push(Note::FilesPassedOver { files: sources.passed_over });
    }
    errors.extend(repeated(&manifests.objects));
    if errors.is_empty() { Ok(manifests) } else { Err(errors) }
}

fn take(
    source: &source::Source,
    documents: Vec<document::Document>,
    known: &KnownFields,
    manifests: &mut Manifests,
    errors: &mut Vec<ManifestError>,
) {
    let before = manifests.objects.len() + errors.len();
    for document in documents {
        match object::parse(&source.file, document, known) {
            Ok(object::Parsed { object, notes }) => {
                manifests.notes.extend(notes);
                let file = source.file.clone();
                manifests.objects.extend(object.map(|object| Manifest { file, object }));
            }
            Err(error) => errors.push(error),
        }
    }
    if manifests.objects.len() + errors.len() == before && !source.may_be_foreign {
        errors.push(ManifestError::NothingToRead { file: source.file.clone() });
    }
}

/// Objects that are given twice: nothing says which of the two holds.
fn repeated(objects: &[Manifest]) -> Vec<ManifestError> {
    let mut seen: std::collections::BTreeMap<String, &Path> = std::collections::BTreeMap::new();
    let mut errors = Vec::new();
    for manifest in objects {
        let name = manifest.object.to_string();
        if let Some(first) = seen.insert(name.clone(), &manifest.file) {
            errors.push(ManifestError::Repeated {
                object: name,
                first: first.to_owned(),
                second: manifest.file.clone(),
            });
        }
    }
    errors
}

/// Prints as `Kind namespace/name`.
impl std::fmt::Display for Object {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, metadata) = match self {
            Self::Automation(object) => ("ImageUpdateAutomation", &object.metadata),
            Self::Policy(object) => ("ImagePolicy", &object.metadata),
            Self::Repository(object) => ("ImageRepository", &object.metadata),
            Self::GitRepository(object) => ("GitRepository", &object.metadata),
        };
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        write!(formatter, "{kind} {}/{}", text(&metadata.namespace), text(&metadata.name))
    }
}
