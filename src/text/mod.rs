//! Between text and token ids: tokenizer, byte-exact detokenizer, stop strings.

mod bpe;
mod byte_level;
mod detokenizer;
mod fill_in_middle;
mod placement;
mod pre_tokenizers;
mod sentencepiece;
mod special_tokens;
mod stop;
mod text_index;
mod tokenizer;
mod utf8;
mod vocabulary;

pub use detokenizer::Detokenizer;
pub use placement::Place;
pub use stop::{StopMatcher, StopOutcome};
pub use tokenizer::Tokenizer;

#[cfg(test)]
mod placement_tests;
#[cfg(test)]
mod shared_models_tests;
#[cfg(test)]
mod tests;
