//! llama.cpp's GBNF and xgrammar's EBNF (specification 9.7) in llguidance's Lark. `parse` reads the text into rules, `lark` writes them;
//! this file checks what must hold in between.

mod lark;
mod parse;

use parse::{Expression, Rule, reachable};

/// The Lark grammar of the same strings; `root` becomes `start`. With `is_ebnf` the string is read as EBNF.
///
/// # Errors
/// A message for humans: wrong syntax, an undefined rule, left recursion, or a construct that is not supported.
pub fn to_lark(text: &str, is_ebnf: bool) -> Result<String, String> {
    let rules = parse::parse(text, is_ebnf)?;
    let root = rules.iter().position(|rule| rule.name == "root");
    let root = root.ok_or("the grammar has no rule \"root\"")?;
    check_left_recursion(&rules)?;
    Ok(lark::write(&rules, root))
}

/// Rejects rules that begin with themselves, as llama.cpp does.
fn check_left_recursion(rules: &[Rule]) -> Result<(), String> {
    let nullable = nullable(rules);
    let begins: Vec<Vec<usize>> = rules
        .iter()
        .map(|rule| {
            let mut first = Vec::new();
            first_rules(&rule.expression, &nullable, &mut first);
            first
        })
        .collect();
    match (0..rules.len()).find(|rule| reachable(*rule, &begins)[*rule]) {
        None => Ok(()),
        Some(rule) => Err(format!(
            "left recursion: the rule {:?} begins with itself",
            rules[rule].name
        )),
    }
}

/// Whether each rule matches the empty string.
fn nullable(rules: &[Rule]) -> Vec<bool> {
    let mut nullable = vec![false; rules.len()];
    loop {
        let next: Vec<bool> = rules
            .iter()
            .map(|rule| is_nullable(&rule.expression, &nullable))
            .collect();
        if next == nullable {
            return nullable;
        }
        nullable = next;
    }
}

fn is_nullable(expression: &Expression, rules: &[bool]) -> bool {
    match expression {
        Expression::Literal(text) => text.is_empty(),
        Expression::Class { .. } => false,
        Expression::Rule(rule) => rules[*rule],
        Expression::Sequence(parts) => parts.iter().all(|part| is_nullable(part, rules)),
        Expression::Choice(parts) => parts.iter().any(|part| is_nullable(part, rules)),
        Expression::Repeat { of, least, .. } => *least == 0 || is_nullable(of, rules),
    }
}

/// Adds the rules with which a match may begin. Returns whether the match may be empty.
fn first_rules(expression: &Expression, nullable: &[bool], found: &mut Vec<usize>) -> bool {
    match expression {
        Expression::Literal(_) | Expression::Class { .. } => {}
        Expression::Rule(rule) => found.push(*rule),
        Expression::Sequence(parts) => {
            for part in parts {
                if !first_rules(part, nullable, found) {
                    return false;
                }
            }
        }
        Expression::Choice(parts) => {
            for part in parts {
                first_rules(part, nullable, found);
            }
        }
        Expression::Repeat { of, .. } => {
            first_rules(of, nullable, found);
        }
    }
    is_nullable(expression, nullable)
}
