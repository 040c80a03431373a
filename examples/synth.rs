//! Writes GGUF models of real shapes with random weights, for benchmarks. Their output is noise, but they
//! take as much time and memory as the real models.
//!
//! `cargo run --release --example synth -- --shape llama-1b --type q4_0 --out llama-1b-q4_0.gguf`

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use inpage::{
    tensor_types::TensorType,
    weights::{GgufWriter, Metadata},
};

const USAGE: &str = "usage: synth --shape NAME --out FILE [--type q8_0] [--layers N] [--vocab N] \
                     [--context N] [--seed N]";

/// The dimensions of a published model.
#[derive(Debug, Clone)]
struct Shape {
    name: &'static str,
    architecture: &'static str,
    layers: u64,
    dim: u64,
    ffn_dim: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    vocab: u64,
    context_tokens: u64,
    rope_base: f32,
    /// The factor of Llama 3's rope scaling, whose original context is 8,192 tokens.
    rope_factor: Option<f32>,
    norm_epsilon: f32,
    /// Whether the output shares the embedding's table.
    tied: bool,
}

/// Shapes from the published configurations of the models.
const SHAPES: [Shape; 4] = [
    Shape {
        name: "smollm2-135m",
        architecture: "llama",
        layers: 30,
        dim: 576,
        ffn_dim: 1536,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        vocab: 49_152,
        context_tokens: 8192,
        rope_base: 100_000.0,
        rope_factor: None,
        norm_epsilon: 1e-5,
        tied: true,
    },
    Shape {
        name: "qwen3-0.6b",
        architecture: "qwen3",
        layers: 28,
        dim: 1024,
        ffn_dim: 3072,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        vocab: 151_936,
        context_tokens: 40_960,
        rope_base: 1_000_000.0,
        rope_factor: None,
        norm_epsilon: 1e-6,
        tied: true,
    },
    Shape {
        name: "llama-1b",
        architecture: "llama",
        layers: 16,
        dim: 2048,
        ffn_dim: 8192,
        heads: 32,
        kv_heads: 8,
        head_dim: 64,
        vocab: 128_256,
        context_tokens: 131_072,
        rope_base: 500_000.0,
        rope_factor: Some(32.0),
        norm_epsilon: 1e-5,
        tied: true,
    },
    Shape {
        name: "llama-8b",
        architecture: "llama",
        layers: 32,
        dim: 4096,
        ffn_dim: 14_336,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        vocab: 128_256,
        context_tokens: 131_072,
        rope_base: 500_000.0,
        rope_factor: Some(8.0),
        norm_epsilon: 1e-5,
        tied: false,
    },
];

/// The values that fill a tensor.
#[derive(Debug, Clone)]
enum Fill {
    /// Weights of a norm, near one.
    Norm,
    /// Uniform with variance 1 / `shape[0]`. The product of a row and a normalized vector then has a
    /// variance near one, so activations stay finite in every type.
    Matrix,
    /// These values.
    Values(Vec<f32>),
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut shape, mut ty, mut seed, mut path) = (None, TensorType::Q8_0, 1, None);
    let (mut layers, mut vocab, mut context_tokens) = (None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{option} needs a value\n{USAGE}"))?;
        match option.as_str() {
            "--shape" => shape = Some(find_shape(&value)?),
            "--type" => ty = find_type(&value)?,
            "--layers" => layers = Some(number(&option, &value)?),
            "--vocab" => vocab = Some(number(&option, &value)?),
            "--context" => context_tokens = Some(number(&option, &value)?),
            "--seed" => seed = number(&option, &value)?,
            "--out" => path = Some(value),
            _ => return Err(format!("unknown option {option}\n{USAGE}").into()),
        }
    }
    let (Some(mut shape), Some(path)) = (shape, path) else {
        return Err(USAGE.into());
    };
    shape.layers = layers.unwrap_or(shape.layers);
    if !(1..=1024).contains(&shape.layers) {
        return Err(format!("{} layers; expected 1 to 1024", shape.layers).into());
    }
    shape.vocab = vocab.unwrap_or(shape.vocab);
    shape.context_tokens = context_tokens.unwrap_or(shape.context_tokens);

    let file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let file = write_model(&shape, ty, seed, file)?;
    let size_bytes = file.get_ref().metadata()?.len();
    println!("{path}: {} {ty}, {size_bytes} bytes", shape.name);
    Ok(())
}

