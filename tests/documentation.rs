//! Everything that comments and documents cite exists: sections of `docs/specification.md`, cases of
//! `docs/conformance.md`, documents, source files, and the targets of Markdown links.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

/// A text file of the repository; `path` is relative to the root.
struct File {
    path: String,
    text: String,
}

impl File {
    /// The text as running prose: line breaks and comment markers become single spaces.
    fn prose(&self) -> String {
        let breaks = Regex::new(r"\s*\n\s*(?://!|///|//|\*(?:\s)|#)?\s*").unwrap();
        breaks.replace_all(&self.text, " ").into_owned()
    }

    fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file and document. Data files (models, vectors) cite nothing and are skipped.
fn files() -> Vec<File> {
    const SOURCES: [&str; 10] = [
        "rs", "wgsl", "ts", "mjs", "js", "py", "md", "html", "css", "yml",
    ];
    const SKIPPED: [&str; 5] = ["node_modules", "target", "dist", "dist-test", "vendor"];
    fn collect(folder: &Path, found: &mut Vec<File>) {
        for entry in fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) && name != ".git" {
                    collect(&path, found);
                }
            } else if path
                .extension()
                .is_some_and(|e| SOURCES.iter().any(|s| e == *s))
            {
                let text = fs::read_to_string(&path).expect("text in UTF-8");
                let path = path.strip_prefix(root()).unwrap();
                let path = path.to_string_lossy().replace('\\', "/");
                found.push(File { path, text });
            }
        }
    }
    let mut found = Vec::new();
    collect(&root(), &mut found);
    // This file contains patterns that would be wrong citations.
    found.retain(|file| file.path != "tests/documentation.rs");
    assert!(found.len() > 300, "only {} files found", found.len());
    found
}

