//! The syntax of GBNF and EBNF: rules, literals, classes of characters, repetition, groups, comments. In GBNF a rule ends with
//! its line; in EBNF it ends where the next one begins.

use std::collections::HashMap;

/// Deepest nesting of groups, and most repetitions of one element. This reader and llguidance recurse once per level, and
/// the stack of a wasm module is small.
const MAX_DEPTH: usize = 16;
const MAX_STACKED: usize = 2;
/// Largest bound of a repetition, as in llama.cpp.
const MAX_REPEATS: u32 = 2000;
/// The maximum number of rules and elements: checks take time proportional to their product.
const MAX_RULES: usize = 2000;
const MAX_PARTS: usize = 8000;

/// `name ::= expression`.
#[derive(Debug, PartialEq)]
pub struct Rule {
    pub name: String,
    pub expression: Expression,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Literal(String),
    /// One character within the ranges, or outside of them.
    Class {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    /// The index of a rule.
    Rule(usize),
    Sequence(Vec<Expression>),
    Choice(Vec<Expression>),
    Repeat {
        of: Box<Expression>,
        least: u32,
        /// `None`: without limit.
        most: Option<u32>,
    },
}

/// The rules of a grammar, which is EBNF or GBNF.
///
/// # Errors
/// A message for humans with the line.
pub fn parse(text: &str, is_ebnf: bool) -> Result<Vec<Rule>, String> {
    let mut reader = Reader {
        rest: text,
        is_ebnf,
        line: 1,
        names: Vec::new(),
        indices: HashMap::new(),
        parts: 0,
        definitions: Vec::new(),
    };
    reader.skip(true);
    while !reader.rest.is_empty() {
        reader.rule()?;
    }
    let mut rules = Vec::with_capacity(reader.names.len());
    for (name, definition) in reader.names.into_iter().zip(reader.definitions) {
        let expression = definition.ok_or_else(|| format!("the rule {name:?} is not defined"))?;
        rules.push(Rule { name, expression });
    }
    Ok(rules)
}

/// The rules that can be reached from `rule` in at least one step.
pub fn reachable(rule: usize, uses: &[Vec<usize>]) -> Vec<bool> {
    let mut is_reached = vec![false; uses.len()];
    let mut waiting = uses[rule].clone();
    while let Some(next) = waiting.pop() {
        if !is_reached[next] {
            is_reached[next] = true;
            waiting.extend(&uses[next]);
        }
    }
    is_reached
}

struct Reader<'t> {
    rest: &'t str,
    is_ebnf: bool,
    line: usize,
    /// Names of rules, in the order in which they first occur.
    names: Vec<String>,
    indices: HashMap<String, usize>,
    /// Elements read so far.
    parts: usize,
    definitions: Vec<Option<Expression>>,
}

