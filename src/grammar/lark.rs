//! Checks of Lark grammars before llguidance compiles them: constructs whose cost llguidance does not
//! bound are rejected. The reader parses only the syntax that the checks need.

use std::collections::{HashMap, HashSet};

use llguidance::toktrie::TokTrie;
use serde_json::{Deserializer, Value};

use super::budget::Budget;
use super::closed::Objects;
use super::{regex, schema, token_trie};
use crate::sample::SamplingParams;

/// Deepest nesting of rules and groups, with references followed. llguidance recurses once per level,
/// and the stack of a wasm module is small.
const MAX_DEPTH: usize = 96;

/// The attribute of a rule that sets the temperature of its tokens.
const TEMPERATURE: &str = "temperature";

/// Whether a grammar may set temperatures. True also where the word means something else.
pub fn may_set_temperatures(grammar: &str) -> bool {
    grammar.contains(TEMPERATURE)
}

/// `grammar` with this crate's options in its `%json` schemas, if llguidance can compile it in bounded
/// time and stack.
///
/// # Errors
/// A message for humans that says what is not supported.
pub fn prepare(
    grammar: &str,
    trie: &TokTrie,
    objects: Objects,
    budget: &mut Budget,
) -> Result<String, String> {
    let mut reader = Reader {
        rest: grammar,
        prepared: String::with_capacity(grammar.len()),
        rules: Vec::new(),
        last_name: None,
        group_depth: 0,
        outer_depths: Vec::new(),
        objects,
        budget,
    };
    while !reader.rest.is_empty() {
        reader.step(trie)?;
    }
    check_depth(&reader.rules)?;
    Ok(reader.prepared)
}

/// A rule or terminal.
struct Rule<'g> {
    name: &'g str,
    /// The names in its definition, in order, and the number of groups around each.
    uses: Vec<(&'g str, usize)>,
}

struct Reader<'g, 'b> {
    rest: &'g str,
    /// The text read so far, with schemas replaced.
    prepared: String,
    rules: Vec<Rule<'g>>,
    /// The last name outside of groups, and the number of uses that the current rule had before it. If a
    /// colon follows, the name starts a new rule.
    last_name: Option<(&'g str, usize)>,
    /// Open `(` and `[`.
    group_depth: usize,
    /// The group depths around each open `{`.
    outer_depths: Vec<usize>,
    objects: Objects,
    budget: &'b mut Budget,
}

impl<'g> Reader<'g, '_> {
    fn step(&mut self, trie: &TokTrie) -> Result<(), String> {
        let rest = self.rest;
        let first = rest.chars().next().unwrap_or_default();
        let length = match first {
            '#' => line_length(rest),
            '/' if rest.starts_with("//") => line_length(rest),
            '"' | '/' => {
                self.budget.count(1)?;
                let length = quoted_length(rest, first);
                if first == '/' && regex::has_stop_group(&rest[..length]) {
                    return Err(regex::STOP_GROUP.to_owned());
                }
                length
            }
            '<' => {
                self.budget.count(1)?;
                let length = rest.find('>').map_or(1, |end| end + 1);
                check_special_token(&rest[..length], trie)?;
                length
            }
            '%' => return self.directive(),
            '=' if self.prepared.trim_end().ends_with(TEMPERATURE) => return self.temperature(),
            ':' if rest.starts_with("::") => 2,
            ':' => {
                self.define();
                1
            }
            '(' | '[' => {
                self.group_depth += 1;
                1
            }
            ')' | ']' => {
                self.group_depth = self.group_depth.saturating_sub(1);
                1
            }
            '{' => {
                self.outer_depths.push(self.group_depth);
                self.group_depth = 0;
                1
            }
            '}' => {
                self.group_depth = self.outer_depths.pop().unwrap_or_default();
                1
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                self.budget.count(1)?;
                let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                // A name without a letter is a parameter.
                if rest[..length].contains(|c: char| c.is_ascii_alphabetic()) {
                    self.name(&rest[..length]);
                }
                length
            }
            other => other.len_utf8(),
        };
        self.take(length);
        Ok(())
    }

    fn take(&mut self, length: usize) {
        self.prepared.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
    }

