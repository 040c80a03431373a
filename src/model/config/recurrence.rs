//! Recurrent layers: layers whose memory of a sequence has a fixed size.

use super::keys::Keys;
use crate::{
    Result,
    ops::linear_recurrence::{COLUMNS, MAX_KEY_LEN},
};

/// Metadata key, after the architecture: [`LinearRecurrence::is_tiled`]. Written only for checkpoints that are read as they
/// are, without a converter to GGUF.
pub const TILED_HEADS: &str = "ssm.tiled_heads";

/// The computation of a model's recurrent layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    /// A convolution between two gates: `out(C * conv(B * x))` (LFM2).
    ShortConv {
        /// Tokens that a result depends on.
        taps: usize,
    },
    /// A convolution, and a matrix per head as the state.
    Linear(LinearRecurrence),
}

/// A recurrence whose state is a matrix per head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearRecurrence {
    /// The rule by which a token changes the state.
    pub rule: Rule,
    /// Heads with a state of their own.
    pub heads: usize,
    /// Heads of keys and queries; groups in Mamba 2.
    pub key_heads: usize,
    /// Whether head `i` has the keys of head `i % key_heads`, as converters order heads of the delta rule; otherwise neighboring
    /// heads have the same keys.
    pub is_tiled: bool,
    /// Elements of a key.
    pub key_len: usize,
    /// Elements of a value.
    pub value_len: usize,
    /// Tokens that a result of the convolution depends on.
    pub taps: usize,
    /// Whether rates and shares are in one matrix, `ssm_ba`: for each key head the shares of its heads, then their rates.
    /// In some files the other inputs are in one matrix, too: `ssm_in`.
    pub joins_inputs: bool,
    /// Whether the output is only gated, not normalized, if the file has no norm for it.
    pub may_lack_norm: bool,
}

/// A rule by which a token changes the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The gated delta rule (Qwen3.5).
    Delta,
    /// The rule of Mamba 2.
    Mamba2,
}

impl Recurrence {
    /// Channels of the convolution in a model of width `dim`.
    pub fn channels(self, dim: usize) -> usize {
        match self {
            Recurrence::ShortConv { .. } => dim,
            Recurrence::Linear(it) => 2 * it.key_heads * it.key_len + it.inner(),
        }
    }

    /// Tokens that a result of the convolution depends on.
    pub fn taps(self) -> usize {
        match self {
            Recurrence::ShortConv { taps } => taps,
            Recurrence::Linear(it) => it.taps,
        }
    }

    /// Numbers that a layer of a model of width `dim` keeps of a sequence.
    pub fn state_len(self, dim: usize) -> usize {
        let kept = (self.taps() - 1) * self.channels(dim);
        match self {
            Recurrence::ShortConv { .. } => kept,
            Recurrence::Linear(it) => kept + it.key_len * it.inner(),
        }
    }
}

impl LinearRecurrence {
    /// Elements of all values of a token.
    pub fn inner(self) -> usize {
        self.heads * self.value_len
    }

    /// Reads the keys that these recurrences share.
    ///
    /// # Errors
    /// Fails for sizes that are missing, that contradict each other or that no kernel computes.
    pub fn read(keys: &Keys, rule: Rule) -> Result<LinearRecurrence> {
        let heads = keys.size("ssm.time_step_rank")?;
        let inner = keys.size("ssm.inner_size")?;
        let it = LinearRecurrence {
            rule,
            heads,
            key_heads: keys.size("ssm.group_count")?,
            is_tiled: rule == Rule::Delta && keys.bool(TILED_HEADS)?.unwrap_or(true),
            key_len: keys.size("ssm.state_size")?,
            value_len: inner / heads,
            taps: taps(keys, "ssm.conv_kernel")?,
            joins_inputs: false,
            may_lack_norm: false,
        };
        let lens = [it.key_len, it.value_len];
        if it.inner() != inner
            || !heads.is_multiple_of(it.key_heads)
            || lens
                .iter()
                .any(|len| *len == 0 || !len.is_multiple_of(COLUMNS))
            || it.key_len > MAX_KEY_LEN
        {
            return Err(keys.unsupported(&format!(
                "a recurrence of {heads} heads, {} groups, states of {} and {inner} values",
                it.key_heads, it.key_len
            )));
        }
        Ok(it)
    }
}

/// The taps of a convolution.
///
/// # Errors
/// Fails if it is no convolution over several tokens, or over more than real models have.
pub fn taps(keys: &Keys, key: &str) -> Result<usize> {
    match keys.size(key)? {
        taps @ 2..=16 => Ok(taps),
        taps => Err(keys.unsupported(&format!("a convolution of {taps} tokens"))),
    }
}
