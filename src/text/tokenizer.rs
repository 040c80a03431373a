//! Text to token ids and back, as a model file describes it (specification 4.2, 6.3, 6.5).

use std::borrow::Cow;
use std::future::{Future, ready};
use std::pin::Pin;

use futures_util::FutureExt;

use super::bpe::RankedBpe;
use super::chat_template::{ChatTemplates, Marker};
use super::description::{Algorithm, Description, SpacePrefix};
use super::fill_in_middle::MiddleTokens;
use super::from_gguf;
use super::from_hugging_face::{self, HuggingFaceFiles};
use super::normalizer::{Normalized, Normalizer, NormalizerStep};
use super::placement::{self, Place, PlacedSegment};
use super::sentencepiece::SentencePieceBpe;
use super::special_tokens::{Segment, SpecialToken, SpecialTokens};
use super::splitter::Splitter;
use super::token::TokenSpelling;
use super::token_decoder::TokenDecoder;
use super::unigram::Unigram;
use super::vocabulary::Vocabulary;
use super::word_piece::WordPiece;
use crate::weights::files::read_small;
use crate::weights::{Metadata, ModelFiles};
use crate::{Error, Result};

/// Largest accepted file of a folder's tokenizer; the largest real ones have about 35 MB.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// Bytes of a text that are tokenized at once: some milliseconds in a page.
const SLICE_BYTES: usize = 32 << 10;

/// Makes what is awaited between slices of a long text, so that other tasks can run.
pub type Pause<'p> = &'p dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// How special tokens are treated when a text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// None are added.
    None,
    /// The model's start- and end-of-text tokens are added as it wants them.
    Added,
    /// The rules for the prompt of a chat template: [`Tokenizer::encode_rendered`].
    Rendered(Marker),
}

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
    /// Decoding from the beginning of a text drops the space that encoding added.
    drops_first_space: bool,
    /// Encoding neither drops text nor maps arbitrarily long text to one token.
    keeps_text: bool,
    middle_tokens: Option<MiddleTokens>,
    chat_templates: ChatTemplates,
    /// The special tokens that are structure, never text.
    control: SpecialTokens,
}

enum Encoder {
    Ranked(RankedBpe),
    Scored(SentencePieceBpe),
    Unigram(Unigram),
    WordPiece(WordPiece),
}

impl Tokenizer {
    /// Builds the tokenizer that the metadata of a GGUF file describes.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for a tokenizer or pre-tokenizer that is not supported,
    /// [`Error::InvalidModelFile`] for metadata that is missing or contradicts itself.
    pub fn from_gguf(metadata: &Metadata) -> Result<Tokenizer> {
        Tokenizer::new(from_gguf::describe(metadata)?)
    }

    /// Builds the tokenizer that the files of a Hugging Face folder describe.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming a part of a tokenizer that is not supported,
    /// [`Error::InvalidModelFile`] for files that are not valid JSON or contradict themselves.
    pub fn from_hugging_face(files: &HuggingFaceFiles<'_>) -> Result<Tokenizer> {
        Tokenizer::new(from_hugging_face::describe(files)?)
    }

    /// Builds the tokenizer of a model: from its metadata for a GGUF file, else from its folder.
    ///
    /// # Errors
    /// Same as [`Self::from_gguf`] and [`Self::from_hugging_face`], and errors of reading the files.
    pub async fn of<F: ModelFiles>(files: &F, metadata: &Metadata) -> Result<Tokenizer> {
        if files.gguf_name().is_some() {
            return Tokenizer::from_gguf(metadata);
        }
        let read = |name| read_small(files, name, MAX_FILE_BYTES);
        // A browser logs every file that is not there.
        let read_of_writers = async |name| match makes_vectors(metadata)? {
            true => Ok(None),
            false => read(name).await,
        };
        let tokenizer = read("tokenizer.json").await?;
        let config = read("tokenizer_config.json").await?;
        let map = read("special_tokens_map.json").await?;
        let generation = read_of_writers("generation_config.json").await?;
        let template = read_of_writers("chat_template.jinja").await?;
        // Few folders have this file, so it is looked for only where it can be needed.
        let has_template = template.is_some() || config.as_deref().is_some_and(names_template);
        let template_json = match has_template {
            true => None,
            false => read_of_writers("chat_template.json").await?,
        };
        Tokenizer::from_hugging_face(&HuggingFaceFiles {
            tokenizer: &tokenizer
                .ok_or_else(|| Error::UnsupportedModel("a folder without tokenizer.json".into()))?,
            tokenizer_config: config.as_deref(),
            special_tokens_map: map.as_deref(),
            generation_config: generation.as_deref(),
            chat_template: template.as_deref(),
            chat_template_json: template_json.as_deref(),
        })
    }