fn find_shape(name: &str) -> Result<Shape, String> {
    let found = SHAPES.iter().find(|shape| shape.name == name).cloned();
    found.ok_or_else(|| {
        let names: Vec<_> = SHAPES.iter().map(|shape| shape.name).collect();
        format!("unknown shape {name}; known: {}", names.join(", "))
    })
}

fn find_type(name: &str) -> Result<TensorType, String> {
    let found = TensorType::quantizable().find(|ty| ty.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<_> = TensorType::quantizable()
            .map(TensorType::lowercase_name)
            .collect();
        format!("unknown type {name}; known: {}", names.join(", "))
    })
}

fn number(option: &str, value: &str) -> Result<u64, String> {
    value
        .parse()
        .map_err(|_| format!("{option} takes a whole number, not {value:?}"))
}

/// Writes the model with only a few rows of one tensor in memory at a time.
fn write_model<W: Write>(
    shape: &Shape,
    ty: TensorType,
    seed: u64,
    out: W,
) -> Result<W, Box<dyn Error>> {
    let mut writer = GgufWriter::new(metadata(shape, ty)?)?;
    let mut fills = Vec::new();
    for (name, dims, fill) in tensors(shape) {
        let is_matrix = matches!(fill, Fill::Matrix);
        writer.tensor(name, &dims, if is_matrix { ty } else { TensorType::F32 })?;
        fills.push(fill);
    }
    let mut data = writer.start(out)?;
    let mut random = Random::new(seed);
    for fill in fills {
        let tensor = data.current().expect("one fill per tensor").clone();
        let scale = (3.0 / tensor.shape[0] as f32).sqrt();
        let mut row = vec![0.0; tensor.shape[0] as usize];
        for _ in 0..tensor.row_count() {
            match &fill {
                Fill::Norm => row.fill_with(|| 1.0 + 0.1 * random.signed_unit()),
                Fill::Matrix => row.fill_with(|| scale * random.signed_unit()),
                Fill::Values(values) => row.copy_from_slice(values),
            }
            data.write(&tensor.ty.quantize(&row))?;
        }
    }
    Ok(data.finish()?)
}

/// Names (as in llama.cpp), shapes and fills of all tensors.
fn tensors(shape: &Shape) -> Vec<(String, Vec<u64>, Fill)> {
    let matrix = |name: &str, rows_of: u64, rows: u64| {
        (format!("{name}.weight"), vec![rows_of, rows], Fill::Matrix)
    };
    let norm = |name: &str, len: u64| (format!("{name}.weight"), vec![len], Fill::Norm);
    let (dim, head_dim) = (shape.dim, shape.head_dim);
    let q_dim = shape.heads * head_dim;
    let kv_dim = shape.kv_heads * head_dim;

    let mut tensors = vec![
        matrix("token_embd", dim, shape.vocab),
        norm("output_norm", dim),
    ];
    if !shape.tied {
        tensors.push(matrix("output", dim, shape.vocab));
    }
    if let Some(factor) = shape.rope_factor {
        let factors = rope_factors(shape, factor);
        let dims = vec![factors.len() as u64];
        tensors.push(("rope_freqs.weight".into(), dims, Fill::Values(factors)));
    }
    for layer in 0..shape.layers {
        let named = |part: &str| format!("blk.{layer}.{part}");
        tensors.push(norm(&named("attn_norm"), dim));
        tensors.push(matrix(&named("attn_q"), dim, q_dim));
        tensors.push(matrix(&named("attn_k"), dim, kv_dim));
        tensors.push(matrix(&named("attn_v"), dim, kv_dim));
        if shape.architecture == "qwen3" {
            tensors.push(norm(&named("attn_q_norm"), head_dim));
            tensors.push(norm(&named("attn_k_norm"), head_dim));
        }
        tensors.push(matrix(&named("attn_output"), q_dim, dim));
        tensors.push(norm(&named("ffn_norm"), dim));
        tensors.push(matrix(&named("ffn_gate"), dim, shape.ffn_dim));
        tensors.push(matrix(&named("ffn_up"), dim, shape.ffn_dim));
        tensors.push(matrix(&named("ffn_down"), shape.ffn_dim, dim));
    }
    tensors
}

