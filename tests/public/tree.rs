//! Parses the modules of the crates, and resolves paths to definitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use syn::{Attribute, Item, UseTree, Visibility};

/// The module in which an item is defined, as a path that begins with the crate, and the name of
/// the item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Definition {
    pub module: String,
    pub name: String,
}

enum Target {
    Module(String),
    Item(Definition),
}

/// A path that `use` imports, and the name that it gets; `*` stands for all names.
type Import = (Vec<String>, String);

/// The items of all modules, by the path of the module, such as `serrate_core::table::index`.
pub(crate) struct Tree {
    modules: BTreeMap<String, Vec<Item>>,
}

impl Tree {
    /// Parses crates, given by their name and the path of their root file.
    pub(crate) fn read(crates: &[(&str, &str)]) -> Self {
        let mut tree = Self { modules: BTreeMap::new() };
        for (name, root) in crates {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
            tree.read_file(name, &root, root.parent().unwrap());
        }
        tree
    }

    /// Parses modules, given by their path and source text.
    pub(crate) fn of(modules: &[(&str, &str)]) -> Self {
        let mut tree = Self { modules: BTreeMap::new() };
        for (path, text) in modules {
            for item in tree.add(path, syn::parse_file(text).unwrap().items) {
                assert!(modules.iter().any(|(m, _)| *m == format!("{path}::{item}")));
            }
        }
        tree
    }

    fn read_file(&mut self, module: &str, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for child in self.add(module, parsed.items) {
            let flat = folder.join(format!("{child}.rs"));
            let below = folder.join(&child);
            let file = if flat.exists() { flat } else { below.join("mod.rs") };
            self.read_file(&format!("{module}::{child}"), &file, &below);
        }
    }

    /// Adds the items of a module and of its inline modules. Returns the names of the child modules
    /// that are in files.
    fn add(&mut self, module: &str, items: Vec<Item>) -> Vec<String> {
        let items: Vec<Item> = items.into_iter().filter(|i| !is_test(list_attributes(i))).collect();
        let mut files = Vec::new();
        for item in &items {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                match &child.content {
                    // Inline modules of these crates have no child modules in files.
                    Some((_, items)) => {
                        self.add(&format!("{module}::{name}"), items.clone());
                    }
                    None => files.push(name),
                }
            }
        }
        self.modules.insert(module.to_owned(), items);
        files
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (&String, &Vec<Item>)> {
        self.modules.iter()
    }

    /// Returns all items with the name of a definition, because a function and a module may share a
    /// name.
    pub(crate) fn items(&self, definition: &Definition) -> impl Iterator<Item = &Item> {
        let items = self.modules.get(&definition.module).into_iter().flatten();
        items.filter(|item| name_of(item).is_some_and(|name| name == definition.name))
    }

