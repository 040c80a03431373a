//! The description of a tokenizer, the same for all file formats. Readers of files produce it, and
//! [`Tokenizer`](super::tokenizer::Tokenizer) is built from it.

use std::borrow::Cow;

use super::chat_template::ChatTemplates;
use super::fill_in_middle::MiddleTokens;
use super::normalizer::Normalizer;
use super::special_tokens::SpecialToken;
use super::splitter::Splitter;
use super::token::{Roles, TokenKind, TokenSpelling};

/// Everything that a tokenizer is built from.
pub struct Description<'f> {
    /// The strings of the tokens by id, as the file writes them.
    pub strings: Cow<'f, [String]>,
    /// The kind of each token, by id.
    pub kinds: Vec<TokenKind>,
    pub spelling: TokenSpelling,
    pub roles: Roles,
    pub adds_bos: bool,
    pub adds_eos: bool,
    /// The tokens whose literal text is recognized in a prompt.
    pub special: Vec<SpecialToken>,
    // The steps that text between special tokens passes, in order.
    pub normalizer: Normalizer,
    pub space_prefix: SpacePrefix,
    pub splitter: Splitter,
    pub algorithm: Algorithm,
    pub middle_tokens: Option<MiddleTokens>,
    pub chat_templates: ChatTemplates,
}

/// The parts of a prompt that get a leading space. Some models were trained with a space before every word. A part
/// is the text between special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpacePrefix {
    /// No part gets a space.
    Never,
    /// Every part gets a space.
    Always,
    /// Parts that do not begin with a space get one.
    UnlessSpace,
    /// The part at the beginning of the prompt gets a space, unless it begins with one.
    FirstUnlessSpace,
}

impl SpacePrefix {
    /// Whether `text`, which begins at byte `start_byte` of the prompt, gets a leading space.
    pub fn applies(self, spelling: TokenSpelling, start_byte: usize, text: &str) -> bool {
        let has_none = match spelling {
            TokenSpelling::ByteLevel => !text.starts_with(' '),
            TokenSpelling::SentencePiece => !text.starts_with([' ', '▁']),
        };
        !text.is_empty()
            && match self {
                SpacePrefix::Never => false,
                SpacePrefix::Always => true,
                SpacePrefix::UnlessSpace => has_none,
                SpacePrefix::FirstUnlessSpace => has_none && start_byte == 0,
            }
    }
}

/// The algorithm that turns a piece of text into tokens.
pub enum Algorithm {
    /// BPE: pairs of tokens merge in this order.
    Merges(Merges),
    /// SentencePiece BPE: neighbors merge by the score of the token they form. One score per token.
    Scores(Vec<f32>),
    /// WordPiece: words become their longest tokens. Tokens that begin a word start with ▁.
    WordPiece {
        /// Longer words are unknown.
        max_word_chars: usize,
    },
    /// SentencePiece unigram: the tokens with the greatest sum of scores. One score per token.
    Unigram { scores: Vec<f64> },
}

/// See [`Algorithm::Merges`].
#[derive(Debug, Clone, Default)]
pub struct Merges {
    /// The pairs that are merged, in the order in which they are applied.
    pub pairs: Vec<(String, String)>,
    /// Whether a piece that is itself a token is used whole, regardless of the merges.
    pub ignore_merges: bool,
    /// Whether a character without a token becomes the tokens `<0xHH>` of its bytes.
    pub byte_fallback: bool,
    /// Whether adjacent characters without a token become one unknown token.
    pub fuse_unknown: bool,
}
