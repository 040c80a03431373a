//! The row of the table of tensor types, and the macro that turns the rows into the enum.

use super::codec::Codec;

/// The facts of one tensor type. The columns are explained above the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) lowercase_name: &'static str,
    pub(super) gguf_id: u32,
    pub(super) block_len: usize,
    pub(super) block_bytes: usize,
    pub(super) kernel_block_words: usize,
    pub(super) scale_bytes: usize,
    pub(super) scale_words: &'static [ScaleWord],
    pub(super) wgsl: &'static str,
    pub(super) i8_wgsl: Option<&'static str>,
    /// In panels, for the CPU device.
    pub(super) panel_format: inpage_cpu::format::Format,
    pub(super) codec: &'static Codec,
}

/// What a word of scales holds. Self-tests need it to generate valid scales.
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
}

/// The text of modules in `shaders/shared/weights`, one after the other.
macro_rules! wgsl {
    ($($file:literal),*) => {
        concat!($(include_str!(concat!("../../shaders/shared/weights/", $file, ".wgsl")), "\n"),*)
    };
}
pub(super) use wgsl;

macro_rules! optional_wgsl {
    () => {
        None
    };
    ($file:literal) => {
        Some(wgsl!($file))
    };
}
pub(super) use optional_wgsl;

/// Declares `TensorType` with a variant per row. The second name of a row is the type's file.
macro_rules! tensor_types {
    ($(
        $variant:ident = $file:ident, $gguf_id:literal, $block_len:literal, $block_bytes:literal,
        $kernel_block_words:literal, $scale_bytes:literal, [$($scale_word:ident),*],
        [$($wgsl:literal),*] $(, $i8_wgsl:literal)?;
    )*) => {
        /// The element type of a tensor, by ggml's name.
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TensorType {
            $(#[doc = concat!("ggml's ", stringify!($variant), ".")] $variant),*
        }

        impl TensorType {
            /// All supported types.
            pub const ALL: &[TensorType] = &[$(TensorType::$variant),*];

            fn row(self) -> &'static Row {
                match self {
                    $(TensorType::$variant => &Row {
                        name: stringify!($variant),
                        lowercase_name: stringify!($file),
                        gguf_id: $gguf_id,
                        block_len: $block_len,
                        block_bytes: $block_bytes,
                        kernel_block_words: $kernel_block_words,
                        scale_bytes: $scale_bytes,
                        scale_words: &[$(ScaleWord::$scale_word),*],
                        wgsl: wgsl!($($wgsl),*),
                        i8_wgsl: optional_wgsl!($($i8_wgsl)?),
                        panel_format: inpage_cpu::format::Format::$variant,
                        codec: &$file::CODEC,
                    }),*
                }
            }
        }
    };
}
pub(super) use tensor_types;
