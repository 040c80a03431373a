//! The paged KV cache of a layer, `[page, k|v, KV head, page token, head_dim]`: the formats of its heads, where a head is, how it is
//! written. `attention` reads them. The tokens of a head are together, because attention reads a page head by head.
//!
//! A format is a file here and an entry of the list below: see `docs/adding-a-kv-format.md`.

mod declaration;
pub(crate) mod f16;
pub(crate) mod f32;
mod format;
pub(crate) mod q8_0;
mod row;

use declaration::Declaration;
pub(crate) use declaration::Elements;
pub use row::Row;

/// Tokens per page.
pub const PAGE_TOKENS: usize = 64;

/// Passes the list of all formats to another macro: the variant and the file of each, which is its name in options and in the
/// names of kernels.
macro_rules! for_each_format {
    ($then:ident $($arguments:tt)*) => {
        $then! { $($arguments)* F32 f32, F16 f16, Q8_0 q8_0, }
    };
}
pub(crate) use for_each_format;

macro_rules! declare {
    ($($variant:ident $file:ident,)*) => {
        /// The format of a KV cache. A row is the K or the V of one token.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum KvFormat {
            $(#[doc = concat!("`", stringify!($file), "`.")] $variant),*
        }

        impl KvFormat {
            /// All formats.
            pub const ALL: [KvFormat; Self::NAMES.len()] = [$(KvFormat::$variant),*];

            /// The names of [`ALL`](Self::ALL), as in options and in the names of kernels.
            pub const NAMES: [&str; [$(stringify!($file)),*].len()] = [$(stringify!($file)),*];

            /// Elements and words of a block.
            const fn block(self) -> (usize, usize) {
                match self {
                    $(KvFormat::$variant => (
                        <$file::Format as Elements>::BLOCK_LEN,
                        <$file::Format as Elements>::BLOCK_WORDS,
                    )),*
                }
            }

            fn declaration(self) -> &'static Declaration {
                match self {
                    $(KvFormat::$variant => &$file::DECLARATION),*
                }
            }
        }

        /// The files of all formats, which the kernel module is compiled from.
        pub(crate) const SOURCES: &[&[u8]] = &[
            $(include_bytes!(concat!(stringify!($file), ".rs"))),*
        ];
    };
}
for_each_format!(declare);

/// Evaluates an expression with `$E` as the [`Elements`] of a format.
macro_rules! by_format {
    ($format:expr, $E:ident => $then:expr) => {
        $crate::lanes::kv::for_each_format!(by_format @ $format, $E, $then,)
    };
    (@ $format:expr, $E:ident, $then:expr, $($variant:ident $file:ident,)*) => {
        match $format {
            $($crate::lanes::kv::KvFormat::$variant => {
                type $E = $crate::lanes::kv::$file::Format;
                $then
            })*
        }
    };
}
pub(crate) use by_format;
