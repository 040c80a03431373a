//! DRY's sequence breakers as token ids (specification 5.1). Knows no penalty.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::Result;
use crate::text::Tokenizer;

/// Ascending ids whose text contains any of `breakers`, none of them empty. A breaker that no
/// single token contains acts through the last token of its own encoding, so that it still ends
/// repetitions, though wherever else that token stands as well.
///
/// Costs a pass over the texts of the vocabulary, hardly more for many breakers.
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
            // No breaker begins with another, so only the greatest one up to `rest` can begin it.
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

/// Ascending, without those that begin with another: whatever contains them contains the other.
fn without_prefixed(breakers: &[String]) -> Vec<&str> {
    let mut sorted: Vec<&str> = breakers.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.dedup_by(|longer, shorter| longer.starts_with(*shorter));
    sorted
}
