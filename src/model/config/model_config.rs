//! A model's hyperparameters: everything that a decoder computes besides its weights. Longer than other files: a list of fields
//! with their documentation.

use super::{embedding::EmbeddingConfig, recurrence::Recurrence, rope::Rope};
use crate::ops::{
    Activation, NormKind, attention::Window, rope_kv::Temperature, route_experts::ExpertGroups,
};

/// The computation of a model without its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// `general.architecture`.
    pub architecture: String,
    /// Width of the residual stream.
    pub dim: usize,
    /// Width of the feed-forward layers; in a mixture of experts, the width of one expert.
    pub ffn_dim: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Rows of the embedding table.
    pub vocab: usize,
    /// Token ids of the tokenizer. The embedding table may be padded beyond them.
    pub token_ids: usize,
    /// Longest sequence that the model was trained for, in tokens.
    pub context_tokens: usize,
    /// One entry per layer. If the layers of the file are passed several times, each pass has entries of its own.
    pub layers: Vec<LayerConfig>,
    /// The repetition of the file's layers.
    pub passes: Passes,
    /// The recurrence of the recurrent layers; `None` if there are none.
    pub recurrence: Option<Recurrence>,
    /// Whether the block after the layers is run: a head that predicts the token after the next one.
    pub has_mtp_head: bool,
    /// Blocks of the file after those, which predict further tokens and are not run.
    pub ignored_blocks: usize,
    /// The kind of all norms of the residual stream.
    pub norm: NormKind,
    /// Epsilon of the norms.
    pub norm_eps: f32,
    /// Positions of the norms in a layer.
    pub norm_places: NormPlaces,
    /// Whether the inputs of the output matrices of attention and feed-forward are normalized: `attn_sub_norm`,
    /// `ffn_sub_norm`.
    pub has_sub_norms: bool,
    /// GGUF name of the norm before a feed-forward.
    pub ffn_norm: &'static str,
    /// GGUF name of the norm after the last layer.
    pub output_norm_name: &'static str,
    /// Whether the rows of each query head are followed by those of a gate of its output.
    pub has_output_gate: bool,
    /// Keys and values are latents.
    pub latent: Option<Latent>,
    /// Norms of queries and keys.
    pub qk_norm: QkNorm,
    /// The kind of positions.
    pub positions: Positions,
    /// Factor of attention scores; `1 / sqrt(head_dim)` if `None`.
    pub attention_scale: Option<f32>,
    /// Whether values are normalized per head, without weights.
    pub has_value_norm: bool,
    /// Whether the stream is multiplied by a number at the end of each layer: `layer_output_scale`.
    pub has_layer_scale: bool,
    /// Elements of a token's vector for each layer: `per_layer_token_embd`. 0 if there are none.
    pub layer_input_dim: usize,
    /// Whether a score without a value joins each softmax of a query head: `attn_sinks`.
    pub has_sinks: bool,
    /// Attention scores become `cap * tanh(score / cap)`.
    pub attention_soft_cap: Option<f32>,
    /// The feed-forward layers.
    pub feed_forward: FeedForwardKind,
    /// Layers whose feed-forward is not a mixture, if others have one.
    pub dense_layers: Option<DenseLayers>,
    /// Whether the products with gate and up, and those of experts and their router, may have biases. Adapters leave
    /// them out.
    pub has_gate_biases: bool,
    /// Factor of the output of experts.
    pub experts_scale: f32,
    /// Factor of embeddings.
    pub embedding_scale: f32,
    /// Factor of the outputs of attention and feed-forward before they are added to the residual
    /// stream.
    pub residual_scale: f32,
    /// Factor of logits.
    pub logit_scale: f32,
    /// Whether tokens attend to those before them only.
    pub is_causal: bool,
    /// Whether the sum of embeddings is normalized.
    pub has_embedding_norm: bool,
    /// Whether the residual stream is normalized after the last layer.
    pub has_output_norm: bool,
    /// Logits become `cap * tanh(logit / cap)`.
    pub logit_soft_cap: Option<f32>,
    /// The number of first layers for whose outputs rows of images hold values, too.
    pub deepstack_layers: usize,
    /// The pooling and the layers after it, of a model that makes vectors; `None` if it generates text.
    pub embedding: Option<EmbeddingConfig>,
}

/// Sizes of multi-head latent attention. A token has one key: elements that are rotated, then the latent, which is the value, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latent {
    /// Elements of the latent that queries are projected from; `None` if they are projected from the input.
    pub query_rank: Option<usize>,
    /// Elements of the latent of keys and values.
    pub rank: usize,
    /// Elements of a head of queries that are not rotated.
    pub plain: usize,
    /// Elements of a head of values.
    pub value: usize,
}

