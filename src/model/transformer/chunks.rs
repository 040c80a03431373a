//! Cuts the tokens of a sequence into steps.

use std::ops::Range;

use crate::{
    Error, Result,
    engine::{Input, SequenceMemory, generation::Content},
    model::steps::sizes::MAX_TOKENS,
    ops::{
        matvec,
        step::{PAGE_TOKENS, Rotary, Segment},
    },
};

/// Tokens in steps of at most [`MAX_TOKENS`]. A remainder so short that it would round differently than
/// full steps takes some tokens from the step before it.
pub(super) fn chunks<T>(mut tokens: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let few = MAX_TOKENS + 1..=MAX_TOKENS + matvec::MAX_TOKENS;
        let count = match few.contains(&tokens.len()) {
            true => MAX_TOKENS - PAGE_TOKENS,
            false => tokens.len().min(MAX_TOKENS),
        };
        let (chunk, rest) = tokens.split_at(count);
        tokens = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The cuts of an input in which an image's rows attend to each other: each image is a step of its own, and the text
/// between is cut as by [`chunks`]. Returns the ends of the steps, and whether each is an image.
///
/// # Errors
/// [`Error::Internal`] if the input has only a part of an image.
pub(super) fn image_cuts(input: Input<'_>) -> Result<Vec<(usize, bool)>> {
    let mut cuts = Vec::new();
    let text = |cuts: &mut Vec<_>, range: Range<usize>| {
        let mut end = range.start;
        for chunk in chunks(&input.ids()[range]) {
            end += chunk.len();
            cuts.push((end, false));
        }
    };
    let mut start = 0;
    for it in input.embeddings() {
        let Content::Pixels(_) = it.embeddings.content else {
            continue;
        };
        if it.rows != (0..it.embeddings.positions) {
            return Err(Error::Internal("a part of an image".into()));
        }
        text(&mut cuts, start..it.at.start);
        cuts.push((it.at.end, true));
        start = it.at.end;
    }
    text(&mut cuts, start..input.ids().len());
    Ok(cuts)
}

/// The next `tokens` tokens of a sequence.
pub(super) fn segment<'a>(
    memory: &'a SequenceMemory,
    tokens: usize,
    rotary: Rotary<'a>,
) -> Segment<'a> {
    Segment {
        position: memory.len_tokens,
        tokens,
        pages: &memory.pages,
        state: memory.state.unwrap_or(0),
        is_seen_whole: false,
        rotary,
    }
}

#[cfg(test)]
mod tests {
    use super::chunks;

    #[test]
    fn steps_are_full_or_neither_small_nor_empty() {
        for (tokens, steps) in [
            (0, &[][..]),
            (1, &[1]),
            (8, &[8]),
            (256, &[256]),
            (257, &[192, 65]),
            (264, &[192, 72]),
            (265, &[256, 9]),
            (513, &[256, 192, 65]),
            (700, &[256, 256, 188]),
        ] {
            let tokens: Vec<u32> = (0..tokens).collect();
            let cut: Vec<&[u32]> = chunks(&tokens).collect();
            assert_eq!(cut.iter().map(|step| step.len()).collect::<Vec<_>>(), steps);
            assert_eq!(cut.concat(), tokens);
        }
    }
}
