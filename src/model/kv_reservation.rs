//! The size of a model's KV cache, validated before anything is loaded. The engine assigns its pages.

use burn::tensor::Device;

use super::{config::ModelConfig, load_options::LoadOptions};
use crate::{
    Error, Result,
    ops::{
        kv_memory::{KvFormat, KvMemory},
        step::PAGE_TOKENS,
    },
};

/// Default number of tokens: of the context, and of the cache that all sequences share.
const DEFAULT_TOKENS: usize = 4096;

/// Most tokens of several texts in a step of an encoder.
pub(super) const ENCODER_BATCH_TOKENS: usize = 512;
/// Most texts in a step of an encoder.
pub(super) const ENCODER_BATCH_TEXTS: usize = 32;

/// The KV cache to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KvReservation {
    /// Longest sequence, in tokens.
    pub(super) context_tokens: usize,
    /// Pages that sequences share; enough for the longest one.
    pub(super) pages: usize,
    /// Format of K and V.
    pub(super) format: KvFormat,
    /// Elements of the K or V of one token, in each layer that has its own.
    pub(super) kv_dims: Vec<usize>,
}

impl KvReservation {
    /// The cache of a model like `config` for `options`, on a device whose kernels see `max_bytes` of a
    /// buffer.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the cache of a layer exceeds that, [`Error::UnsupportedModel`] if the
    /// format does not support the model's heads.
    pub(super) fn new(
        options: LoadOptions,
        config: &ModelConfig,
        max_bytes: u64,
    ) -> Result<KvReservation> {
        if !config.is_causal {
            return KvReservation::of_encoder(options, config, max_bytes);
        }
        let heads = config.kv_layers().map(|layer| {
            let sizes = config.sizes(layer);
            [sizes.kv_heads, sizes.head_dim]
        });
        let heads: Vec<[usize; 2]> = heads.collect();
        KvReservation::of_sizes(options, config.context_tokens, &heads, max_bytes)
    }

    /// K and V of one layer at a time, exact, for a step of an encoder: its longest text, or several short ones,
    /// each on pages of its own.
    fn of_encoder(
        options: LoadOptions,
        config: &ModelConfig,
        max_bytes: u64,
    ) -> Result<KvReservation> {
        let wanted = options.context_tokens.unwrap_or(DEFAULT_TOKENS);
        let context_tokens = wanted.min(config.context_tokens).max(1);
        let pages = ENCODER_BATCH_TOKENS / PAGE_TOKENS + ENCODER_BATCH_TEXTS;
        let reservation = KvReservation {
            context_tokens,
            pages: pages.max(context_tokens.div_ceil(PAGE_TOKENS)),
            format: KvFormat::F32,
            kv_dims: vec![config.kv_dim(0)],
        };
        let bytes = reservation.layer_bytes();
        if bytes > max_bytes {
            return Err(Error::OutOfMemory(format!(
                "keys and values of texts of {context_tokens} tokens take {bytes} bytes, and this \
                 device's kernels see at most {max_bytes}: contextTokens makes texts shorter"
            )));
        }
        Ok(reservation)
    }

