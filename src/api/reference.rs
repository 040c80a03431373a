//! The generated parts of `docs/api.md`: each is between a comment `generated: WHAT` and a comment `end`.

use std::collections::BTreeSet;

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
            ("refused", "") => fields::vendors::table(fields::vendors::REFUSED),
            ("refused", "chat") => fields::vendors::table(fields::vendors::REFUSED_IN_CHAT),
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

#[test]
fn generated_parts_of_the_reference_are_those_of_the_code() {
    check(PAGE, rewritten);
}
