//! The paged KV cache of a layer, `[page, k|v, page token, kv_dim]`: formats of its rows, where a row is, how a row is
//! written. How vectors of rows are read is in `attention::load`.

use std::marker::PhantomData;

use super::f32x8::LANES;

/// Tokens per page.
pub const PAGE_TOKENS: usize = 64;
/// Elements of a block of [`KvFormat::Q8_0`].
pub(crate) const BLOCK: usize = 32;
/// Words of a block of [`KvFormat::Q8_0`].
pub(crate) const BLOCK_WORDS: usize = 1 + BLOCK / 4;

/// One row of a step: a token of a sequence. The kernel module reads it from the memory of the module that fills it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Row<'a> {
    position: usize,
    first: usize,
    length: usize,
    rotary: [u32; 3],
    pages: *const u32,
    page_count: usize,
    borrowed: PhantomData<&'a [u32]>,
}

// SAFETY: a row is a number and a borrow of numbers.
unsafe impl Send for Row<'_> {}
// SAFETY: as above.
unsafe impl Sync for Row<'_> {}

impl<'a> Row<'a> {
    /// The token that `position` tokens of its sequence precede. `pages` is the sequence's block table: the numbers of
    /// its pages, which cover `position + 1` tokens.
    ///
    /// # Panics
    /// If they do not.
    pub fn new(position: usize, pages: &'a [u32]) -> Row<'a> {
        assert!(
            position / PAGE_TOKENS < pages.len(),
            "token {position} of a sequence with {} pages",
            pages.len()
        );
        Row {
            position,
            first: 0,
            length: position + 1,
            rotary: [position as u32; 3],
            pages: pages.as_ptr(),
            page_count: pages.len(),
            borrowed: PhantomData,
        }
    }

    /// The same token where attention is not causal: it sees `length` tokens of its sequence, with itself.
    ///
    /// # Panics
    /// If it is not among them, or the pages do not cover them.
    pub fn seeing(self, length: usize) -> Row<'a> {
        assert!(
            self.position < length && length.div_ceil(PAGE_TOKENS) <= self.page_count,
            "token {} of {length} in {} pages",
            self.position,
            self.page_count
        );
        Row { length, ..self }
    }

    /// The same token where it sees none before `first`.
    ///
    /// # Panics
    /// If it is one of these.
    pub fn since(self, first: usize) -> Row<'a> {
        assert!(
            first <= self.position,
            "token {} since {first}",
            self.position
        );
        Row { first, ..self }
    }

    /// The same token at a rotary position of its own: time, row and column.
    pub fn turned(self, rotary: [u32; 3]) -> Row<'a> {
        Row { rotary, ..self }
    }

    /// Time, row and column of its rotary position: its index, unless [`turned`](Self::turned) says otherwise.
    pub fn rotary(self) -> [u32; 3] {
        self.rotary
    }

    /// Tokens of the sequence that attention may see: `position + 1` where it is causal.
    pub fn length(self) -> usize {
        self.length
    }

    /// The first token that attention may see.
    pub fn first(self) -> usize {
        self.first
    }

    /// Tokens that precede the token in its sequence.
    pub fn position(self) -> usize {
        self.position
    }

    /// The sequence's block table.
    pub fn pages(self) -> &'a [u32] {
        // SAFETY: `new` borrowed them.
        unsafe { std::slice::from_raw_parts(self.pages, self.page_count) }
    }

    /// The number of page `page` of the sequence.
    ///
    /// # Safety
    /// The sequence has the page.
    pub(crate) unsafe fn page(self, page: usize) -> u32 {
        // SAFETY: the caller's.
        unsafe { *self.pages.add(page) }
    }

    /// Whether `next` is the next token of the same sequence, and sees no fewer tokens.
    pub(crate) fn precedes(self, next: Row) -> bool {
        self.pages == next.pages
            && next.position == self.position + 1
            && next.length >= self.length
            && next.first == self.first
    }
}

/// The format of a KV cache. A row is the K or the V of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum KvFormat {
    /// f32 elements: exact.
    F32 = 0,
    /// f16 elements, two in a word; values beyond ±65504 are clamped.
    F16 = 1,
    /// Blocks of 32 elements of a head: an f32 scale, then 32 i8, each the element divided by the scale.
    Q8_0 = 2,
}

impl KvFormat {
    /// All formats.
    pub const ALL: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

    /// The number of elements of a head is a multiple of this.
    pub fn head_multiple(self) -> usize {
        match self {
            KvFormat::F32 | KvFormat::F16 => 4,
            KvFormat::Q8_0 => BLOCK,
        }
    }

    /// Words of a page of one layer, K and V, with rows of `kv_dim` elements.
    pub fn page_words(self, kv_dim: usize) -> usize {
        2 * PAGE_TOKENS * self.words(kv_dim)
    }

    /// Words of `elements` elements, a multiple of [`head_multiple`](Self::head_multiple).
    pub fn words(self, elements: usize) -> usize {
        match self {
            KvFormat::F32 => elements,
            KvFormat::F16 => elements / 2,
            KvFormat::Q8_0 => elements / BLOCK * BLOCK_WORDS,
        }
    }

