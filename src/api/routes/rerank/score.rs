//! From the outputs of a reranker's classifier to the score of a document.

/// The score of a document: with `uses_activation` a probability, else its logit. A classifier has one output, or those of "yes"
/// and "no".
pub(super) fn score(outputs: &[f32], uses_activation: bool) -> f64 {
    let logit = match outputs {
        [yes, no] => f64::from(*yes) - f64::from(*no),
        outputs => outputs.first().copied().map_or(0.0, f64::from),
    };
    match uses_activation {
        true => 1.0 / (1.0 + (-logit).exp()),
        false => logit,
    }
}

/// The indices of the `count` best scores, the best one first; of equal ones the earlier.
pub(super) fn best(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(count);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_logits() {
        assert_eq!(score(&[0.0], true), 0.5);
        assert_eq!(score(&[-1.5], false), -1.5);
        // The probability of "yes" among both: exp(2) / (exp(2) + exp(1)).
        assert!((score(&[2.0, 1.0], true) - 0.731_058_578_630_004_9).abs() < 1e-12);
        assert_eq!(score(&[2.0, 1.0], false), 1.0);
        assert!(score(&[-1e30], true) >= 0.0 && score(&[1e30], true) <= 1.0);
    }

    #[test]
    fn equal_scores_keep_their_order() {
        assert_eq!(best(&[0.1, 0.5, 0.1, 0.9, 0.5], 9), [3, 1, 4, 0, 2]);
        assert_eq!(best(&[0.1, 0.5, 0.1, 0.9, 0.5], 2), [3, 1]);
    }
}
