//! Rules of GBNF as Lark.
//!
//! llguidance divides a string into lexemes, each as long as possible, and parses these. A rule that cannot reach itself
//! is a regular language, so it becomes a terminal; in other rules so does every run of such parts. A grammar without
//! recursion is one terminal, which matches exactly the same strings. With recursion, a string is lost if it needs a
//! terminal to end before the longest match; nothing else is ever matched.

use super::parse::{Expression, Rule, reachable};
use crate::grammar::regex::literal_regex;

/// The grammar that starts at the rule `root`.
pub(super) fn write(rules: &[Rule], root: usize) -> String {
    let uses: Vec<Vec<usize>> = rules
        .iter()
        .map(|rule| {
            let mut uses = Vec::new();
            used_rules(&rule.expression, &mut uses);
            uses
        })
        .collect();
    let reached: Vec<Vec<bool>> = (0..rules.len())
        .map(|rule| reachable(rule, &uses))
        .collect();
    let is_in_cycle = |rule: usize| reached[rule][rule];
    let is_recursive = (0..rules.len())
        .map(|rule| {
            is_in_cycle(rule) || (0..rules.len()).any(|at| reached[rule][at] && is_in_cycle(at))
        })
        .collect();
    let mut writer = Writer {
        is_recursive,
        terminals: String::new(),
        runs: 0,
    };
    let mut text = format!("start: {}\n", writer.name(root));
    for (index, rule) in rules.iter().enumerate() {
        if index != root && !reached[root][index] {
            continue;
        }
        let definition = match writer.is_recursive[index] {
            true => writer.rule(&rule.expression),
            false => writer.terminal(&rule.expression),
        };
        text.push_str(&format!("{}: {definition}\n", writer.name(index)));
    }
    text.push_str(&writer.terminals);
    text
}

fn used_rules(expression: &Expression, found: &mut Vec<usize>) {
    match expression {
        Expression::Literal(_) | Expression::Class { .. } => {}
        Expression::Rule(rule) => found.push(*rule),
        Expression::Sequence(parts) | Expression::Choice(parts) => {
            parts.iter().for_each(|part| used_rules(part, found));
        }
        Expression::Repeat { of, .. } => used_rules(of, found),
    }
}

struct Writer {
    /// Whether each rule can reach a rule that can reach itself.
    is_recursive: Vec<bool>,
    /// Definitions of terminals that have no name in the source.
    terminals: String,
    /// Number of these terminals.
    runs: usize,
}

impl Writer {
    fn name(&self, rule: usize) -> String {
        match self.is_recursive[rule] {
            true => format!("r{rule}"),
            false => format!("R{rule}"),
        }
    }

    fn is_regular(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Literal(_) | Expression::Class { .. } => true,
            Expression::Rule(rule) => !self.is_recursive[*rule],
            Expression::Sequence(parts) | Expression::Choice(parts) => {
                parts.iter().all(|part| self.is_regular(part))
            }
            Expression::Repeat { of, .. } => self.is_regular(of),
        }
    }

    /// An expression of a terminal.
    fn terminal(&self, expression: &Expression) -> String {
        match expression {
            Expression::Literal(text) if text.is_empty() => "\"\"".to_owned(),
            Expression::Literal(text) => format!("/{}/", literal_regex(text)),
            Expression::Class { ranges, is_negated } => class(ranges, *is_negated),
            Expression::Rule(rule) => self.name(*rule),
            Expression::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
            Expression::Sequence(parts) => {
                let parts = parts.iter().map(|part| self.terminal(part));
                format!("({})", parts.collect::<Vec<_>>().join(" "))
            }
            Expression::Choice(parts) => {
                let parts = parts.iter().map(|part| self.terminal(part));
                format!("({})", parts.collect::<Vec<_>>().join(" | "))
            }
            Expression::Repeat { of, least, most } => {
                grouped(of, self.terminal(of)) + &repeats(*least, *most)
            }
        }
    }

    /// An expression of a rule. Its regular parts become terminals.
    fn rule(&mut self, expression: &Expression) -> String {
        if self.is_regular(expression) {
            return self.run(std::slice::from_ref(expression));
        }
        match expression {
            Expression::Sequence(parts) => {
                let mut written = Vec::new();
                let mut rest = &parts[..];
                while let Some(first) = rest.first() {
                    let regular = rest.iter().take_while(|part| self.is_regular(part)).count();
                    if regular > 0 {
                        written.push(self.run(&rest[..regular]));
                    } else {
                        written.push(self.rule(first));
                    }
                    rest = &rest[regular.max(1)..];
                }
                format!("({})", written.join(" "))
            }
            Expression::Choice(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.rule(part)).collect();
                format!("({})", parts.join(" | "))
            }
            Expression::Repeat { of, least, most } => {
                grouped(of, self.rule(of)) + &repeats(*least, *most)
            }
            Expression::Rule(rule) => self.name(*rule),
            Expression::Literal(_) | Expression::Class { .. } => self.terminal(expression),
        }
    }

    /// The terminal of regular parts that follow each other.
    fn run(&mut self, parts: &[Expression]) -> String {
        match parts {
            [Expression::Rule(rule)] => return self.name(*rule),
            [Expression::Sequence(none)] if none.is_empty() => return "\"\"".to_owned(),
            [Expression::Literal(text)] if text.is_empty() => return "\"\"".to_owned(),
            _ => {}
        }
        let parts = parts.iter().map(|part| self.terminal(part));
        let definition = parts.collect::<Vec<_>>().join(" ");
        self.runs += 1;
        let name = format!("X{}", self.runs);
        self.terminals.push_str(&format!("{name}: {definition}\n"));
        name
    }
}

/// `written`, in parentheses if it does not have them and needs them: llguidance bounds their nesting.
fn grouped(expression: &Expression, written: String) -> String {
    match expression {
        Expression::Repeat { .. } => format!("({written})"),
        _ => written,
    }
}

fn repeats(least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{most}}}"),
    }
}

/// A regular expression of one character.
fn class(ranges: &[(char, char)], is_negated: bool) -> String {
    if ranges.is_empty() {
        return "/(?s:.)/".to_owned();
    }
    let code = |character: char| format!("\\x{{{:x}}}", u32::from(character));
    let range = |(first, last): &(char, char)| match first == last {
        true => code(*first),
        false => format!("{}-{}", code(*first), code(*last)),
    };
    let ranges: String = ranges.iter().map(range).collect();
    format!("/[{}{ranges}]/", if is_negated { "^" } else { "" })
}
