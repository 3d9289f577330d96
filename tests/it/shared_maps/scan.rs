//! Finds fields and statics that hold a map, set or cache behind a lock.
//! They are found in the syntax trees of sources.
//!
//! A type is followed through aliases and through the structs and enums that are declared in these sources, so that
//! `Arc<Mutex<State>>` counts if `State` has a map somewhere. Names are looked up in the same file first, then in all files
//! whose declaration is visible; of several declarations with one name one with a map is enough. A map that has a lock of its
//! own further inside is a place of its own. Code for tests is left out.

use std::collections::{BTreeMap, BTreeSet};

use syn::parse::ParseStream;
use syn::visit::{self, Visit};

/// Types that let several threads or tasks change a value.
const LOCKS: [&str; 6] = ["Mutex", "RwLock", "LongLock", "ReentrantMutex", "FairMutex", "ArcSwap"];

/// Types with entries under keys; every type whose name ends with `Cache` counts as well.
const MAPS: [&str; 7] = ["HashMap", "BTreeMap", "IndexMap", "HashSet", "BTreeSet", "IndexSet", "Slab"];

/// Maps that need no lock around them.
const CONCURRENT: [&str; 4] = ["DashMap", "DashSet", "SkipMap", "SkipSet"];

/// A source file, parsed.
pub(super) struct Source {
    name: String,
    fields: Vec<Field>,
    declared: BTreeMap<String, Vec<Declaration>>,
    /// The module that a name is imported from, if that is no keyword.
    imports: BTreeMap<String, String>,
}

/// A place of a value: `Struct.field`, `Struct.0`, `Enum::Variant.field` or the name of a static.
struct Field {
    place: String,
    of: syn::Type,
    is_thread_local: bool,
}

/// A field of a type that is declared in a file, or an alias.
/// For an alias, it has the type that the alias stands for.
struct Declaration {
    of: syn::Type,
    is_alias: bool,
    is_public: bool,
    /// The place of the field.
    place: String,
}

/// The name and visibility of a declared type.
struct Owner<'a> {
    /// The name in messages.
    name: String,
    of_type: &'a syn::Ident,
    visibility: &'a syn::Visibility,
}

impl Source {
    /// Parses a file; `name` is used in messages.
    pub(super) fn parse(name: &str, text: &str) -> Self {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut source = Self {
            name: name.to_owned(),
            fields: Vec::new(),
            declared: BTreeMap::new(),
            imports: BTreeMap::new(),
        };
        source.visit_file(&file);
        source
    }

    fn declare(&mut self, owner: &Owner<'_>, place: &str, of: &syn::Type, is_alias: bool) {
        let is_public = !matches!(owner.visibility, syn::Visibility::Inherited);
        let declaration = Declaration { of: of.clone(), is_alias, is_public, place: place.to_owned() };
        self.declared.entry(owner.of_type.to_string()).or_default().push(declaration);
    }

    fn add_fields(&mut self, owner: &Owner<'_>, fields: &syn::Fields) {
        for (index, field) in fields.iter().enumerate().filter(|(_, field)| !is_for_tests(&field.attrs)) {
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            let place = format!("{}.{name}", owner.name);
            self.declare(owner, &place, &field.ty, false);
            self.fields.push(Field { place, of: field.ty.clone(), is_thread_local: false });
        }
    }

    fn add_static(&mut self, name: &syn::Ident, of: &syn::Type, is_thread_local: bool) {
        self.fields.push(Field { place: name.to_string(), of: of.clone(), is_thread_local });
    }

    /// Returns whether a declaration of this file can be named in another one.
    /// That is so if it is public, or if the other is a module below.
    fn shows(&self, declaration: &Declaration, other: &Self) -> bool {
        let folder = self
            .name
            .strip_suffix("mod.rs")
            .map_or_else(|| format!("{}/", self.name.trim_end_matches(".rs")), str::to_owned);
        declaration.is_public || self.name == other.name || other.name.starts_with(&folder)
    }

