//! The paged KV cache of a layer, `[page, k|v, page token, kv_dim]`: formats of its rows, where a row is, how a row is
//! written. How vectors of rows are read is in `attention::load`.

use std::marker::PhantomData;

use super::f32x8::LANES;
use crate::half::{f16_from_f32, f16_to_f32};

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

/// The format of a KV cache. A row is the K or the V of one token. A new format is an arm in each match below, its files in
/// `shaders/shared/kv`, and its vectors in `attention::load`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum KvFormat {
    /// f32 elements: exact.
    F32 = 0,
    /// f16 elements, two in a word; values beyond ±65504 are clamped.
    #[default]
    F16 = 1,
    /// Blocks of 32 elements of a head: an f32 scale, then 32 i8, each the element divided by the scale.
    Q8_0 = 2,
}

impl KvFormat {
    /// All formats.
    pub const ALL: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

    /// The names of [`ALL`](Self::ALL).
    pub const NAMES: [&str; 3] = ["f32", "f16", "q8_0"];

    /// The name in options and in the names of kernels.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The format with a name.
    pub fn from_name(name: &str) -> Option<KvFormat> {
        let mut formats = KvFormat::ALL.into_iter();
        formats.find(|format| format.name() == name)
    }

    /// How far attention on a device may be from the twin when the kernels are validated. Devices may round elements to
    /// either side.
    pub fn tolerance(self) -> f32 {
        match self {
            KvFormat::F32 => 1e-3,
            KvFormat::F16 => 4e-3,
            KvFormat::Q8_0 => 3e-2,
        }
    }

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

    /// Words of `elements` elements, a multiple of [`head_multiple`](Self::head_multiple), or the first word of the block of
    /// the next one.
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

    /// Vectors of four elements that one lane of a GPU stores.
    pub fn store_vectors(self) -> usize {
        self.head_multiple() / 4
    }

    /// The module that reads vectors on GPUs. Not inlined: kernels are identified by the addresses of their modules.
    #[inline(never)]
    pub fn load_wgsl(self) -> &'static str {
        match self {
            KvFormat::F32 => wgsl!("shared/kv/f32"),
            KvFormat::F16 => wgsl!("shared/kv/f16"),
            KvFormat::Q8_0 => wgsl!("shared/kv/q8_0"),
        }
    }

    /// The module that writes vectors; used with [`load_wgsl`](Self::load_wgsl).
    #[inline(never)]
    pub fn store_wgsl(self) -> &'static str {
        match self {
            KvFormat::F32 => wgsl!("shared/kv/f32_store"),
            KvFormat::F16 => wgsl!("shared/kv/f16_store"),
            KvFormat::Q8_0 => wgsl!("shared/kv/q8_0_store"),
        }
    }

    /// Decodes elements starting with `first`, a multiple of 4: the CPU twin of `kv_load`.
    pub fn load(self, words: &[u32], first: usize, out: &mut [f32]) {
        let words = &words[self.words(first)..];
        match self {
            KvFormat::F32 => {
                for (element, word) in out.iter_mut().zip(words) {
                    *element = f32::from_bits(*word);
                }
            }
            KvFormat::F16 => {
                for (i, element) in out.iter_mut().enumerate() {
                    *element = f16_to_f32((words[i / 2] >> (16 * (i % 2))) as u16);
                }
            }
            KvFormat::Q8_0 => {
                for (i, element) in out.iter_mut().enumerate() {
                    let i = first % BLOCK + i;
                    let block = &words[i / BLOCK * BLOCK_WORDS..][..BLOCK_WORDS];
                    let quant = (block[1 + i % BLOCK / 4] >> (8 * (i % 4))) as i8;
                    *element = f32::from(quant) * f32::from_bits(block[0]);
                }
            }
        }
    }

    /// Encodes a row whose first element is `first` of `words`.
    pub fn store_at(self, words: &mut [u32], first: usize, row: &[f32]) {
        let at = self.words(first);
        self.store(&mut words[at..][..self.words(row.len())], row);
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
    f16_from_f32(value.clamp(-F16_MAX, F16_MAX))
}

/// The largest f16.
const F16_MAX: f32 = 65504.0;

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

    /// A row stored after another one and loaded in parts.
    fn kept(format: KvFormat, row: &[f32]) -> Vec<f32> {
        let mut words = vec![0; format.words(2 * row.len())];
        format.store_at(&mut words, row.len(), row);
        assert!(
            words[..format.words(row.len())]
                .iter()
                .all(|word| *word == 0)
        );
        let mut out = vec![f32::NAN; row.len()];
        let (head, tail) = out.split_at_mut(12.min(row.len()));
        format.load(&words, row.len(), head);
        format.load(&words, row.len() + head.len(), tail);
        out
    }

    fn rows() -> Vec<Vec<f32>> {
        let wave = |n: usize| (0..n).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
        vec![wave(32), wave(96), vec![0.0; 32]]
    }

    #[test]
    fn loaded_elements_are_close_to_stored_ones() {
        for row in rows() {
            assert_eq!(kept(KvFormat::F32, &row), row);
            for (a, b) in kept(KvFormat::F16, &row).iter().zip(&row) {
                assert!((a - b).abs() <= b.abs() / 2048.0, "{a} for {b}");
            }
            // At most half a quantization step of the largest element.
            for (a, b) in kept(KvFormat::Q8_0, &row).iter().zip(&row) {
                assert!((a - b).abs() <= 3.0 / 127.0 / 2.0 + 1e-6, "{a} for {b}");
            }
        }
        assert_eq!(
            kept(KvFormat::F16, &[0.5, -1.0, 2.0, 6e-8]),
            [0.5, -1.0, 2.0, 5.9604645e-8]
        );
        let mut row = [0.0; 32];
        (row[0], row[5], row[31]) = (-127.0, 64.4, 3.0);
        let mut quants = row;
        quants[5] = 64.0;
        assert_eq!(kept(KvFormat::Q8_0, &row), quants);
    }

    #[test]
    fn half_elements_never_become_infinite() {
        let huge = [65504.0, 65520.0, 1e30, -f32::INFINITY];
        assert_eq!(
            kept(KvFormat::F16, &huge),
            [65504.0, 65504.0, 65504.0, -65504.0]
        );
    }

    #[test]
    fn formats_have_one_name() {
        for (format, name) in KvFormat::ALL.into_iter().zip(KvFormat::NAMES) {
            assert_eq!(format.name(), name);
            assert_eq!(KvFormat::from_name(name), Some(format));
        }
        assert_eq!(KvFormat::from_name("q4_0"), None);
    }
}
