//! Products on the CPU device: panels of weights times inputs, divided among threads. The arithmetic is that of
//! `inpage_cpu`; what is done with a product is the concern of each op.

use std::cell::RefCell;
use std::ops::Range;

use burn::backend::Flex;
use inpage_cpu::{
    activations::Activations,
    format::PANEL_ROWS,
    product::{self, multiply_panels},
    team,
};

use super::matrix::{Layout, MatrixTensors};

/// Products with fewer multiplications are not divided: waking a thread takes longer.
const MIN_DIVIDED: usize = 400_000;
/// Parts per thread. Threads take parts as they finish, so that a busy core delays the others little.
const PARTS_PER_THREAD: usize = 4;

thread_local! {
    /// Kept between products, so that quantizing the inputs allocates nothing.
    static ACTIVATIONS: RefCell<Activations> = RefCell::default();
}

/// A pointer that parts of a product write through, each to rows of its own.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: the parts write to different elements.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    /// The pointer; a method, so that closures capture the whole struct.
    fn get(self) -> *mut T {
        self.0
    }
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
            format: self.shape.ty.panel_format(),
            rows: self.shape.rows,
            cols: self.shape.cols,
            panels: bytemuck::cast_slice(words),
        }
    }

    /// The exact values of a row.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        let matrix = self.panels();
        let panel_bytes = matrix.format.panel_bytes(matrix.cols);
        let panel = &matrix.panels[row / PANEL_ROWS * panel_bytes..][..panel_bytes];
        matrix.format.unpack_row(panel, row % PANEL_ROWS, out);
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
        activations.set(x, matrix.cols, matrix.format);
        let activations = &*activations;
        let first = rows.start / PANEL_ROWS;
        let panels = rows.end.div_ceil(PANEL_ROWS) - first;
        let divided = tokens * rows.len() * matrix.cols >= MIN_DIVIDED;
        let threads = team::current().threads();
        let parts = match divided && threads > 1 {
            true => (threads * PARTS_PER_THREAD).min(panels),
            false => 1,
        };
        let shared = Shared(out.as_mut_ptr());
        team::current().run(parts, &|part| {
            let panels = first + panels * part / parts..first + panels * (part + 1) / parts;
            // SAFETY: `out` has an element per token and row, and the parts' panels do not overlap.
            unsafe { multiply_panels(matrix, rows.clone(), panels, activations, shared.get()) };
        });
    });
    out
}
