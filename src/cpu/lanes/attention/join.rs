//! The last pass over divided rows: joins the results of their chunks in order. `chunks.rs` joins two of them.

use super::{chunks::seen_chunks, parts::AttentionParts};
use crate::lanes::f32x8::{F32x8, Kernel, LANES};

/// Joins what the parts of divided rows found, and writes the results of these rows.
pub(super) struct Join<'a>(pub(super) &'a AttentionParts<'a>);

impl Kernel for Join<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let parts = self.0;
        let heads = parts.kv_heads * parts.group;
        let stride = parts.head_dim.div_ceil(LANES) * LANES;
        for row in 0..parts.row_count {
            // SAFETY: the row is one of them, and all parts of its chunks are computed.
            unsafe {
                let [first, last] = seen_chunks(parts.seen(*parts.rows.add(row)));
                if first == last {
                    continue;
                }
                for head in 0..heads {
                    let all = parts.found(row, 0, head);
                    for chunk in 1..=last - first {
                        all.join::<L>(parts.found(row, chunk, head), stride);
                    }
                    parts.write::<L>(row, head, all);
                }
            }
        }
    }
}
