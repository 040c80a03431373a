//! Compiles the source of a constraint to a grammar. Longer than other files: every form of a source is compiled here, under one
//! budget.

use std::rc::Rc;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::toktrie::{InferenceCapabilities, TokTrie};
use llguidance::{ParserFactory, TokenParser};
use serde_json::{Map, Value, json};

use super::budget::Budget;
use super::calls::{self, Turn};
use super::closed::Objects;
use super::guard::Guard;
use super::matcher::Matcher;
use super::opener::Opener;
use super::output::OutputForm;
use super::schema::Whitespace;
use super::tool::Tool;
use super::{gbnf, lark, regex, schema, token_trie};
use crate::sample::TokenMask;
use crate::text::Tokenizer;

/// Largest source.
const MAX_SOURCE_BYTES: usize = 1 << 20;
/// llguidance allows or forbids all tokens that match a slice together. These slices match the contents
/// of JSON strings. Each slice costs memory proportional to the vocabulary.
const SLICES: [&str; 2] = [r#"[^"\\\x00-\x1F\x7F]{1,30}"#, r#"[^"\\\x00-\x1F\x7F]+"#];

/// The source of a constraint, which the whole completion must match.
#[derive(Debug, Clone, PartialEq)]
pub enum GrammarSource {
    /// This regular expression, from start to end.
    Regex(String),
    /// One JSON object.
    JsonObject,
    /// One JSON value that is valid against this schema.
    JsonSchema(Value),
    /// Same as [`GrammarSource::JsonSchema`], with other white space.
    SpacedJsonSchema {
        /// The schema.
        schema: Value,
        /// The white space that may be between JSON tokens.
        whitespace: Whitespace,
    },
    /// A grammar in llama.cpp's GBNF; starts at `root`.
    Gbnf(String),
    /// A grammar in xgrammar's EBNF; starts at `root`.
    Ebnf(String),
    /// A Lark grammar in llguidance's dialect; starts at `start`.
    Lark(String),
    /// `{"grammars": [...], "max_tokens"?}` of llguidance.
    LlGuidance(Value),
    /// One tool call, or text that may begin with one.
    Tools {
        /// The tools that may be called, at least one.
        tools: Vec<Tool>,
        /// Whether the completion must be a call.
        is_forced: bool,
        /// The form in which the model writes calls.
        form: OutputForm,
    },
    /// A turn of a chat with tools.
    Turn(Turn),
}

/// The reason why a source does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrammarError {
    /// A message for humans.
    pub message: String,
    /// Whether the source may be valid, but has more than 1 MiB: `invalid_grammar` even for a schema.
    pub is_over_budget: bool,
}

impl GrammarError {
    fn invalid(message: impl Into<String>) -> GrammarError {
        GrammarError {
            message: message.into(),
            is_over_budget: false,
        }
    }

    fn over_budget(message: impl Into<String>) -> GrammarError {
        GrammarError {
            message: message.into(),
            is_over_budget: true,
        }
    }
}

/// Compiles constraints for one model's vocabulary. Building it takes time and memory proportional to
/// the vocabulary: build it once per model, when the first constraint is requested.
pub struct Compiler {
    factory: ParserFactory,
    /// The end-of-text ids.
    ends: Rc<TokenMask>,
    guard: Rc<Guard>,
}

impl Compiler {
    /// A compiler for `vocab_size` logits and the ids of `tokenizer`. Ids that only one of them has are
    /// never allowed.
    pub fn new(tokenizer: &Tokenizer, vocab_size: usize) -> Compiler {
        let tokens = token_trie::build(tokenizer, vocab_size);
        let ends = tokens.tok_trie().eos_token_set();
        let guard = Rc::new(Guard::new(tokens.tok_trie()));
        let slices = SLICES.map(str::to_owned);
        let mut factory = ParserFactory::new(&tokens, InferenceCapabilities::default(), &slices)
            .expect("the slices are regular expressions");
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        // Objects with hundreds of optional properties need this. It takes about 10 ms per mask
        // natively.
        limits.max_items_in_row = 10_000;
        limits.step_max_items = 200_000;
        Compiler {
            factory,
            ends: Rc::new(TokenMask::from_words(ends.as_slice().to_vec())),
            guard,
        }
    }

    /// Compiles a constraint. `objects` says how its JSON schemas are read.
    ///
    /// # Errors
    /// Says what is invalid, or that the source exceeds the budget.
    pub fn compile(
        &self,
        source: &GrammarSource,
        objects: Objects,
    ) -> Result<Grammar, GrammarError> {
        let size = source.size();
        if size > MAX_SOURCE_BYTES {
            return Err(GrammarError::over_budget(format!(
                "the grammar has {size} bytes; {MAX_SOURCE_BYTES} are allowed"
            )));
        }
        let prepared = self
            .prepare(source, objects)
            .map_err(GrammarError::invalid)?;
        let larks = prepared.grammar.grammars.iter();
        let mut larks = larks.filter_map(|grammar| grammar.lark_grammar.as_deref());
        let may_set_temperatures = larks.any(lark::may_set_temperatures);
        let parser = self.parser(prepared.grammar)?;
        Ok(Grammar(Rc::new(Compiled {
            parser,
            opener: prepared.opener,
            ends: self.ends.clone(),
            guard: source.is_json().then(|| self.guard.clone()),
            max_tokens: prepared.max_tokens,
            may_set_temperatures,
        })))
    }

