//! Tensor types: how a model file encodes elements, how the kernels read them, and the conversion between
//! the two. Both `weights` and `ops` use [`TensorType`]; this module uses neither, and no GPU: it only
//! includes the text of the types' WGSL.
//!
//! A type is a row of the table below, a file here with its decoder, and a file in `shaders/shared/weights`:
//! see `docs/adding-a-tensor-type.md`.
//!
//! There are two units. A *file block* is what the file stores together: one element of plain floats, 32
//! elements, or a super-block of 256. A *kernel block* is [`BLOCK_COLS`] columns of a row, for every type.
//! [`TensorType::repack`] turns file blocks into kernel blocks.
//!
//! Mixed types within a file are normal. Files called Q4_0 keep their largest matrix in Q6_K.

mod bf16;
mod codec;
mod f16;
mod f32;
mod ggml_names;
mod iq4_nl;
mod iq4_xs;
mod k_scales;
mod kernel_order;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod row;

use std::fmt;

pub use kernel_order::BLOCK_COLS;
pub use row::ScaleWord;

use row::{Row, optional_wgsl, tensor_types, wgsl};

// The columns after the names:
// - type number in GGUF files
// - elements and bytes of a file block
// - words (u32) of quants in a kernel block
// - bytes of scales of a file block in the layout of the kernels, padding included
// - what the words of scales hold, repeating
// - WGSL modules in shaders/shared/weights, in order; then the module for products of bytes, if there is one
tensor_types! {
    F32    = f32,     0,   1,   4, 32,  0, [],                             ["f32"];
    F16    = f16,     1,   1,   2, 16,  0, [],                             ["parts/halves", "f16"];
    BF16   = bf16,   30,   1,   2, 16,  0, [],                             ["parts/halves", "bf16"];
    Q8_0   = q8_0,    8,  32,  34,  8,  2, [Halves],                       ["q8_0"], "i8/q8_0";
    Q4_0   = q4_0,    2,  32,  18,  4,  2, [Halves],                       ["parts/nibbles", "parts/blocks", "q4_0"], "i8/q4_0";
    Q4_1   = q4_1,    3,  32,  20,  4,  4, [Halves],                       ["parts/nibbles", "parts/blocks", "q4_1"];
    Q5_0   = q5_0,    6,  32,  22,  4,  6, [Bits, LowerHalf, UpperHalf],   ["parts/fives", "parts/blocks", "q5_0"];
    Q5_1   = q5_1,    7,  32,  24,  4,  8, [Bits, Halves],                 ["parts/fives", "parts/blocks", "q5_1"];
    Q2_K   = q2_k,   10, 256,  84,  2, 20, [Bits, Bits, Bits, Bits, Halves],    ["parts/blocks", "q2_k"];
    Q3_K   = q3_k,   11, 256, 110,  3, 16, [Bits, Bits, Bits, LowerHalf],       ["parts/blocks", "q3_k"];
    Q4_K   = q4_k,   12, 256, 144,  4, 16, [Halves, Bits, Bits, Bits],          ["parts/nibbles", "parts/blocks", "parts/k_scales", "q4_k"];
    Q5_K   = q5_k,   13, 256, 176,  5, 16, [Halves, Bits, Bits, Bits],          ["parts/fives", "parts/blocks", "parts/k_scales", "q5_k"];
    Q6_K   = q6_k,   14, 256, 210,  6, 20, [Bits, Bits, Bits, Bits, LowerHalf], ["parts/blocks", "q6_k"];
    IQ4_NL = iq4_nl, 20,  32,  18,  4,  2, [Halves],                       ["parts/iq4", "parts/blocks", "iq4_nl"];
    IQ4_XS = iq4_xs, 23, 256, 136,  4,  8, [LowerHalf, Bits],              ["parts/iq4", "parts/blocks", "iq4_xs"];
    MXFP4  = mxfp4,  39,  32,  17,  4,  1, [Exponents],                    ["parts/blocks", "mxfp4"];
}

