//! The RMS norm of each group of a row, multiplied by SiLU of a gate before the norm or after it; or the gate alone. Threads
//! divide the rows.

use std::sync::{Mutex, PoisonError};

use super::{
    activation::silu,
    f32x8::{F32x8, Kernel, LANES, run},
    norm::{lanes, rms_scale, write},
};
use crate::team::Team;

/// Sizes and order of a gated norm, and where its gate is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatedNormShape {
    /// Elements that are normalized together.
    pub group: usize,
    /// The groups are normalized; otherwise only gated and weighted.
    pub normalizes: bool,
    /// The values are gated before they are normalized.
    pub gates_first: bool,
    /// The addend of the mean square.
    pub eps: f32,
    /// First column of the gate.
    pub at: usize,
    /// Columns of its rows.
    pub stride: usize,
}

/// Normalizes and gates the rows `x` of `columns`, which are whole groups, in place. `norm` is of one group or of all.
pub fn gated_norm(
    team: &Team,
    x: &mut [f32],
    columns: usize,
    gate: &[f32],
    norm: &[f32],
    shape: GatedNormShape,
) {
    assert!(columns.is_multiple_of(shape.group) && norm.len().is_multiple_of(shape.group));
    let rows = x
        .chunks_exact_mut(columns)
        .zip(gate.chunks_exact(shape.stride));
    let parts: Vec<_> = rows
        .map(|(x, gate)| {
            Mutex::new(Some(Row {
                x,
                gate: &gate[shape.at..],
                norm,
                shape,
            }))
        })
        .collect();
    let compute = |i: usize| {
        let row = parts[i]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        row.into_iter().for_each(run);
    };
    match parts.len() {
        1 => compute(0),
        count => team.run(count, &compute),
    }
}

struct Row<'a> {
    x: &'a mut [f32],
    gate: &'a [f32],
    norm: &'a [f32],
    shape: GatedNormShape,
}

impl Kernel for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let GatedNormShape {
            group,
            normalizes,
            gates_first,
            eps,
            ..
        } = self.shape;
        for (i, x) in self.x.chunks_exact_mut(group).enumerate() {
            let first = i * group;
            let gate = &self.gate[first..][..group];
            let norm = &self.norm[first % self.norm.len()..][..group];
            if gates_first {
                for at in (0..group).step_by(LANES) {
                    let gated = lanes::<L>(x, at).mul(silu(lanes(gate, at)));
                    write(x, at, gated);
                }
            }
            let scale = match normalizes {
                true => rms_scale::<L>(x, eps),
                false => 1.0,
            };
            let scale = L::splat(scale);
            for at in (0..group).step_by(LANES) {
                let mut value = lanes::<L>(x, at).mul(scale).mul(lanes(norm, at));
                if !gates_first {
                    value = value.mul(silu(lanes(gate, at)));
                }
                write(x, at, value);
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

    #[test]
    fn rows_are_normalized_and_gated_alike_on_all_lanes_and_threads() {
        for (group, groups, shared, gates_first, normalizes) in [
            (48, 3, true, false, true),
            (100, 2, false, true, true),
            (20, 2, true, true, false),
        ] {
            let (rows, columns) = (5, group * groups);
            let shape = GatedNormShape {
                group,
                normalizes,
                gates_first,
                eps: 1e-5,
                at: 6,
                stride: columns + 13,
            };
            let (x, gate) = (wave(rows * columns, 1), wave(rows * shape.stride, 2));
            let norm = wave(if shared { group } else { columns }, 3);
            let mut whole = x.clone();
            gated_norm(&Team::new(1), &mut whole, columns, &gate, &norm, shape);
            let mut divided = x.clone();
            gated_norm(&Team::new(3), &mut divided, columns, &gate, &norm, shape);
            assert_eq!(bits(&divided), bits(&whole));
            for backend in backends() {
                let mut row = x[columns..2 * columns].to_vec();
                let gate = &gate[shape.stride + 6..];
                run_on(
                    backend,
                    Row {
                        x: &mut row,
                        gate,
                        norm: &norm,
                        shape,
                    },
                );
                assert_eq!(bits(&row), bits(&whole[columns..2 * columns]));
            }
            for (i, found) in whole.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let silu = |column: usize| {
                    let gate = f64::from(gate[row * shape.stride + 6 + column]);
                    gate / (1.0 + (-gate).exp())
                };
                let value = |column: usize| {
                    let gate = if gates_first { silu(column) } else { 1.0 };
                    f64::from(x[row * columns + column]) * gate
                };
                let first = column / group * group;
                let squares: f64 = (first..first + group).map(|at| value(at).powi(2)).sum();
                let scale = match normalizes {
                    true => (squares / group as f64 + 1e-5).sqrt(),
                    false => 1.0,
                };
                let gate = if gates_first { 1.0 } else { silu(column) };
                let exact = value(column) / scale * f64::from(norm[column % norm.len()]) * gate;
                assert_close(*found, exact, 1e-5);
            }
        }
    }
}