    /// The parser at the start of a completion. Computes a first mask to reject grammars that match
    /// nothing or are too complex from the start.
    fn parser(&self, grammar: TopLevelGrammar) -> Result<TokenParser, GrammarError> {
        let refused = |error: &dyn std::fmt::Display| GrammarError::invalid(error.to_string());
        let parser = self.factory.create_parser(grammar);
        let mut parser = parser.map_err(|error| refused(&format!("{error:#}")))?;
        parser.start_without_prompt();
        let mut probe = parser.clone();
        match probe.compute_mask() {
            Ok(_) => Ok(parser),
            Err(_) if probe.error_message().is_none() && parser.is_accepting() => Ok(parser),
            Err(_) if probe.error_message().is_none() => Err(GrammarError::invalid(
                "no sequence of the model's tokens satisfies this",
            )),
            Err(error) => Err(refused(&error)),
        }
    }

    fn trie(&self) -> &TokTrie {
        self.factory.tok_env().tok_trie()
    }

    fn prepare(&self, source: &GrammarSource, objects: Objects) -> Result<Prepared, String> {
        let budget = &mut Budget::default();
        let grammar = match source {
            GrammarSource::Regex(expression) => {
                if regex::has_stop_group(expression) {
                    return Err(regex::STOP_GROUP.to_owned());
                }
                GrammarWithLexer::from_lark(regex::to_lark(expression))
            }
            GrammarSource::JsonObject => GrammarWithLexer::from_json_schema(schema::prepare(
                &json!({ "type": "object" }),
                objects,
                budget,
            )?),
            GrammarSource::JsonSchema(value) => {
                GrammarWithLexer::from_json_schema(schema::prepare(value, objects, budget)?)
            }
            GrammarSource::SpacedJsonSchema { schema, whitespace } => {
                GrammarWithLexer::from_json_schema(schema::prepare_spaced(
                    schema, whitespace, objects, budget,
                )?)
            }
            GrammarSource::Gbnf(text) | GrammarSource::Ebnf(text) => {
                let is_ebnf = matches!(source, GrammarSource::Ebnf(_));
                let text = gbnf::to_lark(text, is_ebnf)?;
                GrammarWithLexer::from_lark(lark::prepare(&text, self.trie(), objects, budget)?)
            }
            GrammarSource::Lark(text) => {
                GrammarWithLexer::from_lark(lark::prepare(text, self.trie(), objects, budget)?)
            }
            GrammarSource::LlGuidance(value) => {
                return self.prepare_llguidance(value, objects, budget);
            }
            GrammarSource::Tools {
                tools,
                is_forced,
                form,
            } => {
                let tokens = self.factory.tok_env();
                let grammars =
                    calls::completion(*form, tools, *is_forced, tokens.clone(), objects, budget)?;
                let opener = match is_forced {
                    true => None,
                    false => calls::opener(*form, tokens.clone()),
                };
                return Ok(Prepared::of(grammars, opener));
            }
            GrammarSource::Turn(turn) => {
                let grammars = calls::turn(turn, self.factory.tok_env().clone(), objects, budget)?;
                return Ok(Prepared::of(grammars, None));
            }
        };
        Ok(Prepared {
            grammar: TopLevelGrammar::from_grammar(grammar),
            opener: None,
            max_tokens: None,
        })
    }

    fn prepare_llguidance(
        &self,
        value: &Value,
        objects: Objects,
        budget: &mut Budget,
    ) -> Result<Prepared, String> {
        let members = members(value, "the grammar", &["grammars", "max_tokens"])?;
        let max_tokens = match members.get("max_tokens") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64() {
                Some(count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
                None => return Err("\"max_tokens\" must be a non-negative integer".to_owned()),
            },
        };
        let entries = match members.get("grammars") {
            Some(Value::Array(entries)) if !entries.is_empty() => entries,
            _ => return Err("\"grammars\" must be an array of at least one grammar".to_owned()),
        };
        let grammars = entries
            .iter()
            .map(|entry| self.prepare_entry(entry, objects, budget));
        Ok(Prepared {
            grammar: TopLevelGrammar {
                grammars: grammars.collect::<Result<_, _>>()?,
                max_tokens: None,
            },
            opener: None,
            max_tokens,
        })
    }

