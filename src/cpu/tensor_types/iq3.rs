//! The parts that IQ3_XXS and IQ3_S share: eight levels with a sign, and a scale for 32 elements. Quants number the values in ascending
//! order.

use super::{
    codebook::{self, Codebook},
    declaration::{Declaration, Forms, ScaleWord},
};

/// The declaration of a type, which differs in its id, its block and its WGSL.
pub(super) const fn declaration<C: Codebook>(gguf_id: u32, wgsl: Forms) -> Declaration {
    Declaration {
        gguf_id,
        block_len: codebook::LEN,
        block_bytes: C::BYTES,
        halves: &[0],
        kernel_block_words: 4,
        scale_bytes: 8,
        scale_words: &[ScaleWord::Bits, ScaleWord::LowerHalf],
        has_row_factors: false,
        wgsl,
        i8_wgsl: None,
        repack: codebook::repack::<C>,
        decode: codebook::decode::<C>,
        quantize: None,
    }
}

pub(super) const BITS: usize = 4;
pub(super) const GROUPS: usize = 1;

/// The quants of eight elements, whose levels are two points of a grid.
pub(super) fn quants(levels: [[u8; 4]; 2], signs: u8) -> [u8; 8] {
    let levels = levels.as_flattened();
    std::array::from_fn(|i| match signs >> i & 1 {
        0 => 8 + levels[i],
        _ => 7 - levels[i],
    })
}
