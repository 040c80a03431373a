//! GGUF names of a Hugging Face checkpoint's tensors. The tables of the architecture are searched before
//! the table of Llama.

use crate::{
    Error, Result,
    model::architectures::{Architecture, Form, Names, Parameter},
};

/// GGUF name of the output matrix. Tied checkpoints lack it or hold it twice.
pub const HEAD: &str = "output.weight";

/// A checkpoint's tensor in a GGUF file.
#[derive(Debug, PartialEq)]
pub struct GgufTensor {
    /// GGUF name.
    pub name: String,
    /// Index of the expert, where a GGUF tensor stacks the tensors of all experts.
    pub expert: Option<usize>,
    /// The change that makes it of the checkpoint's tensor.
    pub form: Form,
}

/// Modules of a Llama: names in the checkpoint and in GGUF. `*` is the layer's number.
const LLAMA: Names = &[
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
    ("model.layers.*.input_layernorm", "blk.*.attn_norm"),
    ("model.layers.*.self_attn.q_proj", "blk.*.attn_q"),
    ("model.layers.*.self_attn.k_proj", "blk.*.attn_k"),
    ("model.layers.*.self_attn.v_proj", "blk.*.attn_v"),
    ("model.layers.*.self_attn.o_proj", "blk.*.attn_output"),
    ("model.layers.*.post_attention_layernorm", "blk.*.ffn_norm"),
    ("model.layers.*.mlp.gate_proj", "blk.*.ffn_gate"),
    ("model.layers.*.mlp.up_proj", "blk.*.ffn_up"),
    ("model.layers.*.mlp.down_proj", "blk.*.ffn_down"),
];

/// Whether a tensor is a table of frequencies or a causal mask, which older checkpoints hold, or a head of training that nothing
/// reads: a classifier reads the one of its pooled vector.
pub fn is_ignored(name: &str, has_classifier: bool) -> bool {
    let tables = [
        "rotary_emb.inv_freq",
        ".attn.bias",
        ".attn.masked_bias",
        "embeddings.position_ids",
    ];
    let pooler = ["pooler.dense.weight", "pooler.dense.bias"];
    let pooler = pooler.iter().filter(|_| !has_classifier);
    let mut ignored = tables.iter().chain(pooler);
    ignored.any(|table| name.ends_with(table))
}

/// The GGUF tensors that are made of the checkpoint's tensor `name`; one or more. `parameters` are those of the
/// architecture.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming a tensor that the architecture does not have.
pub fn find(
    architecture: &Architecture,
    parameters: &[Parameter],
    name: &str,
) -> Result<Vec<GgufTensor>> {
    let (pattern, numbers) = pattern(name);
    let is_literal = !name.contains('*');
    let mut parameters = parameters.iter();
    if let Some(parameter) = parameters.find(|it| is_literal && it.from == pattern) {
        let tensors = parameter.to.iter().map(|(to, form)| GgufTensor {
            name: in_layer(to, &numbers),
            expert: numbers.get(1).copied(),
            form: *form,
        });
        return Ok(tensors.collect());
    }
    let found = look_up(architecture, name).ok_or_else(|| {
        let name: String = name.chars().take(80).collect();
        Error::UnsupportedModel(format!("{} with a tensor {name:?}", architecture.name))
    })?;
    Ok(vec![found])
}

fn look_up(architecture: &Architecture, name: &str) -> Option<GgufTensor> {
    let (module, suffix) = name.rsplit_once('.')?;
    if !["weight", "bias"].contains(&suffix) || module.contains('*') {
        return None;
    }
    let prefix = architecture.optional_prefix;
    let module = module.strip_prefix(prefix).unwrap_or(module);
    let (pattern, numbers) = pattern(module);
    let mut tables = architecture.tensors.iter().chain([&LLAMA]);
    // Checkpoints of embedding models hold the body alone, without its prefix.
    let is_named = |known: &str| {
        let body = known.strip_prefix("model.");
        known == pattern || body == Some(&*pattern)
    };
    let rows = tables.find_map(|table| table.iter().find(|(known, _)| is_named(known)));
    let (_, found) = rows?;
    let module = in_layer(found, &numbers);
    let is_norm = module.ends_with("norm");
    let is_matrix = !numbers.is_empty() && !is_norm && suffix == "weight";
    Some(GgufTensor {
        form: match is_norm {
            true => Form::Plus(architecture.norm_offset),
            false if architecture.transposes_layers && is_matrix => Form::Transposed,
            false => Form::SAME,
        },
        name: format!("{module}.{suffix}"),
        expert: numbers.get(1).copied(),
    })
}

