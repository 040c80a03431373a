//! The size of a model's KV cache and of its recurrent states, validated before anything is loaded. The engine assigns
//! pages and slots.

use burn::tensor::Device;

use super::{
    config::{MemoryKind, ModelConfig},
    layers::mixer::LayerMemory,
    load_options::LoadOptions,
};
use crate::{
    Error, Result,
    ops::{
        kv_memory::{KvFormat, KvMemory},
        state_memory::StateMemory,
        step::PAGE_TOKENS,
    },
};

/// Default number of tokens: of the context, and of the cache that all sequences share.
const DEFAULT_TOKENS: usize = 4096;

/// The most tokens of several inputs in a step of an encoder.
pub(super) const ENCODER_BATCH_TOKENS: usize = 512;
/// The most inputs in a step of an encoder.
pub(super) const ENCODER_BATCH_TEXTS: usize = 32;

/// Slots for states, as far as they take no more than this many bytes.
const STATE_BYTES: u64 = 256 << 20;
/// Slots for states, whatever they take, and at most.
const STATE_SLOTS: std::ops::RangeInclusive<u64> = 4..=64;

/// The KV cache and the states to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KvReservation {
    /// Longest sequence, in tokens.
    pub(super) context_tokens: usize,
    /// Pages that sequences share; enough for the longest one.
    pub(super) pages: usize,
    /// Format of K and V.
    pub(super) format: KvFormat,
    /// The elements of K or V of one token, for each of the model's memories; `None` for a state.
    pub(super) memories: Vec<Option<usize>>,
    /// The states of recurrent layers.
    pub(super) states: StateReservation,
}

/// The states of recurrent layers to reserve; all numbers are 0 if there are no such layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StateReservation {
    /// Recurrent layers.
    pub(super) layers: usize,
    /// States of sequences and snapshots.
    pub(super) slots: usize,
    /// Words of a state in one layer.
    pub(super) words: usize,
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
        let config = &config.with_mtp_block();
        let with_keys = config
            .memories()
            .filter(|(_, kind)| *kind == MemoryKind::Kv);
        let heads = with_keys.map(|(layer, _)| {
            let sizes = config.sizes(layer);
            [sizes.kv_heads, sizes.head_dim]
        });
        let heads: Vec<[usize; 2]> = heads.collect();
        let reservation =
            KvReservation::of_sizes(options, config.context_tokens, &heads, max_bytes)?;
        let recurrent = config.memories().count() - heads.len();
        let Some(recurrence) = config.recurrence.filter(|_| recurrent > 0) else {
            return Ok(reservation);
        };
        let words = StateMemory::slot_words_of(recurrence.state_len(config.dim));
        let sequences = (reservation.pages * PAGE_TOKENS) / reservation.context_tokens;
        let states = StateReservation::new(recurrent, words, sequences, max_bytes)?;
        let memories = config
            .memories()
            .map(|(layer, kind)| (kind == MemoryKind::Kv).then(|| config.kv_dim(layer)));
        Ok(KvReservation {
            states,
            memories: memories.collect(),
            ..reservation
        })
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
            memories: vec![Some(config.kv_dim(0))],
            states: StateReservation::default(),
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
            memories: heads
                .iter()
                .map(|[heads, head_dim]| Some(heads * head_dim))
                .collect(),
            states: StateReservation::default(),
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

    /// The memory of all layers that have their own.
    pub(super) fn memories(&self, device: &Device) -> Vec<LayerMemory> {
        let memory = |kv_dim: &Option<usize>| self.layer_memory(*kv_dim, device);
        self.memories.iter().map(memory).collect()
    }

    /// Same as [`Self::memories`], for dry runs: nothing runs, so layers of a kind share one.
    pub(super) fn outlines(&self, device: &Device) -> Vec<LayerMemory> {
        let mut of_kinds = std::collections::BTreeMap::new();
        let memory = |kv_dim: &Option<usize>| {
            let kind = of_kinds.entry(*kv_dim);
            kind.or_insert_with(|| self.layer_memory(*kv_dim, device))
                .clone()
        };
        self.memories.iter().map(memory).collect()
    }

    fn layer_memory(&self, kv_dim: Option<usize>, device: &Device) -> LayerMemory {
        let StateReservation { slots, words, .. } = self.states;
        match kv_dim {
            None => LayerMemory::States(StateMemory::new(slots, words, device)),
            Some(kv_dim) => LayerMemory::Kv(
                KvMemory::new(self.pages, kv_dim, self.format, device)
                    .with_context(self.context_tokens),
            ),
        }
    }

    /// Bytes of the KV cache of the largest layer, which is one buffer.
    pub(super) fn layer_bytes(&self) -> u64 {
        self.bytes_of(self.largest_kv_dim())
    }

    /// Bytes of the KV cache of all layers.
    pub(super) fn bytes(&self) -> u64 {
        let kv_dims = self.memories.iter().flatten();
        kv_dims.map(|kv_dim| self.bytes_of(*kv_dim)).sum()
    }

    fn bytes_of(&self, kv_dim: usize) -> u64 {
        self.pages as u64 * 4 * self.format.page_words(kv_dim) as u64
    }

    fn largest_kv_dim(&self) -> usize {
        self.memories.iter().flatten().copied().max().unwrap_or(0)
    }
}

