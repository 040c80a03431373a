//! The Llama family's hyperparameters, read from GGUF metadata. Knows nothing of tensors' data.

use crate::{
    Error, Result,
    weights::{Gguf, Metadata},
};

/// Hyperparameters of a Llama-family model.
#[derive(Debug, Clone, PartialEq)]
pub struct LlamaConfig {
    /// `general.architecture`.
    pub architecture: String,
    /// Width of the residual stream.
    pub dim: usize,
    /// Layers.
    pub layers: usize,
    /// Width of the feed-forward layers.
    pub ffn_dim: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Rows of the embedding table.
    pub vocab: usize,
    /// Token ids of the tokenizer: the table may be padded beyond them.
    pub token_ids: usize,
    /// Longest sequence the model was made for, in tokens.
    pub context_tokens: usize,
    /// Epsilon of the norms.
    pub norm_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// Linear rope scaling: positions are divided by this.
    pub rope_scale: f32,
    /// Rotated pairs are halves of a head apart, not neighbours.
    pub rope_neox: bool,
}

/// Architectures of the Llama family: name in GGUF, and whether rotated pairs are halves apart.
const ARCHITECTURES: [(&str, bool); 2] = [("llama", false), ("qwen2", true)];

impl LlamaConfig {
    /// Reads and checks the hyperparameters.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for other architectures and what this build cannot run,
    /// [`Error::InvalidModelFile`] for missing, mistyped or contradictory values; the text names
    /// the key.
    pub fn from_gguf(gguf: &Gguf) -> Result<LlamaConfig> {
        let metadata = &gguf.metadata;
        let architecture = metadata
            .str("general.architecture")?
            .ok_or_else(|| missing("general.architecture"))?
            .to_string();
        let Some(&(_, rope_neox)) = ARCHITECTURES.iter().find(|(name, _)| *name == architecture)
        else {
            let known: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
            return Err(Error::UnsupportedModel(format!(
                "architecture {architecture:?}; this build runs {}",
                known.join(", ")
            )));
        };
        let keys = Keys {
            metadata,
            architecture: &architecture,
        };
        let dim = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let kv_heads = keys.size_or("attention.head_count_kv", heads)?;
        let head_dim = keys.size_or("attention.key_length", dim / heads)?;
        let value_dim = keys.size_or("attention.value_length", head_dim)?;
        let rotated = keys.size_or("rope.dimension_count", head_dim)?;
        let vocab = gguf
            .tensor("token_embd.weight")
            .and_then(|tensor| tensor.shape.get(1).copied())
            .ok_or_else(|| missing("token_embd.weight"))? as usize;
        let token_ids = metadata
            .strings("tokenizer.ggml.tokens")?
            .map_or(vocab, <[String]>::len);
        if token_ids > vocab {
            return Err(Error::InvalidModelFile(format!(
                "the tokenizer has {token_ids} tokens, the embedding table only {vocab}"
            )));
        }
        let scaling = metadata
            .str(&keys.name("rope.scaling.type"))?
            .unwrap_or("none");
        let rope_scale = match scaling {
            "none" => 1.0,
            "linear" => keys.float_or("rope.scaling.factor", 1.0)?,
            other => {
                return Err(Error::UnsupportedModel(format!(
                    "rope scaling {other:?}; this build runs none, linear and Llama 3's"
                )));
            }
        };
        let unsupported = [
            (
                heads % kv_heads != 0,
                "a number of heads that is no multiple of the KV heads",
            ),
            (
                value_dim != head_dim,
                "heads of different key and value lengths",
            ),
            (rotated != head_dim, "rope on a part of each head"),
            (
                head_dim % 4 != 0 || head_dim > 256,
                "a head length that is no multiple of 4 up to 256",
            ),
            (dim % 4 != 0, "an embedding length that is no multiple of 4"),
            (keys.size_or("expert_count", 0).unwrap_or(0) > 0, "experts"),
        ];
        if let Some((_, what)) = unsupported.iter().find(|(yes, _)| *yes) {
            return Err(Error::UnsupportedModel(format!(
                "{architecture} with {what}"
            )));
        }
        Ok(LlamaConfig {
            dim,
            layers: keys.size("block_count")?,
            ffn_dim: keys.size("feed_forward_length")?,
            heads,
            kv_heads,
            head_dim,
            vocab,
            token_ids,
            context_tokens: keys.size("context_length")?,
            norm_eps: keys.float("attention.layer_norm_rms_epsilon")?,
            rope_base: keys.float_or("rope.freq_base", 10_000.0)?,
            rope_scale,
            rope_neox,
            architecture,
        })
    }

    /// Elements of all query heads.
    pub fn q_dim(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of all key heads.
    pub fn kv_dim(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}

fn missing(what: &str) -> Error {
    Error::InvalidModelFile(format!("{what} is missing"))
}

/// Keys of one architecture.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A size: at least 1, and small enough that products of a few stay far from overflow.
    fn size(&self, key: &str) -> Result<usize> {
        let name = self.name(key);
        let value = self.metadata.usize(&name)?.ok_or_else(|| missing(&name))?;
        checked_size(&name, value)
    }

    fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        let name = self.name(key);
        match self.metadata.usize(&name)? {
            Some(value) => checked_size(&name, value),
            None => Ok(default),
        }
    }

    fn float(&self, key: &str) -> Result<f32> {
        let name = self.name(key);
        let value = self.metadata.f32(&name)?.ok_or_else(|| missing(&name))?;
        checked_float(&name, value)
    }

    fn float_or(&self, key: &str, default: f32) -> Result<f32> {
        let name = self.name(key);
        match self.metadata.f32(&name)? {
            Some(value) => checked_float(&name, value),
            None => Ok(default),
        }
    }
}

fn checked_size(name: &str, value: usize) -> Result<usize> {
    if (1..=1 << 24).contains(&value) {
        return Ok(value);
    }
    Err(Error::InvalidModelFile(format!("{name} is {value}")))
}

fn checked_float(name: &str, value: f32) -> Result<f32> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Error::InvalidModelFile(format!("{name} is {value}")))
}
