//! The direction of dependencies between the modules of the crate, which is that of the table in ARCHITECTURE.md, inside `src/model`
//! and the crate in `src/cpu`, and among the files of each module, which must not have import cycles.

mod cycles;
mod modules;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cycles::cycles;
use modules::Crate;

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
    &["activations", "kernel", "reference"],
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

/// A row of the table of modules in ARCHITECTURE.md.
struct Row {
    modules: Vec<String>,
    uses: BTreeSet<String>,
}

/// The table of modules in ARCHITECTURE.md, from top to bottom.
fn table() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let page = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let (_, table) = page
        .split_once("\n| module |")
        .expect("the table of modules");
    let (table, _) = table.split_once("\n\n").expect("text after the table");
    let quoted = |cell: &str| -> Vec<String> {
        let names = cell.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    };
    let rows = table.lines().skip(2).map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        Row {
            modules: quoted(cells[1]),
            uses: quoted(cells[cells.len() - 2]).into_iter().collect(),
        }
    });
    rows.collect()
}

/// The other modules that each top-level module uses, besides the crate's error type.
fn uses_of_modules() -> Edges {
    let mut found = Edges::new();
    for (user, used) in edges() {
        let used = used.iter().map(|it| top(it));
        let used = used.filter(|to| !["", "error", top(&user)].contains(to));
        match top(&user) {
            "" | "error" => {}
            from => found
                .entry(from.to_owned())
                .or_default()
                .extend(used.map(str::to_owned)),
        }
    }
    found
}

#[test]
fn the_table_of_modules_has_their_uses() {
    let found = uses_of_modules();
    let table = table();
    let row_of = |module: &str| {
        let row = table
            .iter()
            .position(|row| row.modules.iter().any(|it| it == module));
        row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {module}"))
    };
    let mut wrong = Vec::new();
    for (module, uses) in &found {
        let row = row_of(module);
        if *uses != table[row].uses {
            wrong.push(format!(
                "{module} uses {uses:?}, and its row says {:?}",
                table[row].uses
            ));
        }
        for used in uses.iter().filter(|used| row_of(used) <= row) {
            wrong.push(format!("{module} uses {used}, which is not below it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // `cpu` is a crate of its own.
    let named = table.iter().flat_map(|row| &row.modules);
    let named: Vec<&String> = named.filter(|name| *name != "cpu").collect();
    assert_eq!(named.len(), found.len(), "{named:?} and {:?}", found.keys());
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

/// The re-exports of `model/mod.rs` are for the modules above it. Inside, a file names the module that it uses, so that the order
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
