//! The tokenizer of a model: built from its files, decodes ids, and has the properties of its tokens (specification 6.3, 6.5).
//! `encoding` has the way from text to ids.

use super::chat_template::ChatTemplates;
use super::description::{Description, SpacePrefix};
use super::encoder::Encoder;
use super::fill_in_middle::MiddleTokens;
use super::from_gguf;
use super::from_hugging_face::{self, HuggingFaceFiles};
use super::normalizer::{Normalizer, NormalizerStep};
use super::special_tokens::{SpecialToken, SpecialTokens};
use super::splitter::Splitter;
use super::token::TokenSpelling;
use super::token_decoder::TokenDecoder;
use super::vocabulary::Vocabulary;
use crate::weights::files::read_small;
use crate::weights::{Metadata, ModelFiles};
use crate::{Error, Result};

/// Largest accepted file of a folder's tokenizer; the largest real ones have about 35 MB.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// The tokenizer of one model.
pub struct Tokenizer {
    pub(super) vocabulary: Vocabulary,
    pub(super) special: SpecialTokens,
    pub(super) normalizer: Normalizer,
    pub(super) space_prefix: SpacePrefix,
    pub(super) splitter: Splitter,
    pub(super) spelling: TokenSpelling,
    pub(super) encoder: Encoder,
    pub(super) adds_bos: bool,
    pub(super) adds_eos: bool,
    /// Whether decoding from the beginning of a text drops the space that encoding added.
    drops_first_space: bool,
    /// Whether encoding neither drops text nor maps arbitrarily long text to one token.
    keeps_text: bool,
    pub(super) middle_tokens: Option<MiddleTokens>,
    chat_templates: ChatTemplates,
    /// The special tokens that are structure, never text.
    pub(super) control: SpecialTokens,
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
            strings,
            kinds,
            spelling,
            roles,
            ..
        } = description;
        let algorithm = description.algorithm;
        let encoder = Encoder::new(algorithm, &strings, &kinds, spelling, roles.unknown_id)?;
        let vocabulary = Vocabulary::new(&strings, kinds, spelling, &roles)?;
        let is_control = |token: &&SpecialToken| vocabulary.is_special(token.id);
        let control = description.special.iter().filter(is_control).cloned();
        let control = SpecialTokens::new(control.collect());
        let special = SpecialTokens::new(description.special);
        let mut steps = description.normalizer.steps.iter();
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
            adds_bos: description.adds_bos,
            adds_eos: description.adds_eos,
            drops_first_space: spelling == TokenSpelling::SentencePiece
                && (description.space_prefix != SpacePrefix::Never || is_word_piece),
            keeps_text: encoder.keeps_text() && !drops_text,
            encoder,
            middle_tokens: description.middle_tokens,
            chat_templates: description.chat_templates,
        })
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
