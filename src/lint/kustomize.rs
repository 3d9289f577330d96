//! Reads kustomizations: patches, and the names of objects in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::Kind;
use tagboat_api::substitution::contains_placeholder;

use super::object::flatten;
use super::source::{Document, is_kustomization};
use crate::yaml::Node;

/// The content of all kustomizations together.
#[derive(Debug, Default)]
pub(super) struct Kustomizations {
    /// The files that are patches of objects; most fields are missing in them.
    patches: BTreeSet<String>,
    /// The kinds with an object that is patched inside a kustomization.
    patched: BTreeSet<Kind>,
    layers: Vec<Layer>,
}

/// The effect of one kustomization on the names of objects.
#[derive(Debug)]
struct Layer {
    /// The directory of the kustomization.
    directory: String,
    /// The files and directories that it includes; `None` means any.
    resources: Option<BTreeSet<String>>,
    renaming: Renaming,
}

/// The possible changes to the names of objects in the cluster.
///
/// Each may apply or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Renaming {
    namespaces: BTreeSet<String>,
    prefixes: BTreeSet<String>,
    suffixes: BTreeSet<String>,
}

impl Kustomizations {
    /// Adds the kustomizations of a file.
    pub(super) fn read(&mut self, document: &Document<'_>) {
        for node in flatten(&document.roots) {
            let group = node.text_at(&["apiVersion"]).and_then(|version| version.split_once('/'));
            let group = group.map_or("", |(group, _)| group);
            let directory = resolve(document.name, ".");
            if group == "kustomize.toolkit.fluxcd.io" {
                // Its path is relative to the root of a repository, which may be any directory here.
                let spec = node.at(&["spec"]).unwrap_or(node);
                self.read_patches(document.name, spec);
                let renaming = Renaming::read(spec, "targetNamespace");
                self.layers.push(Layer { directory, resources: None, renaming });
            } else if group == "kustomize.config.k8s.io" || is_kustomization(document.name) {
                self.read_patches(document.name, node);
                let lists =
                    ["resources", "bases", "components"].into_iter().filter_map(|list| node.at(&[list]));
                let paths = lists.flat_map(Node::items).filter_map(|path| path.text());
                let resources = Some(paths.map(|path| resolve(document.name, path)).collect());
                let renaming = Renaming::read(node, "namespace");
                self.layers.push(Layer { directory, resources, renaming });
            }
        }
    }

    fn read_patches(&mut self, file: &str, node: &Node) {
        let list = |field: &str| node.at(&[field]).map(Node::items).unwrap_or_default();
        for patch in list("patches").iter().chain(list("patchesJson6902")) {
            self.read_patch_file(file, patch.text_at(&["path"]));
            let target = patch.text_at(&["target", "kind"]).unwrap_or_default();
            let text = patch.text_at(&["patch"]).unwrap_or_default();
            self.read_patched(|kind| target == kind.name() || text.contains(kind.name()));
        }
        for patch in list("patchesStrategicMerge") {
            self.read_patch_file(file, patch.text().filter(|text| !text.contains('\n')));
            self.read_patched(|kind| patch.text().is_some_and(|text| text.contains(kind.name())));
        }
    }

    fn read_patch_file(&mut self, kustomization: &str, path: Option<&str>) {
        self.patches.extend(path.map(|path| resolve(kustomization, path)));
    }

    fn read_patched(&mut self, is_patched: impl Fn(Kind) -> bool) {
        self.patched.extend(Kind::ALL.into_iter().filter(|kind| is_patched(*kind)));
    }

    /// Returns true if a file is a patch.
    pub(super) fn is_patch(&self, file: &str) -> bool {
        self.patches.contains(&normalize(file.split('/')))
    }

    /// Returns true if a patch inside a kustomization may add fields to this kind.
    pub(super) fn patches_kind(&self, kind: Kind) -> bool {
        self.patched.contains(&kind)
    }

    /// Resolves the resources of each renaming kustomization through other kustomizations.
    ///
    /// Call it after all are read.
    pub(super) fn follow_resources(&mut self) {
        let mut in_directory: BTreeMap<&str, Vec<&BTreeSet<String>>> = BTreeMap::new();
        for layer in &self.layers {
            in_directory.entry(&layer.directory).or_default().extend(&layer.resources);
        }
        let reached = |layer: &Layer| {
            let mut reached = layer.resources.clone()?;
            let mut open: Vec<String> = reached.iter().cloned().collect();
            while let Some(path) = open.pop() {
                let below =
                    in_directory.range(path.as_str()..).take_while(|(other, _)| other.starts_with(&path));
                let inner = below.filter(|(other, _)| **other == path || is_below(other, &path));
                for resource in inner.flat_map(|(_, resources)| resources.iter().copied().flatten()) {
                    if reached.insert(resource.clone()) {
                        open.push(resource.clone());
                    }
                }
            }
            Some(reached)
        };
        let renaming = self.layers.iter().filter(|layer| layer.renaming != Renaming::default());
        let followed = renaming.map(|layer| Layer {
            directory: layer.directory.clone(),
            resources: reached(layer),
            renaming: layer.renaming.clone(),
        });
        self.layers = followed.collect();
    }

