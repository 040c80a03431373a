//! Tensor types and the codecs of their blocks. Knows nothing of files or of the GPU beyond the
//! layout that the kernels read.
//!
//! A new type is one new file with a `CODEC` and one line in the list of `tensor_types!`.

mod bf16;
mod f16;
mod f32;
mod iq4_nl;
mod iq4_xs;
mod k_scales;
mod mxfp4;
mod order;
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

use std::fmt;

/// Encodes whole blocks and appends them.
type Quantize = fn(values: &[f32], out: &mut Vec<u8>);

/// All that is to know about one tensor type. Slices given to the functions hold whole blocks.
struct Codec {
    /// ggml's name of the type.
    name: &'static str,
    /// ggml's number of the type, as in the file.
    gguf_id: u32,
    /// Elements per block.
    block_len: usize,
    /// Bytes per block in the file.
    block_bytes: usize,
    /// Bytes per block that [`split_blocks`] makes of it, padding to whole words included.
    quants_bytes: usize,
    scales_bytes: usize,
    dequantize: fn(bytes: &[u8], out: &mut [f32]),
    /// Bit-equal to ggml's reference quantization; none for types that are only read.
    quantize: Option<Quantize>,
    split_blocks: fn(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>),
}

macro_rules! tensor_types {
    ($($variant:ident = $module:ident),* $(,)?) => {
        /// The element types of tensors that this build can run, by ggml's names.
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TensorType {
            $(#[doc = concat!("ggml's ", stringify!($variant), ".")] $variant),*
        }

        impl TensorType {
            /// Every type there is.
            pub const ALL: &[TensorType] = &[$(TensorType::$variant),*];

            fn codec(self) -> &'static Codec {
                match self { $(TensorType::$variant => &$module::CODEC),* }
            }
        }
    };
}

tensor_types! {
    F32 = f32,
    F16 = f16,
    BF16 = bf16,
    Q8_0 = q8_0,
    Q4_0 = q4_0,
    Q4_1 = q4_1,
    Q5_0 = q5_0,
    Q5_1 = q5_1,
    Q2_K = q2_k,
    Q3_K = q3_k,
    Q4_K = q4_k,
    Q5_K = q5_k,
    Q6_K = q6_k,
    IQ4_NL = iq4_nl,
    IQ4_XS = iq4_xs,
    MXFP4 = mxfp4,
}

impl TensorType {
    /// The type of this number in GGUF files, if this build can run it.
    pub fn from_gguf_id(id: u32) -> Option<TensorType> {
        Self::ALL.iter().copied().find(|ty| ty.gguf_id() == id)
    }

    /// The type's number in GGUF files.
    pub fn gguf_id(self) -> u32 {
        self.codec().gguf_id
    }

