//! Tensor types: how a model file encodes elements, how the kernels read them, and the conversion between the two. Knows
//! no files and no devices: it only includes the source of the types' WGSL.
//!
//! A type is a file here and an entry of the list below: see `docs/adding-a-tensor-type.md`.
//!
//! There are three units. A *file block* is what the file stores together: one element of plain floats, 32 elements, or
//! a super-block of 256. GPUs and the twins read *kernel blocks*: [`BLOCK_COLS`] columns of a row, for every type
//! (`tensor_type.rs`). The kernels of the CPU device read *panels* of eight rows (`panels.rs`).
//!
//! Mixed types within a file are normal. Files called Q4_0 keep their largest matrix in Q6_K.

pub(crate) mod bf16;
mod block_scales;
mod codebook;
mod codec;
mod declaration;
pub(crate) mod f16;
pub(crate) mod f32;
mod floats;
mod grids;
mod group_scales;
mod iq1;
pub(crate) mod iq1_m;
pub(crate) mod iq1_s;
mod iq2;
pub(crate) mod iq2_s;
pub(crate) mod iq2_xs;
pub(crate) mod iq2_xxs;
mod iq3;
pub(crate) mod iq3_s;
pub(crate) mod iq3_xxs;
pub(crate) mod iq4_nl;
pub(crate) mod iq4_xs;
mod k_scales;
mod kernel_order;
pub(crate) mod mxfp4;
pub(crate) mod nvfp4;
mod panels;
mod planes;
pub(crate) mod q1_0;
pub(crate) mod q2_0;
pub(crate) mod q2_k;
pub(crate) mod q3_k;
pub(crate) mod q4_0;
pub(crate) mod q4_1;
pub(crate) mod q4_k;
pub(crate) mod q5_0;
pub(crate) mod q5_1;
pub(crate) mod q5_k;
pub(crate) mod q6_k;
pub(crate) mod q8_0;
mod quantized;
mod tensor_type;
pub(crate) mod tq1_0;
pub(crate) mod tq2_0;

pub use declaration::ScaleWord;
pub(crate) use floats::Floats;
pub use kernel_order::BLOCK_COLS;
pub use panels::PANEL_ROWS;
pub(crate) use quantized::Quantized;
pub use tensor_type::ggml_type_name;

use declaration::Declaration;

/// Passes the list of all types to another macro: ggml's name and the file of each. The order is that of the numbers by
/// which the kernel module knows them.
macro_rules! for_each_type {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            floats {
                F32 f32, F16 f16, BF16 bf16,
            }
            blocks {
                Q8_0 q8_0, Q4_0 q4_0, Q4_1 q4_1, Q5_0 q5_0, Q5_1 q5_1,
                Q2_K q2_k, Q3_K q3_k, Q4_K q4_k, Q5_K q5_k, Q6_K q6_k,
                IQ4_NL iq4_nl, IQ4_XS iq4_xs, MXFP4 mxfp4,
                Q1_0 q1_0, Q2_0 q2_0, TQ1_0 tq1_0, TQ2_0 tq2_0, NVFP4 nvfp4,
                IQ1_S iq1_s, IQ1_M iq1_m, IQ2_XXS iq2_xxs, IQ2_XS iq2_xs, IQ2_S iq2_s,
                IQ3_XXS iq3_xxs, IQ3_S iq3_s,
            }
        }
    };
}
pub(crate) use for_each_type;

/// ggml's names of the types that are not supported, for error messages.
const UNSUPPORTED: &[(u32, &str)] = &[
    (4, "Q4_2"),
    (5, "Q4_3"),
    (9, "Q8_1"),
    (15, "Q8_K"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    // ggml gave up the number, and bitnet.cpp has another type with it.
    (36, "I2_S or IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
];

macro_rules! declare {
    (
        floats { $($float:ident $float_file:ident,)* }
        blocks { $($block:ident $block_file:ident,)* }
    ) => {
        declare!(@ $($float $float_file,)* $($block $block_file,)*);
    };
    (@ $($variant:ident $file:ident,)*) => {
        /// The element type of a tensor, by ggml's name.
        #[allow(non_camel_case_types, reason = "ggml's names")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[non_exhaustive]
        pub enum TensorType {
            $(#[doc = concat!("ggml's ", stringify!($variant), ".")] $variant),*
        }

        impl TensorType {
            /// All supported types.
            pub const ALL: &[TensorType] = &[$(TensorType::$variant),*];

            /// ggml's name: `Q8_0`.
            pub fn name(self) -> &'static str {
                match self {
                    $(TensorType::$variant => stringify!($variant)),*
                }
            }

            /// The name in lower case, as in the names of kernels and in options: `q8_0`.
            pub fn lowercase_name(self) -> &'static str {
                match self {
                    $(TensorType::$variant => stringify!($file)),*
                }
            }

            fn declaration(self) -> &'static Declaration {
                match self {
                    $(TensorType::$variant => &$file::DECLARATION),*
                }
            }
        }

        /// The files of all types, which the kernel module is compiled from.
        pub(crate) const SOURCES: &[&[u8]] = &[
            $(include_bytes!(concat!(stringify!($file), ".rs"))),*
        ];
    };
}
for_each_type!(declare);

/// Evaluates an expression with `$Q` as the [`Quantized`] panels of the type, or another with `$F` as its [`Floats`].
macro_rules! by_type {
    ($ty:expr, $Q:ident => $quantized:expr, $F:ident => $floats:expr) => {
        $crate::tensor_types::for_each_type!(by_type @ $ty, $Q, $quantized, $F, $floats,)
    };
    (@ $ty:expr, $Q:ident, $quantized:expr, $F:ident, $floats:expr,
        floats { $($float:ident $float_file:ident,)* }
        blocks { $($block:ident $block_file:ident,)* }
    ) => {
        match $ty {
            $($crate::tensor_types::TensorType::$block => {
                type $Q = $crate::tensor_types::$block_file::Panels;
                $quantized
            })*
            $($crate::tensor_types::TensorType::$float => {
                #[allow(dead_code, reason = "some expressions are the same for all")]
                type $F = $crate::tensor_types::$float_file::Panels;
                $floats
            })*
        }
    };
}
pub(crate) use by_type;
