//! Constraints on real and synthetic vocabularies. Independent implementations check the results:
//! `regex`, `jsonschema`, `serde_json`.

mod closed;
mod forms;
mod gbnf;
mod hostile;
mod stop_regex;
mod tools;
mod turns;
mod walks;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;
use crate::Result;
use crate::sample::TokenMask;
use crate::text::Tokenizer;
use crate::weights::{FileSource, Gguf, Metadata};

/// A vocabulary and its compiler.
struct Model {
    name: &'static str,
    tokenizer: Tokenizer,
    compiler: Compiler,
    /// [`distance_to_end`] of each token outside and inside of a string.
    distances_to_end: [Vec<u8>; 2],
}

impl Model {
    fn new(name: &'static str, tokenizer: Tokenizer) -> Model {
        let compiler = Compiler::new(&tokenizer, tokenizer.vocab_size());
        let ids = 0..tokenizer.vocab_size() as u32;
        let distances = |is_inside| {
            let distance = |id| distance_to_end(&tokenizer, id, is_inside);
            ids.clone().map(distance).collect()
        };
        let distances_to_end = [false, true].map(distances);
        Model {
            name,
            tokenizer,
            compiler,
            distances_to_end,
        }
    }

    /// A synthetic vocabulary: every byte, pieces that cross the parts of JSON and regular expressions,
    /// duplicates, special tokens of every kind, and two end-of-text tokens.
    fn made() -> Model {
        Model::made_with(&[])
    }

