//! How much KV memory a model gets, checked before anything is loaded. Knows bytes and tokens, not
//! who uses the pages.

use burn::tensor::Device;

use super::{LoadOptions, ModelConfig};
use crate::{
    Error, Result,
    ops::{
        kv_memory::{KvFormat, KvMemory},
        step::PAGE_TOKENS,
    },
};

/// Tokens reserved where the caller does not say: of context, and for all sequences together.
const DEFAULT_TOKENS: usize = 4096;

/// KV memory to reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KvReservation {
    /// Longest sequence, in tokens.
    pub(super) context_tokens: usize,
    /// Pages that sequences share; at least the longest one's.
    pub(super) pages: usize,
    /// How keys and values are kept.
    pub(super) format: KvFormat,
    /// Elements of the keys or values of a token in a layer.
    pub(super) kv_dim: usize,
    /// Layers.
    pub(super) layers: usize,
}

impl KvReservation {
    /// What `options` ask for, of a model like `config`, on a device whose kernels see `max_bytes` of
    /// a buffer.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if a layer's KV memory exceeds that, [`Error::UnsupportedModel`] if
    /// the model's heads do not suit the format.
    pub(super) fn new(
        options: LoadOptions,
        config: &ModelConfig,
        max_bytes: u64,
    ) -> Result<KvReservation> {
        let heads = [config.kv_heads, config.head_dim];
        let (tokens, layers) = (config.context_tokens, config.layers.len());
        KvReservation::of_sizes(options, tokens, heads, layers, max_bytes)
    }

    fn of_sizes(
        options: LoadOptions,
        model_tokens: usize,
        [kv_heads, head_dim]: [usize; 2],
        layers: usize,
        max_bytes: u64,
    ) -> Result<KvReservation> {
        let (format, kv_dim) = (options.kv_format, kv_heads * head_dim);
        let suits = |format: KvFormat| head_dim.is_multiple_of(format.head_multiple());
        if !suits(format) {
            return Err(Error::UnsupportedModel(format!(
                "keys and values as {} come in blocks of {}, and this model's heads have {head_dim} \
                 elements: f16 suits them",
                format.name(),
                format.head_multiple()
            )));
        }
        let wanted = options.context_tokens.unwrap_or(DEFAULT_TOKENS);
        let context_tokens = wanted.min(model_tokens).max(1);
        let pool_tokens = options.kv_pool_tokens.unwrap_or(DEFAULT_TOKENS);
        let pages = pool_tokens.max(context_tokens).div_ceil(PAGE_TOKENS);
        let reservation = KvReservation {
            context_tokens,
            pages,
            format,
            kv_dim,
            layers,
        };
        let bytes = reservation.layer_bytes();
        if bytes > max_bytes {
            let fitting = KvFormat::ALL.into_iter().filter(|format| {
                suits(*format) && format.page_words(kv_dim) <= reservation.format.page_words(kv_dim)
            });
            let fitting = fitting.map(|format| {
                let page_bytes = 4 * format.page_words(kv_dim) as u64;
                let pages = max_bytes / page_bytes;
                format!("{} as {}", pages * PAGE_TOKENS as u64, format.name())
            });
            return Err(Error::OutOfMemory(format!(
                "the keys and values of {} tokens as {} take {bytes} bytes per layer, and this \
                 device's kernels see {max_bytes} at most. That would do for this many tokens: {}",
                pages * PAGE_TOKENS,
                format.name(),
                fitting.collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(reservation)
    }

    /// The memory of a layer.
    pub(super) fn memory(self, device: &Device) -> KvMemory {
        KvMemory::new(self.pages, self.kv_dim, self.format, device)
            .with_context(self.context_tokens)
    }

    /// Bytes of a layer: one buffer.
    pub(super) fn layer_bytes(self) -> u64 {
        self.pages as u64 * 4 * self.format.page_words(self.kv_dim) as u64
    }

    /// Bytes of all layers.
    pub(super) fn bytes(self) -> u64 {
        self.layer_bytes() * self.layers as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(options: LoadOptions, model_tokens: usize, max_bytes: u64) -> Result<KvReservation> {
        KvReservation::of_sizes(options, model_tokens, [2, 32], 3, max_bytes)
    }

    #[test]
    fn sequences_share_what_the_longest_needs_or_more() {
        for (context, pool, model, tokens, pages) in [
            (None, None, 8192, 4096, 64),
            (None, None, 512, 512, 64),
            (Some(6000), None, 8192, 6000, 94),
            (Some(100), Some(100), 512, 100, 2),
            (Some(100), Some(1000), 512, 100, 16),
            (Some(9000), Some(1), 8192, 8192, 128),
        ] {
            let options = LoadOptions {
                context_tokens: context,
                kv_pool_tokens: pool,
                ..LoadOptions::default()
            };
            let reserved = reserve(options, model, u64::MAX).unwrap();
            assert_eq!((reserved.context_tokens, reserved.pages), (tokens, pages));
            let page_bytes = 2 * 64 * 64 * 2;
            assert_eq!(reserved.bytes(), 3 * pages as u64 * page_bytes);
        }
    }

    #[test]
    fn what_a_kernel_cannot_see_is_refused_with_what_would_do() {
        let options = |kv_format| LoadOptions {
            kv_format,
            ..LoadOptions::default()
        };
        let bytes = |format: KvFormat| 64 * 4 * format.page_words(64) as u64;
        for format in KvFormat::ALL {
            assert!(reserve(options(format), 4096, bytes(format)).is_ok());
            let error = reserve(options(format), 4096, bytes(format) - 1).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
        }
        let error = reserve(options(KvFormat::F16), 4096, 1_000_000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "out of memory: the keys and values of 4096 tokens as f16 take 1048576 bytes per \
             layer, and this device's kernels see 1000000 at most. That would do for this many \
             tokens: 3904 as f16, 6912 as q8_0"
        );
    }

    #[test]
    fn heads_that_are_no_blocks_are_refused() {
        let options = LoadOptions {
            kv_format: KvFormat::Q8_0,
            ..LoadOptions::default()
        };
        let error = KvReservation::of_sizes(options, 512, [2, 48], 2, u64::MAX).unwrap_err();
        assert!(error.to_string().contains("blocks of 32"), "{error}");
    }
}
