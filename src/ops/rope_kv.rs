//! Rotary position embedding of Q and K (Su et al. 2021, <https://arxiv.org/abs/2104.09864>) and the write
//! of K and V to the KV cache in one pass. Models may first normalize each head of Q and K (Henry et al.
//! 2020, <https://arxiv.org/abs/2010.04245>).
//!
//! Positions rotate by integers. Frequencies are 2^-32 turns per position in a u32, whose product with the position
//! drops whole turns by overflow. A product of floats would be off by 0.001 radians at 32,768 tokens.

use burn::tensor::Device;
pub use inpage_cpu::lanes::rope::{RopeShape, Temperature};

use super::{
    kv_memory::{KvFormat, KvMemory},
    norm::InputNorm,
    op::*,
    step::{self, Step},
    variant::Variant,
};
use crate::device::upload_words;
use crate::kernel::{Kernel, grid, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    #[extension_type]
    pub(super) heads: UnrotatedHeads<B>,
    pub(super) kv: IntTensor<B>,
    pub(super) step: IntTensor<B>,
    pub(super) shape: RopeShape,
    pub(super) format: KvFormat,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn rope_kv(Arguments) -> (FloatTensor<Self>, IntTensor<Self>)
}

const WORKGROUP: usize = 64;
/// 2^-32 turns in radians.
const RADIANS: f32 = (std::f64::consts::TAU / 4_294_967_296.0) as f32;

/// Converts radians per position to units of 2^-32 turns. In the product with a position, whole turns
/// overflow, so the angle is as exact at the end of a long context as at its start. A product of floats
/// would be off by 0.001 radians at 32,768 tokens.
pub fn turns(radians: &[f64], device: &Device) -> Tensor<1, Int> {
    let turns = in_turns(radians);
    let len = turns.len();
    upload_words(turns, [len], device)
}

/// Same as [`turns`], for rotary positions of parts: the angles, then the part that each pair turns by.
pub fn turns_by_parts(radians: &[f64], parts: &[u32], device: &Device) -> Tensor<1, Int> {
    assert_eq!(radians.len(), parts.len(), "a part per pair");
    let mut words = in_turns(radians);
    words.extend_from_slice(parts);
    let len = words.len();
    upload_words(words, [len], device)
}

fn in_turns(radians: &[f64]) -> Vec<u32> {
    let turns = radians.iter().map(|radians| {
        let turns = radians / std::f64::consts::TAU * 4_294_967_296.0;
        turns.round() as i64 as u32
    });
    turns.collect()
}

/// The heads of Q, K and V before the rotation, their norm and the turns.
#[derive(ExtensionType)]
pub(super) struct UnrotatedHeads<B: Backend> {
    pub(super) q: FloatTensor<B>,
    pub(super) k: FloatTensor<B>,
    pub(super) v: FloatTensor<B>,
    #[extension_type]
    pub(super) norm: InputNorm<B>,
    pub(super) turns: IntTensor<B>,
}

impl Arguments<Dispatch> {
    /// Takes the memory out of `kv`. The op returns it.
    pub(super) fn new(
        qkv: [Tensor<2>; 3],
        norm: Option<(Tensor<1>, f32)>,
        turns: Tensor<1, Int>,
        kv: &mut KvMemory,
        step: &Step,
        shape: RopeShape,
        variant: Variant,
    ) -> Self {
        let [q, k, v] = qkv.map(Tensor::into_dispatch);
        Self {
            heads: UnrotatedHeads {
                q,
                k,
                v,
                norm: norm.into(),
                turns: turns.into_dispatch(),
            },
            kv: kv.take().into_dispatch(),
            step: step.words().into_dispatch(),
            shape,
            format: kv.format(),
            variant,
        }
    }
}

impl UnrotatedHeads<Cube> {
    /// The buffers for [`rotation`].
    pub(super) fn buffers(&self) -> impl Iterator<Item = &CubeTensor> {
        [&self.q, &self.k, &self.v, &self.turns]
            .into_iter()
            .chain(self.norm.norm())
    }
}

/// Rotates q and k `[tokens, stride]` by position, writes k and v to `kv` in place, and returns the rotated
/// and scaled queries `[tokens, heads * head_dim]`. `turns` is the result of [`turns`], or of [`turns_by_parts`] if the
/// shape is by parts; it is not read if nothing is rotated. If the shape is of only queries, k and v are not read and
/// nothing is written. `norm` is the norm of heads: its weights `[2 * head_dim]`, for
/// queries and then for keys, and its epsilon. Padding rows write nothing.
pub fn rope_kv(
    qkv: [Tensor<2>; 3],
    norm: Option<(Tensor<1>, f32)>,
    turns: Tensor<1, Int>,
    kv: &mut KvMemory,
    step: &Step,
    shape: RopeShape,
    variant: Variant,
) -> Tensor<2> {
    let arguments = Arguments::new(qkv, norm, turns, kv, step, shape, variant);
    let (q, memory) = Dispatch::rope_kv(arguments);
    kv.put(Tensor::from_dispatch(memory));
    Tensor::from_dispatch(q)
}

