//! The direction of dependencies between the modules of the crate, as described by ARCHITECTURE.md, and among the files of
//! each module, which must not have import cycles.

mod cycles;
mod modules;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cycles::cycles;
use modules::Crate;

/// Each module and what it may use, besides itself and the crate's error type.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "web",
        &[
            "runtime", "api", "engine", "model", "pictures", "weights", "ops", "device", "kernel",
        ],
    ),
    (
        "runtime",
        &[
            "test_hooks",
            "api",
            "grammar",
            "text",
            "engine",
            "sample",
            "model",
            "tuner",
            "weights",
            "ops",
            "device",
        ],
    ),
    ("test_hooks", &["api", "engine", "sample"]),
    ("api", &["text", "engine", "grammar", "pictures", "sample"]),
    ("text", &["weights"]),
    ("engine", &["sample", "grammar", "pictures"]),
    ("grammar", &["sample", "text"]),
    ("pictures", &[]),
    ("sample", &[]),
    (
        "model",
        &[
            "engine",
            "pictures",
            "sample",
            "tuner",
            "ops",
            "weights",
            "tensor_types",
            "device",
            "kernel",
        ],
    ),
    ("tuner", &["ops", "tensor_types", "device", "kernel"]),
    ("weights", &["tensor_types"]),
    ("ops", &["sample", "tensor_types", "device", "kernel"]),
    ("tensor_types", &[]),
    ("device", &["kernel"]),
    ("kernel", &[]),
];

/// The files that each file of the crate uses, without test code.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let edges = Crate::read(&src).edges();
    let count: usize = edges.values().map(BTreeSet::len).sum();
    assert!(
        count > 500,
        "only {count} uses found; the search may be broken"
    );
    edges
}

/// The top-level module of a module's path; empty for the crate's root.
fn top(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    for (user, used) in edges() {
        for used in used {
            let (from, to) = (top(&user), top(&used));
            if from.is_empty() || to.is_empty() || from == to || to == "error" {
                continue;
            }
            let allowed = ALLOWED.iter().find(|(module, _)| *module == from);
            let (_, allowed) = allowed.unwrap_or_else(|| panic!("{from} is not in the list"));
            if !allowed.contains(&to) {
                wrong.push(format!("{user} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "not allowed:\n{}", wrong.join("\n"));
}

/// A list that allows a cycle, or names a module that does not exist, would check nothing.
#[test]
fn the_list_of_modules_has_an_order() {
    let graph = ALLOWED.iter().map(|(module, uses)| {
        let uses = uses.iter().map(|used| (*used).to_owned());
        ((*module).to_owned(), uses.collect::<BTreeSet<_>>())
    });
    let graph: BTreeMap<_, _> = graph.collect();
    assert_eq!(cycles(&graph), Vec::<Vec<String>>::new());
    let found: BTreeSet<String> = edges().keys().map(|user| top(user).to_owned()).collect();
    for module in graph.keys() {
        // Modules that are compiled only for the web are also read.
        assert!(found.contains(module), "there is no module {module}");
    }
}

#[test]
fn files_of_a_module_have_an_order() {
    let edges = edges();
    let mut found = Vec::new();
    for cycle in cycles(&edges) {
        let members: BTreeSet<&String> = cycle.iter().collect();
        let inside = cycle.iter().flat_map(|user| {
            let used = edges[user].iter().filter(|used| members.contains(used));
            used.map(move |used| format!("    {user} -> {used}"))
        });
        let inside: Vec<String> = inside.collect();
        found.push(format!("{} files:\n{}", cycle.len(), inside.join("\n")));
    }
    assert!(found.is_empty(), "import cycles\n{}", found.join("\n"));
}