    /// Returns whether the module of this file has this name.
    fn is_module(&self, name: &str) -> bool {
        self.name.ends_with(&format!("/{name}.rs"))
            || self.name.ends_with(&format!("/{name}/mod.rs"))
            || self.name == format!("{name}.rs")
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            // A function may declare types and statics of its own.
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if !is_for_tests(&item.attrs) {
            let owner = Owner { name: item.ident.to_string(), of_type: &item.ident, visibility: &item.vis };
            self.add_fields(&owner, &item.fields);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        for variant in item.variants.iter().filter(|_| !is_for_tests(&item.attrs)) {
            let name = format!("{}::{}", item.ident, variant.ident);
            self.add_fields(&Owner { name, of_type: &item.ident, visibility: &item.vis }, &variant.fields);
        }
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        if !is_for_tests(&item.attrs) {
            let owner = Owner { name: item.ident.to_string(), of_type: &item.ident, visibility: &item.vis };
            self.declare(&owner, "", &item.ty, true);
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        if !is_for_tests(&item.attrs) {
            self.add_static(&item.ident, &item.ty, false);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_imports(&item.tree, "");
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.segments.last().is_some_and(|segment| segment.ident == "thread_local") {
            let declared =
                call.parse_body_with(thread_locals).unwrap_or_else(|error| panic!("{}: {error}", self.name));
            declared.iter().for_each(|(name, of)| self.add_static(name, of, true));
        }
    }
}

impl Source {
    fn add_imports(&mut self, tree: &syn::UseTree, module: &str) {
        match tree {
            syn::UseTree::Path(path) => self.add_imports(&path.tree, &path.ident.to_string()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.add_imports(item, module)),
            syn::UseTree::Name(name) if !["crate", "super", "self", ""].contains(&module) => {
                self.imports.insert(name.ident.to_string(), module.to_owned());
            }
            _ => {}
        }
    }
}

/// The names and types in a `thread_local!`.
fn thread_locals(input: ParseStream<'_>) -> syn::Result<Vec<(syn::Ident, syn::Type)>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        input.call(syn::Attribute::parse_outer)?;
        input.parse::<syn::Visibility>()?;
        input.parse::<syn::Token![static]>()?;
        let name = input.parse()?;
        input.parse::<syn::Token![:]>()?;
        found.push((name, input.parse()?));
        input.parse::<syn::Token![=]>()?;
        input.parse::<syn::Expr>()?;
        input.parse::<Option<syn::Token![;]>>()?;
    }
    Ok(found)
}

/// Returns whether an item has `#[cfg(test)]` or `#[test]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Returns the places that hold a map, set or cache behind a lock.
/// They are those of all sources, as `FILE PLACE`.
pub(super) fn shared_maps(sources: &[Source]) -> BTreeSet<String> {
    // In the second search, a lock around a type with such a place inside is not found because of that place.
    find(sources, &find(sources, &BTreeSet::new()))
}

fn find(sources: &[Source], known: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        let search = Search { source, sources, known };
        let holds = |field: &&Field| {
            search.is_shared_map(&field.of, &mut BTreeSet::new())
                || field.is_thread_local && search.has_map(&field.of, &mut BTreeSet::new())
        };
        found.extend(
            source.fields.iter().filter(holds).map(|field| format!("{} {}", source.name, field.place)),
        );
    }
    found
}

/// Resolves types by their names in one source.
#[derive(Clone, Copy)]
struct Search<'s> {
    source: &'s Source,
    sources: &'s [Source],
    /// The places that were found before, whose maps are theirs.
    known: &'s BTreeSet<String>,
}

impl<'s> Search<'s> {
    /// Returns whether a lock with a map inside is part of a type.
    /// Aliases are resolved. A struct with such a field is no such place itself: its field is.
    fn is_shared_map(&self, of: &syn::Type, seen: &mut BTreeSet<String>) -> bool {
        paths(of).iter().any(|path| {
            let segment = path.segments.last().expect("a path has a segment");
            let name = segment.ident.to_string();
            let has_map = |inner: &syn::Type| self.has_map(inner, &mut BTreeSet::new());
            CONCURRENT.contains(&name.as_str())
                || self.is_lock(path, &name) && arguments(segment).any(has_map)
                || seen.insert(name.clone())
                    && self.declarations(&name).any(|(source, declaration)| {
                        declaration.is_alias
                            && Search { source, ..*self }.is_shared_map(&declaration.of, seen)
                    })
        })
    }

    /// Returns whether a type is a lock.
    /// Tokio's channel of one value that its senders change counts as well.
    fn is_lock(&self, path: &syn::Path, name: &str) -> bool {
        let is_watch = || {
            path.segments.iter().any(|segment| segment.ident == "watch")
                || self.source.imports.get(name).is_some_and(|module| module == "watch")
        };
        LOCKS.contains(&name) || name == "Sender" && is_watch()
    }