    /// ggml's name: `Q8_0`.
    pub fn name(self) -> &'static str {
        self.codec().name
    }

    /// Elements per block; 1 where elements stand alone.
    pub fn block_len(self) -> usize {
        self.codec().block_len
    }

    /// Bytes per block in the file.
    pub fn block_bytes(self) -> usize {
        self.codec().block_bytes
    }

    /// Bytes per block that [`split_blocks`] appends to the quants.
    pub fn quants_bytes_per_block(self) -> usize {
        self.codec().quants_bytes
    }

    /// Bytes per block that [`split_blocks`] appends to the scales; 0 for plain floats.
    pub fn scales_bytes_per_block(self) -> usize {
        self.codec().scales_bytes
    }

    /// Whether [`quantize`] makes blocks of the type; all types can be read.
    pub fn is_quantizable(self) -> bool {
        self.codec().quantize.is_some()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Turns whole blocks, as they are in the file, into `out.len()` f32 values.
///
/// # Panics
/// If `bytes` are not exactly the blocks of `out.len()` elements.
pub fn dequantize(ty: TensorType, bytes: &[u8], out: &mut [f32]) {
    let blocks = whole_blocks(ty, bytes);
    assert_eq!(
        out.len(),
        blocks * ty.block_len(),
        "elements of {blocks} {ty} blocks"
    );
    (ty.codec().dequantize)(bytes, out);
}

/// Turns f32 values into the file's blocks, bit-equal to ggml's reference quantization.
///
/// # Panics
/// If the values do not fill whole blocks or the type is only read ([`TensorType::is_quantizable`]).
pub fn quantize(ty: TensorType, values: &[f32]) -> Vec<u8> {
    let quantize = ty.codec().quantize;
    let quantize = quantize.unwrap_or_else(|| panic!("{ty} is only read"));
    assert_eq!(
        values.len() % ty.block_len(),
        0,
        "{ty} has blocks of {}",
        ty.block_len()
    );
    let mut out = Vec::with_capacity(values.len() / ty.block_len() * ty.block_bytes());
    quantize(values, &mut out);
    out
}

/// Appends whole blocks in the layout of the kernels: quants and scales apart, both in block
/// order. Nothing is rounded or expanded; some quants change places so that the 32 columns of a
/// kernel's block lie together (`order.rs`), N, P and B standing for their nibbles, pairs of bits and
/// single bits.
///
/// | type | quants per block | scales per block |
/// |---|---|---|
/// | F32, F16, BF16 | the bytes of the file | none |
/// | Q8_0 | 32 i8 in element order | f16 |
/// | Q4_0, IQ4_NL | N | f16 |
/// | Q4_1 | N | two f16 |
/// | Q5_0 | N | B of the fifth bits, f16 |
/// | Q5_1 | N | B of the fifth bits, two f16 |
/// | MXFP4 | N, numbered by value | exponent byte |
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
/// If `bytes` are not whole blocks.
pub fn split_blocks(ty: TensorType, bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    let blocks = whole_blocks(ty, bytes);
    quants.reserve(blocks * ty.quants_bytes_per_block());
    scales.reserve(blocks * ty.scales_bytes_per_block());
    (ty.codec().split_blocks)(bytes, quants, scales);
}

fn whole_blocks(ty: TensorType, bytes: &[u8]) -> usize {
    assert_eq!(
        bytes.len() % ty.block_bytes(),
        0,
        "{ty} has blocks of {} bytes",
        ty.block_bytes()
    );
    bytes.len() / ty.block_bytes()
}

/// [`Codec::split_blocks`] of types without scales.
fn all_quants(bytes: &[u8], quants: &mut Vec<u8>, _scales: &mut Vec<u8>) {
    quants.extend_from_slice(bytes);
}

/// [`Codec::split_blocks`] of types whose block of `BLOCK` bytes has `SCALES` bytes of scales, then
/// quants in the order of the kernels.
fn scales_first<const BLOCK: usize, const SCALES: usize>(
    bytes: &[u8],
    quants: &mut Vec<u8>,
    scales: &mut Vec<u8>,
) {
    for block in bytes.as_chunks::<BLOCK>().0 {
        scales.extend_from_slice(&block[..SCALES]);
        quants.extend_from_slice(&block[SCALES..]);
    }
}

/// The f16 whose two bytes start at `at`.
fn f16_at(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Least and greatest value.
fn extremes(values: &[f32]) -> (f32, f32) {
    let first = (f32::MAX, f32::MIN);
    let extremes = values.iter();
    extremes.fold(first, |(min, max), &x| (min.min(x), max.max(x)))
}

/// ggml's name of a type number, for messages about types that this build cannot run.
pub fn ggml_type_name(id: u32) -> Option<&'static str> {
    let name = match id {
        4 => "Q4_2",
        5 => "Q4_3",
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        21 => "IQ3_S",
        22 => "IQ2_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        31 => "Q4_0_4_4",
        32 => "Q4_0_4_8",
        33 => "Q4_0_8_8",
        34 => "TQ1_0",
        35 => "TQ2_0",
        36 => "IQ4_NL_4_4",
        37 => "IQ4_NL_4_8",
        38 => "IQ4_NL_8_8",
        40 => "NVFP4",
        41 => "Q1_0",
        _ => return TensorType::from_gguf_id(id).map(TensorType::name),
    };
    Some(name)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod vectors;