impl StateReservation {
    /// States of `words` words in each of `layers` layers: one for each of `sequences` and for a snapshot, and more as
    /// long as they take little memory.
    fn new(layers: usize, words: usize, sequences: usize, max_bytes: u64) -> Result<Self> {
        let slot_bytes = 4 * words as u64;
        let least = (sequences as u64 + 1).max(*STATE_SLOTS.start());
        let most = least.max(*STATE_SLOTS.end());
        let cheap = STATE_BYTES / (slot_bytes * layers as u64);
        let slots = cheap.clamp(least, most).min(max_bytes / slot_bytes);
        if slots < 2 {
            return Err(Error::OutOfMemory(format!(
                "two recurrent states of a layer take {} bytes, and this device's kernels see at most {max_bytes}",
                2 * slot_bytes
            )));
        }
        Ok(Self {
            layers,
            slots: slots as usize,
            words,
        })
    }

    /// Bytes of one layer, which is one buffer.
    pub(super) fn layer_bytes(self) -> u64 {
        4 * self.slots as u64 * self.words as u64
    }

    /// Bytes of all layers.
    pub(super) fn bytes(self) -> u64 {
        self.layer_bytes() * self.layers as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::architectures,
        weights::{Metadata, MetadataArray, MetadataValue},
    };

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

    /// 2 x 64 numbers of each of two layers, and K and V of 2 x 16 f16 of the third.
    #[test]
    fn recurrent_layers_have_states_in_place_of_keys() {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", "lfm2");
        for (key, value) in [
            ("block_count", 3),
            ("context_length", 512),
            ("embedding_length", 64),
            ("feed_forward_length", 128),
            ("attention.head_count", 4),
            ("shortconv.l_cache", 3),
        ] {
            metadata.insert(format!("lfm2.{key}"), value as u32);
        }
        metadata.insert("lfm2.attention.layer_norm_rms_epsilon", 1e-6f32);
        let heads = MetadataValue::Array(MetadataArray::I32(vec![0, 2, 0]));
        metadata.insert("lfm2.attention.head_count_kv", heads);
        let config = architectures::configure(&metadata, Some(3)).unwrap();
        let options = LoadOptions {
            context_tokens: Some(PAGE_TOKENS),
            kv_pool_tokens: Some(PAGE_TOKENS),
            ..LoadOptions::default()
        };
        let reservation = KvReservation::new(options, &config, u64::MAX).unwrap();
        assert_eq!(reservation.bytes(), PAGE_TOKENS as u64 * 2 * 32 * 2);
        let states = reservation.states;
        assert_eq!((states.layers, states.words), (2, 128));
        assert_eq!(states.bytes(), 2 * 4 * 128 * states.slots as u64);
    }

    #[test]
    fn small_states_have_many_slots_and_large_ones_a_few() {
        for (words, sequences, max_bytes, slots) in [
            (1 << 10, 1, u64::MAX, 64),
            (1 << 10, 100, u64::MAX, 101),
            // A MiB in each of 18 layers.
            (1 << 18, 1, u64::MAX, 14),
            (1 << 18, 20, u64::MAX, 21),
            (1 << 18, 1, 5 << 20, 5),
            (1 << 22, 1, u64::MAX, 4),
        ] {
            let states = StateReservation::new(18, words, sequences, max_bytes).unwrap();
            assert_eq!(states.slots, slots, "{words} words, {sequences} sequences");
            assert_eq!(states.bytes(), 18 * 4 * (slots * words) as u64);
        }
        let error = StateReservation::new(18, 1 << 18, 1, (2 << 20) - 1).unwrap_err();
        assert!(error.to_string().contains("2097152 bytes"), "{error}");
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
