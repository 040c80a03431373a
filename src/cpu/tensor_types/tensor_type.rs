//! The properties of a tensor type in files and in the layout of the kernels. Panels are the concern of `panels.rs`.

use std::fmt;

use super::{BLOCK_COLS, ScaleWord, TensorType, UNSUPPORTED, declaration::Quantize};

/// The layout of a type in a file.
impl TensorType {
    /// The type of this number in GGUF files, if it is supported.
    pub fn from_gguf_id(id: u32) -> Option<TensorType> {
        Self::ALL.iter().copied().find(|ty| ty.gguf_id() == id)
    }

    /// The type's number in GGUF files.
    pub fn gguf_id(self) -> u32 {
        self.declaration().gguf_id
    }

    /// Elements per file block; 1 for plain floats.
    pub fn block_len(self) -> usize {
        self.declaration().block_len
    }

    /// Bytes per file block.
    pub fn block_bytes(self) -> usize {
        self.declaration().block_bytes
    }

    /// Offsets of the f16 values in a file block, for tests with random blocks.
    pub fn halves(self) -> &'static [usize] {
        self.declaration().halves
    }

    /// The types that [`TensorType::quantize`] supports; every type can be decoded.
    pub fn quantizable() -> impl Iterator<Item = TensorType> {
        Self::ALL.iter().copied().filter(|ty| ty.is_quantizable())
    }

    /// Whether [`TensorType::quantize`] supports the type.
    pub fn is_quantizable(self) -> bool {
        self.declaration().quantize.is_some()
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
        let declaration = self.declaration();
        let len = declaration.block_len.max(BLOCK_COLS);
        let chunk_bytes = len / declaration.block_len * declaration.block_bytes;
        let chunk_quants = len / BLOCK_COLS * declaration.kernel_block_words * 4;
        let (mut quants, mut scales) = (Vec::new(), Vec::new());
        for (bytes, out) in bytes.chunks(chunk_bytes).zip(out.chunks_mut(len)) {
            quants.clear();
            scales.clear();
            (declaration.repack)(bytes, &mut quants, &mut scales);
            // Plain floats may end within a kernel block.
            quants.resize(chunk_quants, 0);
            for (run, out) in out.chunks_mut(BLOCK_COLS).enumerate() {
                let values = (declaration.decode)(&quants, &scales, run);
                out.copy_from_slice(&values[..out.len()]);
            }
        }
    }

    /// Encodes f32 values as file blocks, bit-equal to ggml's reference quantization.
    ///
    /// # Panics
    /// If the values do not fill whole blocks or the type is not [quantizable](Self::is_quantizable).
    pub fn quantize(self, values: &[f32]) -> Vec<u8> {
        let encode = self.quantizer().encode;
        let len = self.block_len();
        assert_eq!(values.len() % len, 0, "{self} has blocks of {len}");
        let mut out = Vec::with_capacity(values.len() / len * self.block_bytes());
        encode(values, &mut out);
        out
    }

    /// The largest distance of a quantized value from the original, as a part of the largest magnitude of its file block.
    ///
    /// # Panics
    /// If the type is not [quantizable](Self::is_quantizable).
    pub fn quantization_error(self) -> f32 {
        self.quantizer().error
    }

    fn quantizer(self) -> &'static Quantize {
        let quantize = self.declaration().quantize.as_ref();
        quantize.unwrap_or_else(|| panic!("{self} cannot be quantized to"))
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

/// The layout of a type for the GPU kernels.
impl TensorType {
    /// Words (u32) of quants in a kernel block.
    pub fn kernel_block_words(self) -> usize {
        self.declaration().kernel_block_words
    }

    /// Bytes of scales, and the number of kernel blocks that share them. They follow each other without
    /// gaps.
    pub fn scale_bytes(self) -> (usize, usize) {
        let declaration = self.declaration();
        (
            declaration.scale_bytes,
            declaration.block_len.div_ceil(BLOCK_COLS),
        )
    }

    /// Whether blocks have scales, which are in a buffer of their own.
    pub fn has_scales(self) -> bool {
        self.declaration().scale_bytes > 0
    }

    /// Whether rows have factors, which files hold in a tensor beside the matrix. In the layout of the kernels an f32 precedes
    /// the scales of each row.
    pub fn has_row_factors(self) -> bool {
        self.declaration().has_row_factors
    }

    /// A row has a multiple of this many columns. Rows of plain floats are padded to whole kernel blocks.
    pub fn row_multiple(self) -> usize {
        self.block_len().max(4)
    }

    /// The content of word `at` of the scales.
    ///
    /// # Panics
    /// If the type has no scales.
    pub fn scale_word(self, at: usize) -> ScaleWord {
        let words = self.declaration().scale_words;
        words[at % words.len()]
    }

    /// The WGSL modules that read whole blocks of the type.
    pub fn wgsl(self) -> &'static [&'static str] {
        self.declaration().wgsl.whole
    }

    /// The WGSL modules that read quarters of blocks of the type.
    pub fn quarter_wgsl(self) -> &'static [&'static str] {
        self.declaration().wgsl.quarter
    }

    /// The WGSL modules for products of bytes, if the type has them.
    pub fn i8_wgsl(self) -> Option<&'static [&'static str]> {
        self.declaration().i8_wgsl
    }

    /// Appends whole file blocks in the layout of the kernels: quants and scales apart, both in block
    /// order. Nothing is rounded; some quants change places so that the 32 columns of a kernel
    /// block lie together (`kernel_order.rs`). The type's WGSL in `shaders/shared/weights` begins with its layout. All is
    /// little-endian.
    ///
    /// # Panics
    /// If `bytes` are not whole file blocks.
    pub fn repack(self, bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
        let blocks = self.whole_blocks(bytes);
        let declaration = self.declaration();
        quants.reserve(
            blocks * declaration.block_len * declaration.kernel_block_words * 4 / BLOCK_COLS,
        );
        scales.reserve(blocks * declaration.scale_bytes);
        (declaration.repack)(bytes, quants, scales);
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
        let quants = bytes(&quants[block / blocks * words..][..words]);
        let scales = &bytes(scales)[block / blocks * scale_bytes..][..scale_bytes];
        (self.declaration().decode)(quants, scales, block % blocks)
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
    supported.or_else(|| {
        let mut unsupported = UNSUPPORTED.iter();
        let (_, name) = unsupported.find(|(number, _)| *number == id)?;
        Some(name)
    })
}

fn bytes(words: &[u32]) -> &[u8] {
    // SAFETY: all bits are bytes.
    unsafe { words.align_to().1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pattern of `scale_word` has to repeat with the scales.
    #[test]
    fn words_of_scales_repeat_with_the_blocks() {
        for ty in TensorType::ALL.iter().filter(|ty| ty.has_scales()) {
            let (bytes, _) = ty.scale_bytes();
            let period = 4 * ty.declaration().scale_words.len();
            assert!(
                period.is_multiple_of(bytes) || bytes.is_multiple_of(period),
                "{ty}"
            );
        }
    }
}
