//! Tensor types and the codecs of their blocks. Knows nothing of files or of the GPU beyond the
//! layout that the kernels read.
//!
//! A new type is one new file with a `CODEC` and one line in the list of `tensor_types!`.

mod bf16;
mod f16;
mod f32;
mod q4_0;
mod q6_k;
mod q8_0;

use std::fmt;

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
    /// Of these, the bytes per block that [`split_blocks`] puts apart as scales.
    scales_bytes: usize,
    dequantize: fn(bytes: &[u8], out: &mut [f32]),
    /// Bit-equal to ggml's reference quantization.
    quantize: fn(values: &[f32], out: &mut Vec<u8>),
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
    Q6_K = q6_k,
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
        self.codec().block_bytes - self.codec().scales_bytes
    }

    /// Bytes per block that [`split_blocks`] appends to the scales; 0 for plain floats.
    pub fn scales_bytes_per_block(self) -> usize {
        self.codec().scales_bytes
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
/// If the values do not fill whole blocks.
pub fn quantize(ty: TensorType, values: &[f32]) -> Vec<u8> {
    assert_eq!(
        values.len() % ty.block_len(),
        0,
        "{ty} has blocks of {}",
        ty.block_len()
    );
    let mut out = Vec::with_capacity(values.len() / ty.block_len() * ty.block_bytes());
    (ty.codec().quantize)(values, &mut out);
    out
}

/// Appends whole blocks in the layout of the kernels: quants and scales apart, both in block
/// order.
///
/// | type | quants per block | scales per block |
/// |---|---|---|
/// | Q8_0 | 32 i8 in element order | one f16 |
/// | Q4_0 | ggml's 16 bytes: byte j holds element j low, element j+16 high, each plus 8 | one f16 |
/// | Q6_K | ggml's 128 bytes of low nibbles and 64 of upper bits | 16 i8, one f16 |
/// | F32, F16, BF16 | the bytes of the file | none |
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

/// [`Codec::split_blocks`] of types whose block of `BLOCK` bytes is one f16 scale, then quants.
fn f16_scale_first<const BLOCK: usize>(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BLOCK>().0 {
        scales.extend_from_slice(&block[..2]);
        quants.extend_from_slice(&block[2..]);
    }
}

/// ggml's name of a type number, for messages about types that this build cannot run.
pub fn ggml_type_name(id: u32) -> Option<&'static str> {
    let name = match id {
        3 => "Q4_1",
        4 => "Q4_2",
        5 => "Q4_3",
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        12 => "Q4_K",
        13 => "Q5_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
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
        39 => "MXFP4",
        40 => "NVFP4",
        41 => "Q1_0",
        _ => return TensorType::from_gguf_id(id).map(TensorType::name),
    };
    Some(name)
}

#[cfg(test)]
mod tests;