/// Layers of a file that are passed several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// Layers of a pass, which are those of the file. Layer `i` has the weights of layer `i % layers`.
    pub layers: usize,
    /// Whether the norm after the last layer is applied between passes, too.
    pub has_norm: bool,
}

/// Properties of one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerConfig {
    /// The tokens that a token attends to. All if `None`.
    pub window: Option<Window>,
    /// Rotary embedding of its queries and keys.
    pub rope: LayerRope,
    /// A factor of its queries that grows with their position.
    pub temperature: Option<Temperature>,
    /// The kind of layer that mixes the tokens of a sequence.
    pub mixing: Mixing,
    /// Its sizes, where they are not those of the model.
    pub sizes: Option<LayerSizes>,
    /// The earlier layer whose keys and values it uses, if it has none of its own.
    pub kv_layer: Option<usize>,
}

impl LayerConfig {
    /// Attends to everything, with the frequencies and sizes of the model.
    pub const PLAIN: LayerConfig = LayerConfig {
        window: None,
        rope: LayerRope::Global,
        temperature: None,
        mixing: Mixing::Attention,
        sizes: None,
        kv_layer: None,
    };
}

/// A kind of layer that mixes the tokens of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixing {
    /// Attention.
    Attention,
    /// A recurrence.
    Recurrence,
    /// Both, of the same input. The residual stream is increased by their sum.
    Both,
}

impl Mixing {
    /// Whether there is attention.
    pub fn attends(self) -> bool {
        self != Mixing::Recurrence
    }

    /// Whether there is a recurrence.
    pub fn recurs(self) -> bool {
        self != Mixing::Attention
    }
}

/// The memory of a sequence that a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Keys and values of each token.
    Kv,
    /// The state of a recurrence.
    State,
}

/// Sizes that may differ from layer to layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerSizes {
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Width of the feed-forward.
    pub ffn_dim: usize,
}

/// Rotary embedding of a layer's queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerRope {
    /// The layer rotates nothing.
    None,
    /// The layer rotates with the model's frequencies.
    Global,
    /// The layer rotates with the frequencies of [`Rope::local_base`].
    Local,
}

/// Positions of the norms in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormPlaces {
    /// Whether the inputs of attention and feed-forward are normalized: `attn_norm`, `ffn_norm`.
    pub before: bool,
    /// Whether their outputs are normalized before they are added to the residual stream: `post_attention_norm`,
    /// `post_ffw_norm`.
    pub after: bool,
    /// Whether the residual stream is normalized after they are added: `attn_output_norm`, `layer_output_norm`.
    pub on_sum: bool,
}

impl NormPlaces {
    /// A pre-norm layer.
    pub const BEFORE: NormPlaces = NormPlaces {
        before: true,
        after: false,
        on_sum: false,
    };
    /// A post-norm layer.
    pub const AFTER: NormPlaces = NormPlaces {
        before: false,
        after: true,
        on_sum: false,
    };
    /// Norms on both sides.
    pub const BOTH: NormPlaces = NormPlaces {
        before: true,
        after: true,
        on_sum: false,
    };
    /// Norms of the residual stream itself, as in the first transformers.
    pub const ON_SUM: NormPlaces = NormPlaces {
        before: false,
        after: false,
        on_sum: true,
    };
}

/// Norms of queries and keys: `attn_q_norm`, `attn_k_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// Queries and keys are not normalized.
    None,
    /// Each head is normalized, before rotary embedding.
    Heads,
    /// Each head is normalized, after rotary embedding.
    RotatedHeads,
    /// Each head is normalized without weights, in layers with rotary embedding.
    Unweighted,
    /// All heads of a token are normalized together, before rotary embedding.
    Rows,
}

/// The way in which positions enter the computation.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// Rotary embedding of queries and keys.
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
    /// A mixture of gated feed-forwards.
    Experts(Experts),
    /// A gated feed-forward, and a mixture whose experts have this width; both see the stream, and the sum of their
    /// normalized outputs is normalized.
    Mixed(Experts, usize),
}

impl FeedForwardKind {
    /// The activation function.
    pub fn activation(self) -> Activation {
        match self {
            FeedForwardKind::Gated(activation) | FeedForwardKind::Plain(activation) => activation,
            FeedForwardKind::Experts(experts) | FeedForwardKind::Mixed(experts, _) => {
                experts.activation
            }
        }
    }

