//! An estimate of the memory that steps need besides weights and the KV cache, before there is a device.
//! The exact need of recorded steps results from their dry runs.

use super::sizes::{BATCH_ROWS, MAX_BATCH, MAX_TOKENS, encoder_rows};
use crate::model::{
    config::ModelConfig,
    kv_reservation::{ENCODER_BATCH_TOKENS, KvReservation},
    slots::Slots,
};

/// Approximate number of live tensors of each size in a step.
const LIVE_TENSORS: u64 = 6;

/// Elements of a row of each of a step's tensors but the logits.
fn widths(config: &ModelConfig) -> [usize; 6] {
    let most = |size: fn(&ModelConfig, usize) -> usize| {
        let sizes = (0..config.layers.len()).map(|layer| size(config, layer));
        sizes.max().unwrap_or(0)
    };
    let (q, kv) = (most(ModelConfig::q_dim), most(ModelConfig::kv_dim));
    let inputs = config.layers.len() * config.layer_input_dim;
    let channels = config.recurrence.map_or(0, |it| it.channels(config.dim));
    let ffn = config.ffn_dim.max(inputs);
    [config.dim, q, kv, q + 2 * kv, ffn, channels]
}

/// Approximate size that the memory pool grows to, in bytes: the room in which the largest steps are
/// recorded, which smaller steps share, the logits of batches, and the samplers. Memory that depends on the
/// kernel variant is not included.
pub fn scratch_bytes(config: &ModelConfig, reservation: &KvReservation) -> u64 {
    // In u64, because the model may be too large for any device.
    let elements = |rows: usize, width: usize| rows as u64 * width as u64;
    if !config.is_causal {
        let rows = encoder_rows(reservation.context_tokens.max(ENCODER_BATCH_TOKENS));
        let room: u64 = widths(config)
            .map(|width| elements(rows, width))
            .iter()
            .sum();
        return 4 * LIVE_TENSORS * room;
    }
    let mut room: u64 = widths(config)
        .map(|width| elements(MAX_TOKENS, width))
        .iter()
        .sum();
    if let Some(experts) = config.feed_forward.experts() {
        room += experts.used as u64 * elements(MAX_TOKENS, config.ffn_dim + config.dim);
    }
    // The logits after a step's last token, and those of each size of batch.
    let logits_rows = 1 + BATCH_ROWS.iter().sum::<usize>();
    let logits = elements(logits_rows, config.token_ids);
    let samplers = Slots::shape(config.token_ids, reservation.context_tokens).words() as u64;
    let block_tables = elements(MAX_BATCH, reservation.pages);
    4 * (LIVE_TENSORS * room + logits + samplers + block_tables)
}