/// The composed kernel. `norm_eps` is given if heads are normalized.
pub fn kernel(shape: RopeShape, format: KvFormat, norm_eps: Option<f32>) -> Kernel {
    let kernel = Kernel::new(format!("rope_kv_{}", format.name()))
        .binding("out")
        .binding("kv")
        .binding("step")
        .constant("STORE_VECTORS", format.store_vectors())
        .constant("WORKGROUP", WORKGROUP);
    rotation(step::layout(kernel), shape, norm_eps)
        .module(wgsl!("shared/step"))
        .module(wgsl!("shared/kv/place"))
        .module(format.load_wgsl())
        .module(format.store_wgsl())
        .module(wgsl!("rope_kv"))
}

/// Adds the module that rotates, and the bindings of q, k, v, the turns and, if heads are normalized, the
/// norm.
pub(super) fn rotation(kernel: Kernel, shape: RopeShape, norm_eps: Option<f32>) -> Kernel {
    let temperature = shape.temperature.unwrap_or(Temperature {
        tokens: 1,
        offset: 0,
        growth: 0.0,
    });
    let mut kernel = kernel
        .binding("q")
        .binding("k")
        .binding("v")
        .binding("turns")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("HEAD_DIM", shape.head_dim)
        .constant_bool("NEOX", shape.neox)
        .constant_bool("BY_PARTS", shape.by_parts)
        .constant_bool("NORM_LAST", shape.norm_last)
        .constant_bool("NORM_VALUES", shape.norms_values)
        .constant_bool("ONLY_QUERIES", shape.only_queries)
        .constant("ROPE_DIMS", shape.rope_dims)
        .constant_f32("MAGNITUDE", shape.magnitude)
        .constant_f32("Q_SCALE", shape.q_scale)
        .constant("TEMPERATURE_TOKENS", temperature.tokens)
        .constant("TEMPERATURE_OFFSET", temperature.offset)
        .constant_f32("TEMPERATURE_GROWTH", temperature.growth)
        .constant("Q_AT", shape.at[0])
        .constant("K_AT", shape.at[1])
        .constant("V_AT", shape.at[2])
        .constant("Q_STRIDE", shape.stride[0])
        .constant("K_STRIDE", shape.stride[1])
        .constant("V_STRIDE", shape.stride[2])
        .module(wgsl!("shared/rope"));
    if let Some(eps) = norm_eps {
        kernel = kernel.binding("norm").constant_f32("EPS", eps);
    }
    kernel.module(match norm_eps {
        Some(_) => wgsl!("shared/head_norm/rms_norm"),
        None => wgsl!("shared/head_norm/plain"),
    })
}

fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor) {
    let [tokens, _] = args.heads.q.shape().dims();
    let out = output(&args.heads.q, [tokens, args.shape.q_dim()]);
    let stores = match args.shape.only_queries {
        true => 0,
        false => 2 * args.shape.kv_dim() / (4 * args.format.store_vectors()),
    };
    let lanes = args.shape.q_dim() / 4 + stores;
    let mut buffers = vec![&out, &args.kv, &args.step];
    buffers.extend(args.heads.buffers());
    let grid = grid((tokens * lanes).div_ceil(WORKGROUP));
    kernel(args.shape, args.format, args.heads.norm.eps()).launch(&buffers, grid);
    (out, args.kv)
}

