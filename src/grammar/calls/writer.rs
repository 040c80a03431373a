//! Collects the rules of a Lark grammar and the JSON schemas that they refer to.

use std::collections::HashMap;

use llguidance::api::GrammarWithLexer;
use llguidance::toktrie::TokEnv;
use serde_json::{Value, json};

use crate::grammar::budget::Budget;
use crate::grammar::closed::Objects;
use crate::grammar::{schema, token_trie};

/// Rules that other rules use: white space inside of JSON, white space between tags, white space before text, any text.
const COMMON: &str = "s: SPACE?\nSPACE: / |\\n {0,16}/\ngap: GAP?\nGAP: /[ \\n]{1,4}/\n\
    lead: LEAD?\nLEAD: /\\s+/\nTEXT: /(?s:.*)/\n";

/// A grammar that is being written.
pub(super) struct Writer<'b> {
    tokens: TokEnv,
    /// The rules for reading schemas.
    objects: Objects,
    budget: &'b mut Budget,
    rules: String,
    /// Names given by [`Self::fresh`].
    fresh: usize,
    /// The names of schemas by their text.
    names: HashMap<String, String>,
    schemas: Vec<GrammarWithLexer>,
    /// Whether keywords that the compiler lacks are left out.
    is_lenient: bool,
}

impl<'b> Writer<'b> {
    pub(super) fn new(tokens: TokEnv, objects: Objects, budget: &'b mut Budget) -> Writer<'b> {
        Writer {
            tokens,
            objects,
            budget,
            rules: COMMON.to_owned(),
            fresh: 0,
            names: HashMap::new(),
            schemas: Vec::new(),
            is_lenient: false,
        }
    }

    /// Runs `write` with schemas of which only what the compiler knows is enforced. If it fails, nothing was written.
    pub(super) fn leniently<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let (rules, schemas, names) = (self.rules.len(), self.schemas.len(), self.names.clone());
        self.is_lenient = true;
        let written = write(self);
        self.is_lenient = false;
        if written.is_err() {
            self.rules.truncate(rules);
            self.schemas.truncate(schemas);
            self.names = names;
        }
        written
    }

    pub(super) fn id(&self, tag: &str) -> Option<u32> {
        token_trie::special_id(self.tokens.tok_trie(), tag)
    }

    /// Whether the id ends the output, so that it is not written but ends the grammar.
    pub(super) fn is_end(&self, tag: &str) -> bool {
        let ends = self.tokens.tok_trie().eos_token_set();
        self.id(tag).is_some_and(|id| ends.is_allowed(id))
    }

    /// A text that may be a special token.
    pub(super) fn tag(&self, text: &str) -> String {
        let id = self.id(text);
        id.map_or_else(|| literal(text), |id| format!("<[{id}]>"))
    }

    /// Adds a rule or a terminal, whose name is returned.
    pub(super) fn rule(&mut self, name: impl Into<String>, body: &str) -> Result<String, String> {
        self.budget.count(1)?;
        let name = name.into();
        self.rules.push_str(&name);
        self.rules.push_str(": ");
        self.rules.push_str(body);
        self.rules.push('\n');
        Ok(name)
    }

    /// A name that no rule has, and that begins none.
    pub(super) fn fresh(&mut self, stem: &str) -> String {
        self.fresh += 1;
        format!("{stem}{}_", self.fresh)
    }

    /// Whether there is a rule or terminal of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let starts = |line: &str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([':', '[']))
        };
        self.rules.lines().any(starts)
    }

    /// A rule of all text up to and with the first `close`. `text` is a terminal.
    pub(super) fn until(&mut self, name: &str, text: &str, close: &str) -> Result<String, String> {
        match self.id(close) {
            Some(id) => {
                let body = format!("{text} <[{id}]>");
                self.rule(name, &body)
            }
            None => {
                let head = format!("{name}[suffix={}]", literal(close));
                self.rule(head, text)?;
                Ok(name.to_owned())
            }
        }
    }

    /// Refers to the values of `schema`.
    pub(super) fn schema(&mut self, schema: &Value) -> Result<String, String> {
        let text = format!("{} {schema}", self.is_lenient);
        if let Some(name) = self.names.get(&text) {
            return Ok(format!("@{name}"));
        }
        // llguidance counts grammars with a byte.
        self.budget.count_grammar()?;
        let name = format!("json-{}", self.names.len());
        let prepared = match self.is_lenient {
            true => schema::prepare_leniently(schema, self.objects, self.budget)?,
            false => schema::prepare(schema, self.objects, self.budget)?,
        };
        self.schemas.push(GrammarWithLexer {
            name: Some(name.clone()),
            json_schema: Some(prepared),
            lark_grammar: None,
        });
        self.names.insert(text, name.clone());
        Ok(format!("@{name}"))
    }

    /// Refers to any object.
    pub(super) fn any_object(&mut self) -> Result<String, String> {
        self.schema(&json!({ "type": "object" }))
    }

    /// All grammars; the first is the start.
    pub(super) fn finish(self, start: &str) -> Vec<GrammarWithLexer> {
        let lark = format!("start: {start}\n{}", self.rules);
        let mut grammars = vec![GrammarWithLexer::from_lark(lark)];
        grammars.extend(self.schemas);
        grammars
    }
}

/// A quoted string. JSON and Lark quote in the same way.
pub(super) fn literal(text: &str) -> String {
    json!(text).to_string()
}

/// A regular expression between slashes that matches `text`.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        // A backslash before other punctuation may mean something else.
        if "\\.+*?()|[]{}^$#&-~/".contains(character) {
            out.push('\\');
        }
        match character {
            '\n' => out.push_str("\\n"),
            _ => out.push(character),
        }
    }
    out
}

/// Joins what is not empty.
pub(super) fn sequence(parts: &[&str]) -> String {
    let parts = parts.iter().filter(|part| !matches!(**part, "" | "\"\""));
    parts.copied().collect::<Vec<_>>().join(" ")
}