    /// The mixture of experts, if there is one.
    pub fn experts(self) -> Option<Experts> {
        match self {
            FeedForwardKind::Experts(experts) | FeedForwardKind::Mixed(experts, _) => Some(experts),
            FeedForwardKind::Gated(_) | FeedForwardKind::Plain(_) => None,
        }
    }
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that a token uses.
    pub used: usize,
    /// Whether the weights of the experts of a token sum to one.
    pub normalized: bool,
    /// The activation function of an expert.
    pub activation: Activation,
    /// Whether the weights of experts are sigmoids, and a bias may count for their selection.
    pub is_sigmoid: bool,
    /// Whether the weights are factors of the experts' inputs instead of their outputs.
    pub scales_inputs: bool,
    /// Groups of experts, if experts are chosen from some of them.
    pub groups: Option<ExpertGroups>,
    /// A feed-forward beside the experts, which all tokens use.
    pub shared: Option<Shared>,
}

/// A feed-forward beside experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Its width.
    pub ffn_dim: usize,
    /// Whether its output is multiplied by the sigmoid of a product with the input.
    pub is_gated: bool,
}

/// Layers of a mixture that have a gated feed-forward of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenseLayers {
    /// The layers that are meant.
    pub places: DensePlaces,
    /// Their width.
    pub ffn_dim: usize,
}

/// The layers without a mixture, by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DensePlaces {
    /// This many layers from the first one on.
    First(usize),
    /// All layers but the last one of each period of this many layers.
    AllButEvery(usize),
}

impl DensePlaces {
    fn contain(self, layer: usize) -> bool {
        match self {
            DensePlaces::First(layers) => layer < layers,
            DensePlaces::AllButEvery(period) => !(layer + 1).is_multiple_of(period),
        }
    }
}

impl ModelConfig {
    /// The sizes of a layer.
    pub fn sizes(&self, layer: usize) -> LayerSizes {
        self.layers[layer].sizes.unwrap_or(LayerSizes {
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            ffn_dim: self.ffn_dim,
        })
    }

    /// Elements of all query heads of a token in a layer.
    pub fn q_dim(&self, layer: usize) -> usize {
        self.heads * self.sizes(layer).head_dim
    }

    /// Elements of all key heads of a token in a layer.
    pub fn kv_dim(&self, layer: usize) -> usize {
        let LayerSizes {
            kv_heads, head_dim, ..
        } = self.sizes(layer);
        kv_heads * head_dim
    }

    /// The memories that layers have of their own, and their layers. In a layer that has both, the state is behind the keys
    /// and values.
    pub fn memories(&self) -> impl Iterator<Item = (usize, MemoryKind)> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(i, layer)| {
            let has_kv = layer.mixing.attends() && layer.kv_layer.is_none();
            let kv = has_kv.then_some((i, MemoryKind::Kv));
            let state = layer.mixing.recurs().then_some((i, MemoryKind::State));
            kv.into_iter().chain(state)
        })
    }

    /// Kind and width of the feed-forward of a layer.
    pub fn feed_forward_of(&self, layer: usize) -> (FeedForwardKind, usize) {
        match self.dense_layers {
            Some(dense) if dense.places.contain(layer) => {
                let activation = self.feed_forward.activation();
                (FeedForwardKind::Gated(activation), dense.ffn_dim)
            }
            _ => (self.feed_forward, self.sizes(layer).ffn_dim),
        }
    }

    /// The same with the block of the head as one more layer, if there is a head.
    pub fn with_mtp_block(&self) -> ModelConfig {
        let mut config = self.clone();
        if std::mem::take(&mut config.has_mtp_head) {
            config.layers.push(LayerConfig::PLAIN);
            config.passes.layers += 1;
        }
        config
    }

    /// Whether a tensor belongs to a block that is not run.
    pub fn ignores(&self, tensor: &str) -> bool {
        let block = tensor
            .strip_prefix("blk.")
            .and_then(|it| it.split_once('.'));
        let block = block.and_then(|(block, _)| block.parse::<usize>().ok());
        let first = self.layers.len() + usize::from(self.has_mtp_head);
        let ignored = first..first + self.ignored_blocks;
        block.is_some_and(|block| ignored.contains(&block))
    }

    /// The rotary embedding, if the model has one.
    pub fn rope(&self) -> Option<&Rope> {
        match &self.positions {
            Positions::Rotary(rope) => Some(rope),
            Positions::Learned => None,
        }
    }

    /// Same as [`Self::rope`], to be changed by an architecture.
    pub fn rope_mut(&mut self) -> Option<&mut Rope> {
        match &mut self.positions {
            Positions::Rotary(rope) => Some(rope),
            Positions::Learned => None,
        }
    }

    /// Gives the layers whose index `is_local` selects a sliding window of `tokens`.
    pub fn set_windows(&mut self, tokens: Option<usize>, is_local: impl Fn(usize) -> bool) {
        for (i, layer) in self.layers.iter_mut().enumerate() {
            layer.window = tokens.filter(|_| is_local(i)).map(Window::Sliding);
        }
    }
}
