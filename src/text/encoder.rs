//! The algorithm that turns pieces of text into token ids: one kind per tokenizer.

use super::bpe::RankedBpe;
use super::description::Algorithm;
use super::sentencepiece::SentencePieceBpe;
use super::token::{TokenKind, TokenSpelling};
use super::unigram::Unigram;
use super::word_piece::WordPiece;
use crate::Result;

pub(super) enum Encoder {
    Ranked(RankedBpe),
    Scored(SentencePieceBpe),
    Unigram(Unigram),
    WordPiece(WordPiece),
}

impl Encoder {
    /// Builds the encoder of tokens with these strings and kinds.
    pub(super) fn new(
        algorithm: Algorithm,
        strings: &[String],
        kinds: &[TokenKind],
        spelling: TokenSpelling,
        unknown_id: Option<u32>,
    ) -> Result<Encoder> {
        Ok(match algorithm {
            Algorithm::Merges(merges) => {
                Encoder::Ranked(RankedBpe::new(strings, spelling, merges, unknown_id)?)
            }
            Algorithm::Scores(scores) => {
                Encoder::Scored(SentencePieceBpe::new(strings, &scores, unknown_id)?)
            }
            Algorithm::WordPiece { max_word_chars } => {
                Encoder::WordPiece(WordPiece::new(strings, max_word_chars, unknown_id)?)
            }
            Algorithm::Unigram { scores } => {
                Encoder::Unigram(Unigram::new(strings, kinds, scores, unknown_id)?)
            }
        })
    }

    /// Appends the ids of a piece.
    pub(super) fn encode(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        match self {
            Encoder::Ranked(bpe) => bpe.encode(piece, ids)?,
            Encoder::Scored(bpe) => bpe.encode(piece, ids),
            Encoder::Unigram(unigram) => unigram.encode(piece, ids),
            Encoder::WordPiece(words) => words.encode(piece, ids),
        }
        Ok(())
    }

    /// Whether the ids of a word do not depend on the words beside it.
    pub(super) fn words_stand_apart(&self) -> bool {
        match self {
            Encoder::Ranked(bpe) => bpe.words_stand_apart,
            Encoder::Scored(bpe) => bpe.words_stand_apart,
            Encoder::Unigram(_) | Encoder::WordPiece(_) => false,
        }
    }

    /// Whether it neither drops text nor maps arbitrarily long text to one token.
    pub(super) fn keeps_text(&self) -> bool {
        match self {
            Encoder::Ranked(bpe) => bpe.keeps_text,
            Encoder::Scored(_) => true,
            Encoder::Unigram(unigram) => unigram.keeps_text(),
            // A long word is one unknown token.
            Encoder::WordPiece(_) => false,
        }
    }
}
