//! Streams a GGUF file's tensors into the modules of a Llama, a few MiB at a time, repacked into
//! the kernels' layout on the way. Knows the checkpoint's names.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    Compute, ModelConfig, Transformer,
    attention::{Attention, Qkv, Rotation},
    feed_forward::FeedForward,
    kv_reservation::KvReservation,
    linear::{Linear, Norm},
    llama::{Block, Llama},
};
use crate::{
    Error, Result,
    ops::{
        Variant,
        attention::AttentionShape,
        kv_memory::KvFormat,
        matrix::{BLOCK_COLS, Format, Matrix, MatrixShape},
    },
    weights::{ByteSource, BytesSource, Gguf, TensorInfo, TensorType, dequantize, split_blocks},
};

/// Bytes of a tensor read at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// What a load may choose. As an object its members have camelCase names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoadOptions {
    /// Longest sequence to reserve KV memory for, in tokens; the model's own context, at most
    /// 4096, if `None`.
    #[serde(deserialize_with = "at_least_one")]
    pub context_tokens: Option<usize>,
    /// How keys and values are kept.
    pub kv_format: KvFormat,
    /// Tokens of KV memory that all sequences share; 4096 if `None`, and never less than one
    /// sequence may need.
    #[serde(deserialize_with = "at_least_one")]
    pub kv_pool_tokens: Option<usize>,
}

fn at_least_one<'de, D: Deserializer<'de>>(value: D) -> Result<Option<usize>, D::Error> {
    match Option::deserialize(value)? {
        Some(0) => Err(D::Error::custom("a number of tokens is at least 1")),
        tokens => Ok(tokens),
    }
}

/// Loads the model that `gguf` describes from `source` onto `compute`. `progress` is told the
/// number of tensor bytes read so far and in all.
///
/// # Errors
/// [`Error::UnsupportedModel`], [`Error::InvalidModelFile`] and, if a layer's KV memory exceeds what
/// a kernel can see, [`Error::OutOfMemory`] before any tensor is read; [`Error::Read`] from
/// `source`; [`Error::OutOfMemory`] if the device cannot hold the model.
pub async fn load<S: ByteSource>(
    compute: Compute,
    gguf: &Gguf,
    source: &S,
    options: LoadOptions,
    progress: impl FnMut(u64, u64),
) -> Result<Transformer> {
    let config = checked_config(gguf, compute.max_binding_bytes())?;
    let reservation = KvReservation::new(options, &config, compute.max_binding_bytes())?;
    let mut llama = weights(compute.device(), gguf, source, &config, progress).await?;
    llama.set_variant(compute.variant());
    compute.sync().await?;
    Ok(Transformer::new(compute, llama, config, reservation))
}

/// The hyperparameters of a file whose tensors are all there, in the right shapes and each small
/// enough for kernels that see `max_binding_bytes`.
pub(super) fn checked_config(gguf: &Gguf, max_binding_bytes: u64) -> Result<ModelConfig> {
    let config = ModelConfig::from_gguf(gguf)?;
    check_tensors(gguf, &config, max_binding_bytes)?;
    Ok(config)
}

/// Streams the weights to a device, for kernels of the portable form.
pub(super) async fn weights<S: ByteSource>(
    device: &Device,
    gguf: &Gguf,
    source: &S,
    config: &ModelConfig,
    mut progress: impl FnMut(u64, u64),
) -> Result<Llama> {
    let total_bytes = gguf.tensors.iter().map(|tensor| tensor.size_bytes).sum();
    let mut loader = Loader {
        gguf,
        source: Some(source),
        device,
        eps: config.norm_eps,
        progress: &mut |bytes| progress(bytes, total_bytes),
        read_bytes: 0,
    };
    loader.llama(config).await
}

/// The form of a model without its weights: enough to tell which kernels it launches.
pub(super) async fn outline(device: &Device, gguf: &Gguf, config: &ModelConfig) -> Result<Llama> {
    let mut loader = Loader {
        gguf,
        source: None::<&BytesSource<Vec<u8>>>,
        device,
        eps: config.norm_eps,
        progress: &mut |_| (),
        read_bytes: 0,
    };
    loader.llama(config).await
}