/// The name with a star for each number, and the numbers: those of the layer and of the expert.
fn pattern(name: &str) -> (String, Vec<usize>) {
    let mut numbers = Vec::new();
    let parts = name.split('.').map(|part| match number(part) {
        Some(number) => {
            numbers.push(number);
            "*"
        }
        None => part,
    });
    (parts.collect::<Vec<_>>().join("."), numbers)
}

/// A GGUF name with the number of the layer.
fn in_layer(name: &str, numbers: &[usize]) -> String {
    match numbers.first() {
        Some(layer) => name.replacen('*', &layer.to_string(), 1),
        None => name.to_owned(),
    }
}

/// A number in a name, without leading zeros.
fn number(text: &str) -> Option<usize> {
    let number: usize = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::architectures;

    fn find(architecture: &str, name: &str) -> Result<GgufTensor> {
        let found = super::find(architectures::find(architecture)?, &[], name)?;
        Ok(found.into_iter().next().expect("a tensor"))
    }

    #[test]
    fn tensors_get_their_gguf_names() {
        let layer = |part: &str| format!("model.layers.11.{part}");
        for (architecture, name, expected) in [
            ("llama", layer("self_attn.q_proj.weight"), "attn_q.weight"),
            (
                "llama",
                layer("post_attention_layernorm.weight"),
                "ffn_norm.weight",
            ),
            (
                "llama",
                layer("block_sparse_moe.gate.weight"),
                "ffn_gate_inp.weight",
            ),
            (
                "gemma2",
                layer("post_attention_layernorm.weight"),
                "post_attention_norm.weight",
            ),
            (
                "gemma3",
                layer("self_attn.q_norm.weight"),
                "attn_q_norm.weight",
            ),
            ("qwen2", layer("self_attn.q_proj.bias"), "attn_q.bias"),
            ("phi3", layer("mlp.gate_up_proj.weight"), "ffn_up.weight"),
            ("starcoder2", layer("mlp.c_proj.weight"), "ffn_down.weight"),
            (
                "gpt2",
                "transformer.h.11.ln_1.bias".into(),
                "attn_norm.bias",
            ),
            ("gpt2", "h.11.attn.c_attn.bias".into(), "attn_qkv.bias"),
        ] {
            let tensor = find(architecture, &name).unwrap();
            assert_eq!(tensor.name, format!("blk.11.{expected}"), "{architecture}");
            assert_eq!(tensor.expert, None);
            assert_ne!(tensor.form, Form::Transposed);
        }
        for (architecture, name, expected) in [
            ("llama", "model.embed_tokens.weight", "token_embd.weight"),
            ("llama", "lm_head.weight", "output.weight"),
            ("gpt2", "wpe.weight", "position_embd.weight"),
        ] {
            let tensor = find(architecture, name).unwrap();
            assert_eq!(tensor.name, expected);
            assert_eq!(tensor.form, Form::SAME);
        }
    }

    #[test]
    fn experts_offsets_and_transposed_matrices_are_told() {
        let find = |architecture: &str, name: &str| find(architecture, name).unwrap();
        for (architecture, name, expected) in [
            ("qwen3moe", "mlp.experts.17.down_proj", "ffn_down_exps"),
            ("llama", "block_sparse_moe.experts.17.w3", "ffn_up_exps"),
        ] {
            let tensor = find(architecture, &format!("model.layers.3.{name}.weight"));
            assert_eq!(tensor.name, format!("blk.3.{expected}.weight"));
            assert_eq!(tensor.expert, Some(17));
        }
        let norm = "model.layers.0.input_layernorm.weight";
        let up = "model.layers.0.mlp.up_proj.weight";
        for (architecture, name, form) in [
            ("gemma2", norm, Form::Plus(1.0)),
            ("gemma3", "model.norm.weight", Form::Plus(1.0)),
            ("llama", norm, Form::SAME),
            ("gemma", up, Form::SAME),
            ("gpt2", "h.3.mlp.c_fc.weight", Form::Transposed),
            ("gpt2", "h.3.ln_2.weight", Form::SAME),
        ] {
            assert_eq!(find(architecture, name).form, form);
        }
    }

    #[test]
    fn unknown_tensors_are_refused_by_name() {
        for name in [
            "model.layers.0.self_attn.q_proj.qweight",
            "model.layers.00.mlp.gate_proj.weight",
            "model.layers.0.mlp.experts.gate_up_proj",
            "model.layers.0.mlp.experts.x.up_proj.weight",
            "model.layers.*.mlp.up_proj.weight",
            "vision.weight",
        ] {
            let error = find("llama", name).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
