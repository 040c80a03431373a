//! Sizes of a recurrence whose state is a matrix per head, for its kernels.

use inpage_cpu::lanes::recurrence;

use super::step;
use crate::kernel::Kernel;

/// Lanes of a workgroup.
pub(super) const WORKGROUP: usize = 64;
/// Columns of a state that a workgroup computes. Key and value lengths are multiples of it.
pub const COLUMNS: usize = 16;
/// Maximum length of a key: a quarter of a column is in the registers of a lane.
pub const MAX_KEY_LEN: usize = 256;

/// Sizes of a recurrence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecurrenceShape {
    /// Heads with a state of their own.
    pub heads: usize,
    /// Heads of queries and keys, a divisor of `heads`.
    pub key_heads: usize,
    /// Elements of a key and of a query.
    pub key_len: usize,
    /// Elements of a value.
    pub value_len: usize,
    /// Head h uses key head h mod `key_heads`; otherwise as many neighbors share one.
    pub is_tiled: bool,
    /// The delta rule. Queries and keys are divided by their lengths.
    pub is_delta: bool,
    /// Added to squared lengths.
    pub eps: f32,
    /// Factor of queries.
    pub q_scale: f32,
    /// First columns of queries, keys and values in `x`.
    pub at: [usize; 3],
    /// First column of the rates, and columns of their tensor.
    pub rates: [usize; 2],
    /// The same of the shares.
    pub shares: [usize; 2],
    /// First word of the recurrence in a slot.
    pub state_at: usize,
}

impl RecurrenceShape {
    /// Words of a state.
    pub fn state_words(self) -> usize {
        self.heads * self.key_len * self.value_len
    }

    /// Workgroups that have all columns of a sequence's states.
    pub(super) fn workgroups(self) -> u32 {
        (self.heads * self.value_len / COLUMNS) as u32
    }

    /// The same for the kernel of the CPU device.
    pub(super) fn on_cpu(self) -> recurrence::RecurrenceShape {
        recurrence::RecurrenceShape {
            heads: self.heads,
            key_heads: self.key_heads,
            key_len: self.key_len,
            value_len: self.value_len,
            is_tiled: self.is_tiled,
            is_delta: self.is_delta,
            eps: self.eps,
            q_scale: self.q_scale,
            at: self.at,
            rates: self.rates,
            shares: self.shares,
        }
    }

    /// Rows of a state that a lane has, of one column.
    pub(super) fn keys(self) -> usize {
        self.key_len * COLUMNS / WORKGROUP
    }

    /// Adds what the kernels of a recurrence read, for inputs of `stride` columns.
    pub(super) fn constants(self, kernel: Kernel, stride: usize) -> Kernel {
        step::layout(kernel)
            .constant("HEADS", self.heads)
            .constant("KEY_HEADS", self.key_heads)
            .constant("KEY_LEN", self.key_len)
            .constant("VALUE_LEN", self.value_len)
            .constant_bool("TILED", self.is_tiled)
            .constant_bool("DELTA", self.is_delta)
            .constant_f32("EPS", self.eps)
            .constant_f32("Q_SCALE", self.q_scale)
            .constant("Q_AT", self.at[0])
            .constant("K_AT", self.at[1])
            .constant("V_AT", self.at[2])
            .constant("X_STRIDE", stride)
            .constant("RATE_AT", self.rates[0])
            .constant("RATE_STRIDE", self.rates[1])
            .constant("SHARE_AT", self.shares[0])
            .constant("SHARE_STRIDE", self.shares[1])
            .constant("STATE_AT", self.state_at)
            .constant("KV_DIM", 0)
            .constant("COLUMNS", COLUMNS)
            .constant("KEYS", self.keys())
            .constant("WORKGROUP", WORKGROUP)
    }
}
