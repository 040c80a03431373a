//! The files of `shaders/`, by name. Knows nothing of how they are combined.

/// Kernels, one per file.
pub mod kernel {
    /// `shaders/add_positions.wgsl`
    pub const ADD_POSITIONS: &str = include_str!("../../shaders/add_positions.wgsl");
    /// `shaders/argmax.wgsl`
    pub const ARGMAX: &str = include_str!("../../shaders/argmax.wgsl");
    /// `shaders/attention.wgsl`
    pub const ATTENTION: &str = include_str!("../../shaders/attention.wgsl");
    /// `shaders/attention_merge.wgsl`
    pub const ATTENTION_MERGE: &str = include_str!("../../shaders/attention_merge.wgsl");
    /// `shaders/attention_split.wgsl`
    pub const ATTENTION_SPLIT: &str = include_str!("../../shaders/attention_split.wgsl");
    /// `shaders/attention_lanes.wgsl`
    pub const ATTENTION_LANES: &str = include_str!("../../shaders/attention_lanes.wgsl");
    /// `shaders/barriers.wgsl`
    pub const BARRIERS: &str = include_str!("../../shaders/barriers.wgsl");
    /// `shaders/copy_page.wgsl`
    pub const COPY_PAGE: &str = include_str!("../../shaders/copy_page.wgsl");
    /// `shaders/embedding.wgsl`
    pub const EMBEDDING: &str = include_str!("../../shaders/embedding.wgsl");
    /// `shaders/expert_gated_matmul.wgsl`
    pub const EXPERT_GATED_MATMUL: &str = include_str!("../../shaders/expert_gated_matmul.wgsl");
    /// `shaders/expert_gated_matmul_lanes.wgsl`
    pub const EXPERT_GATED_MATMUL_LANES: &str =
        include_str!("../../shaders/expert_gated_matmul_lanes.wgsl");
    /// `shaders/expert_gated_matvec.wgsl`
    pub const EXPERT_GATED_MATVEC: &str = include_str!("../../shaders/expert_gated_matvec.wgsl");
    /// `shaders/expert_matmul.wgsl`
    pub const EXPERT_MATMUL: &str = include_str!("../../shaders/expert_matmul.wgsl");
    /// `shaders/expert_matmul_lanes.wgsl`
    pub const EXPERT_MATMUL_LANES: &str = include_str!("../../shaders/expert_matmul_lanes.wgsl");
    /// `shaders/expert_matvec.wgsl`
    pub const EXPERT_MATVEC: &str = include_str!("../../shaders/expert_matvec.wgsl");
    /// `shaders/gated_matmul.wgsl`
    pub const GATED_MATMUL: &str = include_str!("../../shaders/gated_matmul.wgsl");
    /// `shaders/gated_matmul_lanes.wgsl`
    pub const GATED_MATMUL_LANES: &str = include_str!("../../shaders/gated_matmul_lanes.wgsl");
    /// `shaders/gated_matvec.wgsl`
    pub const GATED_MATVEC: &str = include_str!("../../shaders/gated_matvec.wgsl");
    /// `shaders/gated_matvec_batch.wgsl`
    pub const GATED_MATVEC_BATCH: &str = include_str!("../../shaders/gated_matvec_batch.wgsl");
    /// `shaders/group_experts.wgsl`
    pub const GROUP_EXPERTS: &str = include_str!("../../shaders/group_experts.wgsl");
    /// `shaders/last_row.wgsl`
    pub const LAST_ROW: &str = include_str!("../../shaders/last_row.wgsl");
    /// `shaders/layer_norm.wgsl`
    pub const LAYER_NORM: &str = include_str!("../../shaders/layer_norm.wgsl");
    /// `shaders/matmul.wgsl`
    pub const MATMUL: &str = include_str!("../../shaders/matmul.wgsl");
    /// `shaders/matmul_lanes.wgsl`
    pub const MATMUL_LANES: &str = include_str!("../../shaders/matmul_lanes.wgsl");
    /// `shaders/matvec.wgsl`
    pub const MATVEC: &str = include_str!("../../shaders/matvec.wgsl");
    /// `shaders/matvec_batch.wgsl`
    pub const MATVEC_BATCH: &str = include_str!("../../shaders/matvec_batch.wgsl");
    /// `shaders/rms_norm.wgsl`
    pub const RMS_NORM: &str = include_str!("../../shaders/rms_norm.wgsl");
    /// `shaders/rope_kv.wgsl`
    pub const ROPE_KV: &str = include_str!("../../shaders/rope_kv.wgsl");
    /// `shaders/route_experts.wgsl`
    pub const ROUTE_EXPERTS: &str = include_str!("../../shaders/route_experts.wgsl");
    /// `shaders/sample_adjust.wgsl`
    pub const SAMPLE_ADJUST: &str = include_str!("../../shaders/sample_adjust.wgsl");
    /// `shaders/sample_choose.wgsl`
    pub const SAMPLE_CHOOSE: &str = include_str!("../../shaders/sample_choose.wgsl");
    /// `shaders/sample_dry.wgsl`
    pub const SAMPLE_DRY: &str = include_str!("../../shaders/sample_dry.wgsl");
    /// `shaders/sample_weigh.wgsl`
    pub const SAMPLE_WEIGH: &str = include_str!("../../shaders/sample_weigh.wgsl");
    /// `shaders/score.wgsl`
    pub const SCORE: &str = include_str!("../../shaders/score.wgsl");
    /// `shaders/sum_experts.wgsl`
    pub const SUM_EXPERTS: &str = include_str!("../../shaders/sum_experts.wgsl");
}

