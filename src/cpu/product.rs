//! Products of packed matrices and inputs: the choice of the instruction set, and the loops over panels and tokens.
//! Threads are the caller's.

use std::ops::Range;

use crate::{
    activations::{Activations, Inputs, TILE, tile_tokens},
    format::{Format, PANEL_ROWS, by_format},
    formats::Floats,
    kernel::{Blocks, Columns, Kernel},
    simd::Simd,
};

/// A packed matrix.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    /// How it is packed.
    pub format: Format,
    /// Rows, without those that fill the last panel.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The panels, one behind the other; see [`Format::pack`].
    pub panels: &'a [u8],
}

/// What one call computes. The relaxed-SIMD module reads it from the memory of the module that fills it.
#[repr(C)]
pub(crate) struct Product {
    /// Of the code that reads it: see `module.rs`.
    pub(crate) version: u32,
    /// As a number.
    pub(crate) format: u32,
    /// Rows that the result has.
    pub(crate) first_row: usize,
    pub(crate) last_row: usize,
    /// Panels to compute, some of which may be in part outside of these rows.
    pub(crate) first_panel: usize,
    pub(crate) last_panel: usize,
    pub(crate) panels: *const u8,
    pub(crate) panel_bytes: usize,
    pub(crate) inputs: Inputs,
    pub(crate) out: *mut f32,
}

/// Writes the products of a range of rows and each token's inputs: `out` is `[tokens, rows of the range]`.
///
/// The range may start and end anywhere. A token's results depend neither on other tokens nor on the instruction
/// set.
///
/// # Panics
/// If the matrix does not have such rows, its panels have another size, the inputs are prepared for other matrices,
/// or `out` has another size.
pub fn multiply(matrix: Matrix, rows: Range<usize>, x: &Activations, out: &mut [f32]) {
    assert!(rows.start <= rows.end, "rows {rows:?}");
    assert_eq!(
        out.len(),
        x.tokens() * rows.len(),
        "results of {} tokens and {} rows",
        x.tokens(),
        rows.len()
    );
    let panels = 0..matrix.rows.div_ceil(PANEL_ROWS);
    // SAFETY: `out` has the size, and nobody else writes to it.
    unsafe { multiply_panels(matrix, rows, panels, x, out.as_mut_ptr()) }
}

/// The part of [`multiply`] that the rows in `panels` are; these are indices of the matrix's panels. Other parts of
/// `out` are neither read nor written, so that threads may share it.
///
/// # Safety
/// `out` must be valid for writes of `tokens * rows.len()` values. While this runs, no one else may access those of
/// rows in `panels`.
///
/// # Panics
/// As [`multiply`].
pub unsafe fn multiply_panels(
    matrix: Matrix,
    rows: Range<usize>,
    panels: Range<usize>,
    x: &Activations,
    out: *mut f32,
) {
    // SAFETY: as of this function.
    unsafe { Job::new(matrix, rows, panels, x, out).run() }
}

/// The name of the instruction set in use: `scalar`, `avx2`, `avx-vnni`, `simd128` or `relaxed-simd`.
pub fn instruction_set() -> &'static str {
    InstructionSet::best().name()
}

/// A checked product.
pub(crate) struct Job {
    format: Format,
    product: Product,
}

impl Job {
    pub(crate) fn new(
        matrix: Matrix,
        rows: Range<usize>,
        panels: Range<usize>,
        x: &Activations,
        out: *mut f32,
    ) -> Job {
        let panel_bytes = matrix.format.panel_bytes(matrix.cols);
        let inputs = x.inputs();
        assert!(
            rows.start <= rows.end && rows.end <= matrix.rows,
            "rows {rows:?} of {}",
            matrix.rows
        );
        assert_eq!(
            matrix.panels.len(),
            matrix.rows.div_ceil(PANEL_ROWS) * panel_bytes,
            "bytes of {} rows and {} columns of {}",
            matrix.rows,
            matrix.cols,
            matrix.format.name()
        );
        assert!(
            x.format() == Some(matrix.format) && inputs.cols == matrix.cols,
            "inputs for {:?} with {} columns, a matrix of {} with {}",
            x.format(),
            inputs.cols,
            matrix.format.name(),
            matrix.cols
        );
        let covered = match rows.is_empty() {
            true => 0..0,
            false => rows.start / PANEL_ROWS..rows.end.div_ceil(PANEL_ROWS),
        };
        Job {
            format: matrix.format,
            product: Product {
                version: crate::module::VERSION,
                format: matrix.format as u32,
                first_row: rows.start,
                last_row: rows.end,
                first_panel: panels.start.max(covered.start),
                last_panel: panels.end.min(covered.end),
                panels: matrix.panels.as_ptr(),
                panel_bytes,
                inputs,
                out,
            },
        }
    }

    /// # Safety
    /// As of [`multiply_panels`].
    unsafe fn run(&self) {
        #[cfg(target_feature = "simd128")]
        if crate::module::run(&self.product) {
            return;
        }
        // SAFETY: as of this function.
        unsafe { self.run_here() }
    }

    /// Runs it with the code of this module.
    ///
    /// # Safety
    /// As of [`multiply_panels`].
    pub(crate) unsafe fn run_here(&self) {
        // SAFETY: as of this function, and the set is there.
        unsafe { self.run_with(InstructionSet::best()) }
    }

    #[cfg(target_feature = "simd128")]
    pub(crate) fn product(&self) -> &Product {
        &self.product
    }

