//! Collection of the files to check.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tagboat_api::IMAGE_GROUP;
use tagboat_api::settings::TemplateLanguage;

use crate::cli::Failure;
use crate::directory::{self, Directory};
use crate::error::chain;
use crate::lint::{Role, Source};
use crate::update::SkipReason;
use crate::update::manifest_files::list_manifests;
use crate::update::marker::QUOTED_TOKEN;
use crate::update::{Entry, FileTree, TreeError};
use crate::yaml::Limits;

/// Words of files that are reported if they are too large to be read.
const WORDS: [&[u8]; 2] = [IMAGE_GROUP.as_bytes(), QUOTED_TOKEN];

/// The file names of kustomizations.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The files at some paths.
#[derive(Default)]
pub(super) struct Sources {
    /// The files, each once.
    pub(super) files: Vec<Source>,
    /// Links and directories that were not followed, one sentence each.
    pub(super) warnings: Vec<String>,
    seen: HashSet<PathBuf>,
    /// The files that were named one by one.
    named: Vec<PathBuf>,
}

impl Sources {
    /// Returns the number of files that were checked.
    pub(super) fn number(&self) -> usize {
        self.files.iter().filter(|file| file.role != Role::Context).count()
    }

    fn add(&mut self, path: &Path, role: Role, content: Result<Vec<u8>, String>) {
        let identity = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if self.seen.insert(identity) {
            self.files.push(Source::new(name_of(path), role, content));
        }
    }

    fn add_file(&mut self, path: &Path, role: Role) {
        let content =
            directory::open(path).and_then(read).map_err(|error| format!("cannot be read: {error}"));
        self.add(path, role, content);
    }

    fn add_directory(&mut self, path: &Path) {
        let listed = Directory::open(path).map_err(|error| error.to_string()).and_then(|directory| {
            let scope = list_manifests(&directory).map_err(|error| chain(&error))?;
            Ok((directory, scope))
        });
        let (directory, scope) = match listed {
            Ok(listed) => listed,
            Err(cause) => return self.add(path, Role::Manifest, Err(format!("cannot be read: {cause}"))),
        };
        for skipped in scope.skipped {
            let file = path.join(&skipped.file);
            if skipped.cause == SkipReason::Unreadable {
                self.add(&file, Role::Manifest, Err(skipped.cause.to_string()));
            } else {
                self.warnings.push(format!("{}: skipped: {}", name_of(&file), skipped.cause));
            }
        }
        for entry in scope.files {
            self.add_entry(&directory, &entry);
        }
    }

    fn add_entry(&mut self, directory: &Directory, entry: &Entry) {
        let limit = Limits::default().file_size;
        let mut content = Vec::new();
        let content = match directory.read(entry, limit, &mut content) {
            Ok(()) => Ok(content),
            Err(TreeError::TooLarge { size, .. }) => {
                // A huge file without markers and objects of ours does not matter.
                if !WORDS.iter().any(|word| directory.contains(entry, word).unwrap_or(true)) {
                    return;
                }
                Err(too_large(size, limit))
            }
            Err(error) => Err(chain(&error)),
        };
        self.add(&directory.locate(&entry.path), Role::Manifest, content);
    }

    /// Adds the kustomizations around files that were named one by one, as commit hooks do.
    ///
    /// They list which of the files are patches.
    fn add_context(&mut self) {
        for file in std::mem::take(&mut self.named) {
            for directory in file.ancestors().skip(1).take(2) {
                for name in KUSTOMIZATIONS {
                    let path = directory.join(name);
                    if path.is_file() {
                        self.add_file(&path, Role::Context);
                    }
                }
            }
        }
    }
}

/// Reads the files at some paths.
pub(super) fn collect(paths: &[PathBuf]) -> Result<Sources, Failure> {
    let is_absent = |path: &&PathBuf| {
        let kind = fs::metadata(path).err().map(|error| error.kind());
        path.as_path() != Path::new("-")
            && matches!(kind, Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    };
    let absent: Vec<String> = paths.iter().filter(is_absent).map(|path| path.display().to_string()).collect();
    if !absent.is_empty() {
        return Err(Failure::Usage(format!("there is no file or directory {}", absent.join(", "))));
    }
    let mut sources = Sources::default();
    for path in paths {
        if path == Path::new("-") {
            let content = read(io::stdin().lock()).map_err(|error| format!("cannot be read: {error}"));
            sources.add(path, Role::Manifest, content);
        } else if path.is_dir() {
            sources.add_directory(path);
        } else {
            sources.add_file(path, role_of(path));
            sources.named.push(path.clone());
        }
    }
    sources.add_context();
    Ok(sources)
}

/// Returns the name of a file in findings.
fn name_of(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

fn role_of(path: &Path) -> Role {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("tmpl" | "gotmpl") => Role::Template(TemplateLanguage::Go),
        Some("hbs" | "handlebars") => Role::Template(TemplateLanguage::Handlebars),
        _ => Role::Manifest,
    }
}

fn read(input: impl Read) -> io::Result<Vec<u8>> {
    let limit = Limits::default().file_size;
    let mut content = Vec::new();
    input.take(limit as u64 + 1).read_to_end(&mut content)?;
    if content.len() > limit {
        return Err(io::Error::other(too_large(content.len() as u64, limit)));
    }
    Ok(content)
}

fn too_large(size: u64, limit: usize) -> String {
    format!("the file has {size} bytes or more, and the limit is {limit}")
}
