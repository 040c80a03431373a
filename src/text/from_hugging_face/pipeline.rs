//! `normalizer` and `pre_tokenizer` of a `tokenizer.json`, translated to a normalizer, a space prefix and
//! a splitter.

use serde_json::Value;

use super::super::charsmap::Charsmap;
use super::super::description::SpacePrefix;
use super::super::normalizer::{NormalForm, Normalizer, NormalizerStep};
use super::super::pre_tokenizers::GPT2;
use super::super::splitter::{Behavior, Splitter};
use super::super::token::TokenSpelling;
use super::super::word_piece;
use super::files::{invalid, unsupported};
use crate::Result;

/// The steps that text goes through before it reaches the model.
pub struct Pipeline {
    pub normalizer: Normalizer,
    pub space_prefix: SpacePrefix,
    pub splitter: Splitter,
    pub spelling: TokenSpelling,
    /// Whether text is divided into words as WordPiece needs it.
    pub has_words: bool,
}

impl Pipeline {
    /// Reads both fields.
    ///
    /// # Errors
    /// [`crate::Error::UnsupportedModel`] naming a part that is not supported.
    pub fn new(normalizer: &Value, pre_tokenizer: &Value) -> Result<Pipeline> {
        let mut builder = Builder::default();
        builder.normalizer(normalizer)?;
        builder.pre_tokenizer(pre_tokenizer)?;
        let writes_signs = builder.writes_signs || builder.has_words;
        let spelling = match (builder.writes_bytes, writes_signs) {
            (true, _) => TokenSpelling::ByteLevel,
            (false, true) => TokenSpelling::SentencePiece,
            (false, false) => return Err(unsupported("pre_tokenizer", &kind(pre_tokenizer))),
        };
        Ok(Pipeline {
            normalizer: Normalizer {
                steps: builder.steps,
            },
            space_prefix: builder.space_prefix,
            splitter: builder.splitter,
            spelling,
            has_words: builder.has_words,
        })
    }
}

struct Builder {
    steps: Vec<NormalizerStep>,
    space_prefix: SpacePrefix,
    splitter: Splitter,
    has_cuts: bool,
    /// Whether the only split is at white space, which is dropped.
    only_words: bool,
    /// Whether tokens are spelled in GPT-2's stand-ins for bytes.
    writes_bytes: bool,
    /// Whether tokens have ▁ for a space.
    writes_signs: bool,
    /// Whether text is divided into words as BERT does it.
    has_words: bool,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            steps: Vec::new(),
            space_prefix: SpacePrefix::Never,
            splitter: Splitter::default(),
            has_cuts: false,
            only_words: false,
            writes_bytes: false,
            writes_signs: false,
            has_words: false,
        }
    }
}

impl Builder {
    fn normalizer(&mut self, part: &Value) -> Result<()> {
        if part.is_null() {
            return Ok(());
        }
        let step = match &*kind(part) {
            "Sequence" => {
                for part in list(part, "normalizers")? {
                    self.normalizer(part)?;
                }
                return Ok(());
            }
            "BertNormalizer" => {
                let is_lowercase = flag(part, "lowercase", true);
                let strips = flag(part, "strip_accents", is_lowercase);
                let cleans = flag(part, "clean_text", true);
                let steps = word_piece::normalizer(cleans, strips, is_lowercase)?;
                self.steps.extend(steps);
                if flag(part, "handle_chinese_chars", true) {
                    word_piece::split_ideographs(&mut self.splitter)?;
                }
                return Ok(());
            }
            "NFC" => NormalizerStep::Form(NormalForm::Nfc),
            "NFD" => NormalizerStep::Form(NormalForm::Nfd),
            "NFKC" => NormalizerStep::Form(NormalForm::Nfkc),
            "NFKD" => NormalizerStep::Form(NormalForm::Nfkd),
            "Lowercase" => NormalizerStep::Lowercase,
            "StripAccents" => NormalizerStep::replace(r"\p{M}", "")?,
            "Strip" => {
                if flag(part, "strip_left", true) {
                    self.steps.push(NormalizerStep::replace(r"^\s+", "")?);
                }
                if !flag(part, "strip_right", true) {
                    return Ok(());
                }
                // `$` would also match before a line break at the end.
                NormalizerStep::replace(r"\s+\z", "")?
            }
            "Prepend" => match text(part, "prepend")? {
                "▁" => {
                    self.space_prefix = SpacePrefix::Always;
                    return Ok(());
                }
                prefix => NormalizerStep::Prepend(prefix.into()),
            },
            "Replace" => {
                let by = text(part, "content")?;
                self.writes_signs |= part["pattern"]["String"] == " " && by == "▁";
                NormalizerStep::replace(&pattern(part)?, by)?
            }
            "Precompiled" => match &part["precompiled_charsmap"] {
                Value::String(map) => NormalizerStep::Charsmap(Charsmap::new(&base64(map)?)?),
                _ => return Ok(()),
            },
            other => return Err(unsupported("normalizer", other)),
        };
        self.steps.push(step);
        Ok(())
    }