    fn prepare_entry(
        &self,
        entry: &Value,
        objects: Objects,
        budget: &mut Budget,
    ) -> Result<GrammarWithLexer, String> {
        budget.count_grammar()?;
        let known = ["name", "json_schema", "lark_grammar"];
        let members = members(entry, "an entry of \"grammars\"", &known)?;
        let text = |key: &str| match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("{key:?} must be a string")),
        };
        let json_schema = members.get("json_schema").filter(|value| !value.is_null());
        Ok(GrammarWithLexer {
            name: text("name")?.map(str::to_owned),
            json_schema: match json_schema {
                Some(value) => Some(schema::prepare(value, objects, budget)?),
                None => None,
            },
            lark_grammar: match text("lark_grammar")? {
                Some(text) => Some(lark::prepare(text, self.trie(), objects, budget)?),
                None => None,
            },
        })
    }
}

/// The members of an object, which must all be known.
fn members<'v>(
    value: &'v Value,
    what: &str,
    known: &[&str],
) -> Result<&'v Map<String, Value>, String> {
    let Value::Object(members) = value else {
        return Err(format!("{what} must be an object"));
    };
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{what} has an unknown member {key:?}")),
        None => Ok(members),
    }
}

/// A source in llguidance's form.
struct Prepared {
    grammar: TopLevelGrammar,
    opener: Option<Opener>,
    max_tokens: Option<usize>,
}

impl Prepared {
    fn of(grammars: Vec<GrammarWithLexer>, opener: Option<Opener>) -> Prepared {
        Prepared {
            grammar: TopLevelGrammar {
                grammars,
                max_tokens: None,
            },
            opener,
            max_tokens: None,
        }
    }
}

impl GrammarSource {
    /// The same without the parameters of tools that are not strict. `None` if there are none.
    pub fn without_parameters(&self) -> Option<GrammarSource> {
        let mut loose = self.clone();
        let (GrammarSource::Tools { tools, .. } | GrammarSource::Turn(Turn { tools, .. })) =
            &mut loose
        else {
            return None;
        };
        let loosened = tools.iter_mut().filter(|tool| !tool.strict);
        // Counted, because all of them lose their parameters.
        let taken = loosened.filter_map(|tool| tool.parameters.take());
        (taken.count() > 0).then_some(loose)
    }

    /// Whether the completion is JSON, or calls with JSON in them.
    fn is_json(&self) -> bool {
        match self {
            GrammarSource::JsonObject
            | GrammarSource::JsonSchema(_)
            | GrammarSource::SpacedJsonSchema { .. }
            | GrammarSource::Tools { .. }
            | GrammarSource::Turn(_) => true,
            GrammarSource::Regex(_)
            | GrammarSource::Gbnf(_)
            | GrammarSource::Ebnf(_)
            | GrammarSource::Lark(_)
            | GrammarSource::LlGuidance(_) => false,
        }
    }

    /// Bytes of source text.
    fn size(&self) -> usize {
        match self {
            GrammarSource::Regex(text)
            | GrammarSource::Lark(text)
            | GrammarSource::Gbnf(text)
            | GrammarSource::Ebnf(text) => text.len(),
            GrammarSource::JsonObject => 0,
            GrammarSource::JsonSchema(value)
            | GrammarSource::SpacedJsonSchema { schema: value, .. }
            | GrammarSource::LlGuidance(value) => value.to_string().len(),
            GrammarSource::Tools { tools, .. } | GrammarSource::Turn(Turn { tools, .. }) => {
                let parameters = tools.iter().flat_map(|tool| &tool.parameters);
                parameters.map(|value| value.to_string().len()).sum()
            }
        }
    }
}

/// A compiled constraint; cheap to clone.
#[derive(Clone)]
pub struct Grammar(Rc<Compiled>);

struct Compiled {
    /// The parser at the start of a completion.
    parser: TokenParser,
    /// The constraint applies only to completions that begin with this.
    opener: Option<Opener>,
    ends: Rc<TokenMask>,
    /// The guard that keeps JSON from running on; `None` for other text.
    guard: Option<Rc<Guard>>,
    max_tokens: Option<usize>,
    may_set_temperatures: bool,
}

impl Grammar {
    /// The state at the start of a completion.
    pub fn matcher(&self) -> Matcher {
        let Compiled { parser, opener, .. } = &*self.0;
        let (ends, guard) = (self.0.ends.clone(), self.0.guard.clone());
        Matcher::new(parser.clone(), opener.clone(), ends, guard)
    }

    /// A matcher that allows what the grammar allows, also numbers and repetitions without end.
    #[cfg(test)]
    pub fn matcher_without_guard(&self) -> Matcher {
        let Compiled { parser, opener, .. } = &*self.0;
        Matcher::new(parser.clone(), opener.clone(), self.0.ends.clone(), None)
    }

    /// The most tokens that the grammar itself allows (`max_tokens` of llguidance). The caller applies
    /// it like its own limit: a completion that reaches it ends with `length`.
    pub fn max_tokens(&self) -> Option<usize> {
        self.0.max_tokens
    }

    /// Whether [`Matcher::temperature`] may differ from token to token.
    pub fn may_set_temperatures(&self) -> bool {
        self.0.may_set_temperatures
    }
}

impl std::fmt::Debug for Grammar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grammar")
            .field("opener", &self.0.opener)
            .field("max_tokens", &self.0.max_tokens)
            .finish_non_exhaustive()
    }
}
