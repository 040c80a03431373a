//! The TypeScript types of everything that crosses into JavaScript, generated from the Rust types by
//! `ts-rs` into `www/src/generated/types.ts`. The test compares that file with the Rust types; with
//! `INPAGE_WRITE_TYPES=1` in the environment it rewrites the file instead.

use std::collections::BTreeMap;
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

const FILE: &str = "www/src/generated/types.ts";

const HEADER: &str = "\
// Generated from the Rust types: do not edit. Rewrite it with
// `INPAGE_WRITE_TYPES=1 cargo test --lib --features test-hooks typescript`.
";

/// The declarations of the visited types and of all types that these use, by name.
struct Declarations {
    config: Config,
    by_name: BTreeMap<String, String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Types without a declaration of their own, such as numbers and arrays, have no path.
        if T::output_path().is_none() {
            return;
        }
        let docs = T::docs().unwrap_or_default();
        let declaration = format!("{docs}export {}", T::decl(&self.config));
        let name = T::ident(&self.config);
        if let Some(known) = self.by_name.get(&name) {
            assert_eq!(*known, declaration, "two types are called {name}");
            return;
        }
        self.by_name.insert(name, declaration);
        T::visit_dependencies(self);
    }
}

/// `text` with each member that has documentation on a line of its own, indented by its depth.
fn indented(text: &str) -> String {
    let text = text.replace("/**\n * ", "/** ").replace("\n */", " */");
    let mut depth = 0_usize;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_comment = line.starts_with("/*");
        let closed = line.chars().take_while(|c| *c == '}').count();
        let indent = "  ".repeat(depth.saturating_sub(closed));
        lines.push(format!("{indent}{line}"));
        if !is_comment {
            depth = depth + line.matches('{').count() - line.matches('}').count();
        }
    }
    lines.join("\n")
}

#[test]
fn generated_types_are_those_of_rust() {
    let mut declarations = Declarations {
        config: Config::new().with_large_int("number"),
        by_name: BTreeMap::new(),
    };
    crate::api::visit_types(&mut declarations);
    crate::runtime::visit_types(&mut declarations);

    let mut generated = HEADER.to_owned();
    for declaration in declarations.by_name.values() {
        generated.push('\n');
        generated.push_str(&indented(declaration));
        generated.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("INPAGE_WRITE_TYPES").is_some() {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        // A checkout may have different line endings.
        checked_in.replace("\r\n", "\n") == generated,
        "{FILE} is out of date: run this test with INPAGE_WRITE_TYPES=1"
    );
}
