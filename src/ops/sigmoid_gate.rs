//! A gate: `out = x * sigmoid(gate) + residual`, where the residual is optional. The output of attention has a gate per
//! element in some models, that of a shared expert one per token.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) gate: FloatTensor<B>,
    #[extension_type]
    pub(super) residual: Maybe<B>,
    pub(super) shape: GateShape,
}

op! {
    fn sigmoid_gate(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// The place of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateShape {
    /// A single number per token.
    pub is_per_token: bool,
    /// First column.
    pub at: usize,
    /// Columns of the tensor that holds it.
    pub stride: usize,
}

/// `x` and `residual` are `[tokens, columns]`, `gate` `[tokens, stride]`.
pub fn sigmoid_gate(
    x: Tensor<2>,
    gate: Tensor<2>,
    residual: Option<Tensor<2>>,
    shape: GateShape,
) -> Tensor<2> {
    let width = if shape.is_per_token { 1 } else { x.dims()[1] };
    assert!(shape.at + width <= shape.stride && gate.dims()[1] == shape.stride);
    Tensor::from_dispatch(Dispatch::sigmoid_gate(Arguments {
        x: x.into_dispatch(),
        gate: gate.into_dispatch(),
        residual: residual.into(),
        shape,
    }))
}

/// The composed kernel.
pub(super) fn kernel(shape: GateShape, columns: usize, residual: bool) -> Kernel {
    Kernel::new("sigmoid_gate")
        .binding("x")
        .binding("gate")
        .binding("residual")
        .binding("out")
        .constant("COLS", columns)
        .constant("AT", shape.at)
        .constant("STRIDE", shape.stride)
        .constant_bool("PER_TOKEN", shape.is_per_token)
        .constant_bool("RESIDUAL", residual)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("sigmoid_gate"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, columns] = args.x.shape().dims();
    let out = output(&args.x, [tokens, columns]);
    let residual = args.residual.as_ref();
    // A kernel without residual reads none.
    let buffers = [&args.x, &args.gate, residual.unwrap_or(&args.x), &out];
    let workgroups = columns.div_ceil(WORKGROUP) as u32;
    kernel(args.shape, columns, residual.is_some())
        .launch(&buffers, [workgroups, tokens as u32, 1]);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { shape, .. } = args;
    let [tokens, columns] = args.x.shape().dims();
    let gate = args.gate.storage::<f32>();
    let mut out = args.x.storage::<f32>().to_vec();
    for (i, value) in out.iter_mut().enumerate() {
        let column = if shape.is_per_token { 0 } else { i % columns };
        let gate = gate[i / columns * shape.stride + shape.at + column];
        *value /= 1.0 + (-gate).exp();
    }
    if let Some(residual) = args.residual.as_ref() {
        let residual = residual.storage::<f32>();
        out.iter_mut().zip(residual).for_each(|(out, r)| *out += r);
    }
    twin_output(out, [tokens, columns])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        let shape = |is_per_token| GateShape {
            is_per_token,
            at: 7,
            stride: 100,
        };
        assert_valid([false, true].map(|it| kernel(shape(it), 66, it)));
    }
}
