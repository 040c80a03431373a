//! The ops as an extension of burn's backends: WGSL kernels on wgpu, their CPU twins on flex. Only
//! routing; each op's launch and twin stand together in the op's file. Long, because an extension is one
//! trait and names each op three times.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Backend, Cube, Dispatch, ExtensionType, Flex, backend_extension,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Int, Shape, Tensor, TensorData},
};
use burn_wgpu::CubeTensor;

use super::{
    Activation, Finish, Variant, add_positions, argmax, attention, attention::AttentionShape,
    attention_split, barriers, copy_page, embedding, expert_gated_matmul, expert_gated_matvec,
    expert_matmul, expert_matvec, gated_matmul, gated_matvec, group_experts, kv_memory::KvFormat,
    last_row, layer_norm, matmul, matrix::MatrixShape, matvec, rms_norm, rope_kv,
    rope_kv::RopeShape, route_experts, route_experts::RouteShape, rows, sample,
    sample::SamplerShape, score, sum_experts,
};

/// An input that an op can do without.
#[derive(ExtensionType)]
pub enum Maybe<B: Backend> {
    /// Given.
    Some(FloatTensor<B>),
    /// Left out.
    None,
}

impl<B: Backend> Maybe<B> {
    pub(super) fn as_ref(&self) -> Option<&FloatTensor<B>> {
        match self {
            Maybe::Some(tensor) => Some(tensor),
            Maybe::None => None,
        }
    }
}

/// Wraps an optional high-level tensor for dispatch.
pub(super) fn maybe<const D: usize>(tensor: Option<Tensor<D>>) -> Maybe<Dispatch> {
    match tensor {
        Some(tensor) => Maybe::Some(tensor.into_dispatch()),
        None => Maybe::None,
    }
}

/// A weight matrix's buffers as the backend sees them.
#[derive(ExtensionType)]
pub struct MatrixTensors<B: Backend> {
    /// Quant words.
    pub quants: IntTensor<B>,
    /// Scale words.
    pub scales: IntTensor<B>,
    /// Type and size.
    pub shape: MatrixShape,
}

impl super::matrix::Matrix {
    pub(super) fn to_dispatch(&self) -> MatrixTensors<Dispatch> {
        MatrixTensors {
            quants: self.quants.clone().into_dispatch(),
            scales: self.scales.clone().into_dispatch(),
            shape: self.shape,
        }
    }
}

/// inpage's ops; each is documented in the file of its name.
#[backend_extension(Cube, Flex)]
#[allow(missing_docs)]
pub trait Ops: Backend {
    fn barriers(out: IntTensor<Self>, count: usize) -> IntTensor<Self>;

    fn write_words(tensor: IntTensor<Self>, at: usize, words: Vec<u32>) -> IntTensor<Self>;

    fn embedding(
        ids: IntTensor<Self>,
        #[extension_type] table: MatrixTensors<Self>,
        scale: f32,
    ) -> FloatTensor<Self>;

    fn add_positions(
        x: FloatTensor<Self>,
        #[extension_type] table: MatrixTensors<Self>,
        step: IntTensor<Self>,
    ) -> FloatTensor<Self>;

