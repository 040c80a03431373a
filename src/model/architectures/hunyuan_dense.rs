//! Hunyuan, dense (Tencent 2025): norms of each query and key head after the rotation, and a base of the frequencies
//! that grows with a factor of the context (NTK-aware scaling), which GGUF files hold already.

use super::architecture::{Architecture, Names};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, QkNorm},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "hunyuan-dense",
    model_types: &["hunyuan_v1_dense"],
    configure,
    read_json,
    tensors: &[NORMS],
    ..Architecture::LLAMA_LIKE
};

const NORMS: Names = &[
    (
        "model.layers.*.self_attn.query_layernorm",
        "blk.*.attn_q_norm",
    ),
    (
        "model.layers.*.self_attn.key_layernorm",
        "blk.*.attn_k_norm",
    ),
];

fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::RotatedHeads;
    Ok(())
}

/// Replaces a scaling by `alpha` with the base that follows from it.
fn read_json(json: &mut ConfigJson) -> Result<()> {
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(scaling) = json.object(key)? else {
            continue;
        };
        let kind = scaling.str("rope_type")?.or(scaling.str("type")?);
        let (Some("dynamic"), Some(alpha)) = (kind, scaling.number("alpha")?) else {
            continue;
        };
        let head_dim = f64::from(json.head_dim()?);
        let base = scaling.number("rope_theta")?.or(json.number("rope_theta")?);
        let base = base.unwrap_or(10_000.0) * alpha.powf(head_dim / (head_dim - 2.0));
        json.set("rope_theta", base);
        json.remove(key);
    }
    Ok(())
}
