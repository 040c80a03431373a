//! Products of packed matrices and inputs: the choice of the instruction set, the division among threads, and the loops
//! over panels and tokens. Who runs the threads is the team's concern, and on wasm32 that of the host.

use std::ops::Range;

use crate::{
    activations::Activations,
    inputs::{Inputs, TILE, tile_tokens},
    kernel::{Blocks, Columns},
    kernel_module::{Header, MAX_PARTS},
    simd::{Kernel, Simd},
    tensor_types::{Floats, PANEL_ROWS, TensorType, by_type},
};

/// A packed matrix.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    /// The type in which the matrix is packed.
    pub ty: TensorType,
    /// Rows, without those that fill the last panel.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The panels, one behind the other; see [`TensorType::pack`].
    pub panels: &'a [u8],
}

/// The description of a product, which all its parts share. The kernel module reads it from the memory of the module that fills it.
#[repr(C)]
pub(crate) struct Product {
    /// The header, which has the type as a number.
    pub(crate) header: Header,
    /// Rows that the result has.
    pub(crate) first_row: usize,
    pub(crate) last_row: usize,
    /// Their panels. The first and the last may be in part outside of these rows.
    pub(crate) first_panel: usize,
    pub(crate) last_panel: usize,
    pub(crate) panels: *const u8,
    pub(crate) panel_bytes: usize,
    pub(crate) inputs: Inputs,
    pub(crate) out: *mut f32,
}

/// Writes the products of a range of rows and each token's inputs: `out` is `[tokens, rows of the range]`.
///
/// The range may start and end anywhere. The threads of the program divide the panels into `parts`, at most 250. A
/// token's results depend neither on other tokens, nor on the instruction set, nor on the parts.
///
/// # Panics
/// If the matrix does not have such rows, its panels have another size, the inputs are prepared for other matrices,
/// or `out` has another size.
pub fn multiply(
    matrix: Matrix,
    rows: Range<usize>,
    x: &Activations,
    parts: usize,
    out: &mut [f32],
) {
    assert!(rows.start <= rows.end, "rows {rows:?}");
    assert_eq!(
        out.len(),
        x.tokens() * rows.len(),
        "results of {} tokens and {} rows",
        x.tokens(),
        rows.len()
    );
    let job = Job::new(matrix, rows, x, out.as_mut_ptr());
    // SAFETY: `out` has the size, and nobody else writes to it.
    unsafe { job.run(parts.clamp(1, MAX_PARTS)) }
}

/// The threads among which [`multiply`] divides its parts, with the calling one.
pub fn threads() -> usize {
    #[cfg(target_feature = "simd128")]
    return crate::kernel_module::threads();
    #[cfg(not(target_feature = "simd128"))]
    crate::team::current().threads()
}

/// The name of the instruction set in use: `scalar`, `avx2`, `avx-vnni`, `simd128` or `relaxed-simd`.
pub fn instruction_set() -> &'static str {
    InstructionSet::best().name()
}

/// A checked product.
pub(crate) struct Job {
    ty: TensorType,
    product: Product,
}

// SAFETY: parts read what all share, and each writes its own elements of the result.
unsafe impl Sync for Job {}