/// The formats of a file's matrices, the most frequent first.
pub fn formats(gguf: &Gguf) -> Vec<Format> {
    let matrices = gguf.tensors.iter().filter(|tensor| tensor.shape.len() > 1);
    let of_matrices: Vec<Format> = matrices.map(|tensor| format_of(tensor.ty)).collect();
    let count = |format: &Format| of_matrices.iter().filter(|of| *of == format).count();
    let mut formats = Format::ALL.to_vec();
    formats.retain(|format| count(format) > 0);
    formats.sort_by_key(|format| std::cmp::Reverse(count(format)));
    formats
}

/// Names and shapes of all tensors, before a byte of them is fetched.
fn check_tensors(gguf: &Gguf, config: &ModelConfig, limit: u64) -> Result<()> {
    let (dim, ffn, q, kv) = (config.dim, config.ffn_dim, config.q_dim(), config.kv_dim());
    let mut wanted = vec![
        ("token_embd.weight".to_string(), vec![dim, config.vocab]),
        ("output_norm.weight".to_string(), vec![dim]),
    ];
    if gguf.tensor("output.weight").is_some() {
        wanted.push(("output.weight".to_string(), vec![dim, config.vocab]));
    }
    for layer in 0..config.layers.len() {
        let block = [
            ("attn_norm", vec![dim]),
            ("attn_q", vec![dim, q]),
            ("attn_k", vec![dim, kv]),
            ("attn_v", vec![dim, kv]),
            ("attn_output", vec![q, dim]),
            ("ffn_norm", vec![dim]),
            ("ffn_gate", vec![dim, ffn]),
            ("ffn_up", vec![dim, ffn]),
            ("ffn_down", vec![ffn, dim]),
        ];
        wanted.extend(block.map(|(name, shape)| (format!("blk.{layer}.{name}.weight"), shape)));
    }
    for (name, shape) in wanted {
        let tensor = gguf
            .tensor(&name)
            .ok_or_else(|| Error::InvalidModelFile(format!("tensor {name} is missing")))?;
        let shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
        if tensor.shape != shape {
            return Err(Error::InvalidModelFile(format!(
                "tensor {name} has shape {:?}, not {shape:?}",
                tensor.shape
            )));
        }
        if tensor.size_bytes > limit {
            return Err(Error::UnsupportedModel(format!(
                "tensor {name} has {} bytes, and this device's kernels see {limit} at most",
                tensor.size_bytes
            )));
        }
    }
    Ok(())
}

struct Loader<'a, S> {
    gguf: &'a Gguf,
    /// None: the form alone is of interest.
    source: Option<&'a S>,
    device: &'a Device,
    eps: f32,
    progress: &'a mut dyn FnMut(u64),
    read_bytes: u64,
}

