//! DRY's sequence breakers as token ids (specification 5.1).

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::Result;
use crate::text::Tokenizer;

/// Ascending ids whose text contains any of `breakers`, none of which is empty. If no single token
/// contains a breaker, the last token of its encoding stands in for it: the breaker still ends
/// repetitions, but so does that token elsewhere.
///
/// Costs one pass over the strings of the vocabulary; more breakers add little.
pub(super) fn ids(breakers: &[String], tokenizer: &Tokenizer) -> Result<Rc<[u32]>> {
    let breakers = without_prefixed(breakers);
    let mut begins_breaker = [false; 256];
    for first in breakers.iter().filter_map(|breaker| breaker.bytes().next()) {
        begins_breaker[usize::from(first)] = true;
    }
    let mut is_contained = vec![false; breakers.len()];
    let mut ids = BTreeSet::new();
    for id in 0..tokenizer.vocab_size() as u32 {
        let bytes = tokenizer.token_bytes(id);
        for (start, byte) in bytes.iter().enumerate() {
            if !begins_breaker[usize::from(*byte)] {
                continue;
            }
            let rest = &bytes[start..];
            // No breaker is a prefix of another, so only the greatest one up to `rest` can be a prefix
            // of it.
            let below = breakers.partition_point(|breaker| breaker.as_bytes() <= rest);
            if below > 0 && rest.starts_with(breakers[below - 1].as_bytes()) {
                is_contained[below - 1] = true;
                ids.insert(id);
            }
        }
    }
    for (breaker, is_contained) in breakers.iter().zip(is_contained) {
        if !is_contained {
            ids.extend(tokenizer.encode(breaker, false)?.last());
        }
    }
    Ok(ids.into_iter().collect())
}

/// Sorted, without breakers that begin with another one: a text that contains them contains the other.
fn without_prefixed(breakers: &[String]) -> Vec<&str> {
    let mut sorted: Vec<&str> = breakers.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.dedup_by(|longer, shorter| longer.starts_with(*shorter));
    sorted
}
