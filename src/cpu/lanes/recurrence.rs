//! A recurrence with a matrix per head: the gated delta rule (Yang et al. 2024, <https://arxiv.org/abs/2412.06464>) and
//! Mamba 2 (Dao and Gu 2024, <https://arxiv.org/abs/2405.21060>). Threads divide the heads. A head passes through its
//! tokens one after the other, a few columns of its state at a time, which stay in the nearest cache.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{
    f32x8::{F32x8, Kernel, LANES, run},
    functions::{exp_one, log_1p_one},
};
use crate::team::Team;

/// Recurrences of fewer elements of states and tokens are not divided: another thread starts 3 to 5 us later.
const MIN_DIVIDED: usize = 1 << 17;

/// Sizes of a recurrence, and where its inputs and its states are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecurrenceShape {
    /// Heads with a state of their own.
    pub heads: usize,
    /// Heads of queries and keys, a divisor of `heads`.
    pub key_heads: usize,
    /// Elements of a key and of a query.
    pub key_len: usize,
    /// Elements of a value, a multiple of 16.
    pub value_len: usize,
    /// Head h uses key head h mod `key_heads`; otherwise as many neighbors share one.
    pub is_tiled: bool,
    /// The delta rule. Queries and keys are divided by their lengths.
    pub is_delta: bool,
    /// The number that is added to squared lengths.
    pub eps: f32,
    /// Factor of queries.
    pub q_scale: f32,
    /// First columns of queries, keys and values in `x`.
    pub at: [usize; 3],
    /// First column of the rates, and columns of their rows.
    pub rates: [usize; 2],
    /// First column of the shares, and columns of their rows.
    pub shares: [usize; 2],
    /// First word of the states in a slot.
    pub state_at: usize,
}

impl RecurrenceShape {
    /// Words of the states of all heads.
    pub fn state_words(self) -> usize {
        self.heads * self.key_len * self.value_len
    }
}

/// The inputs of a recurrence.
#[derive(Debug, Clone, Copy)]
pub struct RecurrenceInputs<'a> {
    /// Queries, keys and values, a row per token.
    pub x: &'a [f32],
    /// Columns of `x`.
    pub stride: usize,
    /// A rate per head in each row.
    pub rates: &'a [f32],
    /// A share per head in each row, for the delta rule.
    pub shares: &'a [f32],
    /// Decay, bias of the rate and skip of all heads.
    pub of_heads: &'a [f32],
}

/// Consecutive tokens of a sequence.
#[derive(Debug)]
pub struct RecurrenceRows<'a> {
    /// Its rows.
    pub rows: Range<usize>,
    /// Its slot, with the states `[heads, key_len, value_len]`.
    pub slot: &'a mut [f32],
    /// Its states are zero before the first of the rows, whatever the slot holds.
    pub is_new: bool,
}

/// Continues the states of sequences whose rows follow each other, and writes the results of all their rows to the
/// beginning of `out` `[rows, heads * value_len]`.
///
/// # Panics
/// If slices are too short, or sizes are not supported.
pub fn recurrence(
    team: &Team,
    inputs: RecurrenceInputs,
    sequences: Vec<RecurrenceRows>,
    shape: RecurrenceShape,
    out: &mut [f32],
) {
    let RecurrenceShape {
        heads, value_len, ..
    } = shape;
    assert!(value_len.is_multiple_of(2 * LANES) && heads.is_multiple_of(shape.key_heads));
    let mut results = out.chunks_exact_mut(value_len);
    let mut parts = Vec::with_capacity(sequences.len() * heads);
    let mut elements = 0;
    for it in sequences {
        let first = parts.len();
        elements += it.rows.len() * shape.state_words();
        let states = &mut it.slot[shape.state_at..][..shape.state_words()];
        let states = states.chunks_exact_mut(shape.key_len * value_len);
        parts.extend(states.enumerate().map(|(head, state)| Head {
            head,
            inputs,
            shape,
            rows: it.rows.clone(),
            state,
            is_new: it.is_new,
            out: Vec::with_capacity(it.rows.len()),
        }));
        for _ in it.rows {
            for part in &mut parts[first..] {
                part.out.extend(results.next());
            }
        }
    }
    if elements < MIN_DIVIDED {
        return parts.into_iter().for_each(run);
    }
    let parts: Vec<_> = parts
        .into_iter()
        .map(|part| Mutex::new(Some(part)))
        .collect();
    team.run(parts.len(), &|i| {
        let part = parts[i]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        part.into_iter().for_each(run);
    });
}

