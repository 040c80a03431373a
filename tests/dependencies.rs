//! The direction of dependencies between modules, as ARCHITECTURE.md draws it: a `use crate::` that
//! points up the map fails.

use std::{fs, path::Path};

/// Each module and what it may use, besides itself and the crate's error type.
const ALLOWED: [(&str, &[&str]); 14] = [
    (
        "web",
        &[
            "runtime", "api", "engine", "model", "weights", "ops", "device",
        ],
    ),
    (
        "runtime",
        &[
            "test_hooks",
            "api",
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
    ("api", &["text", "engine", "grammar"]),
    ("text", &["weights"]),
    ("engine", &["sample", "grammar"]),
    ("grammar", &["sample", "text"]),
    ("sample", &[]),
    (
        "model",
        &[
            "engine",
            "sample",
            "tuner",
            "ops",
            "weights",
            "tensor_types",
            "device",
        ],
    ),
    ("tuner", &["ops", "tensor_types", "device"]),
    ("weights", &["tensor_types"]),
    ("ops", &["sample", "tensor_types", "device"]),
    ("tensor_types", &[]),
    ("device", &[]),
];

#[test]
fn modules_use_only_what_lies_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    for (module, allowed) in ALLOWED {
        for (file, text) in files(&src.join(module)) {
            // Tests may reach further: they join parts that the code keeps apart.
            if file.contains("test") {
                continue;
            }
            for used in used_modules(&text) {
                let known = ALLOWED.iter().any(|(name, _)| *name == used);
                let legal = !known || used == module || allowed.contains(&used.as_str());
                assert!(legal, "{file}: {module} must not use {used}");
                checked += usize::from(known);
            }
        }
    }
    assert!(
        checked > 50,
        "only {checked} uses found: does the search still work?"
    );
}

/// The engine sees of the model only its trait; only `runtime` joins the rest.
#[test]
fn the_engine_knows_the_model_by_its_trait() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    for (file, text) in files(&src) {
        for name in ["Transformer", "ModelConfig", "Gguf", "serde_json"] {
            assert!(!text.contains(name), "{file} mentions {name}");
        }
    }
}

fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a module's folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            found.push((path.display().to_string(), text));
        }
    }
    found
}

/// First segments of `crate::a::…` and of `crate::{a::…, b::…}`, outside of `#[cfg(test)]` modules.
fn used_modules(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut used = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => used.push(word(after)),
            Some(group) => {
                let mut depth = 0;
                let mut start = true;
                for (i, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && c.is_alphabetic() => {
                            used.push(word(&group[i..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    used
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}