    /// # Safety
    /// As of [`multiply_panels`], and the instruction set must be there.
    pub(crate) unsafe fn run_with(&self, set: InstructionSet) {
        // SAFETY: as of this function.
        unsafe {
            match set {
                #[cfg(not(target_feature = "simd128"))]
                InstructionSet::Scalar => {
                    run::<crate::simd::scalar::Scalar>(&self.product, self.format);
                }
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => run::<crate::simd::avx2::Avx2>(&self.product, self.format),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::AvxVnni => {
                    run::<crate::simd::avx2::AvxVnni>(&self.product, self.format);
                }
                #[cfg(target_feature = "simd128")]
                InstructionSet::Wasm => {
                    run::<crate::simd::wasm::Wasm<0, false>>(&self.product, self.format)
                }
            }
        }
    }
}

/// An implementation of [`Simd`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InstructionSet {
    #[cfg(not(target_feature = "simd128"))]
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_feature = "simd128")]
    Wasm,
}

impl InstructionSet {
    /// Those that are there, the best first.
    #[cfg(not(target_feature = "simd128"))]
    pub(crate) fn available() -> impl Iterator<Item = InstructionSet> {
        [
            #[cfg(target_arch = "x86_64")]
            InstructionSet::AvxVnni,
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2,
            InstructionSet::Scalar,
        ]
        .into_iter()
        .filter(|set| set.is_available())
    }

    #[cfg(not(target_feature = "simd128"))]
    fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
            match self {
                InstructionSet::Scalar => true,
                InstructionSet::Avx2 => avx2(),
                InstructionSet::AvxVnni => avx2() && is_x86_feature_detected!("avxvnni"),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        true
    }

    #[cfg(not(target_feature = "simd128"))]
    fn best() -> InstructionSet {
        let best = InstructionSet::available().next();
        best.unwrap_or(InstructionSet::Scalar)
    }

    #[cfg(target_feature = "simd128")]
    fn best() -> InstructionSet {
        InstructionSet::Wasm
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(not(target_feature = "simd128"))]
            InstructionSet::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::AvxVnni => "avx-vnni",
            #[cfg(target_feature = "simd128")]
            InstructionSet::Wasm => crate::module::instruction_set(),
        }
    }
}

/// Computes a product. Does not panic, and has no data: the relaxed-SIMD module consists of this.
///
/// # Safety
/// The instruction set must be there, and all pointers and sizes valid.
#[inline(always)]
pub(crate) unsafe fn run<S: Simd>(product: &Product, format: Format) {
    // SAFETY: as of this function.
    unsafe {
        by_format!(
            format,
            Q => panels::<S, Blocks<Q>>(product, 1),
            F => panels::<S, Columns<F>>(product, <F as Floats>::BYTES.max(4))
        );
    }
}

/// Loops over panels and tiles of tokens. `input_bytes` are those of an input of one column.
///
/// # Safety
/// As of [`run`].
unsafe fn panels<S: Simd, K: Kernel>(product: &Product, input_bytes: usize) {
    /// Inputs of as many tokens as stay in the second-level cache are used for all panels, then those of the next.
    const CACHED_BYTES: usize = 256 << 10;

    let inputs = &product.inputs;
    let row_bytes = inputs.cols * input_bytes;
    let mut chunk = TILE;
    while (chunk + TILE) * row_bytes <= CACHED_BYTES && chunk < inputs.tokens {
        chunk += TILE;
    }
    let mut first = 0;
    while first < inputs.tokens {
        let last = inputs.tokens.min(first + chunk);
        let mut panel = product.first_panel;
        while panel < product.last_panel {
            // SAFETY: as of this function. The results of a tile have up to `TILE` tokens.
            unsafe {
                let weights = product.panels.add(panel * product.panel_bytes);
                let mut token = first;
                while token < last {
                    let tokens = tile_tokens(inputs.tokens - token);
                    let mut sums = [0.0; TILE * PANEL_ROWS];
                    let to = sums.as_mut_ptr();
                    match tokens {
                        1 => S::tile::<K, 1>(weights, inputs.cols, inputs, token, to),
                        2 => S::tile::<K, 2>(weights, inputs.cols, inputs, token, to),
                        _ => S::tile::<K, TILE>(weights, inputs.cols, inputs, token, to),
                    }
                    write(product, panel, token, tokens, to);
                    token += tokens;
                }
            }
            panel += 1;
        }
        first = last;
    }
}

/// Writes those results of a tile that are in the product's rows.
///
/// # Safety
/// As of [`run`]; `sums` has 8 values of each of the tokens.
#[inline(always)]
unsafe fn write(product: &Product, panel: usize, token: usize, tokens: usize, sums: *const f32) {
    let rows = product.last_row - product.first_row;
    let row = panel * PANEL_ROWS;
    let from = row.max(product.first_row);
    let to = (row + PANEL_ROWS).min(product.last_row);
    for t in 0..tokens {
        // SAFETY: `from..to` are rows of the panel and of the result.
        unsafe {
            let out = product
                .out
                .add((token + t) * rows + (from - product.first_row));
            let sums = sums.add(t * PANEL_ROWS + (from - row));
            if to - from == PANEL_ROWS {
                out.copy_from_nonoverlapping(sums, PANEL_ROWS);
            } else {
                for i in 0..to - from {
                    *out.add(i) = *sums.add(i);
                }
            }
        }
    }
}
