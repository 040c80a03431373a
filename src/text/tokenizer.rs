//! Text to token ids and back, as a file describes it (specification 4.2, 6.3, 6.5). Knows nothing of
//! requests, streams or models.

use std::borrow::Cow;

use super::bpe::RankedBpe;
use super::description::{Algorithm, Description, SpacePrefix};
use super::detokenizer::TokenDecoder;
use super::fill_in_middle::MiddleTokens;
use super::from_gguf;
use super::from_hugging_face::{self, HuggingFaceFiles};
use super::normalizer::{Normalized, Normalizer, Step};
use super::placement::{self, Place, PlacedSegment};
use super::sentencepiece::SentencePieceBpe;
use super::special_tokens::{Segment, SpecialTokens};
use super::splitter::Splitter;
use super::unigram::Unigram;
use super::vocabulary::{TokenKind, TokenSpelling, Vocabulary};
use crate::weights::files::read_small;
use crate::weights::{Metadata, ModelFiles};
use crate::{Error, Result};

/// Largest file of a folder's tokenizer accepted; the largest real ones have about 35 MB.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// The tokenizer of one model.
pub struct Tokenizer {
    vocabulary: Vocabulary,
    special: SpecialTokens,
    normalizer: Normalizer,
    space_prefix: SpacePrefix,
    splitter: Splitter,
    spelling: TokenSpelling,
    encoder: Encoder,
    adds_bos: bool,
    adds_eos: bool,
    /// Decoding from the beginning drops the space that encoding put there.
    drops_first_space: bool,
    /// No text becomes shorter than its characters put together: none is dropped, none fused.
    keeps_text: bool,
    middle_tokens: Option<MiddleTokens>,
    chat_template: Option<Box<str>>,
}

enum Encoder {
    Ranked(RankedBpe),
    Scored(SentencePieceBpe),
    Unigram(Unigram),
}

impl Tokenizer {
    /// Builds the tokenizer that the metadata of a GGUF file describe.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for a tokenizer or pre-tokenizer this build does not know,
    /// [`Error::InvalidModelFile`] for metadata that is missing or contradicts itself.
    pub fn from_gguf(metadata: &Metadata) -> Result<Tokenizer> {
        Tokenizer::new(from_gguf::describe(metadata)?)
    }

    /// Builds the tokenizer that the files of a Hugging Face folder describe.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming a part of a tokenizer that this build does not know,
    /// [`Error::InvalidModelFile`] for files that are no JSON or contradict themselves.
    pub fn from_hugging_face(files: &HuggingFaceFiles<'_>) -> Result<Tokenizer> {
        Tokenizer::new(from_hugging_face::describe(files)?)
    }

    /// Builds the tokenizer of a model: that of its folder, or that of its metadata if it is a GGUF file.
    ///
    /// # Errors
    /// As [`Self::from_gguf`] and [`Self::from_hugging_face`], and what the files fail with.
    pub async fn of<F: ModelFiles>(files: &F, metadata: &Metadata) -> Result<Tokenizer> {
        if files.gguf_name().is_some() {
            return Tokenizer::from_gguf(metadata);
        }
        let read = |name| read_small(files, name, MAX_FILE_BYTES);
        let tokenizer = read("tokenizer.json").await?;
        let config = read("tokenizer_config.json").await?;
        let map = read("special_tokens_map.json").await?;
        let generation = read("generation_config.json").await?;
        let template = read("chat_template.jinja").await?;
        Tokenizer::from_hugging_face(&HuggingFaceFiles {
            tokenizer: &tokenizer
                .ok_or_else(|| Error::UnsupportedModel("a folder without tokenizer.json".into()))?,
            tokenizer_config: config.as_deref(),
            special_tokens_map: map.as_deref(),
            generation_config: generation.as_deref(),
            chat_template: template.as_deref(),
        })
    }

