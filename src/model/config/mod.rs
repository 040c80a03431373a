//! A model's hyperparameters, read from metadata: what all architectures share here, what differs
//! in `architectures`. Knows nothing of tensors' data.

mod keys;
pub mod rope;

pub use keys::Keys;
pub use rope::{Rope, Scaling};

use super::architectures;
pub use crate::ops::Activation;
use crate::{Error, Result, weights::Gguf};
use keys::missing;

/// The number of the tokenizer's tokens, where their texts are not in the metadata.
pub(super) const TOKEN_COUNT: &str = "tokenizer.token_count";

/// More than any model has: a hostile header shall not make memory be reserved.
const MAX_LAYERS: usize = 1024;
const MAX_HEADS: usize = 4096;

/// What a model computes besides its weights. `architectures` fills in what differs.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// `general.architecture`.
    pub architecture: String,
    /// Width of the residual stream.
    pub dim: usize,
    /// Width of the feed-forward layers; of one expert, where there are experts.
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
    /// What is particular to each layer.
    pub layers: Vec<LayerConfig>,
    /// The kind of all norms of the residual stream.
    pub norm: NormKind,
    /// Epsilon of the norms.
    pub norm_eps: f32,
    /// Where norms stand in a layer.
    pub norm_places: NormPlaces,
    /// Norms of queries and keys before their rotation.
    pub qk_norm: QkNorm,
    /// How positions enter.
    pub positions: Positions,
    /// What scores are multiplied by; `1 / sqrt(head_dim)` if `None`.
    pub attention_scale: Option<f32>,
    /// Scores become `cap * tanh(score / cap)`.
    pub attention_soft_cap: Option<f32>,
    /// The feed-forward layers.
    pub feed_forward: FeedForwardKind,
    /// What embeddings are multiplied by.
    pub embedding_scale: f32,
    /// What a layer's results are multiplied by before they join the residual stream.
    pub residual_scale: f32,
    /// What logits are multiplied by.
    pub logit_scale: f32,
    /// Logits become `cap * tanh(logit / cap)`.
    pub logit_soft_cap: Option<f32>,
}

/// What is particular to a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerConfig {
    /// A token sees that many tokens, itself included; all if `None`.
    pub window: Option<usize>,
    /// The rotation of its queries and keys.
    pub rotation: Rotation,
}

/// The rotation of a layer's queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// None.
    None,
    /// By the model's frequencies.
    Global,
    /// By those of [`Rope::local_base`].
    Local,
}

/// A kind of norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// By the root of the mean square.
    Rms,
    /// To a mean of zero and a variance of one; with a bias.
    Layer,
}

/// Where norms stand in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormPlaces {
    /// Before attention and feed-forward: `attn_norm`, `ffn_norm`.
    pub before: bool,
    /// After them, before their results join the residual stream: `post_attention_norm`,
    /// `post_ffw_norm`.
    pub after: bool,
}

/// Norms of queries and keys: `attn_q_norm`, `attn_k_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// Of each head.
    Heads,
    /// Of all heads at once.
    Rows,
}

/// How positions enter.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// Queries and keys are rotated.
    Rotary(Rope),
    /// A learned vector is added to each embedding: `position_embd`.
    Learned,
}

/// The kind of feed-forward layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedForwardKind {
    /// `down(act(gate(x)) * up(x))`
    Gated(Activation),
    /// `down(act(up(x)))`
    Plain(Activation),
    /// Gated layers with SiLU, of which each token uses a few.
    Experts(Experts),
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// How many a token uses.
    pub used: usize,
    /// The weights of those used sum up to one.
    pub normalized: bool,
}

impl ModelConfig {
    /// Reads and checks the hyperparameters.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for other architectures and what this build cannot run,
    /// [`Error::InvalidModelFile`] for missing, mistyped or contradictory values; the text names
    /// the key.
    pub fn from_gguf(gguf: &Gguf) -> Result<ModelConfig> {
        let name = gguf
            .metadata
            .str("general.architecture")?
            .ok_or_else(|| missing("general.architecture"))?;
        let configure = architectures::find(name)?;
        let keys = Keys::new(&gguf.metadata, name);
        let mut config = ModelConfig::common(gguf, &keys, name)?;
        configure(&keys, &mut config)?;
        config.check()?;
        Ok(config)
    }

