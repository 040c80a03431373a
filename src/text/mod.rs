//! Text and token ids: tokenizer, byte-exact detokenizer, stop strings.

mod bpe;
mod byte_fallback;
mod byte_level;
mod charsmap;
mod chat_template;
mod description;
mod detokenizer;
mod encoder;
mod encoding;
mod fill_in_middle;
mod from_gguf;
mod from_hugging_face;
mod normalizer;
mod pair;
mod placement;
mod pre_tokenizers;
mod sentencepiece;
mod special_tokens;
mod splitter;
mod stop;
mod stop_pattern;
mod text_index;
mod token;
mod token_decoder;
mod tokenizer;
mod tokenizer_report;
mod unigram;
mod utf8;
mod vocabulary;
mod word_piece;

pub use chat_template::{
    ChatTemplates, LocalTime, Marker, TemplateError, TemplateInput, alias_reasoning, render,
    renders_tools, write_tools,
};
pub use detokenizer::Detokenizer;
pub use encoding::{Pause, Special};
pub use from_hugging_face::HuggingFaceFiles;
pub use pair::{Pair, PairEncoder};
pub use placement::Place;
pub use stop::{StopMatcher, StopOutcome};
pub use stop_pattern::{Automaton, DEAD, StopPattern};
pub use tokenizer::Tokenizer;
pub use tokenizer_report::TokenizerReport;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod marker_tests;
#[cfg(test)]
mod placement_tests;
#[cfg(test)]
mod shared_models_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors_tests;
