//! A causal convolution of each channel over the tokens of its sequence, in front of a recurrence or in place of
//! attention (LFM2).

pub use inpage_cpu::lanes::convolution::ConvShape;
use inpage_cpu::{
    lanes::convolution::{ConvolutionInputs, ConvolutionRows, convolution},
    team,
};

use super::{
    matvec,
    op::*,
    state_memory::{self, StateMemory},
    step::{self, Step},
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) weights: FloatTensor<B>,
    pub(super) bias: FloatTensor<B>,
    pub(super) states: IntTensor<B>,
    pub(super) step: IntTensor<B>,
    pub(super) shape: ConvShape,
    pub(super) slot_words: usize,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn causal_conv(Arguments) -> (FloatTensor<Self>, IntTensor<Self>)
}

const WORKGROUP: usize = 64;

/// The convolution of `x` `[tokens, stride]` with `weights` `[channels * taps]` plus `bias` `[channels]`, as `[tokens,
/// channels]`. The last inputs of each sequence stay in its state.
pub fn causal_conv(
    x: Tensor<2>,
    weights: Tensor<1>,
    bias: Tensor<1>,
    states: &mut StateMemory,
    step: &Step,
    shape: ConvShape,
    variant: Variant,
) -> Tensor<2> {
    let width = if shape.is_gated { 3 } else { 1 } * shape.channels;
    assert!(shape.taps > 1 && shape.at + width <= shape.stride);
    assert_eq!(x.dims()[1], shape.stride, "inputs of another width");
    assert_eq!(weights.dims()[0], shape.channels * shape.taps);
    assert_eq!(bias.dims()[0], shape.channels);
    let slot_words = states.slot_words();
    let (out, kept) = Dispatch::causal_conv(Arguments {
        x: x.into_dispatch(),
        weights: weights.into_dispatch(),
        bias: bias.into_dispatch(),
        states: states.take().into_dispatch(),
        step: step.words().into_dispatch(),
        shape,
        slot_words,
        variant,
    });
    states.put(Tensor::from_dispatch(kept));
    Tensor::from_dispatch(out)
}

/// The part of the work that a dispatch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The results and the rows that are kept, a lane per channel: for few rows.
    Whole,
    /// The results, a lane per channel and row.
    Results,
    /// The rows that are kept, after the results.
    Kept,
}

/// The composed kernel.
pub(super) fn kernel(shape: ConvShape, slot_words: usize, part: Part) -> Kernel {
    step::layout(Kernel::new("causal_conv"))
        .binding("x")
        .binding("weights")
        .binding("bias")
        .binding("states")
        .binding("out")
        .binding("step")
        .constant("CHANNELS", shape.channels)
        .constant("TAPS", shape.taps)
        .constant("AT", shape.at)
        .constant("STRIDE", shape.stride)
        .constant("SLOT_WORDS", slot_words)
        .constant_bool("GATED", shape.is_gated)
        .constant_bool("BY_ROWS", part == Part::Results)
        .constant_bool("CONVOLVES", part == Part::Whole)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("shared/step"))
        .module(wgsl!("causal_conv"))
}

pub(super) fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor) {
    let [tokens, _] = args.x.shape().dims();
    let out = output(&args.x, [tokens, args.shape.channels]);
    let channels = args.shape.channels.div_ceil(WORKGROUP) as u32;
    let parts = match tokens <= matvec::MAX_TOKENS {
        true => &[(Part::Whole, 1)][..],
        // No lane reads what another one overwrites.
        false => &[(Part::Results, tokens as u32), (Part::Kept, 1)],
    };
    for &(part, rows) in parts {
        let buffers = [
            &args.x,
            &args.weights,
            &args.bias,
            &args.states,
            &out,
            &args.step,
        ];
        kernel(args.shape, args.slot_words, part).launch(&buffers, [channels, rows, 1]);
    }
    (out, args.states)
}

pub(super) fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments {
        x,
        mut states,
        shape,
        slot_words,
        ..
    } = args;
    let [tokens, _] = x.shape().dims();
    let (x, step) = (x.storage::<f32>(), args.step.storage::<u32>());
    let weights = args.weights.storage::<f32>();
    let bias = args.bias.storage::<f32>();
    let memory: &mut [f32] = bytemuck::cast_slice_mut(states.storage_mut::<u32>());
    let ConvShape { channels, taps, .. } = shape;
    let column = |row: usize, part: usize, channel: usize| {
        x[row * shape.stride + shape.at + part * channels + channel]
    };
    let mut out = vec![0.0; tokens * channels];
    for rows in step::sequences(step, tokens) {
        let slot = &mut memory[step::row_state(step, rows.start) * slot_words..];
        let is_new = step::row_position(step, rows.start) == 0;
        for channel in 0..channels {
            // The kept inputs, then those of the step.
            let kept = (0..taps - 1).map(|i| match is_new {
                true => 0.0,
                false => slot[i * channels + channel],
            });
            let mut inputs: Vec<f32> = kept.collect();
            inputs.extend(rows.clone().map(|row| match shape.is_gated {
                true => column(row, 0, channel) * column(row, 2, channel),
                false => column(row, 0, channel),
            }));
            let weights = &weights[channel * taps..][..taps];
            for (row, inputs) in rows.clone().zip(inputs.windows(taps)) {
                let products = inputs.iter().zip(weights).map(|(input, tap)| input * tap);
                let sum = bias[channel] + products.sum::<f32>();
                out[row * channels + channel] = match shape.is_gated {
                    true => sum * column(row, 1, channel),
                    false => sum / (1.0 + (-sum).exp()),
                };
            }
            for (i, input) in inputs[rows.len()..].iter().enumerate() {
                slot[i * channels + channel] = *input;
            }
        }
    }
    (twin_output(out, [tokens, channels]), states)
}

fn cpu(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments {
        mut states, shape, ..
    } = args;
    let [tokens, _] = args.x.shape().dims();
    let step = args.step.storage::<u32>();
    let memory: &mut [f32] = bytemuck::cast_slice_mut(states.storage_mut::<u32>());
    let sequences = state_memory::sequences(step, tokens, memory, args.slot_words);
    let sequences = sequences.map(|(rows, is_new, slot)| ConvolutionRows {
        rows,
        kept: &mut slot[..shape.state_words()],
        is_new,
    });
    let inputs = ConvolutionInputs {
        x: args.x.storage(),
        weights: args.weights.storage(),
        bias: args.bias.storage(),
    };
    let mut out = vec![0.0; tokens * shape.channels];
    convolution(
        team::current(),
        inputs,
        sequences.collect(),
        shape,
        &mut out,
    );
    (twin_output(out, [tokens, shape.channels]), states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        for is_gated in [false, true] {
            let shape = ConvShape {
                channels: 70,
                taps: 4,
                is_gated,
                at: 3,
                stride: 300,
            };
            let parts = [Part::Whole, Part::Results, Part::Kept];
            assert_valid(parts.map(|part| kernel(shape, 1000, part)));
        }
    }
}
