//! Stage 1: the request's own additions to single logits.

/// Adds each bias to its id's logit; ids beyond the row are ignored, the endpoint checked them.
pub(super) fn apply(logits: &mut [f32], bias: &[(u32, f32)]) {
    for &(id, bias) in bias {
        if let Some(z) = logits.get_mut(id as usize) {
            *z += bias;
        }
    }
}