    /// The first word of the K (`value == 0`) or the V (`1`) of page token `token` on page `page`.
    pub(crate) fn row_at(self, page: u32, value: usize, token: usize, kv_dim: usize) -> usize {
        ((page as usize * 2 + value) * PAGE_TOKENS + token) * self.words(kv_dim)
    }

    /// Encodes the elements of `row` into as many words as they need.
    pub fn store(self, words: &mut [u32], row: &[f32]) {
        assert_eq!(words.len(), self.words(row.len()));
        match self {
            KvFormat::F32 => {
                for (word, value) in words.iter_mut().zip(row) {
                    *word = value.to_bits();
                }
            }
            KvFormat::F16 => {
                for (word, pair) in words.iter_mut().zip(row.chunks_exact(2)) {
                    *word = u32::from(f16_bits(pair[0])) | u32::from(f16_bits(pair[1])) << 16;
                }
            }
            KvFormat::Q8_0 => {
                let blocks = words.chunks_exact_mut(BLOCK_WORDS);
                for (block, values) in blocks.zip(row.chunks_exact(BLOCK)) {
                    store_block(block, values);
                }
            }
        }
    }
}

/// The nearest f16, even on ties; values beyond the range become the largest one.
fn f16_bits(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) & 0x8000;
    let size = f32::from_bits(value.to_bits() & 0x7fff_ffff);
    let bits = size.to_bits();
    let magnitude = if size.is_nan() {
        0x7e00 | ((bits >> 13) & 0x3ff)
    } else if size >= 65504.0 {
        0x7bff
    } else if size < 6.103_515_6e-5 {
        // Subnormal in f16: units of 2^-24, to which the sum with 0.5 rounds.
        (size + 0.5).to_bits() - 0.5f32.to_bits()
    } else {
        let odd = (bits >> 13) & 1;
        (bits + 0xfff + odd - (112 << 23)) >> 13
    };
    (magnitude | sign) as u16
}

/// Encodes 32 elements.
fn store_block(block: &mut [u32], values: &[f32]) {
    let mut peaks = [0f32; LANES];
    for values in values.chunks_exact(LANES) {
        for (peak, value) in peaks.iter_mut().zip(values) {
            *peak = if value.abs() > *peak {
                value.abs()
            } else {
                *peak
            };
        }
    }
    let peak = peaks.into_iter().fold(0.0, f32::max);
    let per_quant = if peak > 0.0 { 127.0 / peak } else { 0.0 };
    let quant = |value: &f32| (value * per_quant + 0.5).floor() as i8 as u8;
    block[0] = (peak / 127.0).to_bits();
    for (word, four) in block[1..].iter_mut().zip(values.chunks_exact(4)) {
        *word = u32::from_le_bytes(std::array::from_fn(|i| quant(&four[i])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::f32x8::f16_to_f32;

    #[test]
    fn every_f16_is_stored_as_itself() {
        for half in 0..=u16::MAX {
            let value = f16_to_f32(half);
            if half & 0x7c00 != 0x7c00 {
                assert_eq!(f16_bits(value), half, "{value}");
            } else if half & 0x3ff == 0 {
                assert!(value.is_infinite());
                assert_eq!(f16_bits(value), (half & 0x8000) | 0x7bff);
            } else {
                assert!(value.is_nan() && f16_to_f32(f16_bits(value)).is_nan());
            }
        }
    }

    #[test]
    fn values_between_two_f16_become_the_nearest_even_one() {
        for half in 0..0x7bffu16 {
            let (a, b) = (f16_to_f32(half), f16_to_f32(half + 1));
            let middle = (a + b) / 2.0;
            assert_eq!(f16_bits(middle), half + half % 2, "{middle}");
            assert_eq!(f16_bits(middle.next_down()), half);
            assert_eq!(f16_bits(-middle.next_up()), (half + 1) | 0x8000);
        }
        assert_eq!(f16_bits(65519.0), 0x7bff);
        assert_eq!(f16_bits(f32::NEG_INFINITY), 0xfbff);
    }

    #[test]
    fn blocks_keep_their_peak_and_round_half_up() {
        let mut row = [0.0; BLOCK];
        (row[0], row[5], row[31]) = (-127.0, 64.5, 3.0);
        let mut words = [0; BLOCK_WORDS];
        KvFormat::Q8_0.store(&mut words, &row);
        assert_eq!(f32::from_bits(words[0]), 1.0);
        let quants: Vec<i8> = words[1..]
            .iter()
            .flat_map(|word| word.to_le_bytes().map(|b| b as i8))
            .collect();
        assert_eq!(
            (quants[0], quants[5], quants[31], quants[1]),
            (-127, 65, 3, 0)
        );
        KvFormat::Q8_0.store(&mut words, &[0.0; BLOCK]);
        assert_eq!(words, [0; BLOCK_WORDS]);
    }

    #[test]
    fn pages_have_the_size_of_their_format() {
        let words = KvFormat::ALL.map(|format| format.page_words(64));
        assert_eq!(words, [2 * 64 * 64, 2 * 64 * 32, 2 * 64 * 18]);
    }
}
