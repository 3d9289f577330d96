//! What kustomizations say about the manifests beside them: which are only patches, and what objects are called in
//! the cluster.

use std::collections::BTreeSet;

use super::object::{Kind, flatten};
use super::source::{Document, is_filled_in_later, is_kustomization};
use crate::yaml::Node;

/// What all kustomizations together say.
#[derive(Debug, Default)]
pub(super) struct Kustomizations {
    /// Files that are patches of objects, so that most fields are missing in them.
    patches: BTreeSet<String>,
    /// Kinds of which some object is patched within a kustomization.
    patched: BTreeSet<Kind>,
    /// Namespaces that objects are put into.
    namespaces: BTreeSet<String>,
    prefixes: BTreeSet<String>,
    suffixes: BTreeSet<String>,
}

impl Kustomizations {
    /// Takes in what a file says.
    pub(super) fn read(&mut self, document: &Document<'_>) {
        for node in flatten(&document.roots) {
            let group = node.text_at(&["apiVersion"]).and_then(|version| version.split_once('/'));
            let group = group.map_or("", |(group, _)| group);
            if group == "kustomize.toolkit.fluxcd.io" {
                self.read_patches(document.name, node.at(&["spec"]).unwrap_or(node));
                self.read_names(node.at(&["spec"]).unwrap_or(node), "targetNamespace");
            } else if group == "kustomize.config.k8s.io" || is_kustomization(document.name) {
                self.read_patches(document.name, node);
                self.read_names(node, "namespace");
            }
        }
    }

    fn read_patches(&mut self, file: &str, node: &Node) {
        let list = |field: &str| node.at(&[field]).map(Node::items).unwrap_or_default();
        for patch in list("patches").iter().chain(list("patchesJson6902")) {
            self.read_patch_file(file, patch.text_at(&["path"]));
            let target = patch.text_at(&["target", "kind"]).unwrap_or_default();
            let text = patch.text_at(&["patch"]).unwrap_or_default();
            self.read_patched(|kind| target == kind.name() || names_kind(text, kind));
        }
        for patch in list("patchesStrategicMerge") {
            self.read_patch_file(file, patch.text().filter(|text| !text.contains('\n')));
            self.read_patched(|kind| names_kind(patch.text().unwrap_or_default(), kind));
        }
    }

    fn read_patch_file(&mut self, kustomization: &str, path: Option<&str>) {
        self.patches.extend(path.map(|path| beside(kustomization, path)));
    }

    fn read_patched(&mut self, is_patched: impl Fn(Kind) -> bool) {
        self.patched.extend(Kind::ALL.into_iter().filter(|kind| is_patched(*kind)));
    }

    fn read_names(&mut self, node: &Node, namespace: &str) {
        let text = |field: &str| node.text_at(&[field]).filter(|text| !text.is_empty()).map(str::to_owned);
        self.namespaces.extend(text(namespace));
        self.prefixes.extend(text("namePrefix"));
        self.suffixes.extend(text("nameSuffix"));
    }

    /// Whether a file is a patch.
    pub(super) fn is_patch(&self, file: &str) -> bool {
        self.patches.contains(&tidy(file.split('/')))
    }

    /// Whether an object of that kind may get fields from a patch that stands in a kustomization.
    pub(super) fn patches_kind(&self, kind: Kind) -> bool {
        self.patched.contains(&kind)
    }

    /// The namespaces that objects may be put into, whatever theirs is.
    pub(super) fn is_target(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|target| fits(target, namespace))
    }

    /// Whether an object of the name `given` may be called `name` in the cluster.
    pub(super) fn may_be_called(&self, given: &str, name: &str) -> bool {
        let some = |set: &'_ BTreeSet<String>| -> Vec<String> {
            std::iter::once(String::new()).chain(set.iter().cloned()).collect()
        };
        let suffixes = some(&self.suffixes);
        some(&self.prefixes)
            .iter()
            .any(|prefix| suffixes.iter().any(|suffix| fits(&format!("{prefix}{given}{suffix}"), name)))
    }
}

/// Whether a text that may have parts which are filled in later can become `text`.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    if !is_filled_in_later(pattern) {
        return pattern == text;
    }
    // What stands around the parts has to be there, in order.
    let pieces = pieces(pattern);
    let (Some((first, rest)), true) = (pieces.split_first(), pieces.len() > 1) else {
        return pattern == text;
    };
    let (last, middle) = rest.split_last().expect("there are two pieces at least");
    let Some(text) = text.strip_prefix(first) else { return false };
    let Some(mut text) = text.strip_suffix(last) else { return false };
    for piece in middle {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    true
}

/// The fixed texts between the parts that are filled in later, before the first and behind the last one.
fn pieces(pattern: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    loop {
        let opening = [("${", "}"), ("{{", "}}"), ("<<", ">>")]
            .into_iter()
            .filter_map(|(opening, closing)| rest.find(opening).map(|at| (at, closing)))
            .min();
        let Some((at, closing)) = opening else { break };
        pieces.push(&rest[..at]);
        let inner = &rest[at + 2..];
        rest = inner.find(closing).map_or("", |end| &inner[end + closing.len()..]);
    }
    pieces.push(rest);
    pieces
}

/// Whether a patch's text is one of an object of that kind.
fn names_kind(text: &str, kind: Kind) -> bool {
    text.contains(kind.name())
}

/// The file that a path within another file means.
fn beside(file: &str, path: &str) -> String {
    let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
    let root = if directory.is_empty() && !file.starts_with('/') { "." } else { directory };
    tidy(root.split('/').chain(path.split('/')))
}

/// A path without `.` and, as far as it goes, `..`.
fn tidy<'p>(parts: impl Iterator<Item = &'p str>) -> String {
    let mut tidied: Vec<&str> = Vec::new();
    for (index, part) in parts.enumerate() {
        match part {
            "" if index > 0 => {}
            "." => {}
            ".." if tidied.last().is_some_and(|last| *last != "..") => {
                tidied.pop();
            }
            part => tidied.push(part),
        }
    }
    tidied.join("/")
}

#[cfg(test)]
mod tests {
    use super::{beside, fits, tidy};

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
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn paths_are_seen_from_their_file() {
        assert_eq!(beside("apps/kustomization.yaml", "../base/./p.yaml"), "base/p.yaml");
        assert_eq!(beside("kustomization.yaml", "patches/p.yaml"), "patches/p.yaml");
        assert_eq!(beside("/srv/k/kustomization.yaml", "p.yaml"), "/srv/k/p.yaml");
        assert_eq!(beside("../k/kustomization.yaml", "../p.yaml"), "../p.yaml");
        assert_eq!(tidy("./a//b/../c".split('/')), "a/c");
    }
}
