//! Rotary position embedding of queries and keys (Su et al. 2021, <https://arxiv.org/abs/2104.09864>)
//! and the write of keys and values to the KV memory, in one pass; before them, where a model has it,
//! the norm of each query's and key's head (Henry et al. 2020, <https://arxiv.org/abs/2010.04245>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use burn_wgpu::CubeTensor;

use super::{
    backend::{Maybe, Ops, maybe, output, twin_output},
    kernel::{Kernel, grid},
    kv_memory::{KvFormat, KvMemory},
    shader,
    step::{self, Step},
};

const WORKGROUP: usize = 64;
/// Radians of 2^-32 turns.
const RADIANS: f32 = (std::f64::consts::TAU / 4_294_967_296.0) as f32;

/// Radians per position as 2^-32 turns. Multiplied by a position, whole turns fall off at the top: the
/// angle is as exact at the end of a long context as at its start, where a product of floats would be
/// off by 0.001 radians at 32,768 tokens.
pub fn turns(radians: &[f64], device: &Device) -> Tensor<1, Int> {
    let turns = radians.iter().map(|radians| {
        let turns = radians / std::f64::consts::TAU * 4_294_967_296.0;
        turns.round() as i64 as u32
    });
    let turns: Vec<u32> = turns.collect();
    let len = turns.len();
    Tensor::from_data(TensorData::new(turns, [len]), (device, DType::U32))
}

/// Sizes of the rotation; where q, k and v lie in the rows they come in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RopeShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head; a multiple of 4.
    pub head_dim: usize,
    /// Pairs are halves of what is rotated apart (GPT-NeoX), not neighbours.
    pub neox: bool,
    /// Elements of a head that are rotated, its first; a multiple of 4, 0 for none.
    pub rope_dims: usize,
    /// What rotated elements are multiplied with: some scalings to longer contexts do that.
    pub magnitude: f32,
    /// What queries are multiplied with in the end; most models have `1 / sqrt(head_dim)`.
    pub q_scale: f32,
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
/// rotated and scaled queries `[tokens, heads * head_dim]`. `turns` `[rope_dims / 2]` are what
/// [`turns`] gives, anything where nothing is rotated. `norm` are the weights of the heads' norm,
/// `[2 * head_dim]` for queries and keys, and what it adds to the mean square. Rows of padding write
/// nothing.
pub fn rope_kv(
    qkv: [Tensor<2>; 3],
    norm: Option<(Tensor<1>, f32)>,
    turns: Tensor<1, Int>,
    kv: &mut KvMemory,
    step: &Step,
    shape: RopeShape,
) -> Tensor<2> {
    let format = kv.format();
    let [q, k, v] = qkv.map(Tensor::into_dispatch);
    let (norm, eps) = norm.map_or((None, 0.0), |(norm, eps)| (Some(norm), eps));
    let (q, memory) = Dispatch::rope_kv(
        q,
        k,
        v,
        maybe(norm),
        eps,
        turns.into_dispatch(),
        kv.take().into_dispatch(),
        step.words().into_dispatch(),
        shape,
        format,
    );
    kv.put(Tensor::from_dispatch(memory));
    Tensor::from_dispatch(q)
}

/// The composed kernel; `norm_eps` if heads are normalized.
pub fn kernel(shape: RopeShape, format: KvFormat, norm_eps: Option<f32>) -> Kernel {
    let kernel = Kernel::new(format!("rope_kv_{}", format.name()))
        .binding("out")
        .binding("kv")
        .binding("step")
        .constant("STORE_VECTORS", format.store_vectors())
        .constant("WORKGROUP", WORKGROUP);
    rotation(step::layout(kernel), shape, norm_eps)
        .module(shader::STEP)
        .module(format.load_wgsl())
        .module(format.store_wgsl())
        .module(shader::kernel::ROPE_KV)
}

