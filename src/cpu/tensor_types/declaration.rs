//! The declaration in the file of a tensor type.

use super::kernel_order::Values;

/// The facts of one tensor type, and its code that reads and writes blocks.
pub(crate) struct Declaration {
    /// ggml's number of the type, as in GGUF files.
    pub(super) gguf_id: u32,
    /// Elements of a file block.
    pub(super) block_len: usize,
    /// Bytes of a file block.
    pub(super) block_bytes: usize,
    /// Offsets of the f16 values in a file block, for tests with random blocks.
    pub(super) halves: &'static [usize],
    /// Words (u32) of quants in a kernel block.
    pub(super) kernel_block_words: usize,
    /// Bytes of the scales of a file block in the layout of the kernels, padding included.
    pub(super) scale_bytes: usize,
    /// The content of the words of scales, repeating.
    pub(super) scale_words: &'static [ScaleWord],
    /// Whether rows have factors, which files hold in a tensor beside the matrix.
    pub(super) has_row_factors: bool,
    /// The modules in `shaders/shared/weights` that read the type.
    pub(super) wgsl: Forms,
    /// The modules for products of bytes, if there are some.
    pub(super) i8_wgsl: Option<&'static [&'static str]>,
    /// Appends whole file blocks in the layout of the kernels, quants and scales apart.
    pub(super) repack: fn(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>),
    /// Decodes kernel block `run` of one file block from its repacked quants and scales. Floats are passed as one kernel
    /// block. The CPU twin of `weights_load` in the type's WGSL.
    pub(super) decode: fn(quants: &[u8], scales: &[u8], run: usize) -> Values,
    /// `None` for types that are only read.
    pub(super) quantize: Option<Quantize>,
}

/// The modules that read a type, by the part of a block that a lane reads.
pub(crate) struct Forms {
    /// Lanes read whole blocks.
    pub(super) whole: &'static [&'static str],
    /// Four lanes share a block.
    pub(super) quarter: &'static [&'static str],
}

/// The conversion of values to blocks of a type.
pub(crate) struct Quantize {
    /// Encodes whole file blocks and appends them, bit-equal to ggml's reference quantization.
    pub(super) encode: fn(values: &[f32], out: &mut Vec<u8>),
    /// The largest distance of a value from the original, as a part of the largest magnitude of its file block.
    pub(super) error: f32,
}

/// The content of a word of scales. Self-tests need it to generate valid scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleWord {
    /// Two f16.
    Halves,
    /// An f16 in the lower half, bits of scales above.
    LowerHalf,
    /// An f16 in the upper half, bits of quants below.
    UpperHalf,
    /// Bits of scales or quants.
    Bits,
    /// Four biased exponents.
    Exponents,
    /// Four floats of eight bits, E4M3 without a sign.
    SmallFloats,
    /// An f32, the factor of a row.
    Factor,
}

/// The source of modules in `shaders/shared/weights`. They are not joined, so that a program has each of them once.
macro_rules! weights_wgsl {
    ($($file:expr),*) => {
        &[$(
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../shaders/shared/weights/",
                $file,
                ".wgsl"
            ))
        ),*]
    };
}
pub(super) use weights_wgsl;

/// The [`Forms`] of a type: modules that exist in `whole` and in `quarter`, in brackets, and the modules of both forms.
macro_rules! forms {
    ([$($form:literal),*] $($file:literal),*) => {
        $crate::tensor_types::declaration::Forms {
            whole: $crate::tensor_types::declaration::weights_wgsl!(
                $(concat!("whole/", $form),)* $($file),*
            ),
            quarter: $crate::tensor_types::declaration::weights_wgsl!(
                $(concat!("quarter/", $form),)* $($file),*
            ),
        }
    };
}
pub(super) use forms;
