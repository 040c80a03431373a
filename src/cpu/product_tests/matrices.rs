//! Matrices and inputs to test with.

use std::ops::Range;

use crate::{
    activations::Activations,
    product::{InstructionSet, Job, Matrix},
    tensor_types::{PANEL_ROWS, ScaleWord, TensorType},
};

/// Pseudo-random numbers: splitmix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A random number in -1..1.
    pub(super) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(super) fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.float()).collect()
    }
}

/// Bytes of a unit of a row in the file, and where its f16 scales are.
pub(super) fn file_block(ty: TensorType) -> (usize, &'static [usize]) {
    let bytes = ty.unit_cols() / ty.block_len() * ty.block_bytes();
    (bytes, ty.halves())
}

/// An f16 in the range of scales: a random mantissa and sign, 2^-9 to 2^-6; sometimes subnormal or zero.
fn scale(random: &mut Random) -> u16 {
    let bits = random.next();
    let exponent = match bits >> 32 & 31 {
        0 => 0,
        _ => 6 + (bits >> 16 & 3) as u16,
    };
    let zero = bits >> 48 & 31 == 0;
    if zero {
        0
    } else {
        bits as u16 & 0x83ff | exponent << 10
    }
}

/// Rows of random bits, as in the file, with scales of usual sizes.
pub(super) fn random_rows(
    ty: TensorType,
    rows: usize,
    cols: usize,
    random: &mut Random,
) -> Vec<u8> {
    let values = rows * cols;
    match ty {
        TensorType::F32 => random
            .floats(values)
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect(),
        TensorType::BF16 => {
            let upper = |x: &f32| ((x.to_bits() >> 16) as u16).to_le_bytes();
            random.floats(values).iter().flat_map(upper).collect()
        }
        TensorType::F16 => (0..values)
            .flat_map(|_| scale(random).to_le_bytes())
            .collect(),
        _ => {
            let (bytes, scales) = file_block(ty);
            let mut all = Vec::new();
            for _ in 0..values / ty.unit_cols() {
                let mut block: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
                for &at in scales {
                    block[at..at + 2].copy_from_slice(&scale(random).to_le_bytes());
                }
                if ty.has_scales() && ty.scale_word(0) == ScaleWord::Exponents {
                    block[0] = 116 + block[0] % 8;
                }
                if ty == TensorType::IQ1_M {
                    // The sign and the upper bits of the exponent of d.
                    block[55] = block[55] & 0x8f | 0x20;
                }
                all.extend(block);
            }
            all
        }
    }
}

/// A packed matrix.
pub(super) struct Packed {
    pub(super) ty: TensorType,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) panels: Vec<u8>,
}

impl Packed {
    pub(super) fn new(ty: TensorType, cols: usize, file: &[u8]) -> Packed {
        let (block, _) = file_block(ty);
        let row_bytes = cols / ty.unit_cols() * block;
        let panel_bytes = ty.panel_bytes(cols);
        let rows = file.len() / row_bytes;
        // Packing must not rely on what was there.
        let mut panels = vec![0xa5; rows.div_ceil(PANEL_ROWS) * panel_bytes];
        let packed = panels.chunks_exact_mut(panel_bytes);
        for (rows, panel) in file.chunks(PANEL_ROWS * row_bytes).zip(packed) {
            ty.pack(cols, rows, panel);
        }
        Packed {
            ty,
            rows,
            cols,
            panels,
        }
    }

    pub(super) fn random(ty: TensorType, rows: usize, cols: usize, random: &mut Random) -> Packed {
        Packed::new(ty, cols, &random_rows(ty, rows, cols, random))
    }

    pub(super) fn matrix(&self) -> Matrix<'_> {
        Matrix {
            ty: self.ty,
            rows: self.rows,
            cols: self.cols,
            panels: &self.panels,
        }
    }

    /// The exact values of a row.
    pub(super) fn row(&self, row: usize) -> Vec<f32> {
        let panel_bytes = self.ty.panel_bytes(self.cols);
        let panel = &self.panels[row / PANEL_ROWS * panel_bytes..][..panel_bytes];
        let mut values = vec![0.0; self.cols];
        self.ty.unpack_row(panel, row % PANEL_ROWS, &mut values);
        values
    }

    /// The product on one instruction set.
    pub(super) fn product(
        &self,
        rows: Range<usize>,
        x: &Activations,
        set: InstructionSet,
    ) -> Vec<f32> {
        let mut out = vec![f32::MAX; x.tokens() * rows.len()];
        let job = Job::new(self.matrix(), rows, x, out.as_mut_ptr());
        // SAFETY: `out` has the size.
        unsafe { job.run_with(set, 0, 1) };
        out
    }
}

/// Prepared inputs.
pub(super) fn activations(x: &[f32], cols: usize, ty: TensorType) -> Activations {
    let mut activations = Activations::default();
    activations.set(x, cols, ty);
    activations
}

/// Bits, all NaN alike.
pub(super) fn bits(values: &[f32]) -> Vec<u32> {
    let bits = |x: &f32| {
        if x.is_nan() {
            f32::NAN.to_bits()
        } else {
            x.to_bits()
        }
    };
    values.iter().map(bits).collect()
}