impl Job {
    pub(crate) fn new(matrix: Matrix, rows: Range<usize>, x: &Activations, out: *mut f32) -> Job {
        let panel_bytes = matrix.ty.panel_bytes(matrix.cols);
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
            matrix.ty.name()
        );
        assert!(
            x.ty() == Some(matrix.ty) && inputs.cols == matrix.cols,
            "inputs for {:?} with {} columns, a matrix of {} with {}",
            x.ty(),
            inputs.cols,
            matrix.ty.name(),
            matrix.cols
        );
        let panels = match rows.is_empty() {
            true => 0..0,
            false => rows.start / PANEL_ROWS..rows.end.div_ceil(PANEL_ROWS),
        };
        Job {
            ty: matrix.ty,
            product: Product {
                header: Header::new(matrix.ty as u32),
                first_row: rows.start,
                last_row: rows.end,
                first_panel: panels.start,
                last_panel: panels.end,
                panels: matrix.panels.as_ptr(),
                panel_bytes,
                inputs,
                out,
            },
        }
    }

    /// Computes all parts.
    ///
    /// # Safety
    /// The result must be valid for writes of a value per token and row, and no one else may access it.
    unsafe fn run(&self, parts: usize) {
        #[cfg(target_feature = "simd128")]
        if crate::kernel_module::run(&self.product, parts) {
            return;
        }
        let set = InstructionSet::best();
        // SAFETY: as of this function; the set is there, and the team gives each part to one thread.
        crate::team::current().run(parts, &|part| unsafe { self.run_with(set, part, parts) });
    }

    #[cfg(target_feature = "simd128")]
    pub(crate) fn product(&self) -> &Product {
        &self.product
    }

    /// Computes a part. Other parts of the result are neither read nor written.
    ///
    /// # Safety
    /// The result must be valid for writes of a value per token and row, and the instruction set must be there. While
    /// this runs, no one else may access the part's elements.
    pub(crate) unsafe fn run_with(&self, set: InstructionSet, part: usize, parts: usize) {
        let product = &self.product;
        // SAFETY: as of this function.
        unsafe {
            match set {
                #[cfg(not(target_feature = "simd128"))]
                InstructionSet::Scalar => {
                    run::<crate::simd::scalar::Scalar>(product, self.ty, part, parts);
                }
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => {
                    run::<crate::simd::avx2::Avx2>(product, self.ty, part, parts);
                }
                #[cfg(target_arch = "x86_64")]
                InstructionSet::AvxVnni => {
                    run::<crate::simd::avx2::AvxVnni>(product, self.ty, part, parts);
                }
                #[cfg(target_feature = "simd128")]
                InstructionSet::Wasm => {
                    run::<crate::simd::wasm::Wasm<0, false>>(product, self.ty, part, parts);
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
    /// The kernels that exist, the best first.
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
    pub(crate) fn best() -> InstructionSet {
        let best = InstructionSet::available().next();
        best.unwrap_or(InstructionSet::Scalar)
    }

    #[cfg(target_feature = "simd128")]
    pub(crate) fn best() -> InstructionSet {
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
            InstructionSet::Wasm => crate::kernel_module::instruction_set(),
        }
    }
}

/// Computes a part of a product. Does not panic, and has no data: the kernel module consists of this.
///
/// # Safety
/// The instruction set must be there, and all pointers and sizes valid. `part` is less than `parts`.
#[inline(always)]
pub(crate) unsafe fn run<S: Simd>(product: &Product, ty: TensorType, part: usize, parts: usize) {
    let (first, all) = (
        product.first_panel,
        product.last_panel - product.first_panel,
    );
    // SAFETY: as of this function. Otherwise the division would panic.
    unsafe { std::hint::assert_unchecked(part < parts) };
    // In 64 bits, so that nothing overflows.
    let at = |part: usize| first + (all as u64 * part as u64 / parts as u64) as usize;
    let (begin, end) = (at(part), at(part + 1));
    // SAFETY: as of this function.
    unsafe {
        by_type!(
            ty,
            Q => panels::<S, Blocks<Q>>(product, begin, end, 1),
            F => panels::<S, Columns<F>>(product, begin, end, <F as Floats>::BYTES.max(4))
        );
    }
}

/// Loops over panels `begin..end` and tiles of tokens. `input_bytes` are those of an input of one column.
///
/// # Safety
/// The same conditions as for [`run`].
unsafe fn panels<S: Simd, K: Kernel>(
    product: &Product,
    begin: usize,
    end: usize,
    input_bytes: usize,
) {
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
        let mut panel = begin;
        while panel < end {
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
/// The same conditions as for [`run`]; `sums` has 8 values of each of the tokens.
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
