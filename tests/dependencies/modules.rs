//! The crate as a tree of modules, one per file, and what each uses of the others. Follows `mod` declarations from
//! `lib.rs`, so that test files, which are declared under `#[cfg(test)]`, are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::{Attribute, Item};

use crate::uses::{Imports, imports};

/// Modules by path (`api::request`; the crate's root is the empty path).
pub struct Crate {
    modules: BTreeMap<String, Imports>,
}

impl Crate {
    /// Reads every module below `src/lib.rs`.
    pub fn read(src: &Path) -> Crate {
        let mut found = Crate {
            modules: BTreeMap::new(),
        };
        found.add(&src.join("lib.rs"), src, String::new());
        found
    }

    /// `folder` holds the files of the module's children.
    fn add(&mut self, file: &Path, folder: &Path, path: String) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let syntax =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items: Vec<Item> = syntax.items.into_iter().filter(|it| !is_test(it)).collect();
        for item in &items {
            let Item::Mod(child) = item else { continue };
            // A module written inside a file belongs to the file.
            if child.content.is_some() {
                continue;
            }
            let name = child.ident.to_string();
            let below = folder.join(&name);
            let flat = folder.join(format!("{name}.rs"));
            let file = match flat.exists() {
                true => flat,
                false => below.join("mod.rs"),
            };
            self.add(&file, &below, join(&path, &name));
        }
        self.modules.insert(path.clone(), imports(&items, &path));
    }

    /// The files that each file uses. Re-exports are followed to the file that defines the item.
    pub fn edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let edges = self.modules.iter().map(|(user, imports)| {
            // Items that are used of an imported module are also among the paths. Importing a module is not a use.
            let items = imports
                .used
                .iter()
                .filter(|path| !self.modules.contains_key(*path) || self.is_exported(path));
            let used = items
                .chain(&imports.used_globs)
                .filter_map(|path| self.home(path, 0));
            (user.clone(), used.filter(|used| used != user).collect())
        });
        edges.collect()
    }

    /// Whether a module re-exports an item under this path, which may also be the path of the module that the item is in.
    fn is_exported(&self, path: &str) -> bool {
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
        let module = self.modules.get(module);
        module.is_some_and(|module| module.exported.contains_key(name))
    }

    /// Imports of files below `folder` that name an item by the re-export in the root of `folder`.
    pub fn uses_through(&self, folder: &str) -> Vec<String> {
        let exported = &self.modules[folder].exported;
        let below = format!("{folder}::");
        let files = self
            .modules
            .iter()
            .filter(|(user, _)| user.starts_with(&below));
        let uses = files.flat_map(|(user, imports)| {
            let through = imports.used.iter().filter(|path| {
                let name = path
                    .strip_prefix(&below)
                    .map(|path| path.split("::").next());
                name.flatten().is_some_and(|name| {
                    // An item may have the name of the module that it is in.
                    let is_module = self.modules.contains_key(&format!("{below}{name}"));
                    exported.contains_key(name) && !is_module
                })
            });
            through.map(move |path| format!("{user} uses {path}"))
        });
        uses.collect()
    }

    /// The module that defines what `path` names.
    fn home(&self, path: &str, depth: usize) -> Option<String> {
        // Bounds the search. A re-export of itself would be a compile error.
        if depth > 16 {
            return None;
        }
        let segments: Vec<&str> = path.split("::").filter(|it| !it.is_empty()).collect();
        let known = (0..=segments.len()).rev().find_map(|count| {
            let module = segments[..count].join("::");
            self.modules
                .contains_key(&module)
                .then_some((module, count))
        });
        let (module, count) = known?;
        let Some(name) = segments.get(count) else {
            return Some(module);
        };
        let imports = &self.modules[&module];
        let rest = segments[count + 1..].join("::");
        if let Some(target) = imports.exported.get(*name) {
            return self.home(&join(target, &rest), depth + 1);
        }
        if !imports.defined.contains(*name) {
            for globbed in &imports.exported_globs {
                let candidate = join(globbed, &segments[count..].join("::"));
                if let Some(home) = self.home(&candidate, depth + 1)
                    && self.modules[&home].defined.contains(*name)
                {
                    return Some(home);
                }
            }
        }
        Some(module)
    }
}

/// Joins `a` and `b` to `a::b`. Either may be empty.
pub fn join(module: &str, name: &str) -> String {
    match (module, name) {
        ("", name) => name.to_owned(),
        (module, "") => module.to_owned(),
        (module, name) => format!("{module}::{name}"),
    }
}

fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    };
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|cfg| cfg.is_ident("test"))
    })
}