    /// Returns whether a map, set or cache is anywhere in a type.
    fn has_map(&self, of: &syn::Type, seen: &mut BTreeSet<String>) -> bool {
        paths(of).iter().any(|path| {
            let name = path.segments.last().expect("a path has a segment").ident.to_string();
            MAPS.contains(&name.as_str())
                || CONCURRENT.contains(&name.as_str())
                || name.ends_with("Cache")
                || seen.insert(name.clone())
                    && self.declarations(&name).any(|(source, declaration)| {
                        !self.known.contains(&format!("{} {}", source.name, declaration.place))
                            && Search { source, ..*self }.has_map(&declaration.of, seen)
                    })
        })
    }

    /// The declarations of a type of these sources, by its name.
    fn declarations(&self, name: &str) -> impl Iterator<Item = (&'s Source, &'s Declaration)> {
        let of = |source: &'s Source| {
            let all = source.declared.get(name).into_iter().flatten();
            all.filter(move |declaration| source.shows(declaration, self.source))
                .map(move |found| (source, found))
        };
        let all = |wanted: &dyn Fn(&Source) -> bool| -> Vec<(&'s Source, &'s Declaration)> {
            self.sources.iter().filter(|source| wanted(source)).flat_map(of).collect()
        };
        let mut found = all(&|source| source.name == self.source.name);
        if let Some(module) = self.source.imports.get(name).filter(|_| found.is_empty()) {
            found = all(&|source| source.is_module(module));
        }
        if found.is_empty() {
            found = all(&|_| true);
        }
        found.into_iter()
    }
}

/// All paths in a type, at any depth.
fn paths(of: &syn::Type) -> Vec<syn::Path> {
    struct Collector(Vec<syn::Path>);
    impl<'ast> Visit<'ast> for Collector {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            self.0.push(path.clone());
            visit::visit_path(self, path);
        }
    }
    let mut collector = Collector(Vec::new());
    collector.visit_type(of);
    collector.0
}

