//! Text to token ids and back, built from the metadata of a GGUF file (API.md 4.2, 6.3, 6.5).
//! Knows nothing of requests, streams or models.

use super::bpe::ByteLevelBpe;
use super::detokenizer::TokenDecoder;
use super::fill_in_middle::MiddleTokens;
use super::placement::{self, Place, PlacedSegment};
use super::sentencepiece::SentencePieceBpe;
use super::special_tokens::{Segment, SpecialToken, SpecialTokens};
use super::vocabulary::{TokenKind, TokenSpelling, Vocabulary, token_texts};
use crate::weights::Metadata;
use crate::{Error, Result};

/// The tokenizer of one model.
pub struct Tokenizer {
    vocabulary: Vocabulary,
    special: SpecialTokens,
    encoder: Encoder,
    adds_bos: bool,
    adds_eos: bool,
    adds_space_prefix: bool,
    middle_tokens: Option<MiddleTokens>,
    chat_template: Option<Box<str>>,
}

enum Encoder {
    ByteLevel(ByteLevelBpe),
    SentencePiece(SentencePieceBpe),
}

impl Tokenizer {
    /// Builds the tokenizer that the file describes.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for a tokenizer or pre-tokenizer this build does not know,
    /// [`Error::InvalidModelFile`] for metadata that is missing or contradicts itself.
    pub fn from_gguf(metadata: &Metadata) -> Result<Tokenizer> {
        let model = metadata
            .str("tokenizer.ggml.model")?
            .ok_or_else(|| Error::InvalidModelFile("tokenizer.ggml.model is missing".to_owned()))?;
        let spelling = match model {
            "gpt2" => TokenSpelling::ByteLevel,
            "llama" => TokenSpelling::SentencePiece,
            other => {
                let other: String = other.chars().take(64).collect();
                return Err(Error::UnsupportedModel(format!(
                    "tokenizer {other:?} (tokenizer.ggml.model)"
                )));
            }
        };
        let vocabulary = Vocabulary::from_gguf(metadata, spelling)?;
        // What holds when the file does not say: (start of text, space prefix).
        let (encoder, adds_bos, adds_space_prefix) = match spelling {
            TokenSpelling::ByteLevel => {
                let bpe = ByteLevelBpe::from_gguf(metadata, &vocabulary)?;
                let adds_bos = bpe.adds_bos() && vocabulary.bos_id.is_some();
                (Encoder::ByteLevel(bpe), adds_bos, false)
            }
            TokenSpelling::SentencePiece => {
                let bpe = SentencePieceBpe::from_gguf(metadata, &vocabulary)?;
                let adds_bos = vocabulary.bos_id.is_some();
                let prefix = metadata
                    .bool("tokenizer.ggml.add_space_prefix")?
                    .unwrap_or(true);
                (Encoder::SentencePiece(bpe), adds_bos, prefix)
            }
        };
        let said = |key: &str, id: Option<u32>, default| match metadata.bool(key)? {
            Some(true) if id.is_none() => Err(Error::InvalidModelFile(format!(
                "{key} is true, but there is no such token"
            ))),
            said => Ok(said.unwrap_or(default)),
        };
        Ok(Tokenizer {
            adds_bos: said("tokenizer.ggml.add_bos_token", vocabulary.bos_id, adds_bos)?,
            adds_eos: said("tokenizer.ggml.add_eos_token", vocabulary.eos_id, false)?,
            adds_space_prefix,
            chat_template: metadata.str("tokenizer.chat_template")?.map(Box::from),
            special: special_tokens(metadata, &vocabulary)?,
            middle_tokens: MiddleTokens::from_gguf(metadata, &vocabulary)?,
            vocabulary,
            encoder,
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
    fn encode_segments(
        &self,
        text: &str,
        add_special: bool,
        mut visit: impl FnMut(PlacedSegment),
    ) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        if add_special && self.adds_bos {
            ids.extend(self.vocabulary.bos_id);
        }
        // SentencePiece models saw words with their space; text that begins, or follows a special
        // token, is given one.
        let mut takes_prefix = self.adds_space_prefix;
        self.special.split(text, |start_byte, segment| {
            let first = ids.len();
            let mut drops_space = false;
            match segment {
                Segment::Special(id) => {
                    ids.push(id);
                    takes_prefix = self.adds_space_prefix;
                }
                Segment::Text(text) => match &self.encoder {
                    Encoder::ByteLevel(bpe) => bpe.encode(text, &mut ids)?,
                    Encoder::SentencePiece(bpe) if takes_prefix => {
                        bpe.encode(&format!(" {text}"), &mut ids);
                        takes_prefix = false;
                        drops_space = true;
                    }
                    Encoder::SentencePiece(bpe) => bpe.encode(text, &mut ids),
                },
            }
            visit(PlacedSegment {
                tokens: first..ids.len(),
                start_byte,
                drops_space,
            });
            Ok::<(), Error>(())
        })?;
        if add_special && self.adds_eos {
            ids.extend(self.vocabulary.eos_id);
        }
        Ok(ids)
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

    /// The token as `logprobs` lists it (API.md 7.1): its text, or `bytes:\xhh...` if its bytes
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

    /// Whether text that begins, or follows a special token, is given a leading space.
    pub fn adds_space_prefix(&self) -> bool {
        self.adds_space_prefix
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

/// The tokens whose literal text is recognised in a prompt.
fn special_tokens(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<SpecialTokens> {
    // GGUF has no field for it; llama.cpp goes by the name as well.
    let name = metadata
        .str("general.name")?
        .unwrap_or_default()
        .to_lowercase();
    let is_phi3 = name.contains("phi-3") || name.contains("phi3");
    let tokens = token_texts(metadata)?
        .iter()
        .zip(0u32..)
        .filter(|&(_, id)| {
            matches!(
                vocabulary.kind(id),
                TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined
            )
        })
        .map(|(text, id)| SpecialToken {
            text: text.as_str().into(),
            id,
            strips_following_space: is_phi3
                && !matches!(text.as_str(), "<unk>" | "<s>" | "<|endoftext|>"),
        })
        .collect();
    Ok(SpecialTokens::new(tokens))
}
