//! The generated parts of `docs/api.md`: each is between a comment `generated: WHAT` and a comment `end`.

use std::{collections::BTreeSet, fs, path::Path};

use super::{fields, routes, switches};
use crate::generated::check;

const PAGE: &str = "docs/api.md";
const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

/// The page with its parts as they should be.
fn rewritten(page: &str) -> String {
    let mut written = String::new();
    let mut parts = page.split(BEGIN);
    let mut listed = BTreeSet::new();
    written.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (what, part) = part.split_once(" -->\n").expect("an end of the comment");
        let (_, rest) = part.split_once(END).expect("an end of the part");
        let made = match what.split_once(' ').unwrap_or((what, "")) {
            ("routes", "") => routes::table(),
            ("fields", groups) => {
                let groups: Vec<&str> = groups.split(' ').collect();
                for group in &groups {
                    assert!(
                        listed.insert((*group).to_owned()),
                        "{group} is listed twice"
                    );
                }
                routes::field_tables(&groups)
            }
            ("refused", "vendors") => fields::refused::table(fields::refused::OF_VENDORS),
            ("refused", "prompts") => fields::refused::table(fields::refused::OF_PROMPTS),
            ("refused", "answers") => fields::refused::table(fields::refused::OF_ANSWERS),
            ("switches", "") => switches::table(),
            _ => panic!("{PAGE}: nothing makes \"{what}\""),
        };
        written.push_str(&format!("{BEGIN}{what} -->\n\n{made}\n{END}{rest}"));
    }
    for group in routes::field_groups() {
        assert!(listed.contains(group), "{PAGE} does not list {group}");
    }
    written
}

/// Asserts that the table of fields in a section of the specification has only `known` fields, and that the section names
/// all of the `own` ones. What the table says about them is written by hand.
pub(super) fn assert_specified(
    section: &str,
    own: &[&[&str]],
    known: impl Iterator<Item = &'static str>,
) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/specification.md");
    let page = fs::read_to_string(page).expect("the specification");
    let begin = format!("<a id=\"{section}\"></a>");
    let (_, text) = page.split_once(&begin).expect("the section");
    let text = text.split("<a id=").next().unwrap_or_default();
    let known: BTreeSet<&str> = known.collect();
    let (_, table) = text.split_once("| field | rule |").expect("a table");
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split(" | ").next().unwrap_or_default();
        for name in cell.split('`').skip(1).step_by(2) {
            let field = name.split('.').next().unwrap_or_default();
            assert!(
                known.contains(field),
                "{section}: no field is called {name}"
            );
        }
    }
    for name in own.iter().copied().flatten() {
        let is_named = [format!("`{name}`"), format!("`{name}.")];
        assert!(
            is_named.iter().any(|name| text.contains(name)),
            "{section} does not name {name}"
        );
    }
}

#[test]
fn generated_parts_of_the_reference_are_those_of_the_code() {
    check(PAGE, rewritten);
}