    /// The kind, as `tokenizer.ggml.model` names it: `gpt2` (BPE), `llama` (SentencePiece BPE), `t5`
    /// (SentencePiece unigram).
    pub fn kind(&self) -> &'static str {
        match (&self.encoder, self.spelling) {
            (Encoder::Unigram(_), _) => "t5",
            (Encoder::Scored(_), _) | (_, TokenSpelling::SentencePiece) => "llama",
            (Encoder::Ranked(_), TokenSpelling::ByteLevel) => "gpt2",
        }
    }

    fn new(description: Description<'_>) -> Result<Tokenizer> {
        let Description {
            texts,
            kinds,
            spelling,
            roles,
            ..
        } = description;
        let encoder = match description.algorithm {
            Algorithm::Merges(merges) => {
                Encoder::Ranked(RankedBpe::new(&texts, spelling, merges, roles.unknown_id)?)
            }
            Algorithm::Scores(scores) => {
                Encoder::Scored(SentencePieceBpe::new(&texts, &scores, roles.unknown_id)?)
            }
            Algorithm::Unigram { scores } => {
                Encoder::Unigram(Unigram::new(&texts, &kinds, scores, roles.unknown_id)?)
            }
        };
        let special = SpecialTokens::new(description.special);
        let mut steps = description.normalizer.steps.iter();
        let encoder_keeps_text = match &encoder {
            Encoder::Ranked(bpe) => bpe.keeps_text,
            Encoder::Scored(_) => true,
            Encoder::Unigram(unigram) => unigram.keeps_text(),
        };
        let drops_text = special.drops_text()
            || description.splitter.drops_text()
            || steps.any(Step::drops_text);
        Ok(Tokenizer {
            vocabulary: Vocabulary::new(&texts, kinds, spelling, &roles)?,
            special,
            normalizer: description.normalizer,
            space_prefix: description.space_prefix,
            splitter: description.splitter,
            spelling,
            encoder,
            adds_bos: description.adds_bos,
            adds_eos: description.adds_eos,
            drops_first_space: description.space_prefix != SpacePrefix::Never
                && spelling == TokenSpelling::SentencePiece,
            keeps_text: encoder_keeps_text && !drops_text,
            middle_tokens: description.middle_tokens,
            chat_template: description.chat_template,
        })
    }

    /// The ids of `text`; the text of a special token in it becomes that token. `add_special`
    /// applies the model's rule for start- and end-of-text tokens.
    ///
    /// # Errors
    /// [`Error::Internal`] if the BPE library fails.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        self.encode_segments(text, add_special, |_| ())
    }

    /// [`Self::encode`], and where each token lies in `text`. Tokens that no text stands for have
    /// no width.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_placed(&self, text: &str, add_special: bool) -> Result<(Vec<u32>, Vec<Place>)> {
        let mut segments = Vec::new();
        let ids = self.encode_segments(text, add_special, |segment| segments.push(segment))?;
        let places = placement::place(self, text, &ids, &segments);
        Ok((ids, places))
    }

    /// Encodes and calls `visit` with each segment that the text was cut into.
    fn encode_segments<'t>(
        &self,
        text: &'t str,
        add_special: bool,
        mut visit: impl FnMut(PlacedSegment<'t>),
    ) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        if add_special && self.adds_bos {
            ids.extend(self.vocabulary.bos_id);
        }
        self.special.split(text, |start_byte, segment| {
            let first = ids.len();
            let mut drops_space = false;
            let normalized = match segment {
                Segment::Special(id) => {
                    ids.push(id);
                    Normalized::default()
                }
                Segment::Text(text) => {
                    let normalized = self.normalizer.normalize(text);
                    let text = &normalized.text;
                    drops_space = self.space_prefix.applies(self.spelling, start_byte, text);
                    let spelled = match drops_space {
                        true => Cow::Owned(format!(" {text}")),
                        false => Cow::Borrowed(&**text),
                    };
                    self.encode_text(&spelled, &mut ids)?;
                    normalized
                }
            };
            visit(PlacedSegment {
                tokens: first..ids.len(),
                start_byte,
                normalized,
                drops_space,
            });
            Ok::<(), Error>(())
        })?;
        if add_special && self.adds_eos {
            ids.extend(self.vocabulary.eos_id);
        }
        Ok(ids)
    }

    fn encode_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.splitter.split(text, &mut |piece| {
            match &self.encoder {
                Encoder::Ranked(bpe) => bpe.encode(piece, ids)?,
                Encoder::Scored(bpe) => bpe.encode(piece, ids),
                Encoder::Unigram(unigram) => unigram.encode(piece, ids),
            }
            Ok(())
        })
    }

    /// The prompt that asks for what stands between `prefix` and `suffix`, and where its tokens lie
    /// in `prefix`; `None` if the model was not made for it. What follows the prefix lies at its end
    /// without width.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_around(
        &self,
        prefix: &str,
        suffix: &str,
    ) -> Result<Option<(Vec<u32>, Vec<Place>)>> {
        let Some(MiddleTokens {
            prefix: prefix_id,
            suffix: suffix_id,
            middle: middle_id,
        }) = self.middle_tokens
        else {
            return Ok(None);
        };
        let bos_id = self.bos_id().filter(|_| self.adds_bos);
        let mut ids: Vec<u32> = bos_id.into_iter().chain([prefix_id]).collect();
        let mut places = vec![Place::default(); ids.len()];
        let (prefix_ids, prefix_places) = self.encode_placed(prefix, false)?;
        ids.extend(prefix_ids);
        places.extend(prefix_places);
        ids.push(suffix_id);
        ids.extend(self.encode(suffix, false)?);
        ids.push(middle_id);
        let end = Place {
            start: prefix.chars().count(),
            drops_space: false,
        };
        places.resize(ids.len(), end);
        Ok(Some((ids, places)))
    }

    /// The text of `ids` from its beginning on, an unfinished character as one U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut decoder = TokenDecoder::new(self, true, skip_special);
        let mut text = String::new();
        for &id in ids {
            decoder.push(self, id, &mut text);
        }
        decoder.finish(&mut text);
        text
    }

    /// Number of tokens; ids are below it.
    pub fn vocab_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// The start-of-text token.
    pub fn bos_id(&self) -> Option<u32> {
        self.vocabulary.bos_id
    }

    /// The ids that end a text or a turn, the file's end-of-text token first.
    pub fn eos_ids(&self) -> &[u32] {
        &self.vocabulary.end_ids
    }

    /// Whether `encode(_, true)` puts the start-of-text token first.
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// The file's end-of-text token.
    pub fn eos_id(&self) -> Option<u32> {
        self.vocabulary.eos_id
    }

    /// Whether `encode(_, true)` puts the end-of-text token last.
    pub fn adds_eos(&self) -> bool {
        self.adds_eos
    }

    /// The tokens before the prefix, before the suffix and before what is asked for, if the model was
    /// made to fill in the middle.
    pub fn middle_ids(&self) -> Option<[u32; 3]> {
        let ids = self.middle_tokens?;
        Some([ids.prefix, ids.suffix, ids.middle])
    }

    /// Whether the token is structure, hidden from text unless asked for. False for ids outside
    /// the vocabulary.
    pub fn is_special(&self, id: u32) -> bool {
        matches!(
            self.vocabulary.kind(id),
            TokenKind::Control | TokenKind::Unknown
        )
    }

    /// A lower bound on the tokens that `text_bytes` of text take, whatever the text.
    pub fn fewest_tokens(&self, text_bytes: usize) -> usize {
        if !self.keeps_text {
            return 0;
        }
        let ids = 0..u32::try_from(self.vocab_size()).unwrap_or(u32::MAX);
        let longest = ids.map(|id| self.token_bytes(id).len()).max().unwrap_or(0);
        // An unknown character is one token, and a normalizer may compose three characters into
        // one: at most that much shorter does a text become.
        text_bytes / (longest.max(4) * 4)
    }

    /// The bytes this token contributes in running text; of a special token its literal text.
    /// None for ids outside the vocabulary.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.vocabulary.bytes(id)
    }

    /// The token as `logprobs` lists it (specification 7.1): its text, or `bytes:\xhh...` if its bytes
    /// are not whole characters.
    pub fn token_label(&self, id: u32) -> String {
        let bytes = self.token_bytes(id);
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().fold("bytes:".to_owned(), |label, byte| {
                label + &format!("\\x{byte:02x}")
            }),
        }
    }

    /// The special token whose literal text is exactly `text`.
    pub fn special_id(&self, text: &str) -> Option<u32> {
        let id = self.special.get(text)?.id;
        self.is_special(id).then_some(id)
    }

    /// What stands for "a document starts here": the start-of-text token, else the separator of
    /// documents, else the end-of-text token. The prompt of last resort for empty text.
    pub fn document_start_id(&self) -> Option<u32> {
        self.bos_id()
            .or_else(|| self.special_id("<|endoftext|>"))
            .or_else(|| self.eos_ids().first().copied())
    }

    /// Whether a text decoded from its beginning loses a leading space, which encoding put there.
    pub fn drops_first_space(&self) -> bool {
        self.drops_first_space
    }

    /// The file's template of conversations, if it has one. Never rendered here: it tells how the
    /// model was taught to write.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("bos_id", &self.bos_id())
            .field("eos_ids", &self.eos_ids())
            .finish_non_exhaustive()
    }
}
