//! A causal convolution of each channel over the tokens of a sequence. Threads divide the rows.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{
    activation::silu,
    f32x8::{F32x8, Kernel, LANES, run},
    norm::{lanes, write},
};
use crate::team::Team;

/// Tokens that a result depends on at most.
pub const MAX_TAPS: usize = 16;
/// Rows of a part: the weights of a channel are gathered once for them.
const PART_ROWS: usize = 16;

/// Sizes of a convolution, and where its inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Convolved values of a token.
    pub channels: usize,
    /// Tokens that a result depends on, the token itself included: 2 to [`MAX_TAPS`].
    pub taps: usize,
    /// Rows are B, C and x: `B * x` is convolved, and the result is multiplied by C. Otherwise the result passes through
    /// SiLU.
    pub is_gated: bool,
    /// First column of the input.
    pub at: usize,
    /// Columns of its rows.
    pub stride: usize,
}

impl ConvShape {
    /// Words of a state: the last inputs of a sequence.
    pub fn state_words(self) -> usize {
        (self.taps - 1) * self.channels
    }
}

/// The inputs of a convolution.
#[derive(Debug, Clone, Copy)]
pub struct ConvolutionInputs<'a> {
    /// A row per token.
    pub x: &'a [f32],
    /// `[channels, taps]`
    pub weights: &'a [f32],
    /// `[channels]`
    pub bias: &'a [f32],
}

/// Consecutive tokens of a sequence.
#[derive(Debug)]
pub struct ConvolutionRows<'a> {
    /// Its rows.
    pub rows: Range<usize>,
    /// Its last inputs, `[taps - 1, channels]`.
    pub kept: &'a mut [f32],
    /// They are zero before the first of the rows, whatever they hold.
    pub is_new: bool,
}

/// Convolves sequences whose rows follow each other, writes the results of all their rows to the beginning of `out` `[rows,
/// channels]`, and keeps their last inputs.
///
/// # Panics
/// If slices are too short.
pub fn convolution(
    team: &Team,
    inputs: ConvolutionInputs,
    mut sequences: Vec<ConvolutionRows>,
    shape: ConvShape,
    out: &mut [f32],
) {
    assert!((2..=MAX_TAPS).contains(&shape.taps));
    let mut parts = Vec::new();
    let mut rest = out;
    for it in &sequences {
        let source = Source {
            inputs,
            shape,
            first: it.rows.start,
            kept: (!it.is_new).then_some(&*it.kept),
        };
        let mut begin = 0;
        while begin < it.rows.len() {
            let end = it.rows.len().min(begin + PART_ROWS);
            let (out, others) = rest.split_at_mut((end - begin) * shape.channels);
            rest = others;
            parts.push(Mutex::new(Some(Part { source, begin, out })));
            begin = end;
        }
    }
    let compute = |i: usize| {
        let part = parts[i]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        part.into_iter().for_each(run);
    };
    match parts.len() {
        1 => compute(0),
        count => team.run(count, &compute),
    }
    drop(parts);
    for it in &mut sequences {
        keep(inputs, shape, it);
    }
}

/// Keeps the last inputs. A kept input is read before it is overwritten.
fn keep(inputs: ConvolutionInputs, shape: ConvShape, it: &mut ConvolutionRows) {
    let (channels, before) = (shape.channels, shape.taps - 1);
    let added = it.rows.len();
    if it.is_new {
        it.kept[..before * channels].fill(0.0);
    }
    let stay = before.saturating_sub(added);
    it.kept
        .copy_within((before - stay) * channels..before * channels, 0);
    for i in stay..before {
        let row = it.rows.start + added + i - before;
        let x = &inputs.x[row * shape.stride + shape.at..];
        let kept = &mut it.kept[i * channels..][..channels];
        match shape.is_gated {
            true => (0..channels).for_each(|c| kept[c] = x[c] * x[2 * channels + c]),
            false => kept.copy_from_slice(&x[..channels]),
        }
    }
}

/// The inputs of a sequence.
#[derive(Clone, Copy)]
struct Source<'a> {
    inputs: ConvolutionInputs<'a>,
    shape: ConvShape,
    /// Its first row.
    first: usize,
    /// The inputs before that; none if they are zero.
    kept: Option<&'a [f32]>,
}

impl Source<'_> {
    /// Elements of a part of a row: B, C and x, or the only one.
    #[inline(always)]
    fn column<L: F32x8>(&self, token: usize, part: usize, channel: usize) -> L {
        let ConvShape {
            channels,
            at,
            stride,
            ..
        } = self.shape;
        let row =
            &self.inputs.x[(self.first + token) * stride + at + part * channels..][..channels];
        lanes(row, channel)
    }

    /// The vector that is convolved: the input `back` tokens before one.
    #[inline(always)]
    fn input<L: F32x8>(&self, token: usize, back: usize, channel: usize) -> L {
        let ConvShape { channels, taps, .. } = self.shape;
        if back > token {
            let kept = taps - 1 + token - back;
            return match self.kept {
                Some(inputs) => lanes(&inputs[kept * channels..][..channels], channel),
                None => L::splat(0.0),
            };
        }
        let input = self.column::<L>(token - back, 0, channel);
        match self.shape.is_gated {
            true => input.mul(self.column(token - back, 2, channel)),
            false => input,
        }
    }
}

/// Some tokens of a sequence, from `begin` on.
struct Part<'a> {
    source: Source<'a>,
    begin: usize,
    out: &'a mut [f32],
}