/// In the file.
impl TensorType {
    /// The type of this number in GGUF files, if it is supported.
    pub fn from_gguf_id(id: u32) -> Option<TensorType> {
        Self::ALL.iter().copied().find(|ty| ty.gguf_id() == id)
    }

    /// The type's number in GGUF files.
    pub fn gguf_id(self) -> u32 {
        self.row().gguf_id
    }

    /// ggml's name: `Q8_0`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The name in lower case, as in the names of kernels and in options: `q8_0`.
    pub fn lowercase_name(self) -> &'static str {
        self.row().lowercase_name
    }

    /// Elements per file block; 1 for plain floats.
    pub fn block_len(self) -> usize {
        self.row().block_len
    }

    /// Bytes per file block.
    pub fn block_bytes(self) -> usize {
        self.row().block_bytes
    }

    /// The types that [`TensorType::quantize`] supports; every type can be decoded.
    pub fn quantizable() -> impl Iterator<Item = TensorType> {
        Self::ALL.iter().copied().filter(|ty| ty.is_quantizable())
    }

    /// Whether [`TensorType::quantize`] supports the type.
    pub fn is_quantizable(self) -> bool {
        self.row().codec.quantize.is_some()
    }

    /// Decodes whole file blocks to `out.len()` f32 values.
    ///
    /// # Panics
    /// If `bytes` are not exactly the blocks of `out.len()` elements.
    pub fn dequantize(self, bytes: &[u8], out: &mut [f32]) {
        let blocks = self.whole_blocks(bytes);
        assert_eq!(
            out.len(),
            blocks * self.block_len(),
            "elements of {blocks} {self} blocks"
        );
        let row = self.row();
        let len = row.block_len.max(BLOCK_COLS);
        let chunk_bytes = len / row.block_len * row.block_bytes;
        let chunk_quants = len / BLOCK_COLS * row.kernel_block_words * 4;
        let (mut quants, mut scales) = (Vec::new(), Vec::new());
        for (bytes, out) in bytes.chunks(chunk_bytes).zip(out.chunks_mut(len)) {
            quants.clear();
            scales.clear();
            (row.codec.repack)(bytes, &mut quants, &mut scales);
            // Plain floats may end within a kernel block.
            quants.resize(chunk_quants, 0);
            for (run, out) in out.chunks_mut(BLOCK_COLS).enumerate() {
                let values = (row.codec.decode)(&quants, &scales, run);
                out.copy_from_slice(&values[..out.len()]);
            }
        }
    }

    /// Encodes f32 values as file blocks, bit-equal to ggml's reference quantization.
    ///
    /// # Panics
    /// If the values do not fill whole blocks or the type is not [quantizable](Self::is_quantizable).
    pub fn quantize(self, values: &[f32]) -> Vec<u8> {
        let quantize = self.row().codec.quantize;
        let quantize = quantize.unwrap_or_else(|| panic!("{self} cannot be quantized to"));
        let len = self.block_len();
        assert_eq!(values.len() % len, 0, "{self} has blocks of {len}");
        let mut out = Vec::with_capacity(values.len() / len * self.block_bytes());
        quantize(values, &mut out);
        out
    }

    fn whole_blocks(self, bytes: &[u8]) -> usize {
        let block_bytes = self.block_bytes();
        assert_eq!(
            bytes.len() % block_bytes,
            0,
            "{self} has blocks of {block_bytes} bytes"
        );
        bytes.len() / block_bytes
    }
}

/// In the layout of the kernels.
impl TensorType {
    /// Words (u32) of quants in a kernel block.
    pub fn kernel_block_words(self) -> usize {
        self.row().kernel_block_words
    }

    /// Bytes of scales, and the number of kernel blocks that share them. They follow each other without
    /// gaps.
    pub fn scale_bytes(self) -> (usize, usize) {
        let row = self.row();
        (row.scale_bytes, row.block_len.div_ceil(BLOCK_COLS))
    }

