//! Rotary positions of a prompt with images (Wang et al. 2024, <https://arxiv.org/abs/2409.12191>): text advances by
//! one per token; the rows of an image have the time of its beginning and their row and column in it, and the text after
//! it goes on beyond the largest of these. So they are a function of the prompt, not of the indices of tokens.
//!
//! Rotary positions of images follow from the prompt. In models whose pairs turn by time, row or column, the index of
//! a token is not its position. An input knows the prompt before it, so the positions are computed for each step: a
//! difference to the index per sequence, and three words per row where a step feeds images (`ops/step.rs`). K and V,
//! masks and the prefix cache go by index. Texts have the same bits as before.

use crate::{
    engine::{
        Input,
        generation::{Content, Embeddings},
    },
    ops::step::{PARTS, Rotary},
};

/// The rotary positions of an input.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RotaryPositions {
    /// The rotary position minus the index, for the tokens after the image.
    offset: u32,
    /// The rotary positions of the image itself, one per row; empty if they have the same offset.
    rows: Vec<[u32; PARTS]>,
}

impl RotaryPositions {
    /// The positions in the form that a step takes.
    pub(super) fn of_segment(&self) -> Rotary<'_> {
        Rotary {
            offset: self.offset,
            rows: &self.rows,
        }
    }

    /// The rotary positions of an input of a model whose images have a row per square of `side` pixels; without one, they are indices.
    pub(super) fn new(input: &Input, side: Option<usize>) -> RotaryPositions {
        let Some(side) = side else {
            return RotaryPositions::default();
        };
        let fed = input.start()..input.start() + input.ids().len();
        let mut rows = Vec::new();
        let mut offset = 0u32;
        for (start, embeddings) in input.prompt_embeddings() {
            let Some((columns, extent)) = grid(embeddings, side) else {
                continue;
            };
            if start >= fed.end {
                break;
            }
            let image = start..start + embeddings.positions;
            if image.end > fed.start && rows.is_empty() {
                rows.reserve(fed.len());
            }
            if image.end > fed.start {
                rows.extend(plain(fed.start + rows.len()..image.start, offset));
                let base = (start as u32).wrapping_add(offset);
                let first = fed.start + rows.len();
                rows.extend((first..image.end.min(fed.end)).map(|at| {
                    let at = (at - start) as u32;
                    [base, base + at / columns, base + at % columns]
                }));
            }
            if image.end <= fed.end {
                let positions = embeddings.positions as u32;
                offset = offset.wrapping_add(extent).wrapping_sub(positions);
            } else {
                // The input ends within the image: nothing follows that is not of the prompt.
                break;
            }
        }
        if !rows.is_empty() {
            rows.extend(plain(fed.start + rows.len()..fed.end, offset));
        }
        RotaryPositions { offset, rows }
    }
}

/// The positions of text.
fn plain(indices: std::ops::Range<usize>, offset: u32) -> impl Iterator<Item = [u32; PARTS]> {
    indices.map(move |index| [(index as u32).wrapping_add(offset); PARTS])
}

/// The columns of an image, and how far it moves the text after it.
fn grid(embeddings: &Embeddings, side: usize) -> Option<(u32, u32)> {
    let Content::Pixels(image) = &embeddings.content else {
        return None;
    };
    let (columns, rows) = (image.width / side, image.height / side);
    (columns > 0 && columns * rows == embeddings.positions)
        .then_some((columns as u32, columns.max(rows) as u32))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::{
        engine::generation::{Prompt, Span},
        images::Image,
    };

    /// Two tokens, an image of 2 rows and 3 columns, a token, an image of 3 rows and a column, a token.
    fn prompt() -> Prompt {
        let image = |key, columns: usize, rows: usize| {
            let (width, height) = (4 * columns, 4 * rows);
            Span::Embeddings(Rc::new(Embeddings {
                key,
                positions: columns * rows,
                content: Content::Pixels(Image {
                    width,
                    height,
                    rgb: vec![0; 3 * width * height],
                }),
            }))
        };
        Prompt::new([
            Span::Tokens(vec![7, 8]),
            image(1, 3, 2),
            Span::Tokens(vec![9]),
            image(2, 1, 3),
            Span::Tokens(vec![10]),
        ])
    }

    const ALL: [[u32; 3]; 13] = [
        [0, 0, 0],
        [1, 1, 1],
        [2, 2, 2],
        [2, 2, 3],
        [2, 2, 4],
        [2, 3, 2],
        [2, 3, 3],
        [2, 3, 4],
        [5, 5, 5],
        [6, 6, 6],
        [6, 7, 6],
        [6, 8, 6],
        [9, 9, 9],
    ];

    /// The positions of `fed` as a step computes them.
    fn positions(fed: std::ops::Range<usize>) -> Vec<[u32; 3]> {
        let prompt = prompt();
        let RotaryPositions { offset, rows } =
            RotaryPositions::new(&prompt.input(fed.clone()), Some(4));
        match rows.is_empty() {
            true => plain(fed, offset).collect(),
            false => rows,
        }
    }

    #[test]
    fn images_have_rows_and_columns_and_text_goes_on_beyond_them() {
        assert_eq!(positions(0..13), ALL);
    }

    #[test]
    fn parts_of_a_prompt_have_the_positions_of_the_whole() {
        for cut in 1..13 {
            assert_eq!(
                [positions(0..cut), positions(cut..13)].concat(),
                ALL,
                "{cut}"
            );
        }
        let single: Vec<_> = (0..13).flat_map(|at| positions(at..at + 1)).collect();
        assert_eq!(single, ALL);
    }

    #[test]
    fn what_follows_a_prompt_has_its_offset() {
        let prompt = prompt();
        let all = RotaryPositions::new(&prompt.input(0..13), Some(4));
        let after = RotaryPositions::new(&prompt.after(&[1]), Some(4));
        assert_eq!((all.offset, after.offset), (-3i32 as u32, -3i32 as u32));
        assert!(after.rows.is_empty());
        let later = RotaryPositions::new(&prompt.after(&[1]).after(&[2]), Some(4));
        assert_eq!(later, after);
        let without = RotaryPositions::new(&prompt.input(0..13), None);
        assert_eq!(without, RotaryPositions::default());
    }
}