    /// The kind, as `tokenizer.ggml.model` names it: `gpt2` (BPE), `llama` (SentencePiece BPE), `t5`
    /// (SentencePiece unigram), `bert` (WordPiece).
    pub fn kind(&self) -> &'static str {
        match (&self.encoder, self.spelling) {
            (Encoder::Unigram(_), _) => "t5",
            (Encoder::WordPiece(_), _) => "bert",
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
            Algorithm::WordPiece { max_word_chars } => {
                Encoder::WordPiece(WordPiece::new(&texts, max_word_chars, roles.unknown_id)?)
            }
            Algorithm::Unigram { scores } => {
                Encoder::Unigram(Unigram::new(&texts, &kinds, scores, roles.unknown_id)?)
            }
        };
        let vocabulary = Vocabulary::new(&texts, kinds, spelling, &roles)?;
        let is_control = |token: &&SpecialToken| vocabulary.is_special(token.id);
        let control = description.special.iter().filter(is_control).cloned();
        let control = SpecialTokens::new(control.collect());
        let special = SpecialTokens::new(description.special);
        let mut steps = description.normalizer.steps.iter();
        let encoder_keeps_text = match &encoder {
            Encoder::Ranked(bpe) => bpe.keeps_text,
            Encoder::Scored(_) => true,
            Encoder::Unigram(unigram) => unigram.keeps_text(),
            // A long word is one unknown token.
            Encoder::WordPiece(_) => false,
        };
        let is_word_piece = matches!(encoder, Encoder::WordPiece(_));
        let drops_text = special.drops_text()
            || description.splitter.drops_text()
            || steps.any(NormalizerStep::drops_text);
        Ok(Tokenizer {
            vocabulary,
            special,
            control,
            normalizer: description.normalizer,
            space_prefix: description.space_prefix,
            splitter: description.splitter,
            spelling,
            encoder,
            adds_bos: description.adds_bos,
            adds_eos: description.adds_eos,
            drops_first_space: spelling == TokenSpelling::SentencePiece
                && (description.space_prefix != SpacePrefix::Never || is_word_piece),
            keeps_text: encoder_keeps_text && !drops_text,
            middle_tokens: description.middle_tokens,
            chat_templates: description.chat_templates,
        })
    }

    /// The ids of `text`. The literal text of a special token becomes that token. `add_special`
    /// applies the model's rule for start- and end-of-text tokens.
    ///
    /// # Errors
    /// [`Error::Internal`] if the BPE library fails.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        let special = match add_special {
            true => Special::Added,
            false => Special::None,
        };
        at_once(self.encode_segments(text, special, usize::MAX, &never_pause, |_| ()))
    }

    /// [`Self::encode`], with a pause after each slice of a long text. The ids are the same. What a tokenizer cannot
    /// divide is one slice: a word, or the whole text if it has neither a pre-tokenizer nor words.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub async fn encode_in_slices(
        &self,
        text: &str,
        special: Special,
        pause: Pause<'_>,
    ) -> Result<Vec<u32>> {
        self.encode_slices_of(SLICE_BYTES, text, special, pause)
            .await
    }

    pub(super) async fn encode_slices_of(
        &self,
        slice_bytes: usize,
        text: &str,
        special: Special,
        pause: Pause<'_>,
    ) -> Result<Vec<u32>> {
        self.encode_segments(text, special, slice_bytes, pause, |_| ())
            .await
    }

    /// [`Self::encode`], and where each token lies in `text`. Tokens that are not from the text have
    /// no width.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub fn encode_placed(&self, text: &str, add_special: bool) -> Result<(Vec<u32>, Vec<Place>)> {
        let special = match add_special {
            true => Special::Added,
            false => Special::None,
        };
        at_once(self.encode_placed_in_slices(text, special, &never_pause))
    }

    /// [`Self::encode_placed`], as [`Self::encode_in_slices`].
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub async fn encode_placed_in_slices(
        &self,
        text: &str,
        special: Special,
        pause: Pause<'_>,
    ) -> Result<(Vec<u32>, Vec<Place>)> {
        let mut segments = Vec::new();
        let keep = |segment| segments.push(segment);
        let ids = self
            .encode_segments(text, special, SLICE_BYTES, pause, keep)
            .await?;
        let places = placement::place(&self.vocabulary, text, &ids, &segments);
        Ok((ids, places))
    }

    /// The ids of a prompt that a chat template rendered. Special tokens whose texts are marked are text. The
    /// start-of-text token is added if the model wants one and the template did not write it; a prompt never ends
    /// with the end-of-text token.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub fn encode_rendered(&self, text: &str, marker: Marker) -> Result<Vec<u32>> {
        let special = Special::Rendered(marker);
        at_once(self.encode_segments(text, special, usize::MAX, &never_pause, |_| ()))
    }

    /// `text` with a marker in every text of a control token, so that [`Self::encode_rendered`] reads it as text;
    /// `None` if there is none. At the end, the beginning of such a text counts too, because the template may put
    /// another text after it. `is_exempt` names tokens that are left as they are.
    pub fn mark(
        &self,
        text: &str,
        marker: Marker,
        is_exempt: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let bytes = text.as_bytes();
        let mut marked = None::<String>;
        let mut done = 0;
        for (at, character) in text.char_indices() {
            if !self.control.starts_with(bytes[at]) {
                continue;
            }
            let is_whole = self
                .control
                .text_at(&bytes[at..])
                .is_some_and(|found| !is_exempt(found));
            if is_whole || self.control.may_begin_with(&bytes[at..]) {
                let end = at + character.len_utf8();
                let marked = marked.get_or_insert_default();
                marked.push_str(&text[done..end]);
                marked.push(marker.char());
                done = end;
            }
        }
        marked.map(|marked| marked + &text[done..])
    }

    /// Encodes and calls `visit` with each segment of the text.
    async fn encode_segments<'t>(
        &self,
        text: &'t str,
        special: Special,
        slice_bytes: usize,
        pause: Pause<'_>,
        mut visit: impl FnMut(PlacedSegment<'t>),
    ) -> Result<Vec<u32>> {
        let marker = match special {
            Special::Rendered(marker) => Some(marker),
            Special::None | Special::Added => None,
        };
        let mut ids = Vec::new();
        let bos = self.bos_id().filter(|id| match special {
            Special::None => false,
            Special::Added => self.adds_bos,
            Special::Rendered(_) => {
                self.adds_bos && !text.as_bytes().starts_with(self.token_bytes(*id))
            }
        });
        ids.extend(bos);
        let mut segments = Vec::new();
        self.special
            .split_marked(text, marker.map(Marker::char), |start_byte, segment| {
                segments.push((start_byte, segment));
                Ok::<(), Error>(())
            })?;
        // Bytes since the last pause.
        let mut done_bytes = 0;
        for (start_byte, segment) in segments {
            let first = ids.len();
            let mut drops_space = false;
            let normalized = match segment {
                Segment::Special(id) => {
                    ids.push(id);
                    Normalized::default()
                }
                Segment::Text(text) => {
                    let normalized = match marker {
                        Some(marker) if text.contains(marker.char()) => {
                            let text = marker.remove(text);
                            self.normalizer.normalize(&text).into_owned()
                        }
                        _ => self.normalizer.normalize(text),
                    };
                    let text = &normalized.text;
                    drops_space = self.space_prefix.applies(self.spelling, start_byte, text);
                    let spelled = match drops_space {
                        true => Cow::Owned(format!(" {text}")),
                        false => Cow::Borrowed(&**text),
                    };
                    let mut rest = &*spelled;
                    while !rest.is_empty() {
                        if done_bytes >= slice_bytes {
                            pause().await;
                            done_bytes = 0;
                        }
                        let end = self.encode_slice(rest, slice_bytes, &mut ids)?;
                        done_bytes += end;
                        rest = &rest[end..];
                    }
                    normalized
                }
            };
            visit(PlacedSegment {
                tokens: first..ids.len(),
                start_byte,
                normalized,
                drops_space,
            });
        }
        ids.extend(
            self.vocabulary
                .eos_id
                .filter(|_| special == Special::Added && self.adds_eos),
        );
        Ok(ids)
    }

    /// Appends the ids of a slice that `text` begins with, and returns its bytes. A slice ends where the text after it
    /// has the same ids alone, from `least_bytes` on.
    fn encode_slice(&self, text: &str, least_bytes: usize, ids: &mut Vec<u32>) -> Result<usize> {
        let words_stand_apart = match &self.encoder {
            Encoder::Ranked(bpe) => bpe.words_stand_apart,
            Encoder::Scored(bpe) => bpe.words_stand_apart,
            Encoder::Unigram(_) | Encoder::WordPiece(_) => false,
        };
        let text = match self.splitter.is_empty() && words_stand_apart {
            true => &text[..next_word(text, least_bytes)],
            false => text,
        };
        self.splitter.split_first(text, least_bytes, &mut |piece| {
            match &self.encoder {
                Encoder::Ranked(bpe) => bpe.encode(piece, ids)?,
                Encoder::Scored(bpe) => bpe.encode(piece, ids),
                Encoder::Unigram(unigram) => unigram.encode(piece, ids),
                Encoder::WordPiece(words) => words.encode(piece, ids),
            }
            Ok(())
        })
    }

    /// The fill-in-the-middle prompt for the text between `prefix` and `suffix`, and where its tokens
    /// lie in `prefix`; tokens after the prefix lie at its end without width. `None` if the model has
    /// no fill-in-the-middle tokens.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub async fn encode_around(
        &self,
        prefix: &str,
        suffix: &str,
        pause: Pause<'_>,
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
        let (prefix_ids, prefix_places) = self
            .encode_placed_in_slices(prefix, Special::None, pause)
            .await?;
        ids.extend(prefix_ids);
        places.extend(prefix_places);
        ids.push(suffix_id);
        ids.extend(self.encode_in_slices(suffix, Special::None, pause).await?);
        ids.push(middle_id);
        let end = Place {
            start: prefix.chars().count(),
            drops_space: false,
        };
        places.resize(ids.len(), end);
        Ok(Some((ids, places)))
    }

    /// The text of `ids`, which begin a text; an unfinished character is one U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut decoder = TokenDecoder::new(self.drops_first_space, skip_special);
        let mut text = String::new();
        for &id in ids {
            decoder.push(&self.vocabulary, id, &mut text);
        }
        decoder.finish(&mut text);
        text
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
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

    /// Whether `encode(_, true)` adds the start-of-text token.
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// The file's end-of-text token.
    pub fn eos_id(&self) -> Option<u32> {
        self.vocabulary.eos_id
    }

    /// Whether `encode(_, true)` adds the end-of-text token.
    pub fn adds_eos(&self) -> bool {
        self.adds_eos
    }

    /// The tokens before the prefix, the suffix and the middle of a fill-in-the-middle prompt, if the
    /// model has them.
    pub fn middle_ids(&self) -> Option<[u32; 3]> {
        let ids = self.middle_tokens?;
        Some([ids.prefix, ids.suffix, ids.middle])
    }

    /// Whether the token is structure, hidden from text unless requested. False for ids outside the
    /// vocabulary.
    pub fn is_special(&self, id: u32) -> bool {
        self.vocabulary.is_special(id)
    }

    /// A lower bound on the number of tokens of any text of `text_bytes` bytes.
    pub fn fewest_tokens(&self, text_bytes: usize) -> usize {
        if !self.keeps_text {
            return 0;
        }
        let ids = 0..u32::try_from(self.vocab_size()).unwrap_or(u32::MAX);
        let longest = ids.map(|id| self.token_bytes(id).len()).max().unwrap_or(0);
        // An unknown character (up to 4 bytes) is one token, and a normalizer may compose characters:
        // it makes a text at most 4 times shorter.
        text_bytes / (longest.max(4) * 4)
    }

    /// The bytes this token adds to running text; of a special token its literal text. Empty for ids
    /// outside the vocabulary.
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

    /// The token with exactly this literal text, which the file lists as special or as added by its
    /// makers.
    pub fn named_id(&self, text: &str) -> Option<u32> {
        Some(self.special.get(text)?.id)
    }

    /// The token that begins a document, used as the prompt of an empty text: the start-of-text token,
    /// else the document separator, else the end-of-text token.
    pub fn document_start_id(&self) -> Option<u32> {
        self.bos_id()
            .or_else(|| self.special_id("<|endoftext|>"))
            .or_else(|| self.eos_ids().first().copied())
    }

    /// Whether a text decoded from its beginning loses a leading space, which encoding added.
    pub fn drops_first_space(&self) -> bool {
        self.drops_first_space
    }

    /// The file's chat template, if it has one: that for conversations without tools.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_templates.default_text()
    }

    /// The file's chat templates.
    pub fn chat_templates(&self) -> &ChatTemplates {
        &self.chat_templates
    }
}