/// A head of a sequence.
struct Head<'a> {
    head: usize,
    inputs: RecurrenceInputs<'a>,
    shape: RecurrenceShape,
    rows: Range<usize>,
    state: &'a mut [f32],
    is_new: bool,
    /// The results of each row.
    out: Vec<&'a mut [f32]>,
}

/// The factors of a token for all columns of the state, besides its key and query.
#[derive(Clone, Copy)]
struct Token {
    decay: f32,
    /// The rate or the share of the new value.
    weight: f32,
    key_scale: f32,
    query_scale: f32,
    /// Query times key.
    product: f32,
}

impl Kernel for Head<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(mut self) {
        if self.is_new {
            self.state.fill(0.0);
        }
        let mut tokens = Vec::with_capacity(self.rows.len());
        for row in self.rows.clone() {
            tokens.push(self.token::<L>(row));
        }
        let whole = self.shape.value_len / (4 * LANES) * (4 * LANES);
        for column in (0..whole).step_by(4 * LANES) {
            self.columns::<L, 4>(column, &tokens);
        }
        if whole < self.shape.value_len {
            self.columns::<L, 2>(whole, &tokens);
        }
    }
}

impl<'a> Head<'a> {
    /// The query and the key of a row.
    #[inline(always)]
    fn query_and_key(&self, row: usize) -> [&'a [f32]; 2] {
        let shape = &self.shape;
        let key_head = match shape.is_tiled {
            true => self.head % shape.key_heads,
            false => self.head / (shape.heads / shape.key_heads),
        };
        let of_row: &'a [f32] = &self.inputs.x[row * self.inputs.stride..][..self.inputs.stride];
        [shape.at[0], shape.at[1]]
            .map(|at| &of_row[at + key_head * shape.key_len..][..shape.key_len])
    }

    #[inline(always)]
    fn token<L: F32x8>(&self, row: usize) -> Token {
        let (shape, inputs) = (&self.shape, &self.inputs);
        let [query, key] = self.query_and_key(row);
        let mut sums = [L::splat(0.0); 3];
        for at in (0..shape.key_len).step_by(LANES) {
            let (q, k) = (
                super::norm::lanes::<L>(query, at),
                super::norm::lanes::<L>(key, at),
            );
            sums[0] = sums[0].add(q.mul(k));
            sums[1] = sums[1].add(q.mul(q));
            sums[2] = sums[2].add(k.mul(k));
        }
        let rate = inputs.rates[row * shape.rates[1] + shape.rates[0] + self.head]
            + inputs.of_heads[shape.heads + self.head];
        let mut token = Token {
            decay: 0.0,
            weight: softplus::<L>(rate),
            key_scale: 1.0,
            query_scale: shape.q_scale,
            product: sums[0].sum(),
        };
        token.decay = exp_one::<L>(token.weight * inputs.of_heads[self.head]);
        if shape.is_delta {
            token.query_scale *= (sums[1].sum() + shape.eps).sqrt().recip();
            token.key_scale = (sums[2].sum() + shape.eps).sqrt().recip();
            let share = inputs.shares[row * shape.shares[1] + shape.shares[0] + self.head];
            token.weight = 1.0 / (1.0 + exp_one::<L>(-share));
        }
        token
    }

