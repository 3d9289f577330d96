//! The graph of imports between the files of a crate, read from their syntax trees.
//!
//! An edge leads from the file that names an item, in a `use` or in a path, to the file that defines it. Re-exports are
//! followed to the definition, and a file that only re-exports an item has no edge for it. Code for tests is left out.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

/// A path of modules or of a module and an item, split at `::`.
type Segments = Vec<String>;

/// A source file, parsed.
#[derive(Default)]
struct Source {
    name: String,
    imports: Vec<Import>,
    /// The paths outside of `use`.
    paths: Vec<Segments>,
}

/// One name of a `use`.
struct Import {
    /// The name in the importing file; `*` for all names of a module.
    name: String,
    path: Segments,
    is_reexport: bool,
}

/// The files of a crate and what they import of each other.
pub(super) struct Graph {
    sources: BTreeMap<Segments, Source>,
}

/// The items that a file imports of others, by the module of the other file.
type Edges = BTreeMap<Segments, BTreeSet<String>>;

/// A circle: each file, and the items that it imports of the other files.
pub(super) type Circle = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

impl Graph {
    /// Parses the files of a crate.
    /// They are given by their paths below its root, such as `git/mod.rs`.
    pub(super) fn new<'t>(files: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let parse = |(name, text): (&str, &str)| (module_of(name), Source::parse(name, text));
        Self { sources: files.into_iter().map(parse).collect() }
    }

    /// Returns the import cycles inside each room.
    ///
    /// The files of a cycle import each other, directly or through others. A room is a folder of the root, or
    /// the whole crate.
    pub(super) fn circles(&self, room_of: fn(&[String]) -> Option<&str>) -> Vec<Circle> {
        let mut edges: BTreeMap<&Segments, Edges> =
            self.sources.iter().map(|(module, source)| (module, self.edges(module, source))).collect();
        edges.retain(|module, _| room_of(module).is_some());
        for (module, others) in &mut edges {
            others.retain(|other, _| other != *module && room_of(other) == room_of(module));
        }
        let reached: BTreeMap<&Segments, BTreeSet<&Segments>> =
            edges.keys().map(|module| (*module, reachable(&edges, module))).collect();
        let mut circles: BTreeMap<BTreeSet<&Segments>, Circle> = BTreeMap::new();
        for (module, others) in &edges {
            let is_mutual = |other: &&Segments| reached[other].contains(module);
            let members: BTreeSet<&Segments> = reached[module].iter().copied().filter(is_mutual).collect();
            if members.contains(module) {
                let imports = others.iter().filter(|(other, _)| members.contains(other));
                let named = |other: &Segments| self.sources[other].name.clone();
                let imports = imports.map(|(other, items)| (named(other), items.clone())).collect();
                circles.entry(members).or_default().insert(named(module), imports);
            }
        }
        circles.into_values().collect()
    }

    /// Returns each file below the module `from` that names something below the module `to`.
    /// Re-exports are included.
    pub(super) fn naming(&self, from: &[&str], to: &[&str]) -> Vec<&str> {
        let is_below = |module: &Segments, top: &[&str]| {
            module.iter().zip(top).filter(|(a, b)| a == b).count() == top.len()
        };
        let names_it = |(module, source): &(&Segments, &Source)| {
            let imports = source.imports.iter().map(|import| &import.path);
            imports
                .chain(&source.paths)
                .filter_map(|path| self.absolute(module, path))
                .any(|path| is_below(&path, to))
        };
        let files = self.sources.iter().filter(|(module, _)| is_below(module, from));
        files.filter(names_it).map(|(_, source)| source.name.as_str()).collect()
    }

    fn edges(&self, module: &Segments, source: &Source) -> Edges {
        let mut edges = Edges::new();
        let mut add = |path: &Segments| {
            if let Some((defining, Some(item))) = self.absolute(module, path).map(|path| self.resolve(&path))
            {
                edges.entry(defining).or_default().insert(item);
            }
        };
        for import in &source.imports {
            let is_used = || source.paths.iter().any(|path| path.first() == Some(&import.name));
            if !import.is_reexport || is_used() {
                add(&import.path);
            }
        }
        source.paths.iter().filter(|path| path.len() > 1).for_each(add);
        edges
    }

    /// Returns a path from the root of the crate, unless it leads to another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Segments> {
        let (first, rest) = path.split_first()?;
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => Some([module.get(..module.len().checked_sub(supers)?)?, &path[supers..]].concat()),
            _ if self.sources.contains_key(&[module, &path[..1]].concat()) => Some([module, path].concat()),
            name => {
                // A module that is imported, as in `use super::pem` and `pem::read`.
                let import = self.sources.get(module)?.import(name).filter(|_| !rest.is_empty())?;
                Some([&self.absolute(module, &import.path)?, rest].concat())
            }
        }
    }

    /// Returns the module whose file defines the end of a path, and the item there.
    /// There is no item if the path leads to a module.
    fn resolve(&self, path: &[String]) -> (Segments, Option<String>) {
        let mut module = Segments::new();
        for (index, segment) in path.iter().enumerate() {
            let inner = [&module[..], std::slice::from_ref(segment)].concat();
            if self.sources.contains_key(&inner) {
                module = inner;
                continue;
            }
            let import = self.sources.get(&module).and_then(|source| source.import(segment));
            let reexported = import.and_then(|import| self.absolute(&module, &import.path));
            return match reexported.map(|target| [&target[..], &path[index + 1..]].concat()) {
                Some(target) if target != path => self.resolve(&target),
                _ => (module, Some(segment.clone())),
            };
        }
        (module, None)
    }
}

