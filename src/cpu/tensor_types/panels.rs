//! Matrices for the kernels of the CPU device: sizes of their panels, packing and exact values.
//!
//! A panel has 8 rows and all columns, with the bits of the file in another order. It is a sequence of units, along the
//! columns; a unit has a block of the file of each row.
//!
//! Eight rows are interleaved so that one vector holds four columns of each. A dot-product instruction then adds to eight
//! rows at once, and no sum over lanes is needed. Tensors are packed while they are read, and every byte of the file is
//! stored once.

use super::{Floats, Quantized, TensorType, by_type, planes};

/// Rows of a panel.
pub const PANEL_ROWS: usize = 8;

/// The layout of a type in panels.
impl TensorType {
    /// Columns of a unit. A row has a multiple of this many.
    pub fn unit_cols(self) -> usize {
        by_type!(self, Q => 32 * Q::RUNS, F => 4)
    }

    /// Bytes of a panel: 8 packed rows. A multiple of 4.
    pub fn panel_bytes(self, cols: usize) -> usize {
        cols / self.unit_cols() * self.unit_bytes()
    }

    /// Bytes of a unit of a panel.
    fn unit_bytes(self) -> usize {
        by_type!(self, Q => unit_bytes::<Q>(), F => 4 * PANEL_ROWS * F::BYTES)
    }

    /// Bytes of a row in the file.
    pub(crate) fn file_row_bytes(self, cols: usize) -> usize {
        cols / self.unit_cols() * by_type!(self, Q => Q::FILE_BYTES, F => 4 * F::BYTES)
    }

    /// Packs up to 8 rows, which follow each other as in the file. Missing rows become zero.
    ///
    /// # Panics
    /// If the columns are not whole units, `rows` are not up to 8 whole rows, or `panel` does not have
    /// [`TensorType::panel_bytes`].
    pub fn pack(self, cols: usize, rows: &[u8], panel: &mut [u8]) {
        let row_bytes = self.checked_row_bytes(cols, panel.len());
        assert!(
            rows.len().is_multiple_of(row_bytes) && rows.len() <= PANEL_ROWS * row_bytes,
            "{} bytes are not up to 8 rows of {row_bytes}",
            rows.len()
        );
        panel.fill(0);
        for (row, bytes) in rows.chunks_exact(row_bytes).enumerate() {
            by_type!(self, Q => pack_quantized::<Q>(bytes, row, panel), F => {
                let elements = bytes.chunks_exact(F::BYTES);
                let places = panel.chunks_exact_mut(F::BYTES).skip(row).step_by(PANEL_ROWS);
                for (element, place) in elements.zip(places) {
                    place.copy_from_slice(element);
                }
            });
        }
    }

    /// The exact values of row `row` of a panel.
    ///
    /// # Panics
    /// If there is no such row, the columns of `out` are not whole units, or `panel` does not have
    /// [`TensorType::panel_bytes`].
    pub fn unpack_row(self, panel: &[u8], row: usize, out: &mut [f32]) {
        self.checked_row_bytes(out.len(), panel.len());
        assert!(row < PANEL_ROWS, "a panel has 8 rows");
        by_type!(self, Q => unpack_quantized::<Q>(panel, row, out), F => {
            let elements = panel.chunks_exact(F::BYTES).skip(row).step_by(PANEL_ROWS);
            for (element, out) in elements.zip(out) {
                *out = F::value(element);
            }
        });
    }

    /// Bytes of a row in the file; checks columns and panel.
    fn checked_row_bytes(self, cols: usize, panel_bytes: usize) -> usize {
        let multiple = self.unit_cols();
        assert!(
            cols > 0 && cols.is_multiple_of(multiple),
            "{cols} columns of {}: not a multiple of {multiple}",
            self.name()
        );
        assert_eq!(
            panel_bytes,
            self.panel_bytes(cols),
            "bytes of a panel of {cols} columns of {}",
            self.name()
        );
        self.file_row_bytes(cols)
    }
}

const fn unit_bytes<Q: Quantized>() -> usize {
    Q::RUNS * Q::RUN_BYTES + Q::SCALE_BYTES
}

fn pack_quantized<Q: Quantized>(bytes: &[u8], row: usize, panel: &mut [u8]) {
    let units = panel.chunks_exact_mut(unit_bytes::<Q>());
    for (block, unit) in bytes.chunks_exact(Q::FILE_BYTES).zip(units) {
        let (runs, scales) = unit.split_at_mut(Q::RUNS * Q::RUN_BYTES);
        for (run, planes) in runs.chunks_exact_mut(Q::RUN_BYTES).enumerate() {
            planes::pack(Q::BITS, Q::quants(block, run), row, planes);
        }
        Q::pack_scales(block, row, scales);
    }
}

fn unpack_quantized<Q: Quantized>(panel: &[u8], row: usize, out: &mut [f32]) {
    let units = panel.chunks_exact(unit_bytes::<Q>());
    for (unit, out) in units.zip(out.chunks_exact_mut(32 * Q::RUNS)) {
        let (runs, scales) = unit.split_at(Q::RUNS * Q::RUN_BYTES);
        let runs = runs
            .chunks_exact(Q::RUN_BYTES)
            .zip(out.chunks_exact_mut(32));
        for (run, (planes, out)) in runs.enumerate() {
            let quants = planes::unpack(Q::BITS, planes, row);
            out.copy_from_slice(&Q::values(quants, scales, row, run));
        }
    }
}
