//! Writes the trained network and its vocabulary as a GGUF file, matrices in Q8_0 and norms in
//! F32. Also rounds a network to the values that such a file holds.
//! Follows llama.cpp's names for the "llama" architecture.

use std::path::Path;

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use inpage::{
    tensor_types::TensorType,
    weights::{GgufWriter, Metadata, MetadataArray, MetadataValue},
};

use super::bpe::{Bpe, SEPARATOR_ID};
use super::model::{Llama, Shape};

/// The context length that the file declares.
const CONTEXT_TOKENS: u32 = 512;

type Failure = Box<dyn std::error::Error>;

/// One tensor in file order: rows of `shape[0]` contiguous values.
struct Entry {
    name: String,
    shape: Vec<u64>,
    ty: TensorType,
    values: Vec<f32>,
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor
        .try_into_vec_as()
        .expect("parameters are f32 on the device they came from")
}

/// Readers multiply rows with the input, so `[in, out]` here becomes `out` rows of `in` in the file.
fn matrix(name: String, weight: &Param<Tensor<2>>) -> Entry {
    let [inputs, outputs] = weight.val().dims();
    Entry {
        name,
        shape: vec![inputs as u64, outputs as u64],
        ty: TensorType::Q8_0,
        values: values(weight.val().transpose()),
    }
}

fn vector(name: String, weight: &Param<Tensor<1>>) -> Entry {
    let values = values(weight.val());
    Entry {
        name,
        shape: vec![values.len() as u64],
        ty: TensorType::F32,
        values,
    }
}

fn entries(model: &Llama) -> Vec<Entry> {
    let [vocab, dim] = model.embedding.val().dims();
    let mut entries = vec![
        Entry {
            name: "token_embd.weight".into(),
            shape: vec![dim as u64, vocab as u64],
            ty: TensorType::Q8_0,
            values: values(model.embedding.val()),
        },
        vector("output_norm.weight".into(), &model.output_norm),
    ];
    for (index, block) in model.blocks.iter().enumerate() {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        entries.push(vector(name("attn_norm"), &block.attn_norm));
        // Training rotates neighbouring pairs, like readers of this architecture, so rows are not
        // permuted (see `model::Positions`).
        entries.push(matrix(name("attn_q"), &block.wq));
        entries.push(matrix(name("attn_k"), &block.wk));
        entries.push(matrix(name("attn_v"), &block.wv));
        entries.push(matrix(name("attn_output"), &block.wo));
        entries.push(vector(name("ffn_norm"), &block.ffn_norm));
        entries.push(matrix(name("ffn_gate"), &block.gate));
        entries.push(matrix(name("ffn_up"), &block.up));
        entries.push(matrix(name("ffn_down"), &block.down));
    }
    entries
}

#[expect(clippy::too_many_lines, reason = "one entry per key of the file")]
fn metadata(shape: &Shape, bpe: &Bpe, parameters: usize) -> Metadata {
    let mut metadata = Metadata::new();
    let mut put = |key: &str, value: MetadataValue| {
        metadata.insert(key, value);
    };
    let count = |value: usize| MetadataValue::U32(value as u32);
    let text = |value: &str| MetadataValue::String(value.into());
    put("general.architecture", text("llama"));
    put("general.type", text("model"));
    put("general.name", text("Tales"));
    put(
        "general.description",
        text("Little stories and questions, from the grammar in inpage's examples/train"),
    );
    put("general.license", text("mit"));
    put(
        "general.size_label",
        text(&format!("{:.1}M", parameters as f64 / 1e6)),
    );
    put("general.quantization_version", MetadataValue::U32(2));
    put("general.file_type", MetadataValue::U32(7));
    put("llama.context_length", MetadataValue::U32(CONTEXT_TOKENS));
    put("llama.embedding_length", count(shape.dim));
    put("llama.block_count", count(shape.layers));
    put("llama.feed_forward_length", count(shape.ffn));
    put("llama.attention.head_count", count(shape.heads));
    put("llama.attention.head_count_kv", count(shape.kv_heads));
    put("llama.attention.key_length", count(shape.head_dim));
    put("llama.attention.value_length", count(shape.head_dim));
    put(
        "llama.attention.layer_norm_rms_epsilon",
        MetadataValue::F32(shape.norm_eps),
    );
    put("llama.rope.dimension_count", count(shape.head_dim));
    put("llama.rope.freq_base", MetadataValue::F32(shape.rope_theta));
    put("llama.vocab_size", count(shape.vocab));
    put("tokenizer.ggml.model", text("gpt2"));
    put("tokenizer.ggml.pre", text("gpt-2"));
    put(
        "tokenizer.ggml.tokens",
        MetadataValue::Array(MetadataArray::String(bpe.tokens.clone())),
    );
    // 3 is a control token, 1 a normal one.
    let types = (0..bpe.tokens.len())
        .map(|id| if id == SEPARATOR_ID as usize { 3 } else { 1 })
        .collect();
    put(
        "tokenizer.ggml.token_type",
        MetadataValue::Array(MetadataArray::I32(types)),
    );
    put(
        "tokenizer.ggml.merges",
        MetadataValue::Array(MetadataArray::String(bpe.merges.clone())),
    );
    put(
        "tokenizer.ggml.bos_token_id",
        MetadataValue::U32(SEPARATOR_ID),
    );
    put(
        "tokenizer.ggml.eos_token_id",
        MetadataValue::U32(SEPARATOR_ID),
    );
    put(
        "tokenizer.ggml.eot_token_id",
        MetadataValue::U32(SEPARATOR_ID),
    );
    put("tokenizer.ggml.add_bos_token", MetadataValue::Bool(true));
    put("tokenizer.ggml.add_eos_token", MetadataValue::Bool(false));
    metadata
}

/// Writes the file and returns its size in bytes.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn write(path: &Path, model: &Llama, shape: &Shape, bpe: &Bpe) -> Result<usize, Failure> {
    let entries = entries(model);
    let parameters = entries.iter().map(|entry| entry.values.len()).sum();
    let mut writer = GgufWriter::new(metadata(shape, bpe, parameters))?;
    for entry in &entries {
        writer.tensor(entry.name.as_str(), &entry.shape, entry.ty)?;
    }
    let mut data = writer.start(Vec::new())?;
    for entry in &entries {
        data.write(&entry.ty.quantize(&entry.values))?;
    }
    let bytes = data.finish()?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, &bytes)?;
    Ok(bytes.len())
}

/// The network with every matrix as read back from the file.
pub fn through_q8_0(model: Llama, device: &Device) -> Llama {
    // Blocks of 32 run along the input, the file's contiguous direction.
    let round = |weight: Tensor<2>| {
        let dims = weight.dims();
        let mut row_major = values(weight);
        let bytes = TensorType::Q8_0.quantize(&row_major);
        TensorType::Q8_0.dequantize(&bytes, &mut row_major);
        Tensor::<2>::from_data(TensorData::new(row_major, dims), device)
    };
    let rounded =
        |weight: Param<Tensor<2>>| weight.map(|weight| round(weight.transpose()).transpose());
    Llama {
        embedding: model.embedding.map(round),
        output_norm: model.output_norm,
        blocks: model
            .blocks
            .into_iter()
            .map(|mut block| {
                block.wq = rounded(block.wq);
                block.wk = rounded(block.wk);
                block.wv = rounded(block.wv);
                block.wo = rounded(block.wo);
                block.gate = rounded(block.gate);
                block.up = rounded(block.up);
                block.down = rounded(block.down);
                block
            })
            .collect(),
    }
}
