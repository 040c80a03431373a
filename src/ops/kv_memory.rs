//! The paged KV cache of a layer. Its formats are declared in `src/cpu/lanes/kv`.

use burn::tensor::{Device, Int, Tensor};
pub use inpage_cpu::lanes::kv::KvFormat;

use super::{in_place::InPlace, step::PAGE_TOKENS};
use crate::device::reserve_words;

/// The KV cache of one layer: `[page, k|v, KV head, page token, head_dim]`. A clone on the GPU shares the memory.
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

    /// Uploads whole pages `[page, k|v, KV head, page token, head_dim]`, where heads have `kv_dim` elements together.
    pub(crate) fn of(elements: &[f32], kv_dim: usize, format: KvFormat, device: &Device) -> Self {
        let mut words = vec![0; format.words(elements.len())];
        format.store(&mut words, elements);
        Self {
            words: InPlace::upload(words, device),
            format,
            page_words: format.page_words(kv_dim),
            context_tokens: elements.len() / (2 * kv_dim),
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

/// A format in JSON: its name.
pub(crate) mod kv_format_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    use super::KvFormat;

    pub(crate) fn serialize<S: Serializer>(format: &KvFormat, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(format.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<KvFormat, D::Error> {
        let name = String::deserialize(from)?;
        KvFormat::from_name(&name).ok_or_else(|| D::Error::unknown_variant(&name, &KvFormat::NAMES))
    }
}

/// The TypeScript type of a format: its names.
#[cfg(test)]
pub(crate) mod typescript {
    pub(crate) struct KvFormat;

    impl ts_rs::TS for KvFormat {
        type WithoutGenerics = KvFormat;
        type OptionInnerType = KvFormat;

        fn name(_: &ts_rs::Config) -> String {
            "KvFormat".to_owned()
        }

        fn inline(_: &ts_rs::Config) -> String {
            super::KvFormat::NAMES
                .map(|name| format!("\"{name}\""))
                .join(" | ")
        }

        fn decl(config: &ts_rs::Config) -> String {
            format!("type KvFormat = {};", Self::inline(config))
        }

        fn docs() -> Option<String> {
            Some("/**\n * The format of a KV cache.\n */\n".to_owned())
        }

        fn output_path() -> Option<std::path::PathBuf> {
            Some("types.ts".into())
        }
    }
}
