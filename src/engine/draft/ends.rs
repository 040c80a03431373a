//! Compares the ends of two sequences of tokens.

/// The most tokens that are compared to find the place that resembles the end of a text most.
pub(super) const LONGEST_MATCH: usize = 16;

/// The place in `source`, before index `last_end`, after the most tokens that equal the last ones of `text`: the last such
/// place, and `None` below `least` tokens.
pub(super) fn place_after(
    source: &[u32],
    last_end: usize,
    text: &[u32],
    least: usize,
) -> Option<usize> {
    let last = *text.last()?;
    let mut best = (least - 1, None);
    for end in (least..=last_end).rev() {
        if source[end - 1] != last {
            continue;
        }
        let equal = equal_ends(&source[..end], text);
        if equal > best.0 {
            best = (equal, Some(end));
        }
        if equal == LONGEST_MATCH {
            break;
        }
    }
    best.1
}

/// The number of last tokens of two sequences that are equal, at most [`LONGEST_MATCH`].
pub(super) fn equal_ends(a: &[u32], b: &[u32]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev()).take(LONGEST_MATCH);
    pairs.take_while(|(a, b)| a == b).count()
}