/// The bindings of q, k, v, the turns and, if heads are normalized, the norm, and what rotates.
pub(super) fn rotation(kernel: Kernel, shape: RopeShape, norm_eps: Option<f32>) -> Kernel {
    let mut kernel = kernel
        .binding("q")
        .binding("k")
        .binding("v")
        .binding("turns")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("KV_DIM", shape.kv_dim())
        .constant("HEAD_DIM", shape.head_dim)
        .constant_bool("NEOX", shape.neox)
        .constant("ROPE_DIMS", shape.rope_dims)
        .constant_f32("MAGNITUDE", shape.magnitude)
        .constant_f32("Q_SCALE", shape.q_scale)
        .constant("Q_AT", shape.at[0])
        .constant("K_AT", shape.at[1])
        .constant("V_AT", shape.at[2])
        .constant("Q_STRIDE", shape.stride[0])
        .constant("K_STRIDE", shape.stride[1])
        .constant("V_STRIDE", shape.stride[2])
        .module(shader::ROPE);
    if let Some(eps) = norm_eps {
        kernel = kernel.binding("norm").constant_f32("EPS", eps);
    }
    kernel.module(match norm_eps {
        Some(_) => shader::head_norm::RMS_NORM,
        None => shader::head_norm::PLAIN,
    })
}

#[allow(clippy::too_many_arguments)]
pub(super) fn launch(
    q: CubeTensor,
    k: CubeTensor,
    v: CubeTensor,
    norm: Maybe<Cube>,
    eps: f32,
    turns: CubeTensor,
    kv: CubeTensor,
    step: CubeTensor,
    shape: RopeShape,
    format: KvFormat,
) -> (CubeTensor, CubeTensor) {
    let [tokens, _] = q.shape().dims();
    let out = output(&q, [tokens, shape.q_dim()]);
    let lanes = shape.q_dim() / 4 + 2 * shape.kv_dim() / (4 * format.store_vectors());
    let norm = norm.as_ref();
    let mut tensors = vec![&out, &kv, &step, &q, &k, &v, &turns];
    tensors.extend(norm);
    let grid = grid((tokens * lanes).div_ceil(WORKGROUP));
    kernel(shape, format, norm.map(|_| eps)).launch(&tensors, grid);
    (out, kv)
}

#[allow(clippy::too_many_arguments)]
pub(super) fn twin(
    q: FlexTensor,
    k: FlexTensor,
    v: FlexTensor,
    norm: Maybe<Flex>,
    eps: f32,
    turns: FlexTensor,
    mut kv: FlexTensor,
    step: FlexTensor,
    shape: RopeShape,
    format: KvFormat,
) -> (FlexTensor, FlexTensor) {
    let [tokens, _] = q.shape().dims();
    let (words, turns) = (step.storage::<u32>(), turns.storage::<u32>());
    let memory = kv.storage_mut::<u32>();
    let mut keys = vec![0.0; shape.kv_dim()];
    let mut out = vec![0.0; tokens * shape.q_dim()];
    let half = shape.rope_dims / 2;
    let normed = |head: &[f32], which: usize| -> Vec<f32> {
        let Some(norm) = norm.as_ref() else {
            return head.to_vec();
        };
        let weights = &norm.storage::<f32>()[which * shape.head_dim..];
        let mean = head.iter().map(|v| v * v).sum::<f32>() / shape.head_dim as f32;
        let scale = (mean + eps).sqrt().recip();
        let scaled = head.iter().zip(weights).map(|(v, w)| v * scale * w);
        scaled.collect()
    };
    let rotate = |from: &[f32], which: usize, to: &mut [f32], position: usize, scale: f32| {
        let heads = from.chunks_exact(shape.head_dim);
        for (head, to) in heads.zip(to.chunks_exact_mut(shape.head_dim)) {
            let head = normed(head, which);
            for (to, from) in to.iter_mut().zip(&head) {
                *to = from * scale;
            }
            for (i, turns) in turns.iter().enumerate().take(half) {
                let (a, b) = match shape.neox {
                    true => (i, i + half),
                    false => (2 * i, 2 * i + 1),
                };
                let turned = (position as u32).wrapping_mul(*turns) as i32;
                let (sin, cos) = (turned as f32 * RADIANS).sin_cos();
                let scale = scale * shape.magnitude;
                to[a] = (head[a] * cos - head[b] * sin) * scale;
                to[b] = (head[a] * sin + head[b] * cos) * scale;
            }
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
            0,
            &mut out[token * shape.q_dim()..][..shape.q_dim()],
            position,
            shape.q_scale,
        );
        let at = step::kv_row(words, table, position, 0, shape.kv_dim());
        rotate(
            &part(&k, token, 1, shape.kv_dim()),
            1,
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