impl<S: ByteSource> Loader<'_, S> {
    async fn llama(&mut self, config: &ModelConfig) -> Result<Llama> {
        let token_embd = self.matrix(&["token_embd.weight"]).await?;
        let mut output = match self.gguf.tensor("output.weight") {
            Some(_) => self.matrix(&["output.weight"]).await?,
            None => token_embd.clone(),
        };
        // Rows that stand for no token get no logits.
        output.shape.rows = config.token_ids;
        let mut blocks = Vec::with_capacity(config.layers.len());
        for layer in 0..config.layers.len() {
            blocks.push(self.block(&format!("blk.{layer}"), config).await?);
        }
        let rope = config
            .rope()
            .ok_or_else(|| Error::Internal("no rope".into()))?;
        let factors = match self.gguf.tensor("rope_freqs.weight") {
            Some(tensor) if tensor.element_count() as usize == config.head_dim / 2 => {
                Some(self.floats(&tensor.clone()).await?)
            }
            Some(tensor) => {
                return Err(Error::InvalidModelFile(format!(
                    "tensor rope_freqs.weight has shape {:?}, not [{}]",
                    tensor.shape,
                    config.head_dim / 2
                )));
            }
            None => None,
        };
        Ok(Llama {
            token_embd,
            blocks,
            output_norm: self.norm("output_norm").await?,
            output: self.linear_of(output, None),
            rope_freqs: self.vector(rope.frequencies(factors.as_deref()).radians),
        })
    }

    async fn block(&mut self, name: &str, config: &ModelConfig) -> Result<Block> {
        let attention = Attention {
            attn_norm: self.norm(&format!("{name}.attn_norm")).await?,
            attn_qkv: self.qkv(name).await?,
            attn_output: self.linear(&format!("{name}.attn_output")).await?,
            head_norm: None,
            shape: AttentionShape {
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
                window: None,
                soft_cap: None,
            },
            rotation: Rotation {
                neox: config.rope().is_some_and(|rope| rope.neox),
                rope_dims: config.head_dim,
                q_scale: (config.head_dim as f32).sqrt().recip(),
            },
        };
        let feed_forward = FeedForward {
            ffn_norm: self.norm(&format!("{name}.ffn_norm")).await?,
            ffn_gate: self.matrix(&[&format!("{name}.ffn_gate.weight")]).await?,
            ffn_up: self.matrix(&[&format!("{name}.ffn_up.weight")]).await?,
            ffn_down: self.linear(&format!("{name}.ffn_down")).await?,
            variant: Variant::PORTABLE,
        };
        Ok(Block {
            attention,
            feed_forward,
        })
    }

    async fn qkv(&mut self, block: &str) -> Result<Qkv> {
        let names = ["attn_q", "attn_k", "attn_v"].map(|part| format!("{block}.{part}"));
        let weights = names.each_ref().map(|name| format!("{name}.weight"));
        let tensors = weights.each_ref().map(|name| self.gguf.tensor(name));
        let first = tensors[0].map(|tensor| tensor.ty);
        let joinable = tensors
            .iter()
            .flatten()
            .all(|tensor| Some(tensor.ty) == first);
        let mut biases = Vec::new();
        for name in &names {
            biases.push(self.bias(name).await?);
        }
        let same_biases = biases
            .iter()
            .all(|bias| bias.is_some() == biases[0].is_some());
        if joinable && same_biases {
            let weight = self.matrix(&weights.each_ref().map(String::as_str)).await?;
            let bias: Option<Vec<Vec<f32>>> = biases.into_iter().collect();
            let bias = bias.map(|parts| self.vector(parts.concat()));
            return Ok(Qkv::Fused(self.linear_of(weight, bias)));
        }
        let mut linears = Vec::new();
        for (weight, bias) in weights.iter().zip(biases) {
            let weight = self.matrix(&[weight]).await?;
            let bias = bias.map(|bias| self.vector(bias));
            linears.push(self.linear_of(weight, bias));
        }
        let linears = linears
            .try_into()
            .unwrap_or_else(|_| unreachable!("three names"));
        Ok(Qkv::Split(linears))
    }

    async fn linear(&mut self, name: &str) -> Result<Linear> {
        let weight = self.matrix(&[&format!("{name}.weight")]).await?;
        let bias = self.bias(name).await?.map(|bias| self.vector(bias));
        Ok(self.linear_of(weight, bias))
    }

    fn linear_of(&self, weight: Matrix, bias: Option<Tensor<1>>) -> Linear {
        Linear {
            weight,
            bias,
            variant: Variant::PORTABLE,
        }
    }

    async fn norm(&mut self, name: &str) -> Result<Norm> {
        let tensor = self.tensor(&format!("{name}.weight"))?;
        let weight = self.floats(&tensor).await?;
        Ok(Norm {
            weight: self.vector(weight),
            eps: self.eps,
        })
    }

    async fn bias(&mut self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.gguf.tensor(&format!("{name}.bias")) {
            Some(tensor) => Ok(Some(self.floats(&tensor.clone()).await?)),
            None => Ok(None),
        }
    }

    fn vector(&self, values: Vec<f32>) -> Tensor<1> {
        let len = values.len();
        Tensor::from_data(TensorData::new(values, [len]), self.device)
    }

    fn tensor(&self, name: &str) -> Result<TensorInfo> {
        let tensor = self.gguf.tensor(name).cloned();
        tensor.ok_or_else(|| Error::InvalidModelFile(format!("tensor {name} is missing")))
    }

    /// All elements of a small tensor as f32.
    async fn floats(&mut self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let mut bytes = vec![0; tensor.size_bytes as usize];
        self.read(tensor.offset_bytes, &mut bytes).await?;
        let mut values = vec![0.0; tensor.element_count() as usize];
        dequantize(tensor.ty, &bytes, &mut values);
        Ok(values)
    }

    /// The rows of one or more tensors of one type and row length, one below the other.
    async fn matrix(&mut self, names: &[&str]) -> Result<Matrix> {
        let mut tensors = Vec::new();
        for name in names {
            tensors.push(self.tensor(name)?);
        }
        let mut shape = matrix_shape(&tensors[0]);
        shape.rows = tensors
            .iter()
            .map(|tensor| tensor.row_count() as usize)
            .sum();
        if self.source.is_none() {
            return Ok(Matrix::outline(shape, self.device));
        }
        let mut matrix = Matrix::reserve(shape, self.device);
        let mut layout = Layout::new(shape);
        for tensor in &tensors {
            let row_bytes = tensor.row_bytes() as usize;
            let chunk_rows = (CHUNK_BYTES / row_bytes).max(1);
            let mut row = 0;
            let rows = tensor.row_count() as usize;
            let mut bytes = Vec::new();
            while row < rows {
                let count = chunk_rows.min(rows - row);
                bytes.resize(count * row_bytes, 0);
                let offset = tensor.offset_bytes + (row * row_bytes) as u64;
                self.read(offset, &mut bytes).await?;
                row += count;
                matrix = layout.add(tensor.ty, &bytes).write(matrix);
            }
        }
        Ok(layout.rest().write(matrix))
    }

    async fn read(&mut self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        let Some(source) = self.source else {
            return Ok(());
        };
        source.read_at(offset_bytes, buf).await?;
        self.read_bytes += buf.len() as u64;
        (self.progress)(self.read_bytes);
        Ok(())
    }
}