/// The first place from `least_bytes` on where a space follows another character; else the end of `text`.
fn next_word(text: &str, least_bytes: usize) -> usize {
    let is_space = |byte: u8| byte == b' ';
    let bytes = text.as_bytes();
    let mut places = least_bytes.max(3)..bytes.len();
    // A ▁ in the text is a space, too.
    let is_place = |at: &usize| {
        is_space(bytes[*at]) && !is_space(bytes[at - 1]) && !bytes[..*at].ends_with("▁".as_bytes())
    };
    places.find(is_place).unwrap_or(bytes.len())
}

fn never_pause() -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(ready(()))
}

/// The result of work that never waits.
fn at_once<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let waited = || Error::Internal("tokenization waited".into());
    work.now_or_never().ok_or_else(waited)?
}

/// Whether the folder is of a model for embeddings, which has no files about generating text.
fn makes_vectors(metadata: &Metadata) -> Result<bool> {
    let architecture = metadata.str("general.architecture")?.unwrap_or_default();
    let pooling = metadata.u32(&format!("{architecture}.pooling_type"))?;
    Ok(pooling.is_some())
}

/// Whether `tokenizer_config.json` has a chat template.
fn names_template(config: &[u8]) -> bool {
    const KEY: &[u8] = b"\"chat_template\"";
    config.windows(KEY.len()).any(|window| window == KEY)
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
