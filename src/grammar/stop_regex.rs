//! From a regular expression that ends a text to its automaton (specification 6.6). `text` searches for it.
//!
//! The whole automaton is made before the request is admitted: then a text costs at most one step per state and byte, and
//! an expression that needs more states is refused by name.

use std::collections::HashMap;

use llguidance::Instant;
use llguidance::derivre::{Regex, RegexBuilder, StateID};

use super::regex;
use crate::text::{Automaton, DEAD, StopPattern};

const MAX_EXPRESSION_BYTES: usize = 1 << 12;
const MAX_STATES: usize = 1000;
/// Longest time for the states. The limits above keep what cannot be interrupted short.
const MAX_SECONDS: f64 = 1.0;

/// The automaton of `expression`.
///
/// # Errors
/// A message for humans: wrong syntax, an anchor, an expression that matches the empty text or nothing, or too many
/// states.
pub fn stop_pattern(expression: &str) -> Result<StopPattern, String> {
    check(expression)?;
    let mut builder = RegexBuilder::new();
    let root = builder.mk_regex(expression);
    let root = root.map_err(|error| format!("{error:#}"))?;
    if builder.is_nullable(root) {
        return Err("the regular expression matches the empty text".to_owned());
    }
    let regex = builder.into_regex(root);
    Ok(StopPattern::new(automaton(expression, regex)?))
}

/// Refuses expressions that are too long, and those with a stop group or an anchor.
fn check(expression: &str) -> Result<(), String> {
    if expression.len() > MAX_EXPRESSION_BYTES {
        let bytes = expression.len();
        return Err(format!(
            "the regular expression has {bytes} bytes; {MAX_EXPRESSION_BYTES} are allowed"
        ));
    }
    if regex::has_stop_group(expression) {
        return Err(regex::STOP_GROUP.to_owned());
    }
    match anchor(expression) {
        Some(anchor) => Err(format!(
            "{anchor} is not supported: the expression is searched for in the whole text"
        )),
        None => Ok(()),
    }
}

/// All states of the compiled expression, and the transitions between them.
fn automaton(expression: &str, mut regex: Regex) -> Result<Automaton, String> {
    let start = regex.initial_state();
    if start.is_dead() {
        return Err("the regular expression matches nothing".to_owned());
    }
    let classes = regex.alpha().len();
    let class_of: [u8; 256] = std::array::from_fn(|byte| regex.alpha().map(byte as u8) as u8);
    // One byte of each class.
    let examples =
        (0..classes).map(|class| class_of.iter().position(|it| usize::from(*it) == class));
    let examples: Vec<Option<u8>> = examples.map(|byte| byte.map(|it| it as u8)).collect();

    let started = Instant::now();
    let mut numbers = HashMap::from([(StateID::DEAD, DEAD), (start, DEAD + 1)]);
    let mut found = vec![StateID::DEAD, start];
    let mut next = Vec::new();
    let mut done = 0;
    while let Some(state) = found.get(done).copied() {
        done += 1;
        for example in &examples {
            let to = match example {
                Some(byte) if !state.is_dead() => regex.transition(state, *byte),
                _ => StateID::DEAD,
            };
            let number = *numbers.entry(to).or_insert_with(|| {
                found.push(to);
                (found.len() - 1) as u16
            });
            next.push(number);
        }
        if found.len() > MAX_STATES || started.elapsed().as_secs_f64() > MAX_SECONDS {
            return Err(format!(
                "the regular expression is too large: its automaton has more than {MAX_STATES} states"
            ));
        }
    }
    Ok(Automaton {
        expression: expression.to_owned(),
        class_of,
        classes,
        start: DEAD + 1,
        next,
        is_match: found.iter().map(|it| regex.is_accepting(*it)).collect(),
    })
}

/// An anchor outside of classes of characters. The compiler would drop those at the ends of the expression.
fn anchor(expression: &str) -> Option<String> {
    let mut characters = expression.chars().peekable();
    let mut class_depth = 0;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next();
                if class_depth == 0 && matches!(escaped, Some('A' | 'z')) {
                    return escaped.map(|it| format!("\\{it}"));
                }
            }
            '[' => {
                class_depth += 1;
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
            }
            ']' if class_depth > 0 => class_depth -= 1,
            '^' | '$' if class_depth == 0 => return Some(character.to_string()),
            _ => {}
        }
    }
    None
}