    fn name(&mut self, name: &'g str) {
        let uses = self.rules.last_mut().map(|rule| &mut rule.uses);
        if self.group_depth == 0 {
            self.last_name = Some((name, uses.as_ref().map_or(0, |uses| uses.len())));
        }
        if let Some(uses) = uses {
            uses.push((name, self.group_depth));
        }
    }

    fn define(&mut self) {
        let Some((name, used_before)) = self.last_name.take() else {
            return;
        };
        // The name and its attributes were recorded as uses.
        if let Some(rule) = self.rules.last_mut() {
            rule.uses.truncate(used_before);
        }
        self.rules.push(Rule {
            name,
            uses: Vec::new(),
        });
    }

    /// The value of `temperature=`. llguidance takes 0 as absent, so the smallest one is greedy without being 0.
    fn temperature(&mut self) -> Result<(), String> {
        self.take(1);
        let value = self.rest.trim_start();
        let is_number = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-');
        let length = value.find(|c| !is_number(c)).unwrap_or(value.len());
        let number = value[..length].parse::<f32>().ok();
        let Some(number) = number.filter(|it| it.is_finite() && *it >= 0.0) else {
            return Err("\"temperature=\" must be a number from 0 on".to_owned());
        };
        let number = number.max(SamplingParams::GREEDY_BELOW / 2.0);
        self.prepared.push_str(&number.to_string());
        self.rest = &value[length..];
        Ok(())
    }

    fn directive(&mut self) -> Result<(), String> {
        let with_a_value = ["%json", "%llguidance", "%regex", "%lark"];
        let mut with_a_value = with_a_value.into_iter();
        let directive = with_a_value.find(|directive| self.rest.starts_with(directive));
        let directive = directive.unwrap_or("%");
        self.budget.count(1)?;
        self.take(directive.len());
        match directive {
            "%json" => {
                self.budget.count_grammar()?;
                let (value, length) = json_prefix(self.rest)?;
                self.prepared.push(' ');
                self.prepared
                    .push_str(&schema::prepare(&value, self.objects, self.budget)?.to_string());
                self.prepared.push(' ');
                self.rest = &self.rest[length..];
            }
            "%llguidance" | "%regex" => {
                let (_, length) = json_prefix(self.rest)?;
                self.take(length);
            }
            "%lark" => self.budget.count_grammar()?,
            _ => {}
        }
        Ok(())
    }
}

/// Visits the rules as llguidance does: depth first, each name once.
fn check_depth(rules: &[Rule<'_>]) -> Result<(), String> {
    let mut by_name: HashMap<&str, Vec<&Rule<'_>>> = HashMap::new();
    for rule in rules {
        by_name.entry(rule.name).or_default().push(rule);
    }
    let mut visited = HashSet::new();
    visit("start", 0, &by_name, &mut visited)
}

fn visit<'g>(
    name: &'g str,
    depth: usize,
    by_name: &HashMap<&str, Vec<&Rule<'g>>>,
    visited: &mut HashSet<&'g str>,
) -> Result<(), String> {
    if !visited.insert(name) {
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err(format!("the rules nest deeper than {MAX_DEPTH} levels"));
    }
    for rule in by_name.get(name).map(Vec::as_slice).unwrap_or_default() {
        for (used, groups) in &rule.uses {
            visit(used, depth + 1 + groups, by_name, visited)?;
        }
    }
    Ok(())
}

/// Up to the end of the line.
fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// Up to the closing quote, or to the end.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    text.len()
}

/// The JSON value that `text` begins with, and its length.
fn json_prefix(text: &str) -> Result<(Value, usize), String> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(error)) => Err(format!("invalid JSON in the grammar: {error}")),
        None => Err("JSON is missing in the grammar".to_owned()),
    }
}

/// Checks that `<name>` is a special token. llguidance checks ranges of ids itself.
fn check_special_token(name: &str, trie: &TokTrie) -> Result<(), String> {
    let is_range = name.starts_with("<[") && name.ends_with("]>");
    let is_name = name.len() > 2 && !name.contains(char::is_whitespace);
    if is_range || !is_name || token_trie::special_id(trie, name).is_some() {
        return Ok(());
    }
    Err(format!("unknown special token: {name:?}"))
}
