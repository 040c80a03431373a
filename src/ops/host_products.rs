//! Products of inputs with matrices and experts, by the twins and on the CPU device. What ops do with a product is their own
//! concern; the arithmetic of the CPU device is that of `inpage_cpu`.

use std::cell::RefCell;
use std::ops::Range;

use burn::backend::Flex;
use inpage_cpu::{
    activations::Activations,
    product::{self, multiply, threads},
    reference::add_products,
    tensor_types::PANEL_ROWS,
};

use super::{
    arithmetic::Arithmetic,
    matrix::{Layout, MatrixShape, MatrixTensors},
};
use crate::tensor_types::BLOCK_COLS;

/// Products with fewer multiplications are not divided: another thread starts 3 to 5 us later.
const MIN_DIVIDED: usize = 250_000;
/// Parts per thread at most. Threads take parts as they finish, so that a busy core delays the others little.
const MAX_PARTS_PER_THREAD: usize = 4;
/// Multiplications of a part, if there are more parts than threads: taking smaller ones costs more than it balances.
const MIN_PART: usize = 400_000;

thread_local! {
    /// The inputs of products. They are kept between products, so that quantizing the inputs allocates nothing.
    static ACTIVATIONS: RefCell<Activations> = RefCell::default();
}

impl MatrixTensors<Flex> {
    /// Whether the CPU device's kernels read the matrix.
    pub(super) fn is_panels(&self) -> bool {
        self.layout == Layout::Panels
    }

    /// The matrix for the kernels.
    ///
    /// # Panics
    /// If it does not consist of panels.
    pub(super) fn panels(&self) -> product::Matrix<'_> {
        assert!(self.is_panels(), "a matrix of blocks for the CPU device");
        // The output matrix of a tied model may have fewer rows than the table whose data it shares.
        let words = &self.quants.storage::<u32>()[..self.shape.panel_words()];
        product::Matrix {
            ty: self.shape.ty,
            rows: self.shape.rows,
            cols: self.shape.cols,
            panels: bytemuck::cast_slice(words),
        }
    }

    /// The exact values of a row.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        let matrix = self.panels();
        let panel_bytes = matrix.ty.panel_bytes(matrix.cols);
        let panel = &matrix.panels[row / PANEL_ROWS * panel_bytes..][..panel_bytes];
        matrix.ty.unpack_row(panel, row % PANEL_ROWS, out);
        if let Some(factors) = self.factors() {
            out.iter_mut().for_each(|value| *value *= factors[row]);
        }
    }

    /// The factors of the rows of panels, if the type has some.
    fn factors(&self) -> Option<&[f32]> {
        let has_factors = self.shape.ty.has_row_factors();
        has_factors.then(|| bytemuck::cast_slice(self.scales.storage::<u32>()))
    }
}

/// `[tokens, rows]` products of the inputs `x` `[tokens, cols]` with a matrix: by the kernels of the CPU device, if it consists of
/// panels, or by the twin in `arithmetic`.
pub(super) fn products(
    x: &[f32],
    weights: &MatrixTensors<Flex>,
    arithmetic: Arithmetic,
) -> Vec<f32> {
    let MatrixShape { rows, cols, .. } = weights.shape;
    match weights.is_panels() {
        true => products_of_panels(x, weights, 0..rows),
        false => products_of_blocks(&arithmetic.rounded(x, cols), weights, 0..rows),
    }
}

/// `[pairs, rows]` products of every pair's input with the rows of its expert, of those that are stored one below the other.
/// `pairs_per_input` neighboring pairs have the same input. A tile is an expert and its pairs.
pub(super) fn expert_products(
    x: &[f32],
    pairs_per_input: usize,
    weights: &MatrixTensors<Flex>,
    rows: usize,
    tiles: &[(usize, Vec<usize>)],
) -> Vec<f32> {
    let compute = match weights.is_panels() {
        true => products_of_panels,
        false => products_of_blocks,
    };
    let cols = weights.shape.cols;
    let mut out = vec![0.0; x.len() / cols * pairs_per_input * rows];
    let mut inputs = Vec::new();
    for (expert, pairs) in tiles {
        inputs.clear();
        for pair in pairs {
            inputs.extend_from_slice(&x[pair / pairs_per_input * cols..][..cols]);
        }
        let products = compute(&inputs, weights, expert * rows..(expert + 1) * rows);
        for (pair, products) in pairs.iter().zip(products.chunks_exact(rows)) {
            out[pair * rows..][..rows].copy_from_slice(products);
        }
    }
    out
}

/// `[tokens, rows]` products with some rows of a matrix of blocks: the twin. Each block is decoded once.
fn products_of_blocks(x: &[f32], weights: &MatrixTensors<Flex>, rows: Range<usize>) -> Vec<f32> {
    let shape = weights.shape;
    let (cols, blocks) = (shape.cols, shape.row_blocks());
    let (quants, scales) = (weights.quants.storage(), weights.scales.storage());
    let mut out = vec![0.0; x.len() / cols * rows.len()];
    for (i, row) in rows.clone().enumerate() {
        for block in 0..blocks {
            let values = shape.decode_block(quants, scales, row * blocks + block);
            let from = block * BLOCK_COLS;
            let to = (from + BLOCK_COLS).min(cols);
            add_products(x, cols, from, &values[..to - from], &mut out, rows.len(), i);
        }
    }
    out
}

/// `[tokens, rows]` products with some rows of a matrix of panels, divided among threads.
fn products_of_panels(x: &[f32], weights: &MatrixTensors<Flex>, rows: Range<usize>) -> Vec<f32> {
    let matrix = weights.panels();
    let tokens = x.len() / matrix.cols;
    let mut out = vec![0.0; tokens * rows.len()];
    if out.is_empty() {
        return out;
    }
    ACTIVATIONS.with_borrow_mut(|activations| {
        activations.set(x, matrix.cols, matrix.ty);
        let panels = rows.end.div_ceil(PANEL_ROWS) - rows.start / PANEL_ROWS;
        let parts = parts(tokens * rows.len() * matrix.cols, threads()).min(panels);
        multiply(matrix, rows.clone(), activations, parts, &mut out);
    });
    if let Some(factors) = weights.factors() {
        let factors = &factors[rows];
        for out in out.chunks_exact_mut(factors.len()) {
            out.iter_mut().zip(factors).for_each(|(o, f)| *o *= f);
        }
    }
    out
}

/// The number of parts of a product with this number of multiplications.
fn parts(macs: usize, threads: usize) -> usize {
    match threads > 1 && macs >= MIN_DIVIDED {
        true => (macs / MIN_PART).clamp(threads, threads * MAX_PARTS_PER_THREAD),
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_products_have_a_part_per_thread_and_large_ones_more() {
        let of = |macs| [1, 2, 8].map(|threads| parts(macs, threads));
        assert_eq!(of(MIN_DIVIDED - 1), [1, 1, 1]);
        assert_eq!(of(MIN_DIVIDED), [1, 2, 8]);
        assert_eq!(of(5 * MIN_PART), [1, 5, 8]);
        assert_eq!(of(1 << 30), [1, 8, 32]);
    }
}