    /// The synthetic vocabulary with these special tokens.
    fn made_with(special: &[&str]) -> Model {
        const CONTROL: i32 = 3;
        const USER_DEFINED: i32 = 4;
        const UNUSED: i32 = 5;
        const BYTE: i32 = 6;
        let mut tokens = vec![
            ("<unk>".to_owned(), 2),
            ("<s>".to_owned(), CONTROL),
            ("</s>".to_owned(), CONTROL),
        ];
        tokens.extend((0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
        let pieces = [
            "a",
            "b",
            "\"",
            "{",
            "}",
            "[",
            "]",
            "▁",
            "▁▁",
            "▁\"",
            "\"▁",
            "\":",
            "\":▁",
            "\",",
            "\",▁\"",
            "{\"",
            "\"}",
            "}}",
            "},",
            "]}",
            "],",
            "true",
            "false",
            "null",
            "▁true",
            "yes",
            "no",
            "12",
            "0.",
            "1-",
            "-3",
            "é",
            "日",
            "name",
            "\"name\"",
            "{\"name\":",
            ">\n",
            ">\n{\"",
            "<tool",
            "_call>",
            "</tool_call",
            ">x",
            "\n",
            "\n▁▁",
            "example",
            "exam",
            "ples",
        ];
        tokens.extend(pieces.map(|text| (text.to_owned(), 1)));
        for tag in ["<tool_call>", "</tool_call>"] {
            if !special.contains(&tag) {
                tokens.push((tag.to_owned(), USER_DEFINED));
            }
        }
        tokens.push(("[TOOL_CALLS]".to_owned(), CONTROL));
        tokens.push(("<|im_end|>".to_owned(), CONTROL));
        tokens.push(("<|think|>".to_owned(), CONTROL));
        tokens.push(("[PAD]7".to_owned(), UNUSED));
        tokens.extend(special.iter().map(|tag| ((*tag).to_owned(), CONTROL)));
        let mut metadata = Metadata::new();
        let strings: Vec<String> = tokens.iter().map(|token| token.0.clone()).collect();
        let kinds: Vec<i32> = tokens.iter().map(|token| token.1).collect();
        metadata.insert("tokenizer.ggml.model", "llama");
        metadata.insert("tokenizer.ggml.scores", vec![-1.0f32; strings.len()]);
        metadata.insert("tokenizer.ggml.tokens", strings);
        metadata.insert("tokenizer.ggml.token_type", kinds);
        Model::new("made", Tokenizer::from_gguf(&metadata).unwrap())
    }

    fn read(name: &'static str, path: &Path) -> Model {
        let source = FileSource::open(path).unwrap();
        let metadata = pollster::block_on(Gguf::read(&source)).unwrap().metadata;
        Model::new(name, Tokenizer::from_gguf(&metadata).unwrap())
    }

    /// The synthetic model, and the named real ones if their files are available.
    fn made_and(names: &[&'static str]) -> Vec<Model> {
        let mut models = vec![Model::made()];
        let folder = std::env::var_os("INPAGE_MODELS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models"),
            PathBuf::from,
        );
        if !folder.is_dir() {
            println!("skipped: no real vocabularies in {}", folder.display());
            return models;
        }
        for name in names {
            let path = match *name {
                "stories260K" => "stories260K/stories260K-Q4_0.gguf".to_owned(),
                name => format!("vocab/ggml-vocab-{name}.gguf"),
            };
            models.push(Model::read(name, &folder.join(path)));
        }
        models
    }

    fn grammar(&self, source: &GrammarSource) -> Grammar {
        self.compiler
            .compile(source, Objects::Closed)
            .unwrap_or_else(|error| panic!("{}: {source:?}: {error:?}", self.name))
    }

    fn refusal(&self, source: &GrammarSource) -> String {
        match self.compiler.compile(source, Objects::Closed) {
            Ok(_) => panic!("{}: compiles: {source:?}", self.name),
            Err(error) => {
                assert!(!error.message.starts_with("panic"), "{source:?}: {error:?}");
                error.message
            }
        }
    }

    fn special(&self, text: &str) -> u32 {
        self.tokenizer.special_id(text).unwrap()
    }

    /// Whether `text`, byte by byte, is a whole completion.
    fn accepts(&self, grammar: &Grammar, text: &str) -> bool {
        let mut matcher = grammar.matcher();
        text.bytes().all(|byte| {
            let id = self.byte(byte);
            allows(&mut matcher, id).unwrap() && matcher.accept(id).is_ok()
        }) && self.may_end(&mut matcher)
    }

    /// The first token that consists of this byte.
    fn byte(&self, byte: u8) -> u32 {
        (0..self.tokenizer.vocab_size() as u32)
            .find(|&id| self.tokenizer.token_bytes(id) == [byte])
            .unwrap()
    }

    fn may_end(&self, matcher: &mut Matcher) -> bool {
        match matcher.next().unwrap() {
            Next::Free | Next::Finished => true,
            Next::OneOf(mask) => self.tokenizer.eos_ids().iter().any(|&id| mask.allows(id)),
        }
    }

    /// Draws allowed tokens, at random for `free_tokens` steps and then towards an end.
    fn walk(&self, grammar: &Grammar, random: &mut Random, free_tokens: usize) -> Result<Walk> {
        let mut matcher = grammar.matcher();
        let mut ids = Vec::new();
        let mut text = Vec::new();
        while ids.len() < MAX_TOKENS {
            let mask = match matcher.next()? {
                Next::Finished => return Ok(self.ended(ids, true)),
                Next::Free => panic!("{}: unconstrained", self.name),
                Next::OneOf(mask) => mask.clone(),
            };
            let allowed = self.allowed(&mask);
            assert!(!allowed.is_empty());
            if random.below(16) == 0 {
                self.mask_is_what_accept_takes(grammar, &ids, &mask, random);
            }
            let is_free = ids.len() < free_tokens || random.one_in(8);
            let is_inside = is_inside_string(&text);
            let id = if is_free {
                allowed[random.below(allowed.len())]
            } else {
                let rank = |&&id: &&u32| {
                    let distances = &self.distances_to_end[usize::from(is_inside)];
                    (distances[id as usize], random.below(1 << 20))
                };
                *allowed.iter().min_by_key(rank).unwrap()
            };
            if self.tokenizer.eos_ids().contains(&id) {
                matcher.accept(id)?;
                assert_eq!(matcher.next()?, Next::Finished);
                return Ok(self.ended(ids, true));
            }
            matcher.accept(id)?;
            text.extend(self.tokenizer.token_bytes(id));
            ids.push(id);
        }
        Ok(self.ended(ids, false))
    }

    fn ended(&self, ids: Vec<u32>, is_finished: bool) -> Walk {
        let bytes: Vec<u8> = ids
            .iter()
            .flat_map(|&id| self.tokenizer.token_bytes(id).to_vec())
            .collect();
        Walk {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            is_finished,
        }
    }

    /// The ids of the vocabulary that the mask has.
    fn allowed(&self, mask: &TokenMask) -> Vec<u32> {
        let mut ids = Vec::new();
        for (first, &word) in (0u32..).step_by(32).zip(mask.words()) {
            let mut rest = word;
            while rest != 0 {
                ids.push(first + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        let vocab_size = self.tokenizer.vocab_size() as u32;
        ids.truncate(ids.partition_point(|&id| id < vocab_size));
        ids
    }

    fn mask_is_what_accept_takes(
        &self,
        grammar: &Grammar,
        ids: &[u32],
        mask: &TokenMask,
        random: &mut Random,
    ) {
        let vocab_size = self.tokenizer.vocab_size();
        let mut unguarded = grammar.matcher_without_guard();
        ids.iter().for_each(|&id| unguarded.accept(id).unwrap());
        let Next::OneOf(of_grammar) = unguarded.next().unwrap() else {
            panic!("{}: the guard alone constrains", self.name);
        };
        for _ in 0..4 {
            let id = random.below(vocab_size) as u32;
            let mut matcher = grammar.matcher();
            ids.iter().for_each(|&id| matcher.accept(id).unwrap());
            let label = self.tokenizer.token_label(id);
            let is_taken = matcher.accept(id).is_ok();
            let text = || self.ended(ids.to_vec(), false).text;
            assert_eq!(
                is_taken,
                of_grammar.allows(id),
                "{}: {:?} then {id} {label:?}",
                self.name,
                text()
            );
            // The guard only takes tokens away, and none before seven tokens: a number has 20 digits.
            let is_narrowed = is_taken && !mask.allows(id);
            assert!(
                mask.allows(id) == is_taken || is_narrowed && ids.len() >= 7,
                "{}: {:?} then {id} {label:?}",
                self.name,
                text()
            );
        }
    }
}

const MAX_TOKENS: usize = 500;

struct Walk {
    text: String,
    is_finished: bool,
}

fn allows(matcher: &mut Matcher, id: u32) -> Result<bool> {
    Ok(match matcher.next()? {
        Next::Free => true,
        Next::OneOf(mask) => mask.allows(id),
        Next::Finished => false,
    })
}

/// Small for tokens that close something in JSON.
fn distance_to_end(tokenizer: &Tokenizer, id: u32, is_inside_string: bool) -> u8 {
    if tokenizer.eos_ids().contains(&id) {
        return 0;
    }
    match tokenizer.token_bytes(id) {
        b"\"" if is_inside_string => 1,
        b"}" | b"]" if !is_inside_string => 1,
        b"," | b":" | b"\"" | b"null" | b"true" => 2,
        [b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z'] => 3,
        [byte] if !b"{[ \n\r\t\\".contains(byte) => 4,
        _ => 5,
    }
}

fn is_inside_string(json: &[u8]) -> bool {
    let mut is_inside = false;
    let mut is_escaped = false;
    for &byte in json {
        is_inside ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
    }
    is_inside
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}

fn regex(expression: &str) -> GrammarSource {
    GrammarSource::Regex(expression.to_owned())
}

fn lark(text: &str) -> GrammarSource {
    GrammarSource::Lark(text.to_owned())
}

fn schema(value: Value) -> GrammarSource {
    GrammarSource::JsonSchema(value)
}

/// The longest run of white space outside of strings, and whether it is of the kind that JSON
/// constraints allow.
fn white_space_is_limited(json: &str) -> bool {
    let mut is_inside = false;
    let mut is_escaped = false;
    let mut runs = vec![String::new()];
    for character in json.chars() {
        if is_inside {
            is_inside = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
        } else if character.is_whitespace() {
            runs.last_mut().unwrap().push(character);
            continue;
        } else {
            is_inside = character == '"';
        }
        runs.push(String::new());
    }
    json.trim() == json
        && runs.iter().all(|run| {
            let spaces = run.strip_prefix('\n');
            run.len() <= 1 && run != "\t" && run != "\r"
                || spaces.is_some_and(|spaces| {
                    spaces.len() <= 16 && spaces.bytes().all(|byte| byte == b' ')
                })
        })
}