impl Reader<'_> {
    fn error<T>(&self, what: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("line {}: {what}", self.line))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn take_if(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips spaces and comments, and line breaks if they mean nothing here.
    fn skip(&mut self, with_breaks: bool) {
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' => {}
                '\r' | '\n' if with_breaks => {}
                '#' => {
                    let end = self.rest.find(['\r', '\n']).unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                    continue;
                }
                _ => return,
            }
            self.take();
        }
    }

    fn rule(&mut self) -> Result<(), String> {
        let rule = self.name()?;
        self.skip(false);
        if !self.take_if("::=") {
            return self.error(format!("expected ::= after {:?}", self.names[rule]));
        }
        self.skip(true);
        let expression = self.choice(0)?;
        if self.definitions[rule].replace(expression).is_some() {
            return self.error(format!("the rule {:?} is defined twice", self.names[rule]));
        }
        match self.peek() {
            None | Some('\r' | '\n') => self.skip(true),
            Some(_) if self.is_ebnf && self.begins_rule() => {}
            Some(other) => return self.error(format!("unexpected {other:?}")),
        }
        Ok(())
    }

    /// Whether a rule is defined next.
    fn begins_rule(&self) -> bool {
        let rest = self.rest.trim_start_matches(is_name);
        rest.len() < self.rest.len() && rest.trim_start_matches([' ', '\t']).starts_with("::=")
    }

    /// The index of the rule that is named next.
    fn name(&mut self) -> Result<usize, String> {
        let end = self.rest.find(|next| !is_name(next));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if name.is_empty() {
            return self.error("expected the name of a rule");
        }
        self.rest = rest;
        if let Some(known) = self.indices.get(name) {
            return Ok(*known);
        }
        if self.names.len() == MAX_RULES {
            return self.error(format!("more than {MAX_RULES} rules"));
        }
        self.indices.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.definitions.push(None);
        Ok(self.names.len() - 1)
    }

    fn choice(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > MAX_DEPTH {
            return self.error(format!("groups nest deeper than {MAX_DEPTH} levels"));
        }
        let mut choices = vec![self.sequence(depth)?];
        while self.take_if("|") {
            self.skip(true);
            choices.push(self.sequence(depth)?);
        }
        Ok(match choices.len() {
            1 => choices.remove(0),
            _ => Expression::Choice(choices),
        })
    }

    fn sequence(&mut self, depth: usize) -> Result<Expression, String> {
        let mut parts = Vec::new();
        while let Some(next) = self.peek() {
            if self.is_ebnf && depth == 0 && self.begins_rule() {
                break;
            }
            self.parts += 1;
            if self.parts > MAX_PARTS {
                return self.error(format!("more than {MAX_PARTS} elements"));
            }
            let part = match next {
                '"' => self.literal()?,
                '[' => self.class()?,
                '.' => {
                    self.take();
                    Expression::Class {
                        ranges: Vec::new(),
                        is_negated: true,
                    }
                }
                '(' => {
                    self.take();
                    self.skip(true);
                    let inner = self.choice(depth + 1)?;
                    if !self.take_if(")") {
                        return self.error("expected )");
                    }
                    inner
                }
                '<' | '!' => {
                    return self.error("tokens (<name>, <[id]>, !<name>) are not supported");
                }
                next if is_name(next) => Expression::Rule(self.name()?),
                _ => break,
            };
            self.skip(self.is_ebnf || depth > 0);
            parts.push(self.repeated(part, depth)?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expression::Sequence(parts),
        })
    }

    /// `part` with the repetitions that follow it.
    fn repeated(&mut self, mut part: Expression, depth: usize) -> Result<Expression, String> {
        for stacked in 0.. {
            let (least, most) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                _ => break,
            };
            if stacked == MAX_STACKED {
                return self.error("too many repetitions of one element");
            }
            self.take();
            self.skip(self.is_ebnf || depth > 0);
            part = Expression::Repeat {
                of: Box::new(part),
                least,
                most,
            };
        }
        Ok(part)
    }

    /// The bounds of `{m}`, `{m,}` or `{m,n}`, up to the closing brace.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), String> {
        self.take();
        self.skip(false);
        let least = self.count()?;
        self.skip(false);
        let most = match self.take_if(",") {
            false => Some(least),
            true => {
                self.skip(false);
                let is_open = self.peek() == Some('}');
                if is_open { None } else { Some(self.count()?) }
            }
        };
        self.skip(false);
        if self.peek() != Some('}') {
            return self.error("expected } after the bounds of a repetition");
        }
        if most.is_some_and(|most| most < least) {
            return self.error("a repetition ends below its beginning");
        }
        Ok((least, most))
    }

    fn count(&mut self) -> Result<u32, String> {
        let end = self.rest.find(|next: char| !next.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let count = digits.parse::<u32>().ok();
        match count.filter(|count| *count <= MAX_REPEATS) {
            Some(count) => {
                self.rest = rest;
                Ok(count)
            }
            None => self.error(format!(
                "expected a number of repetitions of at most {MAX_REPEATS}"
            )),
        }
    }

    fn literal(&mut self) -> Result<Expression, String> {
        self.take();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\r' | '\n') => return self.error("a string without an end"),
                Some('"') => break,
                Some(_) => text.push(self.character()?),
            }
        }
        self.take();
        Ok(Expression::Literal(text))
    }

    fn class(&mut self) -> Result<Expression, String> {
        self.take();
        let is_negated = self.take_if("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => return self.error("a class without an end"),
                Some(']') => break,
                Some(_) => {}
            }
            let first = self.character()?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let last = match is_range {
                true => {
                    self.take();
                    if self.peek().is_none() {
                        return self.error("a class without an end");
                    }
                    self.character()?
                }
                false => first,
            };
            if last < first {
                return self.error(format!("the range {first:?}-{last:?} is reversed"));
            }
            ranges.push((first, last));
        }
        self.take();
        if ranges.is_empty() && !is_negated {
            return self.error("an empty class matches nothing");
        }
        Ok(Expression::Class { ranges, is_negated })
    }

    /// One character of a literal or class, which may be escaped.
    fn character(&mut self) -> Result<char, String> {
        let Some(next) = self.take() else {
            return self.error("unexpected end");
        };
        if next != '\\' {
            return Ok(next);
        }
        let Some(escape) = self.take() else {
            return self.error("unexpected end");
        };
        match escape {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            '\\' | '"' | '[' | ']' | '-' | '^' => Ok(escape),
            '\'' | '?' if self.is_ebnf => Ok(escape),
            'a' if self.is_ebnf => Ok('\x07'),
            'b' if self.is_ebnf => Ok('\x08'),
            'f' if self.is_ebnf => Ok('\x0c'),
            'v' if self.is_ebnf => Ok('\x0b'),
            'e' if self.is_ebnf => Ok('\x1b'),
            '0' if self.is_ebnf => Ok('\0'),
            'x' => self.code_point(2),
            'u' => self.code_point(4),
            'U' => self.code_point(8),
            other => self.error(format!("unknown escape \\{other}")),
        }
    }

    fn code_point(&mut self, digits: usize) -> Result<char, String> {
        let code = self.rest.get(..digits);
        let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        match code.and_then(char::from_u32) {
            Some(character) => {
                self.rest = &self.rest[digits..];
                Ok(character)
            }
            None => self.error(format!(
                "expected {digits} hexadecimal digits of a character"
            )),
        }
    }
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}
