//! Stage 1: the request adds to the logits of single tokens.

/// Adds each bias to its id's logit; ids beyond the row, which the endpoint rejects, are ignored.
pub(super) fn apply(logits: &mut [f32], bias: &[(u32, f32)]) {
    for &(id, bias) in bias {
        if let Some(z) = logits.get_mut(id as usize) {
            *z += bias;
        }
    }
}
