//! The paged KV cache of a layer and its formats.

use burn::tensor::{Device, Int, Tensor};
use half::f16;
use serde::{Deserialize, Serialize};

use super::{in_place::InPlace, step::PAGE_TOKENS};
use crate::{device::reserve_words, kernel::wgsl};

/// Elements of a block of [`KvFormat::Q8_0`].
const BLOCK: usize = 32;
/// Words of a block of [`KvFormat::Q8_0`].
const BLOCK_WORDS: usize = 1 + BLOCK / 4;

/// The format of a KV cache. A row is the K or the V of one token. A new format is an arm in each match
/// below and its files in `shaders/shared/kv`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    /// f32 elements: exact.
    F32,
    /// f16 elements; values beyond ±65504 are clamped.
    #[default]
    F16,
    /// Blocks of 32 elements of a head: an f32 scale, then 32 i8, each the element divided by the scale.
    Q8_0,
}

impl KvFormat {
    /// All formats, for tests.
    pub const ALL: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

    /// The name in options and in the names of kernels.
    pub fn name(self) -> &'static str {
        match self {
            KvFormat::F32 => "f32",
            KvFormat::F16 => "f16",
            KvFormat::Q8_0 => "q8_0",
        }
    }

    /// The format with a name.
    pub fn from_name(name: &str) -> Option<KvFormat> {
        let mut formats = KvFormat::ALL.into_iter();
        formats.find(|format| format.name() == name)
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
        2 * PAGE_TOKENS * self.word_at(kv_dim)
    }

    /// Vectors of four elements that one lane stores.
    pub(super) fn store_vectors(self) -> usize {
        self.head_multiple() / 4
    }

    /// The format for the kernels of the CPU device.
    pub(super) fn on_cpu(self) -> inpage_cpu::lanes::kv::KvFormat {
        match self {
            KvFormat::F32 => inpage_cpu::lanes::kv::KvFormat::F32,
            KvFormat::F16 => inpage_cpu::lanes::kv::KvFormat::F16,
            KvFormat::Q8_0 => inpage_cpu::lanes::kv::KvFormat::Q8_0,
        }
    }

    /// First word of element `element`, or of its block.
    fn word_at(self, element: usize) -> usize {
        match self {
            KvFormat::F32 => element,
            KvFormat::F16 => element / 2,
            KvFormat::Q8_0 => element / BLOCK * BLOCK_WORDS,
        }
    }

    /// Decodes elements starting with `first`, a multiple of 4: the CPU twin of `kv_load`.
    pub fn load(self, words: &[u32], first: usize, out: &mut [f32]) {
        let words = &words[self.word_at(first)..];
        match self {
            KvFormat::F32 => out.copy_from_slice(bytemuck::cast_slice(&words[..out.len()])),
            KvFormat::F16 => {
                for (i, element) in out.iter_mut().enumerate() {
                    let bits = (words[i / 2] >> (16 * (i % 2))) as u16;
                    *element = f16::from_bits(bits).to_f32();
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

    /// Encodes a row whose first element is `first`: the CPU twin of `kv_store`.
    pub(super) fn store(self, words: &mut [u32], first: usize, row: &[f32]) {
        let words = &mut words[self.word_at(first)..][..self.word_at(row.len())];
        match self {
            KvFormat::F32 => words.copy_from_slice(bytemuck::cast_slice(row)),
            KvFormat::F16 => {
                let bits = |value: f32| {
                    let most = f16::MAX.to_f32();
                    u32::from(f16::from_f32(value.clamp(-most, most)).to_bits())
                };
                for (word, pair) in words.iter_mut().zip(row.chunks_exact(2)) {
                    *word = bits(pair[0]) | bits(pair[1]) << 16;
                }
            }
            KvFormat::Q8_0 => {
                let blocks = words.chunks_exact_mut(BLOCK_WORDS);
                for (block, values) in blocks.zip(row.chunks_exact(BLOCK)) {
                    let peak = values
                        .iter()
                        .fold(0f32, |peak, value| peak.max(value.abs()));
                    let per_quant = if peak > 0.0 { 127.0 / peak } else { 0.0 };
                    let quant = |value: &f32| (value * per_quant + 0.5).floor() as i8 as u8;
                    block[0] = (peak / 127.0).to_bits();
                    for (word, four) in block[1..].iter_mut().zip(values.chunks_exact(4)) {
                        *word = u32::from_le_bytes(std::array::from_fn(|i| quant(&four[i])));
                    }
                }
            }
        }
    }

    /// The module that reads vectors.
    pub(super) fn load_wgsl(self) -> &'static str {
        match self {
            KvFormat::F32 => wgsl!("shared/kv/f32"),
            KvFormat::F16 => wgsl!("shared/kv/f16"),
            KvFormat::Q8_0 => wgsl!("shared/kv/q8_0"),
        }
    }

    /// The module that writes vectors; used with [`load_wgsl`](Self::load_wgsl).
    pub(super) fn store_wgsl(self) -> &'static str {
        match self {
            KvFormat::F32 => wgsl!("shared/kv/f32_store"),
            KvFormat::F16 => wgsl!("shared/kv/f16_store"),
            KvFormat::Q8_0 => wgsl!("shared/kv/q8_0_store"),
        }
    }
}

/// The KV cache of one layer: `[page, k|v, page token, kv_dim]`. A clone on the GPU shares the memory.
#[derive(Debug, Clone)]
pub struct KvMemory {
    words: InPlace,
    format: KvFormat,
    page_words: usize,
    context_tokens: usize,
}

impl KvMemory {
    /// Reserves `pages` pages with rows of `kv_dim` elements. The elements of a head are a multiple of the
    /// format's [`head_multiple`](KvFormat::head_multiple).
    pub fn new(pages: usize, kv_dim: usize, format: KvFormat, device: &Device) -> Self {
        debug_assert!(kv_dim.is_multiple_of(format.head_multiple()));
        let page_words = format.page_words(kv_dim);
        let words = reserve_words(pages * page_words, device);
        Self {
            words: InPlace::new(words),
            format,
            page_words,
            context_tokens: pages * PAGE_TOKENS,
        }
    }

    /// Uploads whole pages of rows `[page, k|v, page token, kv_dim]`.
    pub(crate) fn of(rows: &[f32], kv_dim: usize, format: KvFormat, device: &Device) -> Self {
        let mut words = vec![0; format.word_at(rows.len())];
        for (i, row) in rows.chunks_exact(kv_dim).enumerate() {
            format.store(&mut words, i * kv_dim, row);
        }
        Self {
            words: InPlace::upload(words, device),
            format,
            page_words: format.page_words(kv_dim),
            context_tokens: rows.len() / (2 * kv_dim),
        }
    }

    /// Limits sequences to `tokens`; kernels are composed for that length.
    pub fn with_context(self, tokens: usize) -> Self {
        Self {
            context_tokens: tokens,
            ..self
        }
    }

    /// Maximum number of tokens of a sequence.
    pub fn context_tokens(&self) -> usize {
        self.context_tokens
    }

    /// The format.
    pub fn format(&self) -> KvFormat {
        self.format
    }

    /// Words of a page.
    pub(super) fn page_words(&self) -> usize {
        self.page_words
    }

    /// The words, to read.
    pub fn words(&self) -> Tensor<1, Int> {
        self.words.get()
    }

    /// The words, to change in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> Tensor<1, Int> {
        self.words.take()
    }

    pub(super) fn put(&mut self, words: Tensor<1, Int>) {
        self.words.put(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row stored after another one and loaded in parts.
    fn kept(format: KvFormat, row: &[f32]) -> Vec<f32> {
        let mut words = vec![0; format.word_at(2 * row.len())];
        format.store(&mut words, row.len(), row);
        assert!(
            words[..format.word_at(row.len())]
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
    fn pages_have_the_size_of_their_format() {
        let words = KvFormat::ALL.map(|format| format.page_words(64));
        assert_eq!(words, [2 * 64 * 64, 2 * 64 * 32, 2 * 64 * 18]);
    }

    #[test]
    fn formats_have_one_name() {
        for format in KvFormat::ALL {
            assert_eq!(KvFormat::from_name(format.name()), Some(format));
            let json = serde_json::to_value(format).unwrap();
            assert_eq!(json, format.name());
        }
        assert_eq!(KvFormat::from_name("q4_0"), None);
    }
}