/// Tiles of pairs of a token and an expert.
pub mod expert_tile {
    /// In the registers of single lanes.
    pub const LANES: &str = include_str!("../../shaders/shared/expert_tile/lanes.wgsl");
    /// Which pairs a tile has.
    pub const PAIRS: &str = include_str!("../../shaders/shared/expert_tile/pairs.wgsl");
    /// In workgroup memory.
    pub const WORKGROUP: &str = include_str!("../../shaders/shared/expert_tile/workgroup.wgsl");
}

/// Functions between the two halves of a feed-forward layer.
pub mod activation {
    /// GELU.
    pub const GELU: &str = include_str!("../../shaders/shared/activation/gelu.wgsl");
    /// SiLU.
    pub const SILU: &str = include_str!("../../shaders/shared/activation/silu.wgsl");
}

/// What happens to a product before the residual stream is added.
pub mod finish {
    /// It is activated.
    pub const ACTIVATION: &str = include_str!("../../shaders/shared/finish/activation.wgsl");
    /// Nothing.
    pub const PLAIN: &str = include_str!("../../shaders/shared/finish/plain.wgsl");
    /// It is multiplied.
    pub const SCALE: &str = include_str!("../../shaders/shared/finish/scale.wgsl");
    /// It is multiplied and bounded.
    pub const SOFT_CAP: &str = include_str!("../../shaders/shared/finish/soft_cap.wgsl");
}

/// What the products of gate and up come to.
pub mod gated {
    /// As they are.
    pub const PLAIN: &str = include_str!("../../shaders/shared/gated/plain.wgsl");
    /// With what adapters add.
    pub const DELTA: &str = include_str!("../../shaders/shared/gated/delta.wgsl");
}

/// What a matvec reads.
pub mod matvec_input {
    /// The inputs as they are.
    pub const PLAIN: &str = include_str!("../../shaders/shared/matvec_input/plain.wgsl");
    /// A block of them, as it is.
    pub const BLOCK_F32: &str = include_str!("../../shaders/shared/matvec_input/block_f32.wgsl");
    /// A block of them, quantized.
    pub const BLOCK_I8: &str = include_str!("../../shaders/shared/matvec_input/block_i8.wgsl");
    /// The inputs, normalized on the way in.
    pub const RMS_NORM: &str = include_str!("../../shaders/shared/matvec_input/rms_norm.wgsl");
}

/// What happens to a normalized vector.
pub mod norm_store {
    /// Nothing.
    pub const PLAIN: &str = include_str!("../../shaders/shared/norm_store/plain.wgsl");
    /// Plus the residual stream.
    pub const RESIDUAL: &str = include_str!("../../shaders/shared/norm_store/residual.wgsl");
}

/// Sums over the lanes of a row.
pub mod reduce {
    /// With subgroup shuffles.
    pub const SUBGROUP: &str = include_str!("../../shaders/shared/reduce/subgroup.wgsl");
    /// Through workgroup memory.
    pub const WORKGROUP: &str = include_str!("../../shaders/shared/reduce/workgroup.wgsl");
}

