//! The direction of dependencies between the modules of the crate, as described by ARCHITECTURE.md, inside `src/model` and the
//! crate in `src/cpu`, and among the files of each module, which must not have import cycles.

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
            "runtime", "api", "engine", "model", "images", "weights", "ops", "device", "kernel",
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
    ("api", &["text", "engine", "grammar", "images", "sample"]),
    ("text", &["weights"]),
    ("engine", &["sample", "grammar", "images"]),
    ("grammar", &["sample", "text"]),
    ("images", &[]),
    ("sample", &[]),
    (
        "model",
        &[
            "engine",
            "images",
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

/// The order inside a folder, from what uses the others down to what they use. A module uses those in its own row and in
/// rows below.
const MODEL_ROWS: &[&[&str]] = &[
    &["sampling_defaults"],
    &["inspect_tower", "refusal"],
    &["inspect"],
    &["transformer"],
    &["image_rows", "features"],
    &["patch_grid", "pace"],
    &["steps", "slots"],
    &["lora"],
    &["load", "checkpoint"],
    &["kv_reservation"],
    &["load_options"],
    &["layers"],
    &["hugging_face"],
    &["vision"],
    &["architectures"],
    &["config"],
];
/// Same as [`MODEL_ROWS`], for the crate in `src/cpu`.
const CPU_ROWS: &[&[&str]] = &[
    &["module"],
    &["product"],
    &["activations", "kernel"],
    &["lanes", "kernel_module"],
    &["team"],
    &["tensor_types"],
    &["simd"],
    &["inputs", "half"],
];

type Edges = BTreeMap<String, BTreeSet<String>>;

fn read(folder: &str) -> Crate {
    Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
}

/// The files that each file of the crate uses, without test code.
fn edges() -> Edges {
    let edges = read("src").edges();
    let count: usize = edges.values().map(BTreeSet::len).sum();
    assert!(
        count > 500,
        "only {count} uses found; the search may be broken"
    );
    edges
}

fn cpu_edges() -> Edges {
    let edges = read("src/cpu").edges();
    let count: usize = edges.values().map(BTreeSet::len).sum();
    assert!(
        count > 80,
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
fn modules_of_a_folder_use_only_their_row_and_those_below() {
    let within = |edges: Edges, folder: &str, rows: &[&[&str]]| {
        let child = |path: &str| {
            let inside = match folder {
                "" => Some(path),
                folder => path.strip_prefix(folder)?.strip_prefix("::"),
            };
            inside
                .map(|path| top(path).to_owned())
                .filter(|it| !it.is_empty())
        };
        let row = |name: &str| {
            let row = rows.iter().position(|row| row.contains(&name));
            row.unwrap_or_else(|| panic!("{folder}::{name} is in no row"))
        };
        let mut seen = BTreeSet::new();
        let mut wrong = Vec::new();
        for (user, used) in &edges {
            let Some(from) = child(user) else { continue };
            for used in used {
                if child(used).is_some_and(|to| row(&to) < row(&from)) {
                    wrong.push(format!("{user} uses {used}"));
                }
            }
            seen.insert(from);
        }
        let all: BTreeSet<String> = rows.concat().iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(seen, all, "the modules of {folder} and its rows");
        assert!(
            wrong.is_empty(),
            "upward in {folder}:\n{}",
            wrong.join("\n")
        );
    };
    within(edges(), "model", MODEL_ROWS);
    within(cpu_edges(), "", CPU_ROWS);
}

/// What `model/mod.rs` exports is for the modules above it. Inside, a file names the module that it uses, so that the order
/// is visible in its imports.
#[test]
fn files_of_a_folder_do_not_import_through_its_root() {
    assert_eq!(read("src").uses_through("model"), Vec::<String>::new());
}

#[test]
fn files_of_a_module_have_an_order() {
    for edges in [edges(), cpu_edges()] {
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
}
