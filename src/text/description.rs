//! What a tokenizer is, in one form for all kinds of files that describe one. Knows no file format
//! and encodes nothing.

use std::borrow::Cow;

use super::fill_in_middle::MiddleTokens;
use super::normalizer::Normalizer;
use super::special_tokens::SpecialToken;
use super::splitter::Splitter;
use super::vocabulary::{TokenKind, TokenSpelling};

/// All that a [`Tokenizer`](super::Tokenizer) is built from.
pub struct Description<'f> {
    /// The tokens by id, as the file writes them.
    pub texts: Cow<'f, [String]>,
    /// One per token.
    pub kinds: Vec<TokenKind>,
    pub spelling: TokenSpelling,
    pub roles: Roles,
    pub adds_bos: bool,
    pub adds_eos: bool,
    /// The tokens whose literal text is recognised in a prompt.
    pub special: Vec<SpecialToken>,
    /// What happens to the text between them, in this order.
    pub normalizer: Normalizer,
    pub space_prefix: SpacePrefix,
    pub splitter: Splitter,
    pub algorithm: Algorithm,
    pub middle_tokens: Option<MiddleTokens>,
    pub chat_template: Option<Box<str>>,
}

/// The tokens with a meaning of their own; ids are below the number of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// Start of text.
    pub bos_id: Option<u32>,
    /// End of text.
    pub eos_id: Option<u32>,
    /// What stands for text that no token covers.
    pub unknown_id: Option<u32>,
    /// Further ids that end a text or a turn.
    pub end_ids: Vec<u32>,
}

/// Which texts are given a leading space: some models saw all words with theirs. Texts are what
/// lies between special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpacePrefix {
    /// None.
    Never,
    /// Every one.
    Always,
    /// Those that do not begin with one.
    UnlessSpace,
    /// That at the very beginning, unless it begins with one.
    FirstUnlessSpace,
}

impl SpacePrefix {
    /// Whether a text is given a space that begins at this byte of the prompt.
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

/// How a piece of text becomes tokens.
pub enum Algorithm {
    /// BPE: pairs of tokens merge in this order.
    Merges(Merges),
    /// SentencePiece BPE: neighbours merge by the score of the token they make.
    Scores(Vec<f32>),
    /// SentencePiece unigram: the tokens with the greatest sum of scores.
    Unigram { scores: Vec<f64> },
}

/// See [`Algorithm::Merges`].
#[derive(Debug, Clone, Default)]
pub struct Merges {
    /// First merge first.
    pub pairs: Vec<(String, String)>,
    /// A piece that is itself a token is taken whole, whatever the merges say.
    pub ignore_merges: bool,
    /// A character without a token becomes the tokens `<0xHH>` of its bytes.
    pub byte_fallback: bool,
    /// Neighbouring characters without a token are one unknown token.
    pub fuse_unknown: bool,
}