    /// Passes `N` vectors of columns through all tokens. For several tokens they are in memory of their own meanwhile: in the
    /// state, rows are so far apart that they would displace each other from the cache.
    #[inline(always)]
    fn columns<L: F32x8, const N: usize>(&mut self, column: usize, tokens: &[Token]) {
        let value_len = self.shape.value_len;
        let state = std::mem::take(&mut self.state);
        if let [token] = tokens {
            self.pass::<L, N>(column, 0, *token, state, [value_len, column]);
        } else {
            let width = N * LANES;
            let mut near = Vec::with_capacity(self.shape.key_len * width);
            for row in state.chunks_exact(value_len) {
                near.extend_from_slice(&row[column..][..width]);
            }
            for (i, token) in tokens.iter().enumerate() {
                self.pass::<L, N>(column, i, *token, &mut near, [width, 0]);
            }
            for (row, near) in state
                .chunks_exact_mut(value_len)
                .zip(near.chunks_exact(width))
            {
                row[column..][..width].copy_from_slice(near);
            }
        }
        self.state = state;
    }

    /// Passes columns through the token of row `i`. Rows of `state` have `stride` elements, of which those from `at` on are
    /// the columns.
    #[inline(always)]
    fn pass<L: F32x8, const N: usize>(
        &mut self,
        column: usize,
        i: usize,
        token: Token,
        state: &mut [f32],
        [stride, at]: [usize; 2],
    ) {
        let (shape, row) = (self.shape, self.rows.start + i);
        let skip = L::splat(self.inputs.of_heads[2 * shape.heads + self.head]);
        let [query, key] = self.query_and_key(row);
        // Addresses are checked once per row of the state, not once per vector.
        let (mut of_key, mut of_query) = ([L::splat(0.0); N], [L::splat(0.0); N]);
        for (i, state) in state.chunks_exact(stride).enumerate() {
            let (k, q) = (L::splat(key[i]), L::splat(query[i]));
            let (state, _) = state[at..][..N * LANES].as_chunks::<LANES>();
            for n in 0..N {
                let s = L::from_array(state[n]);
                of_key[n] = of_key[n].add(s.mul(k));
                of_query[n] = of_query[n].add(s.mul(q));
            }
        }
        let value_at = row * self.inputs.stride + shape.at[2] + self.head * shape.value_len;
        let (values, _) = self.inputs.x[value_at + column..][..N * LANES].as_chunks::<LANES>();
        let decay = L::splat(token.decay);
        let mut changes = [L::splat(0.0); N];
        let out = &mut self.out[i][column..][..N * LANES];
        for n in 0..N {
            let value = L::from_array(values[n]);
            let mut rest = value;
            if shape.is_delta {
                let returned = decay.mul(of_key[n]).mul(L::splat(token.key_scale));
                rest = rest.sub(returned);
            }
            let change = rest
                .mul(L::splat(token.weight))
                .mul(L::splat(token.key_scale));
            let read = decay
                .mul(of_query[n])
                .add(change.mul(L::splat(token.product)));
            let read = read.mul(L::splat(token.query_scale)).add(skip.mul(value));
            super::norm::write(out, n * LANES, read);
            changes[n] = change;
        }
        for (i, state) in state.chunks_exact_mut(stride).enumerate() {
            let k = L::splat(key[i]);
            let (state, _) = state[at..][..N * LANES].as_chunks_mut::<LANES>();
            for n in 0..N {
                let s = decay.mul(L::from_array(state[n])).add(changes[n].mul(k));
                state[n] = s.to_array();
            }
        }
    }
}

/// `log(1 + e^x)`
#[inline(always)]
fn softplus<L: F32x8>(x: f32) -> f32 {
    x.max(0.0) + log_1p_one::<L>(exp_one::<L>(-x.abs()))
}

#[cfg(test)]
#[path = "recurrence_tests.rs"]
mod tests;