pub(super) fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments {
        heads,
        mut kv,
        shape,
        format,
        ..
    } = args;
    let [tokens, _] = heads.q.shape().dims();
    let words = args.step.storage::<u32>();
    let memory = kv.storage_mut::<u32>();
    let (q_dim, kv_dim) = (shape.q_dim(), shape.kv_dim());
    let mut keys = vec![0.0; kv_dim];
    let mut out = vec![0.0; tokens * q_dim];
    let part = |tensor: &FlexTensor, token: usize, which: usize, len: usize| {
        let at = token * shape.stride[which] + shape.at[which];
        tensor.storage::<f32>()[at..at + len].to_vec()
    };
    for token in 0..(words[step::TOKENS] as usize).min(tokens) {
        let position = step::row_position(words, token);
        let rotary = match shape.by_parts {
            true => step::row_rotary(words, token),
            false => [position as u32; step::PARTS],
        };
        let table = step::row_table(words, token);
        let q = part(&heads.q, token, 0, q_dim);
        let to = &mut out[token * q_dim..][..q_dim];
        heads.rotate(&q, 0, to, rotary, shape.query_factor(position), shape);
        if shape.only_queries {
            continue;
        }
        let place = step::kv_place(words, table, position);
        let k = part(&heads.k, token, 1, kv_dim);
        heads.rotate(&k, 1, &mut keys, rotary, 1.0, shape);
        format.store_heads(memory, place, 0, &keys, shape.head_dim);
        let mut v = part(&heads.v, token, 2, kv_dim);
        if let (true, Some(eps)) = (shape.norms_values, heads.norm.eps()) {
            for head in v.chunks_exact_mut(shape.head_dim) {
                let mean = head.iter().map(|v| v * v).sum::<f32>() / head.len() as f32;
                head.iter_mut()
                    .for_each(|v| *v *= (mean + eps).sqrt().recip());
            }
        }
        format.store_heads(memory, place, 1, &v, shape.head_dim);
    }
    (twin_output(out, [tokens, q_dim]), kv)
}

impl UnrotatedHeads<Flex> {
    /// Normalizes, scales and rotates the query heads (`which == 0`) or key heads (`1`) of a token.
    fn rotate(
        &self,
        from: &[f32],
        which: usize,
        to: &mut [f32],
        position: [u32; 3],
        scale: f32,
        shape: RopeShape,
    ) {
        let turns = self.turns.storage::<u32>();
        let half = shape.rope_dims / 2;
        let (angles, parts) = turns.split_at(half.min(turns.len()));
        let parts = if shape.by_parts { parts } else { &[] };
        let heads = from.chunks_exact(shape.head_dim);
        for (head, to) in heads.zip(to.chunks_exact_mut(shape.head_dim)) {
            let head = self.normed(head, which, shape);
            for (to, from) in to.iter_mut().zip(&head) {
                *to = from * scale;
            }
            for (i, turns) in angles.iter().enumerate().take(half) {
                let (a, b) = match shape.neox {
                    true => (i, i + half),
                    false => (2 * i, 2 * i + 1),
                };
                let part = parts.get(i).map_or(0, |part| *part as usize);
                let turned = position[part].wrapping_mul(*turns) as i32;
                let (sin, cos) = (turned as f32 * RADIANS).sin_cos();
                let scale = scale * shape.magnitude;
                to[a] = (head[a] * cos - head[b] * sin) * scale;
                to[b] = (head[a] * sin + head[b] * cos) * scale;
            }
            if let InputNorm::Rms { norm, .. } = &self.norm
                && shape.norm_last
            {
                let weights = &norm.storage::<f32>()[which * shape.head_dim..];
                to.iter_mut().zip(weights).for_each(|(to, w)| *to *= w);
            }
        }
    }

    fn normed(&self, head: &[f32], which: usize, shape: RopeShape) -> Vec<f32> {
        let InputNorm::Rms { norm, eps } = &self.norm else {
            return head.to_vec();
        };
        let mean = head.iter().map(|v| v * v).sum::<f32>() / head.len() as f32;
        let scale = (mean + eps).sqrt().recip();
        if shape.norm_last {
            return head.iter().map(|v| v * scale).collect();
        }
        let weights = &norm.storage::<f32>()[which * head.len()..];
        let scaled = head.iter().zip(weights).map(|(v, w)| v * scale * w);
        scaled.collect()
    }
}

fn cpu(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments { mut kv, .. } = args;
    let [tokens, _] = args.heads.q.shape().dims();
    let rows = step::cpu_rows(args.step.storage(), tokens);
    let norm = match &args.heads.norm {
        InputNorm::Rms { norm, eps } => Some((norm.storage::<f32>(), *eps)),
        InputNorm::None => None,
    };
    let mut out = vec![0.0; tokens * args.shape.q_dim()];
    inpage_cpu::lanes::rope::rope_kv(
        args.heads.q.storage(),
        args.heads.k.storage(),
        args.heads.v.storage(),
        norm,
        args.heads.turns.storage(),
        kv.storage_mut(),
        &rows,
        args.shape,
        args.format,
        &mut out,
    );
    (twin_output(out, [tokens, args.shape.q_dim()]), kv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::heads;

    #[test]
    fn kernels_are_valid_wgsl() {
        let kernels = heads().into_iter();
        assert_valid(kernels.map(|(rope, _, norm_eps, format)| kernel(rope, format, norm_eps)));
    }
}
