//! Learns a byte-level BPE vocabulary from the corpus and encodes documents with it.
//! The document separator is token 0. The file format is the responsibility of `export`.

use std::collections::HashMap;

use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, TokenizerImpl};

use super::corpus::random::Random;
use super::corpus::{Part, document};

/// Ends every document and begins the first one.
pub const SEPARATOR: &str = "<|endoftext|>";
/// Id of [`SEPARATOR`].
pub const SEPARATOR_ID: u32 = 0;

type Pipeline = TokenizerImpl<
    BPE,
    tokenizers::NormalizerWrapper,
    ByteLevel,
    tokenizers::PostProcessorWrapper,
    ByteLevelDecoder,
>;

/// The learned vocabulary.
pub struct Bpe {
    pipeline: Pipeline,
    /// The strings of tokens in the byte-level alphabet, by id.
    pub tokens: Vec<String>,
    /// Merges as `left right`, by rank.
    pub merges: Vec<String>,
}

impl Bpe {
    /// Learns `vocab` tokens (separator and 256 bytes included) from `documents` documents.
    pub fn train(vocab: usize, documents: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let texts: Vec<String> = (0..documents)
            .map(|_| document(&mut random, Part::Training))
            .collect();
        let mut trainer = BpeTrainer::builder()
            .vocab_size(vocab)
            .min_frequency(2)
            .special_tokens(vec![AddedToken::from(SEPARATOR, true)])
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .show_progress(false)
            .build();
        // Splits into words with their leading space, like the "gpt-2" pre-tokenizer of GGUF files.
        let mut pipeline: Pipeline = TokenizerImpl::new(BPE::default());
        pipeline.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        pipeline.with_decoder(Some(ByteLevelDecoder::default()));
        pipeline
            .train(&mut trainer, texts.iter())
            .expect("the corpus trains a vocabulary");

        let model = serde_json::to_value(pipeline.get_model()).expect("a BPE model serializes");
        let merges = model["merges"]
            .as_array()
            .expect("merges are a list")
            .iter();
        let merges = merges
            .map(|merge| match merge.as_array() {
                Some(pair) => {
                    let side = |at: usize| pair[at].as_str().expect("a token").to_string();
                    format!("{} {}", side(0), side(1))
                }
                None => merge.as_str().expect("a merge").to_string(),
            })
            .collect();
        let by_text: HashMap<String, u32> = pipeline.get_vocab(true).into_iter().collect();
        let mut tokens = vec![String::new(); by_text.len()];
        for (text, id) in by_text {
            tokens[id as usize] = text;
        }
        assert_eq!(
            tokens.len(),
            vocab,
            "the corpus is large enough for the vocabulary"
        );
        assert_eq!(tokens[SEPARATOR_ID as usize], SEPARATOR);
        Self {
            pipeline,
            tokens,
            merges,
        }
    }

    /// Ids of `text`, without a separator.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let encoding = self.pipeline.encode(text, false).expect("any text encodes");
        encoding.get_ids().to_vec()
    }

    /// Text of `ids`, without separators.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.pipeline.decode(ids, true).expect("any ids decode")
    }
}
