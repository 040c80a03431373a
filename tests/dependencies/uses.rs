//! The paths that the items of one file import or name, and the names that they export and define.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Item, UseTree, Visibility};

use crate::modules::join;

/// The paths of one file, from the crate's root.
#[derive(Default)]
pub struct Imports {
    /// Paths of items, or of whole modules, that the file imports or names.
    pub used: BTreeSet<String>,
    /// Modules whose items the file imports with a glob.
    pub used_globs: BTreeSet<String>,
    /// Names that the file re-exports, and their items.
    pub exported: BTreeMap<String, String>,
    /// Modules whose items the file re-exports with a glob.
    pub exported_globs: BTreeSet<String>,
    /// Names of items that the file defines.
    pub defined: BTreeSet<String>,
    /// Modules that the file declares and that are in other files.
    children: BTreeSet<String>,
}

/// Reads the items of the module `module`.
pub fn imports(items: &[Item], module: &str) -> Imports {
    let mut visitor = Visitor {
        module,
        imports: Imports::default(),
        aliases: BTreeMap::new(),
    };
    for item in items {
        visitor.note_definition(item);
    }
    for item in items {
        visitor.visit_item(item);
    }
    visitor.imports
}

struct Visitor<'a> {
    module: &'a str,
    imports: Imports,
    /// Names that a `use` brings into scope, and their items.
    aliases: BTreeMap<String, String>,
}

impl Visitor<'_> {
    fn note_definition(&mut self, item: &Item) {
        let name = match item {
            Item::Const(it) => &it.ident,
            Item::Enum(it) => &it.ident,
            Item::Fn(it) => &it.sig.ident,
            Item::Static(it) => &it.ident,
            Item::Struct(it) => &it.ident,
            Item::Trait(it) => &it.ident,
            Item::Type(it) => &it.ident,
            Item::Mod(it) if it.content.is_none() => {
                self.imports.children.insert(it.ident.to_string());
                return;
            }
            _ => return,
        };
        self.imports.defined.insert(name.to_string());
    }

    /// The path from the crate's root, if the path leads into the crate.
    fn absolute(&self, segments: &[String]) -> Option<String> {
        let mut base: Vec<&str> = self
            .module
            .split("::")
            .filter(|it| !it.is_empty())
            .collect();
        let (first, rest) = segments.split_first()?;
        let mut rest = rest;
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
                while let Some((next, more)) = rest.split_first()
                    && next == "super"
                {
                    base.pop();
                    rest = more;
                }
            }
            _ => return None,
        }
        Some(join(&base.join("::"), &rest.join("::")))
    }

    fn note_use(&mut self, tree: &UseTree, prefix: &[String], is_export: bool) {
        let with = |name: String| prefix.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => {
                self.note_use(&path.tree, &with(path.ident.to_string()), is_export);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_use(tree, prefix, is_export);
                }
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                match name.as_str() {
                    "self" => self.note_name(prefix, prefix.last().cloned(), is_export),
                    _ => self.note_name(&with(name.clone()), Some(name), is_export),
                }
            }
            UseTree::Rename(rename) => {
                let path = with(rename.ident.to_string());
                self.note_name(&path, Some(rename.rename.to_string()), is_export);
            }
            UseTree::Glob(_) => {
                if let Some(path) = self.crate_path(prefix) {
                    match is_export {
                        true => self.imports.exported_globs.insert(path),
                        false => self.imports.used_globs.insert(path),
                    };
                }
            }
        }
    }

    /// Like [`absolute`](Self::absolute), but also for `pub use child::Name`, which names a child without `self`.
    fn crate_path(&self, segments: &[String]) -> Option<String> {
        self.absolute(segments).or_else(|| {
            let first = segments.first()?;
            let is_child = self.imports.children.contains(first);
            is_child.then(|| join(self.module, &segments.join("::")))
        })
    }

    fn note_name(&mut self, segments: &[String], name: Option<String>, is_export: bool) {
        let (Some(path), Some(name)) = (self.crate_path(segments), name) else {
            return;
        };
        self.aliases.insert(name.clone(), path.clone());
        match is_export {
            // A re-export is not a use.
            true => drop(self.imports.exported.insert(name, path)),
            false => drop(self.imports.used.insert(path)),
        }
    }

    /// Paths in the arguments of macros, which are not parsed.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.note_path(&path);
                        path.clear();
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.note_path(&path);
                    path.clear();
                    self.note_tokens(group.stream());
                }
                _ => {
                    self.note_path(&path);
                    path.clear();
                    colons = 0;
                }
            }
        }
        self.note_path(&path);
    }

    fn note_path(&mut self, segments: &[String]) {
        let Some(first) = segments.first() else {
            return;
        };
        if let Some(path) = self.crate_path(segments) {
            self.imports.used.insert(path);
        } else if let Some(target) = self.aliases.get(first) {
            // The path starts with an imported module, of which it uses an item.
            let path = join(target, &segments[1..].join("::"));
            self.imports.used.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = item.attrs.iter().any(|attribute| {
            let arguments = attribute.parse_args::<syn::Path>();
            attribute.path().is_ident("cfg") && arguments.is_ok_and(|it| it.is_ident("test"))
        });
        if !is_test {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_export = !matches!(item.vis, Visibility::Inherited);
        self.note_use(&item.tree, &[], is_export);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        self.note_path(&segments);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.note_tokens(item.tokens.clone());
    }
}