    pub(crate) fn is_type(&self, definition: &Definition) -> bool {
        self.items(definition).any(|item| {
            matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Type(_))
        })
    }

    /// Adds the public items of `module`, which users name by `path`, to `found`.
    pub(crate) fn collect_public(
        &self,
        module: &str,
        path: &str,
        found: &mut BTreeMap<Definition, Vec<String>>,
    ) {
        let Some(items) = self.modules.get(module) else { return };
        let add = |definition: Definition, name: &str, found: &mut BTreeMap<_, Vec<String>>| {
            found.entry(definition).or_default().push(format!("{path}::{name}"));
        };
        for (number, item) in items.iter().enumerate() {
            let exported = has_word(list_attributes(item), "macro_export");
            if is_hidden(list_attributes(item)) || !(is_public(item) || exported) {
                continue;
            }
            match item {
                Item::Mod(child) => {
                    let name = &child.ident;
                    self.collect_public(
                        &format!("{module}::{name}"),
                        &format!("{path}::{name}"),
                        found,
                    );
                }
                Item::Use(declared) => {
                    for (from, name) in list_imports(&declared.tree) {
                        match self.resolve_path(module, &from, 0) {
                            Some(Target::Module(of)) if name == "*" => {
                                self.collect_public(&of, path, found);
                            }
                            Some(Target::Module(of)) => {
                                self.collect_public(&of, &format!("{path}::{name}"), found);
                            }
                            Some(Target::Item(definition)) => {
                                // If a public module has the same name, `use` exports it, too.
                                let of = format!("{}::{}", definition.module, definition.name);
                                if self.modules.contains_key(&of)
                                    && self.is_public_module(&definition)
                                {
                                    self.collect_public(&of, &format!("{path}::{name}"), found);
                                }
                                add(definition, &name, found);
                            }
                            // The item belongs to another crate, or a macro defines it.
                            None => add(
                                Definition { module: "use".into(), name: from.join("::") },
                                &name,
                                found,
                            ),
                        }
                    }
                }
                // `compile_error!` defines no item.
                Item::Macro(call) if call.mac.path.is_ident("compile_error") => {}
                Item::Macro(call) if call.ident.is_none() => {
                    let name = call.mac.path.segments.last().unwrap().ident.to_string();
                    let definition =
                        Definition { module: module.to_owned(), name: format!("{name}!{number}") };
                    add(definition, &format!("{name}!"), found);
                }
                item => {
                    if let Some(name) = name_of(item) {
                        let definition = Definition { module: module.to_owned(), name };
                        let name = definition.name.clone();
                        add(definition, &name, found);
                    }
                }
            }
        }
    }

    fn is_public_module(&self, definition: &Definition) -> bool {
        self.items(definition).any(|item| matches!(item, Item::Mod(_)) && is_public(item))
    }

    /// Returns the type that an `impl` in `module` names by `path`, or `None` if these crates do
    /// not define it.
    pub(crate) fn resolve_type(&self, module: &str, path: &[String]) -> Option<Definition> {
        match self.resolve_path(module, path, 0) {
            Some(Target::Item(definition)) => Some(definition),
            _ => None,
        }
    }

    /// Returns the module or item that `path` names within `module`, or `None` if these crates do
    /// not define it. `depth` is the number of imports that were followed.
    fn resolve_path(&self, module: &str, path: &[String], depth: usize) -> Option<Target> {
        // So many imports occur only if names import each other in a cycle.
        if depth > 16 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let root = module.split("::").next().unwrap();
        let mut at = match first.as_str() {
            "crate" => Target::Module(root.to_owned()),
            "self" => Target::Module(module.to_owned()),
            "super" => Target::Module(module.rsplit_once("::")?.0.to_owned()),
            name => match self.find_name(module, name, depth) {
                Some(target) => target,
                None if self.modules.contains_key(name) => Target::Module(name.to_owned()),
                None => return None,
            },
        };
        for name in rest {
            let of = match at {
                Target::Module(of) => of,
                // A path such as `index::Index`, where both a function and a module have the name
                // `index`.
                Target::Item(Definition { module, name }) => format!("{module}::{name}"),
            };
            at = match name.as_str() {
                "super" => Target::Module(of.rsplit_once("::")?.0.to_owned()),
                "*" => Target::Module(of),
                name => self.find_name(&of, name, depth)?,
            };
        }
        Some(at)
    }

    fn find_name(&self, module: &str, name: &str, depth: usize) -> Option<Target> {
        let items = self.modules.get(module)?;
        let of_name = |item: &&Item| name_of(item).is_some_and(|n| n == name);
        if items.iter().any(|item| !matches!(item, Item::Mod(_)) && of_name(&item)) {
            let definition = Definition { module: module.to_owned(), name: name.to_owned() };
            return Some(Target::Item(definition));
        }
        if items.iter().any(|item| of_name(&item)) {
            return Some(Target::Module(format!("{module}::{name}")));
        }
        let mut globs = Vec::new();
        for item in items {
            let Item::Use(declared) = item else { continue };
            for (from, as_name) in list_imports(&declared.tree) {
                if as_name == "*" {
                    globs.push(from);
                } else if as_name == name
                    && let Some(target) = self.resolve_path(module, &from, depth + 1)
                {
                    return Some(target);
                }
            }
        }
        globs.iter().find_map(|from| match self.resolve_path(module, from, depth + 1)? {
            Target::Module(of) if of != module => self.find_name(&of, name, depth + 1),
            _ => None,
        })
    }
}

/// Returns the paths that an import names, each with the name that it gets in the importing module.
fn list_imports(tree: &UseTree) -> Vec<Import> {
    match tree {
        UseTree::Path(path) => list_imports(&path.tree)
            .into_iter()
            .map(|(mut rest, name)| {
                let first = path.ident.to_string();
                // `a::{self}` imports `a`.
                if rest == ["self"] {
                    let name = if name == "self" { first.clone() } else { name };
                    return (vec![first], name);
                }
                rest.insert(0, first);
                (rest, name)
            })
            .collect(),
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Glob(_) => vec![(vec!["*".into()], "*".into())],
        UseTree::Group(group) => group.items.iter().flat_map(list_imports).collect(),
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Macro(i) => i.ident.as_ref()?,
        Item::Mod(i) => &i.ident,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns whether an item is `pub`. A macro call counts as public, because its text is recorded.
fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(i) => &i.vis,
        Item::Enum(i) => &i.vis,
        Item::Fn(i) => &i.vis,
        Item::Macro(i) => return i.ident.is_none(),
        Item::Mod(i) => &i.vis,
        Item::Static(i) => &i.vis,
        Item::Struct(i) => &i.vis,
        Item::Trait(i) => &i.vis,
        Item::Type(i) => &i.vis,
        Item::Union(i) => &i.vis,
        Item::Use(i) => &i.vis,
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_))
}

pub(crate) fn list_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

fn has_word(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|a| a.path().is_ident(name))
}

pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("doc")
            && matches!(&a.meta, syn::Meta::List(l) if l.tokens.to_string().contains("hidden"))
    })
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("cfg")
            && matches!(&a.meta, syn::Meta::List(l) if l.tokens.to_string().contains("test"))
    })
}
