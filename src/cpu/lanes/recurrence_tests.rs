//! The recurrence against its formula in f64, on all lanes, on threads and in steps.

use super::*;
use crate::lanes::{
    f32x8::{backends, run_on},
    test_values::{assert_close, bits, wave},
};

const SIZES: [(usize, usize, usize, usize, bool); 4] = [
    (4, 2, 24, 48, true),
    (3, 3, 16, 16, true),
    (4, 2, 32, 64, false),
    (2, 1, 128, 80, false),
];

struct Case {
    shape: RecurrenceShape,
    x: Vec<f32>,
    numbers: Vec<f32>,
    of_heads: Vec<f32>,
}

impl Case {
    fn new(
        (heads, key_heads, key_len, value_len, is_delta): (usize, usize, usize, usize, bool),
        rows: usize,
    ) -> Case {
        let keys = key_heads * key_len;
        let shape = RecurrenceShape {
            heads,
            key_heads,
            key_len,
            value_len,
            is_tiled: is_delta,
            is_delta,
            eps: 1e-6,
            q_scale: 0.25,
            at: [1, keys + 1, 2 * keys + 1],
            rates: [0, 2 * heads],
            shares: [heads, 2 * heads],
            state_at: 0,
        };
        let mut of_heads = wave(3 * heads, 3);
        of_heads[..heads]
            .iter_mut()
            .for_each(|decay| *decay = -decay.abs());
        Case {
            shape,
            x: wave(rows * (2 * keys + heads * value_len + 1), 1),
            numbers: wave(rows * 2 * heads, 2),
            of_heads,
        }
    }

    fn rows(&self) -> usize {
        self.numbers.len() / self.shape.rates[1]
    }

    fn inputs(&self) -> RecurrenceInputs<'_> {
        RecurrenceInputs {
            x: &self.x,
            stride: self.x.len() / self.rows(),
            rates: &self.numbers,
            shares: &self.numbers,
            of_heads: &self.of_heads,
        }
    }

    fn states(&self) -> Vec<f32> {
        vec![7.0; self.shape.state_words()]
    }

    /// Results and states by the formula.
    fn exact(&self) -> [Vec<f64>; 2] {
        let RecurrenceShape {
            heads,
            key_heads,
            key_len,
            value_len,
            is_delta,
            ..
        } = self.shape;
        let mut states = vec![0.0; heads * key_len * value_len];
        let mut out = vec![0.0; self.rows() * heads * value_len];
        let at = |from: &[f32], i: usize| f64::from(from[i]);
        for row in 0..self.rows() {
            for head in 0..heads {
                let key_head = if is_delta {
                    head % key_heads
                } else {
                    head / (heads / key_heads)
                };
                let x = &self.x[row * self.inputs().stride..];
                let vector = |part: usize| -> Vec<f64> {
                    let first = self.shape.at[part] + key_head * key_len;
                    let plain: Vec<f64> = (0..key_len).map(|i| at(x, first + i)).collect();
                    let square: f64 = plain.iter().map(|v| v * v).sum();
                    let scale = if is_delta {
                        (square + 1e-6).sqrt()
                    } else {
                        1.0
                    };
                    plain.iter().map(|v| v / scale).collect()
                };
                let (query, key) = (vector(0), vector(1));
                let number = |i: usize| at(&self.numbers, row * 2 * heads + i);
                let of_head = |i: usize| at(&self.of_heads, i * heads + head);
                let rate = (number(head) + of_head(1)).exp().ln_1p();
                let decay = (rate * of_head(0)).exp();
                let state = &mut states[head * key_len * value_len..][..key_len * value_len];
                for column in 0..value_len {
                    let value = at(x, self.shape.at[2] + head * value_len + column);
                    let returned: f64 = (0..key_len)
                        .map(|i| decay * state[i * value_len + column] * key[i])
                        .sum();
                    let change = match is_delta {
                        true => (value - returned) / (1.0 + (-number(heads + head)).exp()),
                        false => rate * value,
                    };
                    let mut read = 0.0;
                    for i in 0..key_len {
                        let s = &mut state[i * value_len + column];
                        *s = decay * *s + key[i] * change;
                        read += *s * query[i];
                    }
                    out[(row * heads + head) * value_len + column] =
                        read * 0.25 + of_head(2) * value;
                }
            }
        }
        [out, states]
    }

    /// Results and states of steps that end before the given rows.
    fn found(&self, team: &Team, ends: &[usize]) -> [Vec<f32>; 2] {
        let mut states = self.states();
        let columns = self.shape.heads * self.shape.value_len;
        let mut out = vec![0.0; self.rows() * columns];
        let mut first = 0;
        for &end in ends {
            let rows = RecurrenceRows {
                rows: first..end,
                slot: &mut states,
                is_new: first == 0,
            };
            recurrence(
                team,
                self.inputs(),
                vec![rows],
                self.shape,
                &mut out[first * columns..],
            );
            first = end;
        }
        [out, states]
    }
}