fn matrix_shape(tensor: &TensorInfo) -> MatrixShape {
    MatrixShape {
        format: format_of(tensor.ty),
        rows: tensor.row_count() as usize,
        cols: tensor.shape[0] as usize,
    }
}

fn format_of(ty: TensorType) -> Format {
    match ty {
        TensorType::F32 => Format::F32,
        TensorType::F16 => Format::F16,
        TensorType::BF16 => Format::Bf16,
        TensorType::Q8_0 => Format::Q8_0,
        TensorType::Q4_0 => Format::Q4_0,
        TensorType::Q4_1 => Format::Q4_1,
        TensorType::Q5_0 => Format::Q5_0,
        TensorType::Q5_1 => Format::Q5_1,
        TensorType::Q2_K => Format::Q2K,
        TensorType::Q3_K => Format::Q3K,
        TensorType::Q4_K => Format::Q4K,
        TensorType::Q5_K => Format::Q5K,
        TensorType::Q6_K => Format::Q6K,
        TensorType::IQ4_NL => Format::Iq4Nl,
        TensorType::IQ4_XS => Format::Iq4Xs,
        TensorType::MXFP4 => Format::Mxfp4,
    }
}

/// Lays rows of a file out for the kernels, a part at a time.
struct Layout {
    shape: MatrixShape,
    quants_at: usize,
    scales_at: usize,
    /// Scales that do not fill a word yet wait for the next rows.
    scales: Vec<u8>,
}

/// Words of a matrix and where they belong.
struct Part {
    quants_at: usize,
    quants: Vec<u32>,
    scales_at: usize,
    scales: Vec<u32>,
}

impl Part {
    fn write(self, matrix: Matrix) -> Matrix {
        matrix.write(self.quants_at, self.quants, self.scales_at, self.scales)
    }
}

