//! Stage 6: the most likely token, the lowest id on ties.

/// Index of the first logit equal to `z_max`, the largest of the row.
pub(super) fn argmax(logits: &[f32], z_max: f32) -> u32 {
    logits.iter().position(|&z| z == z_max).unwrap_or_default() as u32
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn lowest_id_wins_ties() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0], 3.0), 1);
        assert_eq!(argmax(&[-1.0, -0.0, 0.0], 0.0), 1);
        assert_eq!(argmax(&[f32::NEG_INFINITY, -5.0], -5.0), 1);
    }
}
