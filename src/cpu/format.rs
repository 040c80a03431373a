//! The formats of packed matrices: names, sizes, packing and exact values. The formats themselves are in `formats`.
//!
//! Panels. Eight rows are interleaved so that one vector holds four columns of each. A dot-product instruction then
//! adds to eight rows at once, and no sum over lanes is needed. Tensors are packed while they are read, and every byte
//! of the file is stored once.

use crate::formats::{Floats, Quantized, planes};

/// Rows of a panel.
pub const PANEL_ROWS: usize = 8;

/// The format of a packed matrix: a tensor type of GGUF files, with its bits in the order of panels.
///
/// A panel has 8 rows and all columns. It is a sequence of units, along the columns; a unit has a block of the file of
/// each row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
#[allow(non_camel_case_types, reason = "ggml's names")]
pub enum Format {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an f32.
    BF16,
    /// 8 bits and a scale.
    Q8_0,
    /// 4 bits and a scale.
    Q4_0,
    /// 4 bits, a scale and a minimum.
    Q4_1,
    /// 5 bits and a scale.
    Q5_0,
    /// 5 bits, a scale and a minimum.
    Q5_1,
    /// 2 bits with 4-bit scales and minima.
    Q2_K,
    /// 3 bits with 6-bit scales.
    Q3_K,
    /// 4 bits with 6-bit scales and minima.
    Q4_K,
    /// 5 bits with 6-bit scales and minima.
    Q5_K,
    /// 6 bits with 8-bit scales.
    Q6_K,
    /// 4-bit indices of a table, and a scale.
    IQ4_NL,
    /// 4-bit indices of a table, with 6-bit scales.
    IQ4_XS,
    /// 4-bit floats and an exponent.
    MXFP4,
}

/// Evaluates an expression with `$Q` as the quantized format, or another with `$F` as the format of floats.
macro_rules! by_format {
    ($format:expr, $Q:ident => $quantized:expr, $F:ident => $floats:expr) => {
        by_format!(@ $format,
            $Q, $quantized, [
                Q8_0 q8_0::Q8_0, Q4_0 q4_0::Q4_0, Q4_1 q4_1::Q4_1, Q5_0 q5_0::Q5_0, Q5_1 q5_1::Q5_1,
                Q2_K q2_k::Q2K, Q3_K q3_k::Q3K, Q4_K q4_k::Q4K, Q5_K q5_k::Q5K, Q6_K q6_k::Q6K,
                IQ4_NL iq4::Iq4Nl, IQ4_XS iq4::Iq4Xs, MXFP4 mxfp4::Mxfp4
            ],
            $F, $floats, [F32 floats::F32, F16 floats::F16, BF16 floats::Bf16])
    };
    (@ $format:expr,
        $Q:ident, $quantized:expr, [$($q:ident $q_module:ident::$q_type:ident),*],
        $F:ident, $floats:expr, [$($f:ident $f_module:ident::$f_type:ident),*]
    ) => {
        match $format {
            $($crate::format::Format::$q => {
                type $Q = $crate::formats::$q_module::$q_type;
                $quantized
            })*
            $($crate::format::Format::$f => {
                #[allow(dead_code, reason = "some expressions are the same for all")]
                type $F = $crate::formats::$f_module::$f_type;
                $floats
            })*
        }
    };
}
pub(crate) use by_format;

impl Format {
    /// All formats, in the order of their numbers.
    pub const ALL: [Format; 16] = [
        Format::F32,
        Format::F16,
        Format::BF16,
        Format::Q8_0,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q2_K,
        Format::Q3_K,
        Format::Q4_K,
        Format::Q5_K,
        Format::Q6_K,
        Format::IQ4_NL,
        Format::IQ4_XS,
        Format::MXFP4,
    ];

    /// The tensor type's name in lower case: `q4_0`.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::F16 => "f16",
            Format::BF16 => "bf16",
            Format::Q8_0 => "q8_0",
            Format::Q4_0 => "q4_0",
            Format::Q4_1 => "q4_1",
            Format::Q5_0 => "q5_0",
            Format::Q5_1 => "q5_1",
            Format::Q2_K => "q2_k",
            Format::Q3_K => "q3_k",
            Format::Q4_K => "q4_k",
            Format::Q5_K => "q5_k",
            Format::Q6_K => "q6_k",
            Format::IQ4_NL => "iq4_nl",
            Format::IQ4_XS => "iq4_xs",
            Format::MXFP4 => "mxfp4",
        }
    }

    /// Columns of a unit. A row has a multiple of this many.
    pub fn unit_cols(self) -> usize {
        by_format!(self, Q => 32 * Q::RUNS, F => 4)
    }

    /// Bytes of a panel: 8 packed rows. A multiple of 4.
    pub fn panel_bytes(self, cols: usize) -> usize {
        cols / self.unit_cols() * self.unit_bytes()
    }

    /// Bytes of a unit of a panel.
    fn unit_bytes(self) -> usize {
        by_format!(self, Q => unit_bytes::<Q>(), F => 4 * PANEL_ROWS * F::BYTES)
    }

    /// Bytes of a row in the file.
    pub(crate) fn file_row_bytes(self, cols: usize) -> usize {
        cols / self.unit_cols() * by_format!(self, Q => Q::FILE_BYTES, F => 4 * F::BYTES)
    }

    /// Packs up to 8 rows, which follow each other as in the file. Missing rows become zero.
    ///
    /// # Panics
    /// If the columns are not whole units, `rows` are not up to 8 whole rows, or `panel` does not have
    /// [`Format::panel_bytes`].
    pub fn pack(self, cols: usize, rows: &[u8], panel: &mut [u8]) {
        let row_bytes = self.checked_row_bytes(cols, panel.len());
        assert!(
            rows.len().is_multiple_of(row_bytes) && rows.len() <= PANEL_ROWS * row_bytes,
            "{} bytes are not up to 8 rows of {row_bytes}",
            rows.len()
        );
        panel.fill(0);
        for (row, bytes) in rows.chunks_exact(row_bytes).enumerate() {
            by_format!(self, Q => pack_quantized::<Q>(bytes, row, panel), F => {
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
    /// [`Format::panel_bytes`].
    pub fn unpack_row(self, panel: &[u8], row: usize, out: &mut [f32]) {
        self.checked_row_bytes(out.len(), panel.len());
        assert!(row < PANEL_ROWS, "a panel has 8 rows");
        by_format!(self, Q => unpack_quantized::<Q>(panel, row, out), F => {
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