    /// The possible changes to the names of objects in a file.
    pub(super) fn renaming_of(&self, file: &str) -> Renaming {
        let file = normalize(file.split('/'));
        let mut renaming = Renaming::default();
        for layer in &self.layers {
            let takes_in = |resources: &BTreeSet<String>| {
                let mut ways =
                    std::iter::successors(Some(file.as_str()), |path| Some(path.rsplit_once('/')?.0));
                resources.contains("") || ways.any(|path| resources.contains(path))
            };
            if layer.resources.as_ref().is_none_or(takes_in) {
                renaming.add(&layer.renaming);
            }
        }
        renaming
    }
}

impl Renaming {
    fn read(node: &Node, namespace: &str) -> Self {
        let text = |field: &str| {
            let text = node.text_at(&[field]).filter(|text| !text.is_empty());
            text.map(str::to_owned).into_iter().collect()
        };
        Self { namespaces: text(namespace), prefixes: text("namePrefix"), suffixes: text("nameSuffix") }
    }

    fn add(&mut self, other: &Self) {
        self.namespaces.extend(other.namespaces.iter().cloned());
        self.prefixes.extend(other.prefixes.iter().cloned());
        self.suffixes.extend(other.suffixes.iter().cloned());
    }

    /// Returns true if an object may be put into a namespace.
    pub(super) fn can_set_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|target| can_become(target, namespace))
    }

    /// The possible names in the cluster of an object named `given`, starting with its own.
    pub(super) fn names(&self, given: &str) -> Vec<String> {
        let some = |set: &BTreeSet<String>| -> Vec<String> {
            std::iter::once(String::new()).chain(set.iter().cloned()).collect()
        };
        let suffixes = some(&self.suffixes);
        let with_suffixes = |prefix: &String| -> Vec<String> {
            suffixes.iter().map(|suffix| format!("{prefix}{given}{suffix}")).collect()
        };
        some(&self.prefixes).iter().flat_map(with_suffixes).collect()
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns true if a text with parts to be filled in later can become `text`.
pub(super) fn can_become(pattern: &str, text: &str) -> bool {
    if !contains_placeholder(pattern) {
        return pattern == text;
    }
    // The fixed texts around these parts must be there, in order.
    let literals = literals(pattern);
    let (Some((first, rest)), true) = (literals.split_first(), literals.len() > 1) else {
        return pattern == text;
    };
    let (last, middle) = rest.split_last().expect("there are two literals at least");
    let Some(text) = text.strip_prefix(first) else { return false };
    let Some(mut text) = text.strip_suffix(last) else { return false };
    for literal in middle {
        let Some(at) = text.find(literal) else { return false };
        text = &text[at + literal.len()..];
    }
    true
}

/// The fixed texts before, between and after the parts to be filled in later.
fn literals(pattern: &str) -> Vec<&str> {
    let mut literals = Vec::new();
    let mut rest = pattern;
    loop {
        let opening = [("${", "}"), ("{{", "}}"), ("<<", ">>")]
            .into_iter()
            .filter_map(|(opening, closing)| rest.find(opening).map(|at| (at, closing)))
            .min();
        let Some((at, closing)) = opening else { break };
        literals.push(&rest[..at]);
        let inner = &rest[at + 2..];
        rest = inner.find(closing).map_or("", |end| &inner[end + closing.len()..]);
    }
    literals.push(rest);
    literals
}

/// Resolves a path relative to the directory of a file.
fn resolve(file: &str, path: &str) -> String {
    let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
    let root = if directory.is_empty() && !file.starts_with('/') { "." } else { directory };
    normalize(root.split('/').chain(path.split('/')))
}

/// Normalizes a path: removes `.`, and `..` if possible.
fn normalize<'p>(parts: impl Iterator<Item = &'p str>) -> String {
    let mut normalized: Vec<&str> = Vec::new();
    for (index, part) in parts.enumerate() {
        match part {
            "" if index > 0 => {}
            "." => {}
            ".." if normalized.last().is_some_and(|last| *last != "..") => {
                normalized.pop();
            }
            part => normalized.push(part),
        }
    }
    normalized.join("/")
}

#[cfg(test)]
mod tests {
    use super::{can_become, normalize, resolve};

    #[test]
    fn texts_are_filled_in() {
        for (pattern, text, expected) in [
            ("app", "app", true),
            ("app", "apps", false),
            ("${app}", "anything", true),
            ("${env}-app", "prod-app", true),
            ("${env}-app", "prod-api", false),
            ("a-${x}-b-{{ .y }}-c", "a-1-b-2-c", true),
            ("a-${x}-b-{{ .y }}-c", "a-1-2-c", false),
            ("<< inputs.name >>", "web", true),
            ("web-${open", "web-1", true),
            ("aa${x}aa", "aaa", false),
        ] {
            assert_eq!(can_become(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn paths_are_seen_from_their_file() {
        assert_eq!(resolve("apps/kustomization.yaml", "../base/./p.yaml"), "base/p.yaml");
        assert_eq!(resolve("kustomization.yaml", "patches/p.yaml"), "patches/p.yaml");
        assert_eq!(resolve("/srv/k/kustomization.yaml", "p.yaml"), "/srv/k/p.yaml");
        assert_eq!(resolve("../k/kustomization.yaml", "../p.yaml"), "../p.yaml");
        assert_eq!(normalize("./a//b/../c".split('/')), "a/c");
    }
}