impl Kernel for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let ConvolutionInputs { weights, bias, .. } = self.source.inputs;
        let ConvShape {
            channels,
            taps,
            is_gated,
            ..
        } = self.source.shape;
        for channel in (0..channels).step_by(LANES) {
            let mut of_taps = [L::splat(0.0); MAX_TAPS];
            for tap in 0..taps {
                let mut gathered = [0.0; LANES];
                for i in 0..LANES.min(channels - channel) {
                    gathered[i] = weights[(channel + i) * taps + tap];
                }
                of_taps[tap] = L::from_array(gathered);
            }
            let bias = lanes::<L>(bias, channel);
            for (i, out) in self.out.chunks_exact_mut(channels).enumerate() {
                let token = self.begin + i;
                let mut sum = bias;
                for tap in 0..taps {
                    let input = self.source.input::<L>(token, taps - 1 - tap, channel);
                    sum = sum.add(of_taps[tap].mul(input));
                }
                let result = match is_gated {
                    true => sum.mul(self.source.column(token, 1, channel)),
                    false => silu(sum),
                };
                write(out, channel, result);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{
        f32x8::{backends, run_on},
        test_values::{assert_close, bits, wave},
    };

    const SHAPES: [(usize, usize, bool); 4] =
        [(70, 4, false), (16, 3, true), (5, 2, false), (41, 16, true)];

    struct Case {
        shape: ConvShape,
        x: Vec<f32>,
        weights: Vec<f32>,
        bias: Vec<f32>,
    }

    impl Case {
        fn new((channels, taps, is_gated): (usize, usize, bool), rows: usize) -> Case {
            let stride = if is_gated { 3 } else { 1 } * channels + 3;
            Case {
                shape: ConvShape {
                    channels,
                    taps,
                    is_gated,
                    at: 2,
                    stride,
                },
                x: wave(rows * stride, 1),
                weights: wave(channels * taps, 2),
                bias: wave(channels, 3),
            }
        }

        fn inputs(&self) -> ConvolutionInputs<'_> {
            ConvolutionInputs {
                x: &self.x,
                weights: &self.weights,
                bias: &self.bias,
            }
        }

        fn input(&self, row: usize, channel: usize) -> f64 {
            let x = &self.x[row * self.shape.stride + 2..];
            let factor = if self.shape.is_gated {
                x[2 * self.shape.channels + channel]
            } else {
                1.0
            };
            f64::from(x[channel]) * f64::from(factor)
        }

        fn exact(&self, row: usize, channel: usize) -> f64 {
            let ConvShape {
                channels,
                taps,
                is_gated,
                stride,
                ..
            } = self.shape;
            let products = (0..taps.min(row + 1)).map(|back| {
                let weight = self.weights[channel * taps + taps - 1 - back];
                f64::from(weight) * self.input(row - back, channel)
            });
            let sum = f64::from(self.bias[channel]) + products.sum::<f64>();
            match is_gated {
                true => sum * f64::from(self.x[row * stride + 2 + channels + channel]),
                false => sum / (1.0 + (-sum).exp()),
            }
        }

        /// Results and kept inputs of steps that end before the given rows.
        fn found(&self, threads: usize, ends: &[usize]) -> [Vec<f32>; 2] {
            let ConvShape { channels, taps, .. } = self.shape;
            let mut kept = vec![7.0; (taps - 1) * channels];
            let mut out = vec![0.0; self.x.len() / self.shape.stride * channels];
            let mut first = 0;
            for &end in ends {
                let rows = ConvolutionRows {
                    rows: first..end,
                    kept: &mut kept,
                    is_new: first == 0,
                };
                let out = &mut out[first * channels..];
                convolution(
                    &Team::new(threads),
                    self.inputs(),
                    vec![rows],
                    self.shape,
                    out,
                );
                first = end;
            }
            [out, kept]
        }
    }

    #[test]
    fn results_are_those_of_the_formula() {
        for sizes in SHAPES {
            let case = Case::new(sizes, 37);
            let [out, kept] = case.found(1, &[37]);
            let (channels, taps) = (case.shape.channels, case.shape.taps);
            for (i, found) in out.iter().enumerate() {
                assert_close(*found, case.exact(i / channels, i % channels), 1e-4);
            }
            for (i, found) in kept.iter().enumerate() {
                let row = 37 - (taps - 1) + i / channels;
                assert_close(*found, case.input(row, i % channels), 1e-6);
            }
        }
    }

    #[test]
    fn threads_and_steps_change_no_bit() {
        for sizes in SHAPES {
            let case = Case::new(sizes, 40);
            let whole = case.found(1, &[40]).concat();
            for (threads, ends) in [(3, &[40][..]), (1, &[1, 2, 3, 20, 40])] {
                assert_eq!(
                    bits(&case.found(threads, ends).concat()),
                    bits(&whole),
                    "{sizes:?}"
                );
            }
        }
    }

    #[test]
    fn all_lanes_compute_the_same_bits() {
        let case = Case::new(SHAPES[0], 9);
        let kept = wave(3 * 70, 5);
        let mut seen = Vec::new();
        for backend in backends() {
            let mut out = vec![0.0; 9 * 70];
            let source = Source {
                inputs: case.inputs(),
                shape: case.shape,
                first: 0,
                kept: Some(&kept),
            };
            run_on(
                backend,
                Part {
                    source,
                    begin: 0,
                    out: &mut out,
                },
            );
            seen.push(bits(&out));
        }
        assert!(seen.iter().all(|it| *it == seen[0]));
    }
}
