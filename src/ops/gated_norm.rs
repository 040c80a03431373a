//! The RMS norm of each group of a row, multiplied by SiLU of a gate before the norm (Mamba 2) or after it (gated delta
//! rule); or the gate alone (Falcon-H1).

pub use inpage_cpu::lanes::gated_norm::GatedNormShape;
use inpage_cpu::{lanes::gated_norm, team};

use super::{op::*, variant::Variant};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) gate: FloatTensor<B>,
    pub(super) norm: FloatTensor<B>,
    pub(super) shape: GatedNormShape,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn gated_norm(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// Normalizes each group of `x` `[tokens, columns]`, and multiplies it by `norm`, of one group or of all, and by SiLU of
/// `gate` `[tokens, stride]`.
pub fn gated_norm(
    x: Tensor<2>,
    gate: Tensor<2>,
    norm: Tensor<1>,
    shape: GatedNormShape,
    variant: Variant,
) -> Tensor<2> {
    let [_, columns] = x.dims();
    assert!(columns.is_multiple_of(shape.group), "whole groups");
    assert!(
        [shape.group, columns].contains(&norm.dims()[0]),
        "a norm of another width"
    );
    assert!(shape.at + columns <= shape.stride && gate.dims()[1] == shape.stride);
    Tensor::from_dispatch(Dispatch::gated_norm(Arguments {
        x: x.into_dispatch(),
        gate: gate.into_dispatch(),
        norm: norm.into_dispatch(),
        shape,
        variant,
    }))
}

/// The composed kernel.
pub(super) fn kernel(shape: GatedNormShape, groups: usize, norm_len: usize) -> Kernel {
    Kernel::new("gated_norm")
        .binding("x")
        .binding("gate")
        .binding("norm")
        .binding("out")
        .constant("LEN", shape.group)
        .constant("GROUPS", groups)
        .constant("NORM_LEN", norm_len)
        .constant("AT", shape.at)
        .constant("STRIDE", shape.stride)
        .constant_bool("NORMALIZES", shape.normalizes)
        .constant_bool("GATE_FIRST", shape.gates_first)
        .constant_f32("EPS", shape.eps)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("gated_norm"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, columns] = args.x.shape().dims();
    let groups = columns / args.shape.group;
    let out = output(&args.x, [tokens, columns]);
    let norm_len = args.norm.shape().num_elements();
    kernel(args.shape, groups, norm_len).launch(
        &[&args.x, &args.gate, &args.norm, &out],
        [groups as u32, tokens as u32, 1],
    );
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { shape, .. } = args;
    let [tokens, columns] = args.x.shape().dims();
    let (gate, norm) = (args.gate.storage::<f32>(), args.norm.storage::<f32>());
    let mut out = args.x.storage::<f32>().to_vec();
    for (token, row) in out.chunks_exact_mut(columns).enumerate() {
        for (at, group) in row.chunks_exact_mut(shape.group).enumerate() {
            let first = at * shape.group;
            let gates = &gate[token * shape.stride + shape.at + first..][..shape.group];
            let gates: Vec<f32> = gates.iter().map(|v| v / (1.0 + (-v).exp())).collect();
            let apply = |group: &mut [f32]| {
                group
                    .iter_mut()
                    .zip(&gates)
                    .for_each(|(v, gate)| *v *= gate);
            };
            if shape.gates_first {
                apply(group);
            }
            let mean = group.iter().map(|v| v * v).sum::<f32>() / shape.group as f32;
            let scale = match shape.normalizes {
                true => (mean + shape.eps).sqrt().recip(),
                false => 1.0,
            };
            for (i, value) in group.iter_mut().enumerate() {
                *value *= scale * norm[(first + i) % norm.len()];
            }
            if !shape.gates_first {
                apply(group);
            }
        }
    }
    twin_output(out, [tokens, columns])
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { shape, .. } = args;
    let [tokens, columns] = args.x.shape().dims();
    let mut out = args.x.storage::<f32>().to_vec();
    let (gate, norm) = (args.gate.storage(), args.norm.storage());
    gated_norm::gated_norm(team::current(), &mut out, columns, gate, norm, shape);
    twin_output(out, [tokens, columns])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        let forms = [(true, false), (true, true), (false, true)];
        assert_valid(forms.map(|(normalizes, gates_first)| {
            let shape = GatedNormShape {
                group: 48,
                normalizes,
                gates_first,
                eps: 1e-6,
                at: 5,
                stride: 200,
            };
            kernel(shape, 3, 48)
        }));
    }
}
