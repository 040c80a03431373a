//! Sizes of a recurrence whose state is a matrix per head, as its kernels read them.

pub use inpage_cpu::lanes::recurrence::RecurrenceShape;

use super::step;
use crate::kernel::Kernel;

/// Lanes of a workgroup.
pub(super) const WORKGROUP: usize = 64;
/// Columns of a state that a workgroup computes. Key and value lengths are multiples of it.
pub const COLUMNS: usize = 16;
/// Maximum length of a key: a quarter of a column is in the registers of a lane.
pub const MAX_KEY_LEN: usize = 256;

/// Workgroups that have all columns of a sequence's states.
pub(super) fn workgroups(shape: RecurrenceShape) -> u32 {
    (shape.heads * shape.value_len / COLUMNS) as u32
}

/// Rows of a state that a lane has, of one column.
pub(super) fn keys(shape: RecurrenceShape) -> usize {
    shape.key_len * COLUMNS / WORKGROUP
}

/// Adds the constants that the kernels of a recurrence read, for inputs of `stride` columns.
pub(super) fn constants(kernel: Kernel, shape: RecurrenceShape, stride: usize) -> Kernel {
    step::layout(kernel)
        .constant("HEADS", shape.heads)
        .constant("KEY_HEADS", shape.key_heads)
        .constant("KEY_LEN", shape.key_len)
        .constant("VALUE_LEN", shape.value_len)
        .constant_bool("TILED", shape.is_tiled)
        .constant_bool("DELTA", shape.is_delta)
        .constant_f32("EPS", shape.eps)
        .constant_f32("Q_SCALE", shape.q_scale)
        .constant("Q_AT", shape.at[0])
        .constant("K_AT", shape.at[1])
        .constant("V_AT", shape.at[2])
        .constant("X_STRIDE", stride)
        .constant("RATE_AT", shape.rates[0])
        .constant("RATE_STRIDE", shape.rates[1])
        .constant("SHARE_AT", shape.shares[0])
        .constant("SHARE_STRIDE", shape.shares[1])
        .constant("STATE_AT", shape.state_at)
        .constant("COLUMNS", COLUMNS)
        .constant("KEYS", keys(shape))
        .constant("WORKGROUP", WORKGROUP)
}
