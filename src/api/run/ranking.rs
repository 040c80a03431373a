//! Chooses the candidates of a prompt that are returned, and their order (specification 8).

/// The indices of the `n` best candidates, best first, given the mean log-probability per token of each.
/// Equal candidates keep their order; a candidate without tokens (`None`) comes last.
pub(super) fn best(means: &[Option<f64>], n: usize) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..means.len()).collect();
    // A mean of minus infinity still ranks before a candidate without tokens.
    let mean = |index: &usize| means[*index].map(|mean| mean.max(f64::MIN));
    let key = |index: &usize| mean(index).unwrap_or(f64::NEG_INFINITY);
    ranked.sort_by(|a, b| key(b).total_cmp(&key(a)));
    ranked.truncate(n);
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_mean_with_ties_in_order_and_the_empty_last() {
        let means = [
            Some(-2.0),
            None,
            Some(-1.0),
            Some(f64::NEG_INFINITY),
            Some(-1.0),
        ];
        assert_eq!(best(&means, 5), [2, 4, 0, 3, 1]);
        assert_eq!(best(&means, 2), [2, 4]);
        assert_eq!(best(&[None, None], 1), [0]);
    }
}