impl Layout {
    fn new(shape: MatrixShape) -> Self {
        Self {
            shape,
            quants_at: 0,
            scales_at: 0,
            scales: Vec::new(),
        }
    }

    /// The next rows; unquantized ones are padded with zeros to whole blocks.
    fn add(&mut self, ty: TensorType, bytes: &[u8]) -> Part {
        let shape = self.shape;
        let mut quants = Vec::new();
        if shape.cols.is_multiple_of(BLOCK_COLS) {
            split_blocks(ty, bytes, &mut quants, &mut self.scales);
        } else {
            let padded = shape.row_blocks() * shape.format.block_words() * 4;
            for row in bytes.chunks_exact(ty.block_bytes() * shape.cols / ty.block_len()) {
                quants.extend_from_slice(row);
                quants.resize(quants.len().next_multiple_of(padded), 0);
            }
        }
        self.part(&quants)
    }

    /// What is left after the last rows.
    fn rest(mut self) -> Part {
        let whole = self.scales.len().next_multiple_of(4);
        self.scales.resize(whole, 0);
        self.part(&[])
    }

    fn part(&mut self, quants: &[u8]) -> Part {
        let whole = self.scales.len() / 4 * 4;
        let part = Part {
            quants_at: self.quants_at,
            quants: words(quants),
            scales_at: self.scales_at,
            scales: words(&self.scales[..whole]),
        };
        self.scales.drain(..whole);
        self.quants_at += part.quants.len();
        self.scales_at += part.scales.len();
        part
    }
}

/// Whole words of little-endian bytes.
fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.as_chunks().0.iter();
    words.map(|&word| u32::from_le_bytes(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::blocks::vectors;

    /// What the kernels see of a file's blocks is what the file means by them, however few blocks come
    /// at a time.
    #[test]
    fn every_type_decodes_the_same_from_the_kernels_layout() {
        for vectors in vectors::decoded() {
            let ty = vectors.ty;
            let format = format_of(ty);
            assert_eq!(format.name(), ty.name().to_lowercase());
            let shape = MatrixShape {
                format,
                rows: vectors.values.len() / ty.block_len(),
                cols: ty.block_len(),
            };
            for rows in 1..=shape.rows {
                let mut layout = Layout::new(shape);
                let parts = vectors.bytes.chunks(rows * ty.block_bytes());
                let mut parts: Vec<Part> = parts.map(|bytes| layout.add(ty, bytes)).collect();
                parts.push(layout.rest());
                let (mut quants, mut scales) = (Vec::new(), Vec::new());
                for part in parts {
                    assert_eq!(
                        (part.quants_at, part.scales_at),
                        (quants.len(), scales.len())
                    );
                    quants.extend(part.quants);
                    scales.extend(part.scales);
                }
                assert_eq!(quants.len(), shape.quant_words(), "{ty}");
                assert_eq!(scales.len(), shape.scale_words(), "{ty}");
                let blocks = 0..shape.rows * shape.row_blocks();
                let decoded: Vec<f32> = blocks
                    .flat_map(|block| format.decode(&quants, &scales, block))
                    .collect();
                assert_eq!(decoded, vectors.values, "{ty}, {rows} rows at a time");
            }
        }
    }

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let read = |json: &str| serde_json::from_str::<LoadOptions>(json);
        assert_eq!(read("{}").unwrap(), LoadOptions::default());
        let options = r#"{"contextTokens":7,"kvFormat":"q8_0","kvPoolTokens":9}"#;
        let expected = LoadOptions {
            context_tokens: Some(7),
            kv_format: KvFormat::Q8_0,
            kv_pool_tokens: Some(9),
        };
        assert_eq!(read(options).unwrap(), expected);
        for (json, part) in [
            (r#"{"kvFormat":"q4_0"}"#, "q4_0"),
            (r#"{"contextTokens":0}"#, "at least 1"),
            (r#"{"kvPoolTokens":-1}"#, "-1"),
            (r#"{"context":1}"#, "context"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
    }
}