/// The explicit anchors of a document: `<a id="4.2"></a>`.
fn anchors(path: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let anchor = Regex::new(r#"<a id="([^"]+)">"#).unwrap();
    anchor
        .captures_iter(&text)
        .map(|found| found[1].to_owned())
        .collect()
}

/// Panics with all complaints, if there are any.
fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_cited_section_of_the_specification_exists() {
    let sections = anchors("docs/specification.md");
    let citation =
        Regex::new(r"[Ss]pecification (\d+(?:\.\d+)?(?:(?:,|,? and|,? or| to) \d+(?:\.\d+)?)*)")
            .unwrap();
    let number = Regex::new(r"\d+(?:\.\d+)?").unwrap();
    let (mut complaints, mut cited) = (Vec::new(), 0);
    for file in files() {
        for citation in citation.captures_iter(&file.prose()) {
            for section in number.find_iter(&citation[1]) {
                cited += 1;
                if !sections.contains(section.as_str()) {
                    complaints.push(format!("{}: {}", file.path, &citation[0]));
                }
            }
        }
    }
    assert_none(complaints);
    assert!(cited > 100, "only {cited} citations found");
}

#[test]
fn every_cited_case_is_described_and_every_case_has_a_test() {
    let described = anchors("docs/conformance.md");
    let citation =
        Regex::new(r"\b[Cc]ases? ((?:[A-P]|\d{3})\b(?:(?:,|,? and| to) (?:[A-P]|\d{3})\b)*)")
            .unwrap();
    let name = Regex::new(r"[A-P]|\d{3}").unwrap();
    // A case is an object, or made by a function of its group.
    let id = Regex::new(
        r#"\b(?:id: |(?:chat|embedding|messages|responses|image|rerank)Case\(\s*)"(\d{3})""#,
    )
    .unwrap();
    let (mut complaints, mut tested) = (Vec::new(), BTreeSet::new());
    for file in files() {
        for citation in citation.captures_iter(&file.prose()) {
            for case in name.find_iter(&citation[1]) {
                if !described.contains(&case.as_str().to_lowercase()) {
                    complaints.push(format!("{}: {}", file.path, &citation[0]));
                }
            }
        }
        if file.path.starts_with("tests/conformance/cases/") {
            tested.extend(
                id.captures_iter(&file.text)
                    .map(|found| found[1].to_owned()),
            );
        }
    }
    assert_none(complaints);
    let numbers = described.into_iter().filter(|name| name.len() == 3);
    assert_eq!(tested, numbers.collect());
}

#[test]
fn every_cited_document_is_in_the_repository() {
    let document = Regex::new(r"[\w.*/-]*\w\.md\b").unwrap();
    let section = Regex::new(r"(RFC \d+,? |\[)?\b[Ss]ections? \d|§").unwrap();
    let mut complaints = Vec::new();
    for file in files() {
        let folder = root().join(&file.path);
        let folder = folder.parent().unwrap();
        let prose = file.prose();
        for cited in document.find_iter(&prose) {
            // A leading slash belongs to a longer path that the code composes. A glob such as
            // `docs/adding-*.md` names a group of documents.
            let path = cited.as_str().trim_start_matches('/');
            let exists = [root().join(path), folder.join(path)]
                .iter()
                .any(|at| at.exists());
            if !path.contains('*') && !exists {
                complaints.push(format!("{}: no document {path}", file.path));
            }
        }
        for cited in section.captures_iter(&prose) {
            if cited.get(1).is_none() {
                complaints.push(format!("{}: \"{}\" of what?", file.path, &cited[0]));
            }
        }
        // Shared models are found by scripts and tests; documents name `INPAGE_MODELS`.
        if prose.contains("../shared") && file.is_markdown() {
            complaints.push(format!("{}: ../shared is outside", file.path));
        }
    }
    assert_none(complaints);
}

/// Paths in backticks such as `engine/model.rs`, from the root or from one of the source folders.
#[test]
fn every_named_file_exists() {
    const FOLDERS: [&str; 4] = ["", "src", "www/src", "docs"];
    // Records may name files that no longer exist; lines with "(new)" name files to be written.
    const HISTORY: [&str; 2] = ["docs/log.md", "CHANGELOG.md"];
    let path = Regex::new(r"`([\w.-]+(?:/[\w.-]+)+\.(?:rs|ts|mjs|js|wgsl|md|py))`").unwrap();
    // `TYPE.rs`: a name to be replaced.
    let placeholder = Regex::new(r"\b[A-Z]{2,}[._]").unwrap();
    let (mut complaints, mut named) = (Vec::new(), 0);
    for file in files() {
        if HISTORY.contains(&file.path.as_str()) {
            continue;
        }
        for line in file.text.lines().filter(|line| !line.contains("(new)")) {
            for found in path.captures_iter(line) {
                let found = &found[1];
                // Built files, and paths inside the npm package.
                let is_built = found.contains("dist/") || found.starts_with("inpage/");
                if is_built || placeholder.is_match(found) {
                    continue;
                }
                named += 1;
                let beside = root().join(&file.path).with_file_name(found);
                let from_folders = FOLDERS.iter().map(|folder| root().join(folder).join(found));
                if !from_folders.chain([beside]).any(|path| path.exists()) {
                    complaints.push(format!("{}: no file {found}", file.path));
                }
            }
        }
    }
    assert_none(complaints);
    assert!(named > 100, "only {named} paths found");
}

#[test]
fn every_relative_link_has_a_target() {
    let code = Regex::new(r"(?s)```.*?```|`[^`\n]*`").unwrap();
    let link = Regex::new(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)").unwrap();
    let (mut complaints, mut links) = (Vec::new(), 0);
    for file in files().iter().filter(|file| file.is_markdown()) {
        for link in link.captures_iter(&code.replace_all(&file.text, "")) {
            if link[1].contains("://") || link[1].starts_with("mailto:") {
                continue;
            }
            links += 1;
            let target = match &link[1] {
                "" => root().join(&file.path),
                path => root().join(&file.path).parent().unwrap().join(path),
            };
            let found = match link.get(2) {
                None => target.exists(),
                Some(anchor) => {
                    fs::read_to_string(&target).is_ok_and(|text| has_anchor(&text, anchor.as_str()))
                }
            };
            if !found {
                complaints.push(format!("{}: {}", file.path, &link[0]));
            }
        }
    }
    assert_none(complaints);
    assert!(links > 10, "only {links} links found");
}

/// Whether `anchor` is an explicit one or the slug that GitHub gives a heading.
fn has_anchor(text: &str, anchor: &str) -> bool {
    let slug = |heading: &str| -> String {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let lower = heading.trim_start_matches('#').trim().to_lowercase();
        lower
            .chars()
            .filter(kept)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    text.contains(&format!("<a id=\"{anchor}\">"))
        || text
            .lines()
            .any(|line| line.starts_with('#') && slug(line) == anchor)
}
