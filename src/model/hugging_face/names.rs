//! Names of a Hugging Face checkpoint's tensors, and GGUF's. Knows nothing of shapes.

use crate::{Error, Result};

/// The output matrix, by GGUF's name: tied checkpoints lack it or have it twice.
pub const HEAD: &str = "output.weight";

/// Where a tensor belongs.
#[derive(Debug, PartialEq)]
pub struct Place {
    /// GGUF's name.
    pub name: String,
    /// Which of the experts that lie one below the other.
    pub expert: Option<usize>,
    /// What is added to each element.
    pub plus: f32,
    /// Its columns are the rows.
    pub is_transposed: bool,
}

/// Outside of layers.
const OUTER: [(&str, &str); 6] = [
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
    ("wte", "token_embd"),
    ("wpe", "position_embd"),
    ("ln_f", "output_norm"),
];

/// In a layer; `{}` stands for the number of an expert.
const INNER: [(&str, &str); 28] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.c_fc", "ffn_up"),
    ("mlp.c_proj", "ffn_down"),
    ("mlp.gate", "ffn_gate_inp"),
    ("mlp.experts.{}.gate_proj", "ffn_gate_exps"),
    ("mlp.experts.{}.up_proj", "ffn_up_exps"),
    ("mlp.experts.{}.down_proj", "ffn_down_exps"),
    ("block_sparse_moe.gate", "ffn_gate_inp"),
    ("block_sparse_moe.experts.{}.w1", "ffn_gate_exps"),
    ("block_sparse_moe.experts.{}.w3", "ffn_up_exps"),
    ("block_sparse_moe.experts.{}.w2", "ffn_down_exps"),
    ("ln_1", "attn_norm"),
    ("attn.c_attn", "attn_qkv"),
    ("attn.c_proj", "attn_output"),
    ("ln_2", "ffn_norm"),
];

/// Tables of frequencies and causal masks that older checkpoints have.
pub fn is_left_out(name: &str) -> bool {
    let tables = ["rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias"];
    tables.iter().any(|table| name.ends_with(table))
}

/// The place of a tensor.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming a tensor that has none.
pub fn place(architecture: &str, name: &str) -> Result<Place> {
    find(architecture, name).ok_or_else(|| {
        let name: String = name.chars().take(80).collect();
        Error::UnsupportedModel(format!("{architecture} with a tensor {name:?}"))
    })
}

fn find(architecture: &str, name: &str) -> Option<Place> {
    let (module, suffix) = name.rsplit_once('.')?;
    if !["weight", "bias"].contains(&suffix) {
        return None;
    }
    let is_norm = module.ends_with("norm");
    let plus = if architecture.starts_with("gemma") && is_norm {
        1.0
    } else {
        0.0
    };
    // GPT-2's checkpoints are those of the body alone, or of the whole model.
    let module = module.strip_prefix("transformer.").unwrap_or(module);
    if let Some((_, found)) = OUTER.iter().find(|(known, _)| *known == module) {
        let name = format!("{found}.{suffix}");
        return Some(Place {
            name,
            expert: None,
            plus,
            is_transposed: false,
        });
    }
    let inner = ["model.layers.", "h."];
    let mut inner = inner.iter().filter_map(|it| module.strip_prefix(it));
    let (layer, part) = inner.next()?.split_once('.')?;
    let layer = number(layer)?;
    let (pattern, expert) = match part.split_once(".experts.") {
        None => (part.to_owned(), None),
        Some((before, after)) => {
            let (expert, after) = after.split_once('.')?;
            (
                format!("{before}.experts.{{}}.{after}"),
                Some(number(expert)?),
            )
        }
    };
    let found = match (&*pattern, architecture) {
        ("post_attention_layernorm", "gemma2" | "gemma3" | "olmo2") => "post_attention_norm",
        ("post_attention_layernorm", _) => "ffn_norm",
        _ => INNER.iter().find(|(known, _)| *known == pattern)?.1,
    };
    Some(Place {
        name: format!("blk.{layer}.{found}.{suffix}"),
        expert,
        plus,
        // GPT-2's matrices are multiplied from the right.
        is_transposed: architecture == "gpt2" && suffix == "weight" && part.contains(".c_"),
    })
}

/// A number in a name, written as it always is.
fn number(text: &str) -> Option<usize> {
    let number: usize = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_find_their_places() {
        let of = |architecture, name| {
            let place = place(architecture, name).unwrap();
            assert_eq!(place.is_transposed, place.name.contains("attn_qkv.weight"));
            (place.name, place.expert, place.plus)
        };
        for (architecture, name, expected, expert, plus) in [
            (
                "llama",
                "model.embed_tokens.weight",
                "token_embd.weight",
                None,
                0.0,
            ),
            (
                "llama",
                "model.layers.11.post_attention_layernorm.weight",
                "blk.11.ffn_norm.weight",
                None,
                0.0,
            ),
            (
                "gemma2",
                "model.layers.0.post_attention_layernorm.weight",
                "blk.0.post_attention_norm.weight",
                None,
                1.0,
            ),
            (
                "gemma3",
                "model.layers.0.self_attn.q_norm.weight",
                "blk.0.attn_q_norm.weight",
                None,
                1.0,
            ),
            (
                "gemma",
                "model.layers.0.mlp.up_proj.weight",
                "blk.0.ffn_up.weight",
                None,
                0.0,
            ),
            (
                "qwen2",
                "model.layers.0.self_attn.q_proj.bias",
                "blk.0.attn_q.bias",
                None,
                0.0,
            ),
            (
                "qwen3moe",
                "model.layers.3.mlp.experts.17.down_proj.weight",
                "blk.3.ffn_down_exps.weight",
                Some(17),
                0.0,
            ),
            (
                "llama",
                "model.layers.3.block_sparse_moe.experts.2.w3.weight",
                "blk.3.ffn_up_exps.weight",
                Some(2),
                0.0,
            ),
            ("gpt2", "wpe.weight", "position_embd.weight", None, 0.0),
            (
                "gpt2",
                "transformer.h.3.attn.c_attn.weight",
                "blk.3.attn_qkv.weight",
                None,
                0.0,
            ),
            (
                "gpt2",
                "h.0.attn.c_attn.bias",
                "blk.0.attn_qkv.bias",
                None,
                0.0,
            ),
            (
                "starcoder2",
                "model.layers.0.mlp.c_proj.weight",
                "blk.0.ffn_down.weight",
                None,
                0.0,
            ),
        ] {
            assert_eq!(of(architecture, name), (expected.into(), expert, plus));
        }
        for name in [
            "model.layers.0.self_attn.q_proj.qweight",
            "model.layers.00.mlp.gate.weight",
            "model.layers.0.mlp.experts.gate_up_proj",
            "model.layers.0.mlp.experts.x.up_proj.weight",
            "vision.weight",
        ] {
            let error = place("llama", name).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
