//! A recurrence whose state is a matrix per head: the gated delta rule (Yang et al. 2024,
//! <https://arxiv.org/abs/2412.06464>) and Mamba 2 (Dao and Gu 2024, <https://arxiv.org/abs/2405.21060>).
//! This file has the form for a few tokens, one after the other, and the twin; `recurrence_chunks` has the form for many.

use inpage_cpu::{
    lanes::recurrence::{RecurrenceInputs, RecurrenceRows, recurrence},
    reference::add_scaled,
    team,
};

use super::{
    matvec,
    op::*,
    recurrence_chunks, recurrence_shape,
    state_memory::{self, StateMemory},
    step::{self, Step},
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

pub use super::recurrence_shape::{COLUMNS, MAX_KEY_LEN, RecurrenceShape};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) rates: FloatTensor<B>,
    pub(super) shares: FloatTensor<B>,
    pub(super) heads: FloatTensor<B>,
    pub(super) states: IntTensor<B>,
    pub(super) step: IntTensor<B>,
    pub(super) shape: RecurrenceShape,
    pub(super) slot_words: usize,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn linear_recurrence(Arguments) -> (FloatTensor<Self>, IntTensor<Self>)
}

/// Passes through the tokens of `x` `[tokens, columns]`. With the rate `r = softplus(rate + bias)`, the state S `[key_len,
/// value_len]` of a head becomes `exp(r * decay) * S` plus key times `r * value`, or for the delta rule plus key times
/// `sigmoid(share) * (value - S key)`. Results are `S query + skip * value`, `[tokens, heads * value_len]`.
///
/// `rates` and `shares` hold a number per token and head. `heads` `[3 * heads]` has the decay, bias and skip of all heads.
pub fn linear_recurrence(
    x: Tensor<2>,
    [rates, shares]: [Tensor<2>; 2],
    heads: Tensor<1>,
    states: &mut StateMemory,
    step: &Step,
    shape: RecurrenceShape,
    variant: Variant,
) -> Tensor<2> {
    let (key, value) = (shape.key_len, shape.value_len);
    assert!(key.is_multiple_of(COLUMNS) && value.is_multiple_of(COLUMNS) && key <= MAX_KEY_LEN);
    assert!(
        shape.heads.is_multiple_of(shape.key_heads),
        "heads share keys"
    );
    assert_eq!(heads.dims()[0], 3 * shape.heads);
    assert_eq!(
        [rates.dims()[1], shares.dims()[1]],
        [shape.rates[1], shape.shares[1]]
    );
    let vectors = [shape.at[0], shape.at[1], x.dims()[1]];
    assert!(
        vectors.iter().all(|at| at.is_multiple_of(4)),
        "whole vectors"
    );
    let slot_words = states.slot_words();
    assert!(shape.state_at + shape.state_words() <= slot_words);
    let (out, kept) = Dispatch::linear_recurrence(Arguments {
        x: x.into_dispatch(),
        rates: rates.into_dispatch(),
        shares: shares.into_dispatch(),
        heads: heads.into_dispatch(),
        states: states.take().into_dispatch(),
        step: step.words().into_dispatch(),
        shape,
        slot_words,
        variant,
    });
    states.put(Tensor::from_dispatch(kept));
    Tensor::from_dispatch(out)
}

/// The composed kernel for a few rows of `stride` columns. A workgroup passes through those of a sequence.
pub(super) fn kernel(shape: RecurrenceShape, stride: usize, slot_words: usize) -> Kernel {
    let kernel = Kernel::new("linear_recurrence")
        .binding("x")
        .binding("rates")
        .binding("shares")
        .binding("heads")
        .binding("states")
        .binding("out")
        .binding("step");
    recurrence_shape::constants(kernel, shape, stride)
        .constant("SLOT_WORDS", slot_words)
        .module(wgsl!("shared/step"))
        .module(wgsl!("linear_recurrence"))
}

pub(super) fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor) {
    let Arguments { shape, .. } = args;
    let [tokens, stride] = args.x.shape().dims();
    let out = output(&args.x, [tokens, shape.heads * shape.value_len]);
    let numbers = [&args.x, &args.rates, &args.shares, &args.heads];
    if tokens > matvec::MAX_TOKENS {
        let memory = [&args.states, &args.step];
        recurrence_chunks::launch(numbers, memory, &out, shape, args.slot_words);
        return (out, args.states);
    }
    let buffers = [&numbers[..], &[&args.states, &out, &args.step]].concat();
    let grid = [recurrence_shape::workgroups(shape), tokens as u32, 1];
    kernel(shape, stride, args.slot_words).launch(&buffers, grid);
    (out, args.states)
}

