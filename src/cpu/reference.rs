//! The loops in which the twins of the ops spend their time: plain sums in the order of the columns. They are here because
//! this crate is optimized in test builds, too.

/// Tokens whose sums are computed in turn, so that an addition does not wait for the one before it.
const TURNS: usize = 4;

/// The sum of the products of `a` and `b`, from the first to the last.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds `factor * x` to `out`.
pub fn add_scaled(out: &mut [f32], factor: f32, x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += factor * x;
    }
}

/// Adds the [`dot`] of a part of each token's inputs `x` `[tokens, cols]`, which begins at column `from`, with the `values` of
/// a block of weights to the token's result `row`: `out` is `[tokens, rows]`.
pub fn add_products(
    x: &[f32],
    cols: usize,
    from: usize,
    values: &[f32],
    out: &mut [f32],
    rows: usize,
    row: usize,
) {
    let part = |token: usize| &x[token * cols + from..][..values.len()];
    let tokens = x.len() / cols;
    let whole = tokens - tokens % TURNS;
    for first in (0..whole).step_by(TURNS) {
        let parts: [&[f32]; TURNS] = std::array::from_fn(|turn| part(first + turn));
        let mut sums = [-0.0; TURNS];
        for (i, value) in values.iter().enumerate() {
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += part[i] * value;
            }
        }
        for (turn, sum) in sums.into_iter().enumerate() {
            out[(first + turn) * rows + row] += sum;
        }
    }
    for token in whole..tokens {
        out[token * rows + row] += dot(part(token), values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::test_values::wave;

    #[test]
    fn sums_in_turn_have_the_bits_of_sums_one_by_one() {
        let (cols, rows) = (37, 3);
        let values = wave(20, 1);
        for tokens in [1, 3, 4, 9] {
            let x = wave(tokens * cols, 2);
            let mut out = wave(tokens * rows, 3);
            let mut expected = out.clone();
            add_products(&x, cols, 11, &values, &mut out, rows, 2);
            for token in 0..tokens {
                expected[token * rows + 2] += dot(&x[token * cols + 11..][..20], &values);
            }
            assert_eq!(out, expected);
        }
    }
}