/// Returns the modules that can be reached from one by imports.
/// The module itself is included only if it is in a circle.
fn reachable<'e>(edges: &'e BTreeMap<&Segments, Edges>, from: &'e Segments) -> BTreeSet<&'e Segments> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        waiting.extend(edges[module].keys().filter(|other| seen.insert(*other)));
    }
    seen
}

impl Source {
    fn parse(name: &str, text: &str) -> Self {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut source = Self { name: name.to_owned(), ..Self::default() };
        source.visit_file(&file);
        source
    }

    fn import(&self, name: &str) -> Option<&Import> {
        self.imports.iter().find(|import| import.name == name)
    }

    fn add_use(&mut self, tree: &syn::UseTree, prefix: &Segments, is_reexport: bool) {
        let joined = |ident: &syn::Ident| [&prefix[..], &[ident.to_string()]].concat();
        let (name, path) = match tree {
            syn::UseTree::Path(path) => return self.add_use(&path.tree, &joined(&path.ident), is_reexport),
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_use(tree, prefix, is_reexport));
            }
            syn::UseTree::Name(name) if name.ident == "self" => (prefix.last().cloned(), prefix.clone()),
            syn::UseTree::Name(name) => (Some(name.ident.to_string()), joined(&name.ident)),
            syn::UseTree::Rename(rename) if rename.ident == "self" => {
                (Some(rename.rename.to_string()), prefix.clone())
            }
            syn::UseTree::Rename(rename) => (Some(rename.rename.to_string()), joined(&rename.ident)),
            syn::UseTree::Glob(_) => (Some("*".to_owned()), [&prefix[..], &["*".to_owned()]].concat()),
        };
        self.imports.extend(name.map(|name| Import { name, path, is_reexport }));
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
        if !is_for_tests(&item.attrs) {
            self.add_use(&item.tree, &Segments::new(), is_reexport);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let text = call.tokens.to_string().replace(" :: ", "::");
        let paths = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        self.paths.extend(paths.map(|path| path.split("::").map(str::to_owned).collect()));
    }

    /// The path in `pub(in path)` names no item.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// Returns true if something has `#[cfg(test)]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Returns the module of a file.
fn module_of(name: &str) -> Segments {
    let mut parts: Segments = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || parts.len() == 1 && last == "lib") {
        parts.pop();
    }
    parts
}