pub(super) fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments {
        mut states, shape, ..
    } = args;
    let [tokens, stride] = args.x.shape().dims();
    let step = args.step.storage::<u32>();
    let memory: &mut [f32] = bytemuck::cast_slice_mut(states.storage_mut::<u32>());
    let (rates, shares) = (args.rates.storage::<f32>(), args.shares.storage::<f32>());
    let (x, of_heads) = (args.x.storage::<f32>(), args.heads.storage::<f32>());
    let (key_len, value_len) = (shape.key_len, shape.value_len);
    let mut out = vec![0.0; tokens * shape.heads * value_len];
    for rows in step::sequences(step, tokens) {
        let slot = step::row_state(step, rows.start) * args.slot_words + shape.state_at;
        for head in 0..shape.heads {
            let words = key_len * value_len;
            let state = &mut memory[slot + head * words..][..words];
            if step::row_position(step, rows.start) == 0 {
                state.fill(0.0);
            }
            let [decay, bias, skip] = [0, 1, 2].map(|part| of_heads[part * shape.heads + head]);
            let key_head = match shape.is_tiled {
                true => head % shape.key_heads,
                false => head / (shape.heads / shape.key_heads),
            };
            for row in rows.clone() {
                let part = |at: usize, head: usize, len: usize| {
                    x[row * stride + at + head * len..][..len].to_vec()
                };
                let mut token = Token {
                    query: part(shape.at[0], key_head, key_len),
                    key: part(shape.at[1], key_head, key_len),
                    value: part(shape.at[2], head, value_len),
                };
                if shape.is_delta {
                    token.divide_by_lengths(shape.eps);
                }
                let rate = softplus(rates[row * shape.rates[1] + shape.rates[0] + head] + bias);
                let share = shape.is_delta.then(|| {
                    let share = shares[row * shape.shares[1] + shape.shares[0] + head];
                    1.0 / (1.0 + (-share).exp())
                });
                let out = &mut out[(row * shape.heads + head) * value_len..][..value_len];
                token.pass(state, rate, (rate * decay).exp(), share, out);
                for (out, value) in out.iter_mut().zip(&token.value) {
                    *out = *out * shape.q_scale + skip * value;
                }
            }
        }
    }
    (twin_output(out, [tokens, shape.heads * value_len]), states)
}

fn cpu(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments {
        mut states, shape, ..
    } = args;
    let [tokens, stride] = args.x.shape().dims();
    let step = args.step.storage::<u32>();
    let memory: &mut [f32] = bytemuck::cast_slice_mut(states.storage_mut::<u32>());
    let sequences = state_memory::sequences(step, tokens, memory, args.slot_words);
    let sequences = sequences.map(|(rows, is_new, slot)| RecurrenceRows { rows, slot, is_new });
    let inputs = RecurrenceInputs {
        x: args.x.storage(),
        stride,
        rates: args.rates.storage(),
        shares: args.shares.storage(),
        of_heads: args.heads.storage(),
    };
    let columns = shape.heads * shape.value_len;
    let mut out = vec![0.0; tokens * columns];
    recurrence(
        team::current(),
        inputs,
        sequences.collect(),
        shape,
        &mut out,
    );
    (twin_output(out, [tokens, columns]), states)
}

fn softplus(v: f32) -> f32 {
    v.max(0.0) + (-v.abs()).exp().ln_1p()
}

/// A token of a head.
struct Token {
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
}

impl Token {
    fn divide_by_lengths(&mut self, eps: f32) {
        for vector in [&mut self.query, &mut self.key] {
            let square: f32 = vector.iter().map(|v| v * v).sum();
            let scale = (square + eps).sqrt().recip();
            vector.iter_mut().for_each(|v| *v *= scale);
        }
    }

    /// Updates the state and reads it. `share` is given for the delta rule.
    fn pass(&self, state: &mut [f32], rate: f32, decay: f32, share: Option<f32>, out: &mut [f32]) {
        let len = self.value.len();
        state.iter_mut().for_each(|s| *s *= decay);
        let change: Vec<f32> = match share {
            None => self.value.iter().map(|value| rate * value).collect(),
            Some(share) => {
                let mut rest = self.value.clone();
                for (row, key) in state.chunks_exact(len).zip(&self.key) {
                    add_scaled(&mut rest, -key, row);
                }
                rest.iter().map(|rest| share * rest).collect()
            }
        };
        let rows = state.chunks_exact_mut(len);
        for (row, (key, query)) in rows.zip(self.key.iter().zip(&self.query)) {
            add_scaled(row, *key, &change);
            add_scaled(out, *query, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        for is_delta in [false, true] {
            let shape = RecurrenceShape {
                heads: 6,
                key_heads: 2,
                key_len: 48,
                value_len: 32,
                is_tiled: is_delta,
                is_delta,
                eps: 1e-6,
                q_scale: 0.25,
                at: [0, 96, 192],
                rates: [0, 12],
                shares: [6, 12],
                state_at: 100,
            };
            assert_valid([kernel(shape, 384, 10_000)]);
            assert_valid(recurrence_chunks::kernels(shape, 384, 10_000));
        }
    }
}