    fn layer_norm(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self>;

    fn rms_norm(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        eps: f32,
        #[extension_type] residual: Maybe<Self>,
    ) -> FloatTensor<Self>;

    #[allow(clippy::too_many_arguments)]
    fn matvec(
        x: FloatTensor<Self>,
        #[extension_type] norm: Maybe<Self>,
        eps: f32,
        #[extension_type] weights: MatrixTensors<Self>,
        #[extension_type] bias: Maybe<Self>,
        #[extension_type] delta: Maybe<Self>,
        finish: Finish,
        #[extension_type] residual: Maybe<Self>,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn matmul(
        x: FloatTensor<Self>,
        #[extension_type] weights: MatrixTensors<Self>,
        #[extension_type] bias: Maybe<Self>,
        #[extension_type] delta: Maybe<Self>,
        finish: Finish,
        #[extension_type] residual: Maybe<Self>,
        variant: Variant,
    ) -> FloatTensor<Self>;

    #[allow(clippy::too_many_arguments)]
    fn gated_matvec(
        x: FloatTensor<Self>,
        #[extension_type] norm: Maybe<Self>,
        eps: f32,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        #[extension_type] delta: Maybe<Self>,
        activation: Activation,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn gated_matmul(
        x: FloatTensor<Self>,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        #[extension_type] delta: Maybe<Self>,
        activation: Activation,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn route_experts(
        logits: FloatTensor<Self>,
        shape: RouteShape,
    ) -> (IntTensor<Self>, FloatTensor<Self>);

    fn group_experts(experts: IntTensor<Self>, count: usize) -> IntTensor<Self>;

    #[allow(clippy::too_many_arguments)]
    fn expert_gated_matvec(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        eps: f32,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        rows: usize,
        experts: IntTensor<Self>,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn expert_matvec(
        x: FloatTensor<Self>,
        #[extension_type] weights: MatrixTensors<Self>,
        experts: IntTensor<Self>,
        shares: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn expert_gated_matmul(
        x: FloatTensor<Self>,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        rows: usize,
        used: usize,
        groups: IntTensor<Self>,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn expert_matmul(
        x: FloatTensor<Self>,
        #[extension_type] weights: MatrixTensors<Self>,
        rows: usize,
        groups: IntTensor<Self>,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn sum_experts(
        products: FloatTensor<Self>,
        shares: FloatTensor<Self>,
        residual: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    #[allow(clippy::too_many_arguments)]
    fn rope_kv(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        #[extension_type] norm: Maybe<Self>,
        eps: f32,
        turns: IntTensor<Self>,
        kv: IntTensor<Self>,
        step: IntTensor<Self>,
        shape: RopeShape,
        format: KvFormat,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    #[allow(clippy::too_many_arguments)]
    fn attention_split(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        #[extension_type] norm: Maybe<Self>,
        eps: f32,
        turns: IntTensor<Self>,
        kv: IntTensor<Self>,
        step: IntTensor<Self>,
        rope: RopeShape,
        shape: AttentionShape,
        format: KvFormat,
        context_tokens: usize,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    fn attention(
        q: FloatTensor<Self>,
        kv: IntTensor<Self>,
        step: IntTensor<Self>,
        shape: AttentionShape,
        format: KvFormat,
        variant: Variant,
    ) -> FloatTensor<Self>;

    fn last_row(x: FloatTensor<Self>, step: IntTensor<Self>) -> FloatTensor<Self>;

    fn rows(x: FloatTensor<Self>, first: usize, count: usize) -> FloatTensor<Self>;

    fn score(logits: FloatTensor<Self>, next: IntTensor<Self>, top: usize) -> IntTensor<Self>;

    fn copy_page(kv: IntTensor<Self>, pages: IntTensor<Self>, words: usize) -> IntTensor<Self>;

    fn argmax(
        logits: FloatTensor<Self>,
        ids: IntTensor<Self>,
        step: IntTensor<Self>,
        chosen: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>, IntTensor<Self>);

    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn sample(
        logits: FloatTensor<Self>,
        params: IntTensor<Self>,
        accounts: IntTensor<Self>,
        results: IntTensor<Self>,
        ids: IntTensor<Self>,
        step: IntTensor<Self>,
        shape: SamplerShape,
    ) -> (
        IntTensor<Self>,
        IntTensor<Self>,
        IntTensor<Self>,
        IntTensor<Self>,
    );
}

macro_rules! route {
    ($backend:ty, $tensor:ty, $side:ident) => {
        impl Ops for $backend {
            fn barriers(out: $tensor, count: usize) -> $tensor {
                barriers::$side(out, count)
            }
            fn write_words(tensor: $tensor, at: usize, words: Vec<u32>) -> $tensor {
                words::$side(tensor, at, words)
            }
            fn embedding(ids: $tensor, table: MatrixTensors<Self>, scale: f32) -> $tensor {
                embedding::$side(ids, table, scale)
            }
            fn add_positions(x: $tensor, table: MatrixTensors<Self>, step: $tensor) -> $tensor {
                add_positions::$side(x, table, step)
            }
            fn layer_norm(x: $tensor, norm: $tensor, bias: $tensor, eps: f32) -> $tensor {
                layer_norm::$side(x, norm, bias, eps)
            }
            fn rms_norm(x: $tensor, norm: $tensor, eps: f32, residual: Maybe<Self>) -> $tensor {
                rms_norm::$side(x, norm, eps, residual)
            }
            fn matvec(
                x: $tensor,
                norm: Maybe<Self>,
                eps: f32,
                weights: MatrixTensors<Self>,
                bias: Maybe<Self>,
                delta: Maybe<Self>,
                finish: Finish,
                residual: Maybe<Self>,
                variant: Variant,
            ) -> $tensor {
                matvec::$side(
                    x, norm, eps, weights, bias, delta, finish, residual, variant,
                )
            }
            fn matmul(
                x: $tensor,
                weights: MatrixTensors<Self>,
                bias: Maybe<Self>,
                delta: Maybe<Self>,
                finish: Finish,
                residual: Maybe<Self>,
                variant: Variant,
            ) -> $tensor {
                matmul::$side(x, weights, bias, delta, finish, residual, variant)
            }
            fn gated_matvec(
                x: $tensor,
                norm: Maybe<Self>,
                eps: f32,
                gate: MatrixTensors<Self>,
                up: MatrixTensors<Self>,
                delta: Maybe<Self>,
                activation: Activation,
                variant: Variant,
            ) -> $tensor {
                gated_matvec::$side(x, norm, eps, gate, up, delta, activation, variant)
            }
            fn gated_matmul(
                x: $tensor,
                gate: MatrixTensors<Self>,
                up: MatrixTensors<Self>,
                delta: Maybe<Self>,
                activation: Activation,
                variant: Variant,
            ) -> $tensor {
                gated_matmul::$side(x, gate, up, delta, activation, variant)
            }
            fn route_experts(logits: $tensor, shape: RouteShape) -> ($tensor, $tensor) {
                route_experts::$side(logits, shape)
            }
            fn group_experts(experts: $tensor, count: usize) -> $tensor {
                group_experts::$side(experts, count)
            }
            fn expert_gated_matvec(
                x: $tensor,
                norm: $tensor,
                eps: f32,
                gate: MatrixTensors<Self>,
                up: MatrixTensors<Self>,
                rows: usize,
                experts: $tensor,
                variant: Variant,
            ) -> $tensor {
                expert_gated_matvec::$side(x, norm, eps, gate, up, rows, experts, variant)
            }
            fn expert_matvec(
                x: $tensor,
                weights: MatrixTensors<Self>,
                experts: $tensor,
                shares: $tensor,
                residual: $tensor,
                variant: Variant,
            ) -> $tensor {
                expert_matvec::$side(x, weights, experts, shares, residual, variant)
            }
            fn expert_gated_matmul(
                x: $tensor,
                gate: MatrixTensors<Self>,
                up: MatrixTensors<Self>,
                rows: usize,
                used: usize,
                groups: $tensor,
                variant: Variant,
            ) -> $tensor {
                expert_gated_matmul::$side(x, gate, up, rows, used, groups, variant)
            }
            fn expert_matmul(
                x: $tensor,
                weights: MatrixTensors<Self>,
                rows: usize,
                groups: $tensor,
                variant: Variant,
            ) -> $tensor {
                expert_matmul::$side(x, weights, rows, groups, variant)
            }
            fn sum_experts(products: $tensor, shares: $tensor, residual: $tensor) -> $tensor {
                sum_experts::$side(products, shares, residual)
            }
            fn rope_kv(
                q: $tensor,
                k: $tensor,
                v: $tensor,
                norm: Maybe<Self>,
                eps: f32,
                turns: $tensor,
                kv: $tensor,
                step: $tensor,
                shape: RopeShape,
                format: KvFormat,
            ) -> ($tensor, $tensor) {
                rope_kv::$side(q, k, v, norm, eps, turns, kv, step, shape, format)
            }
            fn attention_split(
                q: $tensor,
                k: $tensor,
                v: $tensor,
                norm: Maybe<Self>,
                eps: f32,
                turns: $tensor,
                kv: $tensor,
                step: $tensor,
                rope: RopeShape,
                shape: AttentionShape,
                format: KvFormat,
                context_tokens: usize,
            ) -> ($tensor, $tensor) {
                attention_split::$side(
                    [q, k, v],
                    norm,
                    eps,
                    turns,
                    kv,
                    step,
                    rope,
                    shape,
                    format,
                    context_tokens,
                )
            }
            fn attention(
                q: $tensor,
                kv: $tensor,
                step: $tensor,
                shape: AttentionShape,
                format: KvFormat,
                variant: Variant,
            ) -> $tensor {
                attention::$side(q, kv, step, shape, format, variant)
            }
            fn last_row(x: $tensor, step: $tensor) -> $tensor {
                last_row::$side(x, step)
            }
            fn rows(x: $tensor, first: usize, count: usize) -> $tensor {
                rows::$side(x, first, count)
            }
            fn score(logits: $tensor, next: $tensor, top: usize) -> $tensor {
                score::$side(logits, next, top)
            }
            fn copy_page(kv: $tensor, pages: $tensor, words: usize) -> $tensor {
                copy_page::$side(kv, pages, words)
            }
            fn argmax(
                logits: $tensor,
                ids: $tensor,
                step: $tensor,
                chosen: $tensor,
            ) -> ($tensor, $tensor, $tensor) {
                argmax::$side(logits, ids, step, chosen)
            }
            fn sample(
                logits: $tensor,
                params: $tensor,
                accounts: $tensor,
                results: $tensor,
                ids: $tensor,
                step: $tensor,
                shape: SamplerShape,
            ) -> ($tensor, $tensor, $tensor, $tensor) {
                sample::$side(logits, params, accounts, results, ids, step, shape)
            }
        }
    };
}

route!(Cube, CubeTensor, launch);
route!(Flex, FlexTensor, twin);

/// Overwrites words of an unsigned integer tensor in place, from word `at` on. By value: the twin
/// writes in place only while nothing else holds the tensor.
pub fn write_words(tensor: Tensor<1, Int>, at: usize, words: Vec<u32>) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::write_words(tensor.into_dispatch(), at, words))
}

mod words {
    //! Uploads into a part of a tensor.
    use super::*;
    use burn::backend::TensorMetadata;
    use burn::tensor::Bytes;

    pub(super) fn launch(tensor: CubeTensor, at: usize, words: Vec<u32>) -> CubeTensor {
        let total = tensor.shape().num_elements();
        assert!(at + words.len() <= total, "upload outside its tensor");
        let end = total - at - words.len();
        let part = tensor
            .handle
            .clone()
            .offset_start(at as u64 * 4)
            .offset_end(end as u64 * 4);
        tensor.client.write(&part, Bytes::from_elems(words));
        tensor
    }

    pub(super) fn twin(mut tensor: FlexTensor, at: usize, words: Vec<u32>) -> FlexTensor {
        tensor.storage_mut::<u32>()[at..at + words.len()].copy_from_slice(&words);
        tensor
    }
}

/// An f32 output tensor on the GPU.
pub(super) fn output(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    reserve(like, shape.into(), DType::F32)
}

/// A u32 output tensor on the GPU.
pub(super) fn output_words(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    reserve(like, shape.into(), DType::U32)
}

fn reserve(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    let handle = like.client.empty(shape.num_elements() * 4);
    CubeTensor::new_contiguous(
        like.client.clone(),
        like.device.clone(),
        shape,
        handle,
        dtype,
    )
}

/// An f32 output tensor of a CPU twin.
pub(super) fn twin_output(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

/// A u32 output tensor of a CPU twin.
pub(super) fn twin_output_words(words: Vec<u32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(words, shape.into()))
}