    /// What most architectures have: a Llama without rope scaling.
    fn common(gguf: &Gguf, keys: &Keys, name: &str) -> Result<ModelConfig> {
        let dim = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let kv_heads = keys.size_or("attention.head_count_kv", heads)?;
        let head_dim = keys.size_or("attention.key_length", dim / heads)?;
        let value_dim = keys.size_or("attention.value_length", head_dim)?;
        if value_dim != head_dim {
            return Err(Error::UnsupportedModel(format!(
                "{name} with heads of different key and value lengths"
            )));
        }
        let vocab = gguf
            .tensor("token_embd.weight")
            .and_then(|tensor| tensor.shape.get(1).copied())
            .ok_or_else(|| missing("token_embd.weight"))? as usize;
        let tokens = gguf.metadata.strings("tokenizer.ggml.tokens")?;
        let token_ids = match tokens {
            Some(tokens) => Some(tokens.len()),
            None => gguf.metadata.usize(TOKEN_COUNT)?,
        };
        let layers = keys.size("block_count")?;
        if layers > MAX_LAYERS {
            return Err(keys.unsupported(&format!("{layers} layers")));
        }
        let layer = LayerConfig {
            window: None,
            rotation: Rotation::Global,
        };
        Ok(ModelConfig {
            architecture: name.to_string(),
            dim,
            ffn_dim: keys.size("feed_forward_length")?,
            heads,
            kv_heads,
            head_dim,
            vocab,
            token_ids: token_ids.unwrap_or(vocab),
            context_tokens: keys.size("context_length")?,
            layers: vec![layer; layers],
            norm: NormKind::Rms,
            norm_eps: match keys.positive("attention.layer_norm_rms_epsilon")? {
                Some(eps) => eps,
                None => keys
                    .positive("attention.layer_norm_epsilon")?
                    .ok_or_else(|| missing(&keys.name("attention.layer_norm_rms_epsilon")))?,
            },
            norm_places: NormPlaces {
                before: true,
                after: false,
            },
            qk_norm: QkNorm::None,
            positions: Positions::Rotary(Rope::read(keys, head_dim)?),
            attention_scale: keys.positive("attention.scale")?,
            attention_soft_cap: None,
            feed_forward: FeedForwardKind::Gated(Activation::Silu),
            embedding_scale: 1.0,
            residual_scale: 1.0,
            logit_scale: 1.0,
            logit_soft_cap: None,
        })
    }

    /// What no architecture may say.
    fn check(&self) -> Result<()> {
        if self.token_ids > self.vocab {
            return Err(Error::InvalidModelFile(format!(
                "the tokenizer has {} tokens, the embedding table only {}",
                self.token_ids, self.vocab
            )));
        }
        let rotated = match &self.positions {
            Positions::Rotary(rope) => rope.dims,
            Positions::Learned => self.head_dim,
        };
        let has_experts = matches!(self.feed_forward, FeedForwardKind::Experts(_));
        let plain_norms = NormPlaces {
            before: true,
            after: false,
        };
        let unsupported = [
            (
                has_experts && (self.norm_places != plain_norms || self.residual_scale != 1.0),
                "experts and norms after them, or multipliers of their results",
            ),
            (self.heads > MAX_HEADS, "so many heads"),
            (
                !self.heads.is_multiple_of(self.kv_heads),
                "a number of heads that is no multiple of the KV heads",
            ),
            (
                !self.head_dim.is_multiple_of(8) || self.head_dim > 256,
                "a head length that is no multiple of 8 up to 256",
            ),
            (
                !rotated.is_multiple_of(8) || rotated > self.head_dim,
                "a rotation of so many elements of each head",
            ),
            (
                !self.dim.is_multiple_of(4),
                "an embedding length that is no multiple of 4",
            ),
        ];
        match unsupported.iter().find(|(yes, _)| *yes) {
            Some((_, what)) => Err(Error::UnsupportedModel(format!(
                "{} with {what}",
                self.architecture
            ))),
            None => Ok(()),
        }
    }

    /// Elements of all query heads.
    pub fn q_dim(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of all key heads.
    pub fn kv_dim(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// The rotation, where positions enter by one.
    pub fn rope(&self) -> Option<&Rope> {
        match &self.positions {
            Positions::Rotary(rope) => Some(rope),
            Positions::Learned => None,
        }
    }

    /// For architectures: the rotation, to be changed.
    pub fn rope_mut(&mut self) -> Option<&mut Rope> {
        match &mut self.positions {
            Positions::Rotary(rope) => Some(rope),
            Positions::Learned => None,
        }
    }

    /// For architectures: windows of `tokens` in the layers that `is_local` says, by their index.
    pub fn set_windows(&mut self, tokens: Option<usize>, is_local: impl Fn(usize) -> bool) {
        for (i, layer) in self.layers.iter_mut().enumerate() {
            layer.window = tokens.filter(|_| is_local(i));
        }
    }
}