    fn of_sizes(
        options: LoadOptions,
        model_tokens: usize,
        heads: &[[usize; 2]],
        max_bytes: u64,
    ) -> Result<KvReservation> {
        let format = options.kv_format;
        let misfit = |format: KvFormat| {
            let mut head_dims = heads.iter().map(|[_, head_dim]| *head_dim);
            head_dims.find(|head_dim| !head_dim.is_multiple_of(format.head_multiple()))
        };
        if let Some(head_dim) = misfit(format) {
            return Err(Error::UnsupportedModel(format!(
                "a KV cache as {} consists of blocks of {}, and this model's heads have {head_dim} \
                 elements: f16 supports them",
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
            kv_dims: heads
                .iter()
                .map(|[heads, head_dim]| heads * head_dim)
                .collect(),
        };
        let bytes = reservation.layer_bytes();
        if bytes > max_bytes {
            let kv_dim = reservation.largest_kv_dim();
            let fitting = KvFormat::ALL.into_iter().filter(|format| {
                misfit(*format).is_none()
                    && format.page_words(kv_dim) <= reservation.format.page_words(kv_dim)
            });
            let fitting = fitting.map(|format| {
                let page_bytes = 4 * format.page_words(kv_dim) as u64;
                let pages = max_bytes / page_bytes;
                format!("{} as {}", pages * PAGE_TOKENS as u64, format.name())
            });
            return Err(Error::OutOfMemory(format!(
                "the KV cache of {} tokens as {} takes {bytes} bytes per layer, and this device's \
                 kernels see at most {max_bytes}. That is enough for this many tokens: {}",
                pages * PAGE_TOKENS,
                format.name(),
                fitting.collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(reservation)
    }

    /// The caches of all layers that have their own.
    pub(super) fn memories(&self, device: &Device) -> Vec<KvMemory> {
        let memory = |kv_dim: &usize| {
            KvMemory::new(self.pages, *kv_dim, self.format, device)
                .with_context(self.context_tokens)
        };
        self.kv_dims.iter().map(memory).collect()
    }

    /// As [`Self::memories`], for dry runs: nothing runs, so layers of the same size share one.
    pub(super) fn outlines(&self, device: &Device) -> Vec<KvMemory> {
        let mut of_sizes = std::collections::BTreeMap::new();
        let memory = |kv_dim: &usize| {
            let new = || {
                KvMemory::new(self.pages, *kv_dim, self.format, device)
                    .with_context(self.context_tokens)
            };
            of_sizes.entry(*kv_dim).or_insert_with(new).clone()
        };
        self.kv_dims.iter().map(memory).collect()
    }

    /// Bytes of the largest layer, which is one buffer.
    pub(super) fn layer_bytes(&self) -> u64 {
        self.bytes_of(self.largest_kv_dim())
    }

    /// Bytes of all layers.
    pub(super) fn bytes(&self) -> u64 {
        self.kv_dims
            .iter()
            .map(|kv_dim| self.bytes_of(*kv_dim))
            .sum()
    }

    fn bytes_of(&self, kv_dim: usize) -> u64 {
        self.pages as u64 * 4 * self.format.page_words(kv_dim) as u64
    }

    fn largest_kv_dim(&self) -> usize {
        self.kv_dims.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::architectures, weights::Metadata};

    fn reserve(options: LoadOptions, model_tokens: usize, max_bytes: u64) -> Result<KvReservation> {
        KvReservation::of_sizes(options, model_tokens, &[[2, 32]; 3], max_bytes)
    }

    #[test]
    fn sequences_share_at_least_the_pages_of_the_longest() {
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
    fn a_cache_that_a_kernel_cannot_see_is_refused_with_sizes_that_fit() {
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
            "out of memory: the KV cache of 4096 tokens as f16 takes 1048576 bytes per layer, and \
             this device's kernels see at most 1000000. That is enough for this many tokens: 3904 as \
             f16, 6912 as q8_0"
        );
    }

    #[test]
    fn encoders_keep_one_layer_for_their_longest_text_or_several_short_ones() {
        let config = |context_tokens: usize| {
            let mut metadata = Metadata::new();
            metadata.insert("general.architecture", "bert");
            for (key, value) in [
                ("block_count", 7),
                ("context_length", context_tokens as u32),
                ("embedding_length", 64),
                ("feed_forward_length", 128),
                ("attention.head_count", 4),
                ("pooling_type", 1),
            ] {
                metadata.insert(format!("bert.{key}"), value);
            }
            metadata.insert("bert.attention.layer_norm_epsilon", 1e-12f32);
            architectures::configure(&metadata, Some(3)).unwrap()
        };
        let page_bytes = 2 * 64 * 64 * 4;
        for (context, given, tokens, pages) in [
            (512, None, 512, 40),
            (8192, None, 4096, 64),
            (8192, Some(8000), 8000, 125),
            (512, Some(100), 100, 40),
        ] {
            let options = LoadOptions {
                context_tokens: given,
                ..LoadOptions::default()
            };
            let reserve = |bytes| KvReservation::new(options, &config(context), bytes);
            let reserved = reserve(u64::MAX).unwrap();
            assert_eq!((reserved.context_tokens, reserved.pages), (tokens, pages));
            assert_eq!(reserved.bytes(), pages as u64 * page_bytes);
            let error = reserve(reserved.bytes() - 1).unwrap_err();
            assert!(error.to_string().contains("contextTokens"), "{error}");
        }
    }

    #[test]
    fn heads_that_are_not_whole_blocks_are_refused() {
        let options = LoadOptions {
            kv_format: KvFormat::Q8_0,
            ..LoadOptions::default()
        };
        let error = KvReservation::of_sizes(options, 512, &[[2, 48]; 2], u64::MAX).unwrap_err();
        assert!(error.to_string().contains("blocks of 32"), "{error}");
    }
}