/// The types in the angle brackets of a segment.
fn arguments(segment: &syn::PathSegment) -> impl Iterator<Item = &syn::Type> {
    let arguments = match &segment.arguments {
        syn::PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        syn::GenericArgument::Type(of) => Some(of),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places that are found in files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(name, text)| Source::parse(name, text)).collect();
        shared_maps(&sources).into_iter().collect()
    }

    #[test]
    fn a_map_behind_a_lock_is_found_in_any_spelling() {
        for (text, place) in [
            ("struct A { b: Mutex<HashMap<String, u8>> }", "A.b"),
            ("struct A { b: Arc<tokio::sync::RwLock<std::collections::BTreeMap<K, V>>> }", "A.b"),
            ("struct A(Arc<Mutex<BTreeSet<u8>>>);", "A.0"),
            (
                "struct A {\n    b: Arc<\n        // a comment, > and {\n        Mutex<\n HashMap<\n  (u8, u8), V>>>,\n}",
                "A.b",
            ),
            ("struct A { b: Mutex<Vec<(u8, HashSet<u8>)>> }", "A.b"),
            ("struct A<T> where T: Send { b: Mutex<Option<HashMap<T, T>>> }", "A.b"),
            ("struct A { b: DashMap<u8, u8> }", "A.b"),
            ("struct A { b: Mutex<FairCache<u8, u8>> }", "A.b"),
            ("struct A { b: Mutex<LruCache<u8, u8>> }", "A.b"),
            ("struct A { b: &'static Mutex<[HashMap<u8, u8>; 4]> }", "A.b"),
            ("struct A { b: watch::Sender<BTreeMap<u8, u8>> }", "A.b"),
            ("use tokio::sync::watch::Sender; struct A { b: Sender<BTreeMap<u8, u8>> }", "A.b"),
            ("enum A { B { c: Mutex<HashMap<u8, u8>> }, D }", "A::B.c"),
            ("enum A { B(u8, Mutex<HashMap<u8, u8>>) }", "A::B.1"),
            ("static A: Mutex<BTreeMap<u8, u8>> = Mutex::new(BTreeMap::new());", "A"),
            ("fn f() { static A: OnceLock<Mutex<HashMap<u8, u8>>> = OnceLock::new(); }", "A"),
            ("thread_local! { static A: RefCell<HashMap<u8, u8>> = RefCell::new(HashMap::new()); }", "A"),
            ("thread_local! { static A: RefCell<HashMap<u8, u8>> = RefCell::default() }", "A"),
            ("mod m { pub struct A { b: Mutex<HashMap<u8, u8>> } }", "A.b"),
            ("type M = HashMap<u8, u8>; struct A { b: Mutex<M> }", "A.b"),
            ("type M<T> = Arc<Mutex<HashMap<T, T>>>; struct A { b: M<u8> }", "A.b"),
            ("type M = Mutex<N>; type N = S; struct S { m: HashMap<u8, u8> } struct A { b: M }", "A.b"),
            ("struct S { m: Vec<T> } enum T { U { m: HashMap<u8, u8> } } struct A { b: Mutex<S> }", "A.b"),
            ("struct S { next: Option<Box<S>>, m: HashMap<u8, u8> } struct A { b: Mutex<S> }", "A.b"),
        ] {
            assert_eq!(found(&[("f.rs", text)]), [format!("f.rs {place}")], "{text}");
        }
    }

    #[test]
    fn other_types_are_left_alone() {
        for text in [
            "struct A { b: HashMap<u8, u8> }",
            "struct A { b: Mutex<u8>, c: HashMap<u8, u8> }",
            "struct A { b: Mutex<Vec<u8>> }",
            "struct A { b: Arc<HashMap<u8, u8>> }",
            "static A: LazyLock<HashMap<u8, u8>> = LazyLock::new(HashMap::new);",
            "struct A { b: RefCell<HashMap<u8, u8>>, c: oneshot::Sender<HashMap<u8, u8>> }",
            "// struct A { b: Mutex<HashMap<u8, u8>> }",
            "const A: &str = \"struct A { b: Mutex<HashMap<u8, u8>> }\";",
            "#[cfg(test)] mod tests { struct A { b: Mutex<HashMap<u8, u8>> } }",
            "#[cfg(test)] struct A { b: Mutex<HashMap<u8, u8>> }",
            "#[test] fn f() { struct A { b: Mutex<HashMap<u8, u8>> } }",
            "struct S { next: Option<Box<S>> } struct A { b: Mutex<S> }",
        ] {
            assert_eq!(found(&[("f.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn only_the_field_with_the_lock_is_named_and_not_its_owner() {
        let text = "struct A { b: Mutex<HashMap<u8, u8>> } struct C { d: A, e: Arc<A>, f: Mutex<Vec<u8>> }";
        assert_eq!(found(&[("f.rs", text)]), ["f.rs A.b"]);
    }

    #[test]
    fn a_map_with_a_lock_of_its_own_further_inside_is_named_once() {
        let text =
            "struct A { b: Mutex<C> } struct C { d: Arc<Mutex<HashMap<u8, u8>>> } struct E { f: Mutex<A> }";
        assert_eq!(found(&[("f.rs", text)]), ["f.rs C.d"]);
        let both = "struct A { b: Mutex<C> } struct C { d: Mutex<HashSet<u8>>, e: HashSet<u8> }";
        assert_eq!(found(&[("f.rs", both)]), ["f.rs A.b", "f.rs C.d"]);
    }

    #[test]
    fn types_of_other_files_are_followed_and_those_of_the_same_file_first() {
        let holder = ("a.rs", "struct A { b: Mutex<State> }");
        let with_map = ("b.rs", "pub(crate) struct State { m: HashMap<u8, u8> }");
        let without = ("c.rs", "struct State { m: u8 } struct C { d: Mutex<State> }");
        assert_eq!(found(&[holder, with_map, without]), ["a.rs A.b"]);
        assert_eq!(found(&[holder, without]), [""; 0]);
        let imported = ("f.rs", "use crate::c::State; struct F { g: Mutex<State> }");
        let public = ("c.rs", "pub struct State { m: u8 }");
        assert_eq!(found(&[with_map, public, imported]), [""; 0]);
        let private = ("b.rs", "struct State { m: HashMap<u8, u8> }");
        assert_eq!(found(&[holder, private]), [""; 0]);
        let below = ("b/a.rs", "use super::State; struct A { b: Mutex<State> }");
        assert_eq!(found(&[below, private]), ["b/a.rs A.b"]);
        let alias = ("d.rs", "pub type Shared = Arc<Mutex<State>>;");
        let user = ("e.rs", "struct E { f: super::d::Shared }");
        assert_eq!(found(&[with_map, alias, user]), ["e.rs E.f"]);
    }
}
