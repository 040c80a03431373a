//! Products on the CPU device: panels of weights times inputs, divided among threads. The arithmetic is that of
//! `inpage_cpu`; what is done with a product is the concern of each op.

use std::cell::RefCell;
use std::ops::Range;

use burn::backend::Flex;
use inpage_cpu::{
    activations::Activations,
    product::{self, multiply, threads},
    tensor_types::PANEL_ROWS,
};

use super::matrix::{Layout, MatrixTensors};

/// Products with fewer multiplications are not divided: another thread starts 3 to 5 us later.
const MIN_DIVIDED: usize = 250_000;
/// Parts per thread at most. Threads take parts as they finish, so that a busy core delays the others little.
const MAX_PARTS_PER_THREAD: usize = 4;
/// Multiplications of a part, if there are more parts than threads: taking smaller ones costs more than it balances.
const MIN_PART: usize = 400_000;

thread_local! {
    /// Kept between products, so that quantizing the inputs allocates nothing.
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
    }
}

/// `[tokens, rows]` products of the inputs `x` `[tokens, cols]` with some rows of a matrix.
pub(super) fn products(x: &[f32], weights: &MatrixTensors<Flex>, rows: Range<usize>) -> Vec<f32> {
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
        multiply(matrix, rows, activations, parts, &mut out);
    });
    out
}

/// The parts of a product with so many multiplications.
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