#[test]
fn results_are_those_of_the_formula() {
    for sizes in SIZES {
        let case = Case::new(sizes, 19);
        let (exact, found) = (case.exact(), case.found(&Team::new(1), &[19]));
        for (exact, found) in exact.iter().flatten().zip(found.iter().flatten()) {
            assert_close(*found, *exact, 2e-4);
        }
    }
}

#[test]
fn threads_and_steps_change_no_bit() {
    for sizes in SIZES {
        let case = Case::new(sizes, 40);
        let whole = case.found(&Team::new(1), &[40]).concat();
        for (threads, ends) in [(3, &[40][..]), (1, &[1, 2, 39, 40]), (2, &[20, 40])] {
            let found = case.found(&Team::new(threads), ends).concat();
            assert_eq!(bits(&found), bits(&whole), "{sizes:?}");
        }
    }
}

#[test]
fn all_lanes_compute_the_same_bits() {
    for sizes in SIZES {
        let case = Case::new(sizes, 5);
        let words = case.shape.key_len * case.shape.value_len;
        let mut seen = Vec::new();
        for backend in backends() {
            let (mut state, mut out) = (vec![0.5; words], vec![0.0; 5 * case.shape.value_len]);
            let head = Head {
                head: 1,
                inputs: case.inputs(),
                shape: case.shape,
                rows: 0..5,
                state: &mut state,
                is_new: false,
                out: out.chunks_exact_mut(case.shape.value_len).collect(),
            };
            run_on(backend, head);
            seen.push(bits(&[state, out].concat()));
        }
        assert!(seen.iter().all(|it| *it == seen[0]), "{sizes:?}");
    }
}

#[test]
fn sequences_of_a_batch_do_not_depend_on_each_other() {
    let case = Case::new(SIZES[0], 3);
    let (mut first, mut second) = (case.states(), case.states());
    let columns = case.shape.heads * case.shape.value_len;
    let mut out = vec![0.0; 3 * columns];
    let sequences = vec![
        RecurrenceRows {
            rows: 0..2,
            slot: &mut first,
            is_new: true,
        },
        RecurrenceRows {
            rows: 2..3,
            slot: &mut second,
            is_new: false,
        },
    ];
    recurrence(
        &Team::new(2),
        case.inputs(),
        sequences,
        case.shape,
        &mut out,
    );
    let alone = case.found(&Team::new(1), &[2]);
    assert_eq!(bits(&out[..2 * columns]), bits(&alone[0][..2 * columns]));
    assert_eq!(bits(&first), bits(&alone[1]));
    let mut states = case.states();
    let mut row = vec![0.0; columns];
    let rows = RecurrenceRows {
        rows: 2..3,
        slot: &mut states,
        is_new: false,
    };
    recurrence(
        &Team::new(1),
        case.inputs(),
        vec![rows],
        case.shape,
        &mut row,
    );
    assert_eq!(bits(&out[2 * columns..]), bits(&row));
    assert_eq!(bits(&second), bits(&states));
}
