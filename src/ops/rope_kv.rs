//! Rotary position embedding of queries and keys (Su et al. 2021, <https://arxiv.org/abs/2104.09864>)
//! and the write of keys and values to the KV memory, in one pass.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    backend::{Ops, output, twin_output},
    kernel::{Kernel, grid},
    kv_memory::{KvFormat, KvMemory},
    shader,
    step::{self, Step},
};

const WORKGROUP: usize = 64;

/// Sizes of the rotation; where q, k and v lie in the rows they come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RopeShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head; a multiple of 4.
    pub head_dim: usize,
    /// Pairs are halves of a head apart (GPT-NeoX), not neighbours.
    pub neox: bool,
    /// First column of q, k and v in their rows; multiples of 4.
    pub at: [usize; 3],
    /// Row length of the tensors that hold q, k and v; multiples of 4.
    pub stride: [usize; 3],
}

impl RopeShape {
    /// Elements of all query heads.
    pub fn q_dim(self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of all key heads.
    pub fn kv_dim(self) -> usize {
        self.kv_heads * self.head_dim
    }
}

/// Rotates q and k `[tokens, stride]` by position, writes k and v to `kv` in place, and returns the
/// rotated queries `[tokens, heads * head_dim]`, scaled by `1 / sqrt(head_dim)`. `freqs`
/// `[head_dim / 2]` are radians per position. Rows of padding write nothing.
pub fn rope_kv(
    qkv: [Tensor<2>; 3],
    freqs: Tensor<1>,
    kv: &mut KvMemory,
    step: &Step,
    shape: RopeShape,
) -> Tensor<2> {
    let format = kv.format();
    let [q, k, v] = qkv.map(Tensor::into_dispatch);
    let (q, memory) = Dispatch::rope_kv(
        q,
        k,
        v,
        freqs.into_dispatch(),
        kv.take().into_dispatch(),
        step.words().into_dispatch(),
        shape,
        format,
    );
    kv.put(Tensor::from_dispatch(memory));
    Tensor::from_dispatch(q)
}

/// The composed kernel.
pub fn kernel(shape: RopeShape, format: KvFormat) -> Kernel {
    let kernel = Kernel::new(format!("rope_kv_{}", format.name()))
        .binding("q")
        .binding("k")
        .binding("v")
        .binding("freqs")
        .binding("out")
        .binding("kv")
        .binding("step")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("KV_DIM", shape.kv_dim())
        .constant("HEAD_DIM", shape.head_dim)
        .constant_bool("NEOX", shape.neox)
        .constant("Q_AT", shape.at[0])
        .constant("K_AT", shape.at[1])
        .constant("V_AT", shape.at[2])
        .constant("Q_STRIDE", shape.stride[0])
        .constant("K_STRIDE", shape.stride[1])
        .constant("V_STRIDE", shape.stride[2])
        .constant("STORE_VECTORS", format.store_vectors())
        .constant("WORKGROUP", WORKGROUP);
    step::layout(kernel)
        .module(shader::STEP)
        .module(format.load_wgsl())
        .module(format.store_wgsl())
        .module(shader::ROPE)
        .module(shader::kernel::ROPE_KV)
}

#[allow(clippy::too_many_arguments)]
pub(super) fn launch(
    q: CubeTensor,
    k: CubeTensor,
    v: CubeTensor,
    freqs: CubeTensor,
    kv: CubeTensor,
    step: CubeTensor,
    shape: RopeShape,
    format: KvFormat,
) -> (CubeTensor, CubeTensor) {
    let [tokens, _] = q.shape().dims();
    let out = output(&q, [tokens, shape.q_dim()]);
    let lanes = shape.q_dim() / 4 + 2 * shape.kv_dim() / (4 * format.store_vectors());
    kernel(shape, format).launch(
        &[&q, &k, &v, &freqs, &out, &kv, &step],
        grid((tokens * lanes).div_ceil(WORKGROUP)),
    );
    (out, kv)
}

#[allow(clippy::too_many_arguments)]
pub(super) fn twin(
    q: FlexTensor,
    k: FlexTensor,
    v: FlexTensor,
    freqs: FlexTensor,
    mut kv: FlexTensor,
    step: FlexTensor,
    shape: RopeShape,
    format: KvFormat,
) -> (FlexTensor, FlexTensor) {
    let [tokens, _] = q.shape().dims();
    let (words, freqs) = (step.storage::<u32>(), freqs.storage::<f32>());
    let memory = kv.storage_mut::<u32>();
    let mut keys = vec![0.0; shape.kv_dim()];
    let mut out = vec![0.0; tokens * shape.q_dim()];
    let half = shape.head_dim / 2;
    let rotate = |from: &[f32], to: &mut [f32], position: usize, scale: f32| {
        for pair in 0..from.len() / 2 {
            let (head, i) = (pair / half, pair % half);
            let (a, b) = if shape.neox {
                (head * shape.head_dim + i, head * shape.head_dim + i + half)
            } else {
                (
                    head * shape.head_dim + 2 * i,
                    head * shape.head_dim + 2 * i + 1,
                )
            };
            let (sin, cos) = (position as f32 * freqs[i]).sin_cos();
            to[a] = (from[a] * cos - from[b] * sin) * scale;
            to[b] = (from[a] * sin + from[b] * cos) * scale;
        }
    };
    let part = |tensor: &FlexTensor, token: usize, which: usize, len: usize| {
        let at = token * shape.stride[which] + shape.at[which];
        tensor.storage::<f32>()[at..at + len].to_vec()
    };
    for token in 0..(words[step::TOKENS] as usize).min(tokens) {
        let position = step::row_position(words, token);
        let table = step::row_table(words, token);
        rotate(
            &part(&q, token, 0, shape.q_dim()),
            &mut out[token * shape.q_dim()..][..shape.q_dim()],
            position,
            (shape.head_dim as f32).sqrt().recip(),
        );
        let at = step::kv_row(words, table, position, 0, shape.kv_dim());
        rotate(
            &part(&k, token, 1, shape.kv_dim()),
            &mut keys,
            position,
            1.0,
        );
        format.store(memory, at, &keys);
        let at = step::kv_row(words, table, position, 1, shape.kv_dim());
        format.store(memory, at, &part(&v, token, 2, shape.kv_dim()));
    }
    (twin_output(out, [tokens, shape.q_dim()]), kv)
}
