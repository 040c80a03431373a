//! Stage 6: the most likely token, the lowest id on ties.

/// Index of the largest logit; the row is checked and not empty.
pub(super) fn argmax(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (id, &z) in logits.iter().enumerate() {
        if z > logits[best] {
            best = id;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn lowest_id_wins_ties() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(argmax(&[-0.0, 0.0]), 0);
        assert_eq!(argmax(&[f32::NEG_INFINITY, -5.0]), 1);
    }
}