/// What is done to a query's or key's head before its rotation.
pub mod head_norm {
    /// Nothing.
    pub const PLAIN: &str = include_str!("../../shaders/shared/head_norm/plain.wgsl");
    /// Normalization.
    pub const RMS_NORM: &str = include_str!("../../shaders/shared/head_norm/rms_norm.wgsl");
}

/// Vectors of the KV memory, by the format it is kept in.
pub mod kv {
    /// Reads of f32.
    pub const F32: &str = include_str!("../../shaders/shared/kv/f32.wgsl");
    /// Writes of f32.
    pub const F32_STORE: &str = include_str!("../../shaders/shared/kv/f32_store.wgsl");
    /// Reads of f16.
    pub const F16: &str = include_str!("../../shaders/shared/kv/f16.wgsl");
    /// Writes of f16.
    pub const F16_STORE: &str = include_str!("../../shaders/shared/kv/f16_store.wgsl");
    /// Reads of blocks of bytes.
    pub const Q8_0: &str = include_str!("../../shaders/shared/kv/q8_0.wgsl");
    /// Writes of blocks of bytes.
    pub const Q8_0_STORE: &str = include_str!("../../shaders/shared/kv/q8_0_store.wgsl");
}

/// Parts of the sampler chain.
pub mod sample {
    /// Places in the order of a row.
    pub const LOCATE: &str = include_str!("../../shaders/shared/sample/locate.wgsl");
    /// The order of tokens.
    pub const ORDER: &str = include_str!("../../shaders/shared/sample/order.wgsl");
    /// Uniform numbers.
    pub const PHILOX: &str = include_str!("../../shaders/shared/sample/philox.wgsl");
    /// What the host says of rows and slots.
    pub const SLOT: &str = include_str!("../../shaders/shared/sample/slot.wgsl");
    /// Weights and bins.
    pub const WEIGHT: &str = include_str!("../../shaders/shared/sample/weight.wgsl");
    /// Whole numbers of 64 bits.
    pub const WIDE: &str = include_str!("../../shaders/shared/sample/wide.wgsl");
}

/// What happens to a result.
pub mod store {
    /// All that happens, in its order; below, what each addend comes to where it is there and where
    /// it is not.
    pub const STORE: &str = include_str!("../../shaders/shared/store/store.wgsl");
    /// A bias.
    pub const BIAS: &str = include_str!("../../shaders/shared/store/bias.wgsl");
    /// No bias.
    pub const NO_BIAS: &str = include_str!("../../shaders/shared/store/no_bias.wgsl");
    /// What adapters add.
    pub const DELTA: &str = include_str!("../../shaders/shared/store/delta.wgsl");
    /// Nothing of adapters.
    pub const NO_DELTA: &str = include_str!("../../shaders/shared/store/no_delta.wgsl");
    /// The residual stream.
    pub const RESIDUAL: &str = include_str!("../../shaders/shared/store/residual.wgsl");
    /// No residual stream.
    pub const NO_RESIDUAL: &str = include_str!("../../shaders/shared/store/no_residual.wgsl");
}

/// The sums of a tile of a matmul.
pub mod tile {
    /// A workgroup's, through workgroup memory in f32.
    pub const F32: &str = include_str!("../../shaders/shared/tile/f32.wgsl");
    /// A workgroup's, in f16.
    pub const F16: &str = include_str!("../../shaders/shared/tile/f16.wgsl");
    /// A workgroup's, on bytes.
    pub const I8: &str = include_str!("../../shaders/shared/tile/i8.wgsl");
    /// A token's inputs of a block.
    pub const X_BLOCK: &str = include_str!("../../shaders/shared/tile/x_block.wgsl");
    /// A lane's own, in its registers.
    pub const LANE: &str = include_str!("../../shaders/shared/tile/lane.wgsl");
}

/// A block as bytes.
pub const I8_BLOCK: &str = include_str!("../../shaders/shared/i8_block.wgsl");
/// The largest magnitude of a block.
pub const PEAK: &str = include_str!("../../shaders/shared/peak.wgsl");
/// The heads of a step's tokens, rotated.
pub const ROPE: &str = include_str!("../../shaders/shared/rope.wgsl");
/// Bounds of attention scores.
pub const SOFT_CAP: &str = include_str!("../../shaders/shared/soft_cap.wgsl");
/// The state of a step and the KV memory's layout.
pub const STEP: &str = include_str!("../../shaders/shared/step.wgsl");