    /// Whether blocks have scales, which are in a buffer of their own.
    pub fn has_scales(self) -> bool {
        self.row().scale_bytes > 0
    }

    /// A row has a multiple of this many columns. Rows of plain floats are padded to whole kernel blocks.
    pub fn row_multiple(self) -> usize {
        self.block_len().max(4)
    }

    /// What word `at` of the scales holds.
    ///
    /// # Panics
    /// If the type has no scales.
    pub fn scale_word(self, at: usize) -> ScaleWord {
        let words = self.row().scale_words;
        words[at % words.len()]
    }

    /// The WGSL modules that read the type.
    pub(crate) fn wgsl(self) -> &'static str {
        self.row().wgsl
    }

    /// The WGSL module for products of bytes, if the type has one.
    pub(crate) fn i8_wgsl(self) -> Option<&'static str> {
        self.row().i8_wgsl
    }

    /// The format of panels of this type, for the CPU device. Its code is in `src/cpu/formats`.
    pub fn panel_format(self) -> inpage_cpu::format::Format {
        self.row().panel_format
    }

    /// Appends whole file blocks in the layout of the kernels: quants and scales apart, both in block
    /// order. Nothing is rounded or expanded; some quants change places so that the 32 columns of a kernel
    /// block lie together. N, P and B stand for the nibbles, pairs of bits and single bits of
    /// `kernel_order.rs`.
    ///
    /// | type | quants per file block | scales per file block |
    /// |---|---|---|
    /// | F32, F16, BF16 | as in the file | none |
    /// | Q8_0 | 32 i8 in element order | f16 |
    /// | Q4_0, IQ4_NL | N | f16 |
    /// | Q4_1 | N | two f16 |
    /// | Q5_0 | N | B of the fifth bits, f16 |
    /// | Q5_1 | N | B of the fifth bits, two f16 |
    /// | MXFP4 | N, numbered in the order of their values | exponent byte |
    /// | Q2_K | P of each 32 | 16 bytes and two f16 as in the file |
    /// | Q3_K | P, then B of the third bits, of each 32 | 12 bytes and f16 as in the file, two of padding |
    /// | Q4_K | N of each 32 | two f16 and 12 bytes as in the file |
    /// | Q5_K | N of each 32, then B of the fifth bits of each | two f16 and 12 bytes as in the file |
    /// | Q6_K | N of each 32, then P of the upper bits of each | 16 i8, f16, two bytes of padding |
    /// | IQ4_XS | N of each 32 | f16 and six bytes as in the file |
    ///
    /// All little-endian.
    ///
    /// # Panics
    /// If `bytes` are not whole file blocks.
    pub fn repack(self, bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
        let blocks = self.whole_blocks(bytes);
        let row = self.row();
        quants.reserve(blocks * row.block_len * row.kernel_block_words * 4 / BLOCK_COLS);
        scales.reserve(blocks * row.scale_bytes);
        (row.codec.repack)(bytes, quants, scales);
    }

    /// Decodes kernel block `block` of a repacked matrix: the CPU twin of `weights_load` in the type's WGSL.
    pub fn decode_kernel_block(
        self,
        quants: &[u32],
        scales: &[u32],
        block: usize,
    ) -> [f32; BLOCK_COLS] {
        let (scale_bytes, blocks) = self.scale_bytes();
        let words = blocks * self.kernel_block_words();
        let quants = bytemuck::cast_slice(&quants[block / blocks * words..][..words]);
        let scales: &[u8] = bytemuck::cast_slice(scales);
        let scales = &scales[block / blocks * scale_bytes..][..scale_bytes];
        (self.row().codec.decode)(quants, scales, block % blocks)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// ggml's name of a type number, supported or not.
pub fn ggml_type_name(id: u32) -> Option<&'static str> {
    let supported = TensorType::from_gguf_id(id).map(TensorType::name);
    supported.or_else(|| ggml_names::unsupported(id))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod vectors;
