//! A loaded model with everything that answering with it needs. Its state and its name are the concern of the registry.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use super::Fingerprint;
use crate::api::switches::Switches;
use crate::engine::EngineHandle;
use crate::engine::embed::EmbeddingHandle;
use crate::engine::generation::SamplingDefaults;
use crate::grammar::{Compiler, OutputForm};
use crate::images::ImageFormat;
use crate::sample::TokenMask;
use crate::text::{Tokenizer, renders_tools};
use crate::{Error, Result};

/// A loaded model and everything that answering with it needs.
#[derive(Debug, Clone)]
pub struct ReadyModel {
    /// Runs it.
    pub engine: EngineHandle,
    /// Its tokenizer.
    pub tokenizer: Rc<Tokenizer>,
    /// Covers everything that its answers depend on.
    pub fingerprint: Fingerprint,
    /// The sampling settings that its files recommend, for the switch `useModelGenerationDefaults`.
    pub sampling_defaults: SamplingDefaults,
    /// The reader of images; `None`: the model takes text only.
    pub images: Option<ImageReader>,
    /// The form in which the model writes tool calls.
    pub output_form: OutputForm,
    /// The form of tools in its prompts; `None`: it has no chat template.
    pub tools: Option<ToolPrompts>,
    /// The tables that are made of the vocabulary when they are first needed.
    pub vocabulary: VocabularyTables,
}

/// The form of tools in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ToolPrompts {
    /// The chat template writes them.
    Template,
    /// The template has no place for them: they are text of messages (specification 18.9).
    Generic,
}

impl ToolPrompts {
    /// The form of tools in the prompts of this tokenizer's model, with the template of the switch `chatTemplate` or its own.
    pub fn of(tokenizer: &Tokenizer, chat_template: Option<&str>) -> Option<ToolPrompts> {
        let template = chat_template.or_else(|| tokenizer.chat_templates().choose(true))?;
        Some(match renders_tools(template) {
            true => ToolPrompts::Template,
            false => ToolPrompts::Generic,
        })
    }
}

/// The reader of images of a model that takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageReader {
    /// The format of images: the text and the pixels that replace a placeholder.
    pub format: ImageFormat,
    /// The token of [`ImageFormat::placeholder`].
    pub placeholder_id: u32,
    /// The token of [`ImageFormat::row_token`].
    pub row_id: u32,
}

impl ImageReader {
    /// Finds the tokens of `format`.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if the tokenizer does not have them.
    pub fn new(format: ImageFormat, tokenizer: &Tokenizer) -> Result<ImageReader> {
        let id = |token: &str| match tokenizer.encode(token, false)?[..] {
            [id] => Ok(id),
            _ => Err(Error::InvalidModelFile(format!(
                "the projector needs the token {token}, which the tokenizer does not have"
            ))),
        };
        Ok(ImageReader {
            format,
            placeholder_id: id(format.placeholder())?,
            row_id: id(format.row_token())?,
        })
    }
}

/// A loaded model that makes embeddings, or a reranker.
#[derive(Debug, Clone)]
pub struct ReadyEmbedder {
    /// Runs it.
    pub engine: EmbeddingHandle,
    /// Its tokenizer.
    pub tokenizer: Rc<Tokenizer>,
    /// Whether its vectors are the outputs of a classifier that compares two texts.
    pub ranks: bool,
}

/// The part of a loaded model that turns prompts into ids, of generators and of embedders.
pub(in crate::api) struct PromptTokenizer {
    pub tokenizer: Rc<Tokenizer>,
    /// Every token id is below it.
    pub vocab_size: usize,
    pub context_tokens: usize,
    /// The reader of images; `None`: the model takes text only.
    pub images: Option<ImageReader>,
}

/// The tables that are made of a model's whole vocabulary when the first request needs them. Clones share them.
#[derive(Clone, Default)]
pub struct VocabularyTables(Rc<Tables>);

#[derive(Default)]
struct Tables {
    /// The compiler of constraints.
    compiler: OnceCell<Compiler>,
    /// The ids whose bytes are not whole characters.
    partial: OnceCell<Rc<TokenMask>>,
}

impl fmt::Debug for VocabularyTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VocabularyTables")
            .field("has_compiler", &self.0.compiler.get().is_some())
            .finish()
    }
}

impl ReadyModel {
    /// The form in which a model with this tokenizer writes, with the template of the switch `chatTemplate` or its own.
    pub fn form_of(tokenizer: &Tokenizer, chat_template: Option<&str>) -> OutputForm {
        match chat_template {
            Some(template) => OutputForm::with_template(template, tokenizer),
            None => OutputForm::of(tokenizer),
        }
    }

    /// Whether there is a template for conversations.
    pub(in crate::api) fn chats(&self, switches: &Switches) -> bool {
        switches.chat_template.is_some() || self.tokenizer.chat_template().is_some()
    }

    /// The form in which the model writes in chat.
    pub(in crate::api) fn chat_form(&self) -> OutputForm {
        match self.tools {
            Some(ToolPrompts::Generic) => self.output_form.with_generic_calls(),
            _ => self.output_form,
        }
    }

    /// The grammar compiler, built if necessary.
    pub(in crate::api) fn grammar_compiler(&self) -> &Compiler {
        let vocab_size = self.engine.vocab_size();
        let cell = &self.vocabulary.0.compiler;
        cell.get_or_init(|| Compiler::new(&self.tokenizer, vocab_size))
    }

    /// The ids whose bytes are not whole characters.
    pub(in crate::api) fn partial_characters(&self) -> Rc<TokenMask> {
        let tokenizer = &self.tokenizer;
        let is_partial = |id: &u32| std::str::from_utf8(tokenizer.token_bytes(*id)).is_err();
        let cell = &self.vocabulary.0.partial;
        let mask = cell.get_or_init(|| {
            let ids = (0..tokenizer.vocab_size() as u32).filter(is_partial);
            Rc::new(TokenMask::of(ids, self.vocab_size()))
        });
        mask.clone()
    }

    /// Every token id is below it. The model's matrices may have more or fewer rows than the tokenizer
    /// has tokens.
    pub(in crate::api) fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size().min(self.engine.vocab_size())
    }

    /// The part that reads prompts.
    pub(in crate::api) fn prompt_tokenizer(&self) -> PromptTokenizer {
        PromptTokenizer {
            tokenizer: self.tokenizer.clone(),
            vocab_size: self.vocab_size(),
            context_tokens: self.engine.context_tokens(),
            images: self.images,
        }
    }
}

impl ReadyEmbedder {
    /// The part that reads prompts.
    pub(in crate::api) fn prompt_tokenizer(&self) -> PromptTokenizer {
        PromptTokenizer {
            tokenizer: self.tokenizer.clone(),
            vocab_size: self.tokenizer.vocab_size().min(self.engine.vocab_size()),
            context_tokens: self.engine.context_tokens(),
            images: None,
        }
    }
}
