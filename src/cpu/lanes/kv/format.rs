//! The properties of a format of the KV cache: sizes, modules of WGSL, and the twins.

use super::{KvFormat, PAGE_TOKENS};

#[allow(
    clippy::derivable_impls,
    reason = "the list of variants has no attributes"
)]
impl Default for KvFormat {
    fn default() -> Self {
        KvFormat::F16
    }
}

impl KvFormat {
    /// The name in options and in the names of kernels.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The format with a name.
    pub fn from_name(name: &str) -> Option<KvFormat> {
        let mut formats = KvFormat::ALL.into_iter();
        formats.find(|format| format.name() == name)
    }

    /// The largest distance of attention on a device from the twin when the kernels are validated. Devices may round elements to
    /// either side.
    pub fn tolerance(self) -> f32 {
        self.declaration().tolerance
    }

    /// The largest distance of a stored element from the original, relative to it or to 1, if elements are at most 16.
    pub fn error(self) -> f64 {
        self.declaration().error
    }

    /// The number of elements of a head is a multiple of this.
    pub fn head_multiple(self) -> usize {
        self.block().0
    }

    /// Words of a page of one layer, K and V, with rows of `kv_dim` elements.
    pub fn page_words(self, kv_dim: usize) -> usize {
        2 * PAGE_TOKENS * self.words(kv_dim)
    }

    /// Words of `elements` elements, a multiple of [`head_multiple`](Self::head_multiple), or the first word of the block of
    /// the next one.
    pub fn words(self, elements: usize) -> usize {
        let (len, words) = self.block();
        elements / len * words
    }

    /// The first word of KV head `kv_head` of the K (`value == 0`) or the V (`1`) of page token `token` on page `page`, in a
    /// cache with `kv_heads` heads of `head_dim` elements.
    pub fn head_at(
        self,
        (page, token): (u32, usize),
        value: usize,
        kv_head: usize,
        [kv_heads, head_dim]: [usize; 2],
    ) -> usize {
        let head = (page as usize * 2 + value) * kv_heads + kv_head;
        (head * PAGE_TOKENS + token) * self.words(head_dim)
    }

    /// Encodes the heads of the K (`value == 0`) or the V (`1`) of page token `token` on page `page`, `[kv_heads, head_dim]`
    /// elements in `row`, into the words of a cache. A head with NaN begins with NaN: `Elements::loads` looks at no other element.
    pub fn store_heads(
        self,
        words: &mut [u32],
        place: (u32, usize),
        value: usize,
        row: &[f32],
        head_dim: usize,
    ) {
        let kv_heads = row.len() / head_dim;
        for (kv_head, head) in row.chunks_exact(head_dim).enumerate() {
            let at = self.head_at(place, value, kv_head, [kv_heads, head_dim]);
            let words = &mut words[at..][..self.words(head_dim)];
            // Without a branch per element, so that vectors compare.
            let has_nan = head.iter().fold(false, |nan, x| nan | x.is_nan());
            match has_nan {
                true => self.store(words, &[&[f32::NAN], &head[1..]].concat()),
                false => self.store(words, head),
            }
        }
    }

    /// Vectors of four elements that one lane of a GPU stores.
    pub fn store_vectors(self) -> usize {
        self.head_multiple() / 4
    }

    /// The module that reads vectors on GPUs.
    pub fn load_wgsl(self) -> &'static str {
        self.declaration().load_wgsl
    }

    /// The module that writes vectors; used with [`load_wgsl`](Self::load_wgsl).
    pub fn store_wgsl(self) -> &'static str {
        self.declaration().store_wgsl
    }

    /// Decodes elements starting with `first`, a multiple of 4: the CPU twin of `kv_load`.
    pub fn load(self, words: &[u32], first: usize, out: &mut [f32]) {
        let (len, block_words) = self.block();
        let decode = self.declaration().decode;
        for (i, element) in (first..).zip(out) {
            let block = &words[i / len * block_words..][..block_words];
            *element = decode(block, i % len);
        }
    }

    /// Encodes elements, whole blocks of them, into as many words as they need.
    pub fn store(self, words: &mut [u32], elements: &[f32]) {
        assert_eq!(words.len(), self.words(elements.len()));
        (self.declaration().encode)(elements, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_size_of_their_format() {
        for (format, token_words) in [
            (KvFormat::F32, 64),
            (KvFormat::F16, 32),
            (KvFormat::Q8_0, 18),
        ] {
            assert_eq!(format.page_words(64), 2 * 64 * token_words, "{format:?}");
        }
    }

    /// A row stored after another one and loaded in parts.
    fn kept(format: KvFormat, row: &[f32]) -> Vec<f32> {
        let mut words = vec![0; format.words(2 * row.len())];
        let (before, after) = words.split_at_mut(format.words(row.len()));
        format.store(after, row);
        assert!(before.iter().all(|word| *word == 0));
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
    fn heads_with_nan_begin_with_it() {
        let (kv_heads, head_dim, place) = (3, 64, (1, 5));
        let mut row: Vec<f32> = (0..kv_heads * head_dim).map(|i| i as f32).collect();
        row[head_dim + 37] = f32::NAN;
        // Bytes have no NaN.
        for format in [KvFormat::F32, KvFormat::F16] {
            let mut words = vec![0; 2 * format.page_words(row.len())];
            format.store_heads(&mut words, place, 1, &row, head_dim);
            for (kv_head, head) in row.chunks_exact(head_dim).enumerate() {
                let at = format.head_at(place, 1, kv_head, [kv_heads, head_dim]);
                let mut stored = vec![0.0; head_dim];
                format.load(&words[at..], 0, &mut stored);
                assert_eq!(stored[0].is_nan(), kv_head == 1, "{format:?}");
                let error = 2.0 * format.error() as f32 * head[head_dim - 1].abs();
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= error;
                assert!(
                    kv_head == 1 || stored.iter().zip(head).all(close),
                    "{format:?}"
                );
            }
        }
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