    fn pre_tokenizer(&mut self, part: &Value) -> Result<()> {
        if part.is_null() {
            return Ok(());
        }
        match &*kind(part) {
            "Sequence" => {
                for part in list(part, "pretokenizers")? {
                    self.pre_tokenizer(part)?;
                }
                Ok(())
            }
            "Split" => {
                let behavior = behavior(&part["behavior"])?;
                self.cut(&pattern(part)?, behavior, flag(part, "invert", false))
            }
            "Digits" => match flag(part, "individual_digits", false) {
                true => self.cut(r"\p{N}", Behavior::Isolated, false),
                false => self.cut(r"\p{N}+", Behavior::Isolated, false),
            },
            "Punctuation" => {
                let behavior = match &part["behavior"] {
                    Value::Null => Behavior::Isolated,
                    said => behavior(said)?,
                };
                self.cut(r"[\p{P}!-/:-@\[-`{-~]", behavior, false)
            }
            "Whitespace" => self.cut(r"\w+|[^\w\s]+", Behavior::Removed, true),
            "WhitespaceSplit" => {
                let is_first = !self.has_cuts;
                self.cut(r"\s", Behavior::Removed, false)?;
                self.only_words = is_first;
                Ok(())
            }
            "ByteLevel" => {
                self.writes_bytes = true;
                if flag(part, "add_prefix_space", true) {
                    self.prefix(part, SpacePrefix::UnlessSpace)?;
                }
                match flag(part, "use_regex", true) {
                    true => self.cut(GPT2, Behavior::Isolated, false),
                    false => Ok(()),
                }
            }
            "Metaspace" => self.metaspace(part),
            "BertPreTokenizer" => {
                self.has_words = true;
                self.has_cuts = true;
                word_piece::split_words(&mut self.splitter)
            }
            other => Err(unsupported("pre_tokenizer", other)),
        }
    }

    fn metaspace(&mut self, part: &Value) -> Result<()> {
        if part["replacement"] != "▁" {
            return Err(unsupported("Metaspace", &part["replacement"].to_string()));
        }
        self.writes_signs = true;
        let scheme = match (
            &part["prepend_scheme"],
            flag(part, "add_prefix_space", true),
        ) {
            (Value::String(scheme), _) => scheme,
            (_, true) => "always",
            (_, false) => "never",
        };
        let prefix = match scheme {
            "always" => SpacePrefix::UnlessSpace,
            "first" => SpacePrefix::FirstUnlessSpace,
            "never" => SpacePrefix::Never,
            other => return Err(unsupported("Metaspace", other)),
        };
        if self.only_words && prefix == SpacePrefix::UnlessSpace {
            // Adding a space to each word gives the same result as one space between words plus one
            // before the text.
            self.only_words = false;
            self.has_cuts = false;
            self.splitter = Splitter::default();
            self.steps.push(NormalizerStep::replace(r"^\s+|\s+\z", "")?);
            self.steps.push(NormalizerStep::replace(r"\s+", " ")?);
        }
        if prefix != SpacePrefix::Never {
            self.prefix(part, prefix)?;
        }
        match flag(part, "split", true) {
            true => self.cut("[ ▁]", Behavior::MergedWithNext, false),
            false => Ok(()),
        }
    }

    fn prefix(&mut self, part: &Value, prefix: SpacePrefix) -> Result<()> {
        // This part adds a space to each piece, but a prefix is only added before the text.
        if self.has_cuts {
            let after = format!("{} with a prefix after another", kind(part));
            return Err(unsupported("pre_tokenizer", &after));
        }
        self.space_prefix = prefix;
        Ok(())
    }

    fn cut(&mut self, pattern: &str, behavior: Behavior, invert: bool) -> Result<()> {
        self.has_cuts = true;
        self.only_words = false;
        self.splitter.cut(pattern, behavior, invert)
    }
}

fn kind(part: &Value) -> String {
    part["type"].as_str().unwrap_or("none").to_owned()
}

fn list<'p>(part: &'p Value, field: &str) -> Result<&'p [Value]> {
    let list = part[field].as_array().map(Vec::as_slice);
    list.ok_or_else(|| invalid(format_args!("a Sequence has no {field}")))
}

fn text<'p>(part: &'p Value, field: &str) -> Result<&'p str> {
    let text = part[field].as_str();
    text.ok_or_else(|| invalid(format_args!("{} has no {field}", kind(part))))
}

fn flag(part: &Value, field: &str, default: bool) -> bool {
    part[field].as_bool().unwrap_or(default)
}

/// The regular expression of a part's pattern.
fn pattern(part: &Value) -> Result<String> {
    let pattern = &part["pattern"];
    match (pattern["Regex"].as_str(), pattern["String"].as_str()) {
        (Some(regex), _) => Ok(regex.to_owned()),
        (None, Some(literal)) => Ok(literal.chars().fold(String::new(), |escaped, character| {
            match character.is_ascii_punctuation() {
                true => escaped + "\\" + character.encode_utf8(&mut [0; 4]),
                false => escaped + character.encode_utf8(&mut [0; 4]),
            }
        })),
        _ => Err(invalid(format_args!("{} has no pattern", kind(part)))),
    }
}

fn behavior(value: &Value) -> Result<Behavior> {
    Ok(match value.as_str().unwrap_or_default() {
        "Isolated" => Behavior::Isolated,
        "Removed" => Behavior::Removed,
        "MergedWithPrevious" => Behavior::MergedWithPrevious,
        "MergedWithNext" => Behavior::MergedWithNext,
        "Contiguous" => Behavior::Contiguous,
        other => return Err(unsupported("behavior", other)),
    })
}

/// The bytes of base64 with or without padding (RFC 4648).
fn base64(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for character in text.trim_end_matches('=').bytes() {
        let six = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(invalid("precompiled_charsmap is not base64")),
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Ok(bytes)
}
