//! `quantization_config`: how the folder's matrices are packed by GPTQ or AWQ, and the tensors of each
//! matrix. Refuses unsupported packings by name.

use std::collections::BTreeMap;

use crate::{
    Error, Result,
    model::config::{ConfigJson, json::missing},
    weights::{
        packed::{Packed, PackedTensors, Packing, Scheme},
        safetensors::StoredTensor,
    },
};

/// Suffixes of the tensors of a packed matrix, after the name of their module.
const PARTS: [&str; 4] = ["qweight", "qzeros", "scales", "g_idx"];

/// Matrices of gated feed-forward layers, which have biases only if `mlp_bias` is set.
const GATED: [&str; 7] = [
    "gate_proj",
    "up_proj",
    "down_proj",
    "gate_up_proj",
    "w1",
    "w2",
    "w3",
];

/// The packing of the folder's matrices; `None` if they are floats.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming the method or the variant that is not supported.
pub fn scheme(config: &ConfigJson) -> Result<Option<Scheme>> {
    let Some(config) = config.object("quantization_config")? else {
        return Ok(None);
    };
    match config.str("quant_method")?.unwrap_or("some method") {
        "gptq" => gptq(&config).map(Some),
        "awq" => awq(&config).map(Some),
        // The tensors say so themselves; `scales` reads them.
        "fp8" | "mxfp4" => Ok(None),
        "bitnet" => {
            let key = "quantization_mode";
            // Floats that are rounded in each step.
            let is_online = config.str(key)? == Some("online");
            match is_online {
                true => Err(config.unsupported_by("bitnet", key)),
                false => Ok(None),
            }
        }
        "compressed-tensors"
            if matches!(
                config.str("format")?,
                Some("float-quantized" | "nvfp4-pack-quantized")
            ) =>
        {
            Ok(None)
        }
        "modelopt" if matches!(config.str("quant_algo")?, Some("NVFP4" | "FP8")) => Ok(None),
        method => Err(Error::UnsupportedModel(format!(
            "a folder whose weights are quantized by {method:?}; gptq, awq, fp8, mxfp4, nvfp4 and bitnet can be read: take \
             the original or a GGUF file"
        ))),
    }
}

/// Columns of a group; `None` for the value -1, which makes all columns one group.
fn group_cols(config: &ConfigJson, method: &str, key: &str) -> Result<Option<usize>> {
    match config.number(key)? {
        Some(-1.0) => Ok(None),
        Some(_) => match config.size(key)? {
            Some(cols @ 1..) => Ok(Some(cols as usize)),
            _ => Err(config.unsupported_by(method, key)),
        },
        None => Err(missing(key)),
    }
}

/// The keys of AutoGPTQ and GPTQModel.
fn gptq(config: &ConfigJson) -> Result<Scheme> {
    let refused = |key| Err(config.unsupported_by("gptq", key));
    let bits = config.needed("bits")?;
    if ![4, 8].contains(&bits) {
        return refused("bits");
    }
    let zero_offset = match config.str("checkpoint_format")?.unwrap_or("gptq") {
        "gptq" => 1,
        "gptq_v2" => 0,
        _ => return refused("checkpoint_format"),
    };
    if config.bool("is_marlin_format")? == Some(true) {
        return refused("is_marlin_format");
    }
    if config.str("pack_dtype")?.is_some_and(|it| it != "int32") {
        return refused("pack_dtype");
    }
    // Rules for some modules. Those that begin with "-:" leave their modules unpacked.
    let rules = config.get("dynamic").and_then(|it| it.as_object());
    if rules.is_some_and(|it| it.keys().any(|rule| !rule.starts_with("-:"))) {
        return refused("dynamic");
    }
    let group_cols = group_cols(config, "gptq", "group_size")?;
    let in_order_of_activations = config.bool("desc_act")?.unwrap_or(false);
    Ok(Scheme {
        packing: Packing::Gptq {
            bits: bits as usize,
            zero_offset,
        },
        group_cols,
        is_symmetric: config.bool("sym")?.unwrap_or(false),
        has_runs: !in_order_of_activations || group_cols.is_none(),
    })
}

/// The keys of AutoAWQ, and of the file that it writes itself.
fn awq(config: &ConfigJson) -> Result<Scheme> {
    let either = |key, other| match config.get(key) {
        Some(_) => key,
        None => other,
    };
    let refused = |key| Err(config.unsupported_by("awq", key));
    let bits = either("bits", "w_bit");
    if config.needed(bits)? != 4 {
        return refused(bits);
    }
    for key in ["version", "checkpoint_format"] {
        let form = config.str(key)?.unwrap_or("gemm");
        if !form.eq_ignore_ascii_case("gemm") {
            return refused(key);
        }
    }
    if config.str("backend")?.is_some_and(|it| it != "autoawq") {
        return refused("backend");
    }
    Ok(Scheme {
        packing: Packing::Awq,
        group_cols: group_cols(config, "awq", either("group_size", "q_group_size"))?,
        is_symmetric: false,
        has_runs: true,
    })
}

/// Packed matrices: their names and where their data starts, in bytes.
pub type Matrices = Vec<(String, u64, Packed)>;

/// Whether the tensor is the bias of a matrix without one. Older versions of AutoGPTQ wrote zeros for all
/// matrices.
pub fn is_idle_bias(config: &ConfigJson, name: &str) -> Result<bool> {
    let module = name.strip_suffix(".bias").unwrap_or_default();
    let is_gated = GATED.iter().any(|gated| module.ends_with(gated));
    Ok(is_gated && config.bool("mlp_bias")? != Some(true))
}

/// Splits the tensors into packed matrices and others. A packed matrix gets the name that it would have
/// as floats.
///
/// # Errors
/// [`Error::InvalidModelFile`] for a matrix whose tensors are incomplete or have wrong shapes.
pub fn split(scheme: Scheme, stored: Vec<StoredTensor>) -> Result<(Matrices, Vec<StoredTensor>)> {
    let mut modules: BTreeMap<String, [Option<StoredTensor>; PARTS.len()]> = BTreeMap::new();
    let mut others = Vec::new();
    for tensor in stored {
        let found = tensor.name.rsplit_once('.').and_then(|(module, part)| {
            let index = PARTS.iter().position(|known| *known == part)?;
            Some((module.to_owned(), index))
        });
        match found {
            Some((module, part)) => modules.entry(module).or_default()[part] = Some(tensor),
            None => others.push(tensor),
        }
    }
    let mut matrices = Vec::new();
    for (module, [levels, zeros, scales, groups]) in modules {
        let needed = |tensor: Option<StoredTensor>, part: &str| {
            tensor.ok_or_else(|| {
                Error::InvalidModelFile(format!("tensor {module}.{part} is missing"))
            })
        };
        let levels = needed(levels, "qweight")?;
        let start_bytes = levels.offset_bytes;
        let groups = match scheme.has_runs {
            true => groups,
            false => Some(needed(groups, "g_idx")?),
        };
        let tensors = PackedTensors {
            levels,
            zeros: needed(zeros, "qzeros")?,
            scales: needed(scales, "scales")?.into_floats()?,
            groups,
        };
        let packed = Packed::new(scheme, tensors)?;
        matrices.push((format!("{module}.weight"), start_bytes, packed));
    }
    Ok((matrices, others))
}