/// Llama 3's rope scaling: the divisor of each pair's frequency. Short wavelengths are unchanged, long
/// ones are divided by `factor`, and those between are interpolated.
fn rope_factors(shape: &Shape, factor: f32) -> Vec<f32> {
    const ORIGINAL_CONTEXT_TOKENS: f32 = 8192.0;
    const LOW: f32 = 1.0;
    const HIGH: f32 = 4.0;
    let pairs = shape.head_dim / 2;
    (0..pairs)
        .map(|pair| {
            let frequency = shape.rope_base.powf(-(pair as f32) / pairs as f32);
            let waves = ORIGINAL_CONTEXT_TOKENS * frequency / std::f32::consts::TAU;
            let kept = ((waves - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
            1.0 / ((1.0 - kept) / factor + kept)
        })
        .collect()
}

fn metadata(shape: &Shape, ty: TensorType) -> Result<Metadata, Box<dyn Error>> {
    let small = |value: u64| u32::try_from(value).map_err(|_| format!("{value} is too large"));
    let mut m = Metadata::new();
    m.insert("general.architecture", shape.architecture);
    m.insert("general.type", "model");
    m.insert(
        "general.name",
        format!("{} with random weights", shape.name),
    );
    if let Some(file_type) = file_type(ty) {
        m.insert("general.file_type", file_type);
    }
    m.insert("general.quantization_version", 2u32);
    let key = |part: &str| format!("{}.{part}", shape.architecture);
    m.insert(key("block_count"), small(shape.layers)?);
    m.insert(key("context_length"), small(shape.context_tokens)?);
    m.insert(key("embedding_length"), small(shape.dim)?);
    m.insert(key("feed_forward_length"), small(shape.ffn_dim)?);
    m.insert(key("attention.head_count"), small(shape.heads)?);
    m.insert(key("attention.head_count_kv"), small(shape.kv_heads)?);
    m.insert(key("attention.key_length"), small(shape.head_dim)?);
    m.insert(key("attention.value_length"), small(shape.head_dim)?);
    m.insert(key("attention.layer_norm_rms_epsilon"), shape.norm_epsilon);
    m.insert(key("rope.freq_base"), shape.rope_base);
    m.insert(key("rope.dimension_count"), small(shape.head_dim)?);
    m.insert(key("vocab_size"), small(shape.vocab)?);
    add_tokenizer(&mut m, shape.vocab)?;
    Ok(m)
}

/// llama.cpp's number for files whose matrices mostly have this type.
fn file_type(ty: TensorType) -> Option<u32> {
    Some(match ty {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Q4_0 => 2,
        TensorType::Q4_1 => 3,
        TensorType::Q8_0 => 7,
        TensorType::Q5_0 => 8,
        TensorType::Q5_1 => 9,
        TensorType::Q4_K => 14,
        TensorType::Q5_K => 16,
        TensorType::Q6_K => 18,
        TensorType::BF16 => 32,
        _ => return None,
    })
}

/// A byte-level BPE vocabulary: every byte, merged pairs of lower-case letters, fillers that no text
/// merges into, and an end-of-text token last.
fn add_tokenizer(m: &mut Metadata, vocab: u64) -> Result<(), String> {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    if !(257..=1 << 22).contains(&vocab) {
        return Err(format!("a vocabulary of {vocab}; expected 257 to 4194304"));
    }
    let vocab = vocab as usize;
    let mut tokens = byte_alphabet();
    let letters = || 'a'..='z';
    let pairs: Vec<_> = letters()
        .flat_map(|first| letters().map(move |second| (first, second)))
        .take(vocab - 257)
        .collect();
    let merges: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} {b}")).collect();
    tokens.extend(pairs.iter().map(|(a, b)| format!("{a}{b}")));
    // "Ġ" is the alphabet's space.
    tokens.extend((tokens.len()..vocab - 1).map(|id| format!("Ġw{id}")));
    tokens.push("<|endoftext|>".into());
    let mut types = vec![NORMAL; vocab];
    types[vocab - 1] = CONTROL;

    m.insert("tokenizer.ggml.model", "gpt2");
    m.insert("tokenizer.ggml.pre", "gpt-2");
    m.insert("tokenizer.ggml.tokens", tokens);
    m.insert("tokenizer.ggml.token_type", types);
    m.insert("tokenizer.ggml.merges", merges);
    m.insert("tokenizer.ggml.bos_token_id", vocab as u32 - 1);
    m.insert("tokenizer.ggml.eos_token_id", vocab as u32 - 1);
    m.insert("tokenizer.ggml.add_bos_token", false);
    Ok(())
}

/// The printable characters with which GPT-2 represents the 256 bytes, in GPT-2's order. Printable Latin-1
/// characters represent themselves. The other bytes follow as U+0100 and up.
fn byte_alphabet() -> Vec<String> {
    let visible = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let count_hidden = (0..=255).filter(|byte| !visible(byte)).count() as u32;
    let hidden = (0x100..0x100 + count_hidden).filter_map(char::from_u32);
    let visible = (0..=255).filter(visible).map(char::from);
    visible.chain(hidden).map(String::from).collect()
}

/// xorshift64*: small, fast, and the same on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        // The state must not be zero. The odd factor spreads small seeds.
        let state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Random(if state == 0 { 1 } else { state })
    }

    /// Uniform in -1 to 1.
    fn signed_unit(&mut self) -> f32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40;
        bits as f32 / (1u32 << 23) as f32 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inpage::weights::{BytesSource, Gguf};

    fn small(name: &str, ty: TensorType, seed: u64) -> Vec<u8> {
        let mut shape = find_shape(name).unwrap();
        (shape.layers, shape.vocab) = (1, 1000);
        shape.ffn_dim = 256;
        write_model(&shape, ty, seed, Vec::new()).unwrap()
    }

    fn read(file: &[u8]) -> Gguf {
        pollster::block_on(Gguf::read(&BytesSource(file))).unwrap()
    }

    #[test]
    fn every_shape_is_a_valid_file() {
        for shape in SHAPES {
            let gguf = read(&small(shape.name, TensorType::Q4_0, 7));
            let m = &gguf.metadata;
            assert_eq!(m.str("general.architecture"), Ok(Some(shape.architecture)));
            assert_eq!(
                m.strings("tokenizer.ggml.tokens").unwrap().unwrap().len(),
                1000
            );
            let embedding = gguf.tensor("token_embd.weight").unwrap();
            assert_eq!(embedding.shape, [shape.dim, 1000]);
            assert_eq!(gguf.tensor("output.weight").is_none(), shape.tied);
            let has_qk_norm = gguf.tensor("blk.0.attn_q_norm.weight").is_some();
            assert_eq!(has_qk_norm, shape.architecture == "qwen3");
            assert_eq!(
                gguf.tensor("output_norm.weight").unwrap().ty,
                TensorType::F32
            );
        }
    }

    #[test]
    fn tokens_are_unique_and_cover_all_bytes() {
        let gguf = read(&small("smollm2-135m", TensorType::Q8_0, 7));
        let tokens = gguf
            .metadata
            .strings("tokenizer.ggml.tokens")
            .unwrap()
            .unwrap();
        let unique: std::collections::HashSet<_> = tokens.iter().collect();
        assert_eq!(unique.len(), tokens.len());
        assert_eq!(
            tokens[..256]
                .iter()
                .filter(|t| t.chars().count() == 1)
                .count(),
            256
        );
        assert_eq!(
            tokens[220], "Ġ",
            "the id of the space in GPT-2's vocabulary"
        );
        for merge in gguf
            .metadata
            .strings("tokenizer.ggml.merges")
            .unwrap()
            .unwrap()
        {
            assert!(unique.contains(&merge.replace(' ', "")), "{merge}");
        }
    }

    #[test]
    fn weights_have_the_variance_of_their_row_length_and_follow_the_seed() {
        let file = small("qwen3-0.6b", TensorType::F32, 7);
        assert!(file == small("qwen3-0.6b", TensorType::F32, 7));
        assert!(file != small("qwen3-0.6b", TensorType::F32, 8));
        let gguf = read(&file);
        let tensor = gguf.tensor("blk.0.ffn_gate.weight").unwrap();
        let start = tensor.offset_bytes as usize;
        let mut values = vec![0.0; tensor.element_count() as usize];
        tensor.ty.dequantize(
            &file[start..start + tensor.size_bytes as usize],
            &mut values,
        );
        let mean_square = values.iter().map(|v| v * v).sum::<f32>() / values.len() as f32;
        assert!((mean_square * 1024.0 - 1.0).abs() < 0.05, "{mean_square}");
    }

    #[test]
    fn rope_scaling_keeps_short_wavelengths_and_stretches_long_ones() {
        let factors = rope_factors(&find_shape("llama-1b").unwrap(), 32.0);
        assert_eq!(factors.len(), 32);
        assert_eq!((factors[0], factors[31]), (1.0, 32.0));
        assert!(factors.is_sorted());
    }
}
