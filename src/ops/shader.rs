//! The files of `shaders/`, by name. Knows nothing of how they are combined.

/// Kernels, one per file.
pub mod kernel {
    /// `shaders/argmax.wgsl`
    pub const ARGMAX: &str = include_str!("../../shaders/argmax.wgsl");
    /// `shaders/attention.wgsl`
    pub const ATTENTION: &str = include_str!("../../shaders/attention.wgsl");
    /// `shaders/attention_lanes.wgsl`
    pub const ATTENTION_LANES: &str = include_str!("../../shaders/attention_lanes.wgsl");
    /// `shaders/barriers.wgsl`
    pub const BARRIERS: &str = include_str!("../../shaders/barriers.wgsl");
    /// `shaders/copy_page.wgsl`
    pub const COPY_PAGE: &str = include_str!("../../shaders/copy_page.wgsl");
    /// `shaders/embedding.wgsl`
    pub const EMBEDDING: &str = include_str!("../../shaders/embedding.wgsl");
    /// `shaders/gated_matmul.wgsl`
    pub const GATED_MATMUL: &str = include_str!("../../shaders/gated_matmul.wgsl");
    /// `shaders/gated_matmul_lanes.wgsl`
    pub const GATED_MATMUL_LANES: &str = include_str!("../../shaders/gated_matmul_lanes.wgsl");
    /// `shaders/gated_matvec.wgsl`
    pub const GATED_MATVEC: &str = include_str!("../../shaders/gated_matvec.wgsl");
    /// `shaders/gated_matvec_batch.wgsl`
    pub const GATED_MATVEC_BATCH: &str = include_str!("../../shaders/gated_matvec_batch.wgsl");
    /// `shaders/last_row.wgsl`
    pub const LAST_ROW: &str = include_str!("../../shaders/last_row.wgsl");
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

/// Sums over the lanes of a row.
pub mod reduce {
    /// With subgroup shuffles.
    pub const SUBGROUP: &str = include_str!("../../shaders/shared/reduce/subgroup.wgsl");
    /// Through workgroup memory.
    pub const WORKGROUP: &str = include_str!("../../shaders/shared/reduce/workgroup.wgsl");
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
    /// Nothing.
    pub const PLAIN: &str = include_str!("../../shaders/shared/store/plain.wgsl");
    /// Plus a bias.
    pub const BIAS: &str = include_str!("../../shaders/shared/store/bias.wgsl");
    /// Plus the residual stream.
    pub const RESIDUAL: &str = include_str!("../../shaders/shared/store/residual.wgsl");
    /// Plus both.
    pub const BIAS_RESIDUAL: &str = include_str!("../../shaders/shared/store/bias_residual.wgsl");
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

/// Matrices of each tensor type.
pub mod weights {
    /// `Q4_0`, for products of bytes
    pub const I8_Q4_0: &str = include_str!("../../shaders/shared/weights/i8/q4_0.wgsl");
    /// `Q8_0`, for products of bytes
    pub const I8_Q8_0: &str = include_str!("../../shaders/shared/weights/i8/q8_0.wgsl");
    /// `BF16`
    pub const BF16: &str = include_str!("../../shaders/shared/weights/bf16.wgsl");
    /// `F16`
    pub const F16: &str = include_str!("../../shaders/shared/weights/f16.wgsl");
    /// `F32`
    pub const F32: &str = include_str!("../../shaders/shared/weights/f32.wgsl");
    /// `Q4_0`
    pub const Q4_0: &str = include_str!("../../shaders/shared/weights/q4_0.wgsl");
    /// `Q6_K`
    pub const Q6_K: &str = include_str!("../../shaders/shared/weights/q6_k.wgsl");
    /// `Q8_0`
    pub const Q8_0: &str = include_str!("../../shaders/shared/weights/q8_0.wgsl");
}

/// A block as bytes.
pub const I8_BLOCK: &str = include_str!("../../shaders/shared/i8_block.wgsl");
/// The largest magnitude of a block.
pub const PEAK: &str = include_str!("../../shaders/shared/peak.wgsl");
/// SiLU.
pub const SILU: &str = include_str!("../../shaders/shared/silu.wgsl");
/// The state of a step and the KV memory's layout.
pub const STEP: &str = include_str!("../../shaders/shared/step.wgsl");
