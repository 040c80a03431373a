//! The tiles that large images are cut into, beside the whole image in the size of a tile, as Idefics 3 and SmolVLM cut
//! them (Laurençon et al. 2024, <https://arxiv.org/abs/2408.12637>).

/// Longest side of an image before it is cut, whatever a file says.
const MAX_EDGE: usize = 4096;

/// The cuts of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Tiles above each other.
    pub rows: usize,
    /// Tiles beside each other.
    pub columns: usize,
}

impl Grid {
    /// The squares of `size` in an image of whole squares; `None` if there is only one.
    pub(super) fn of([width, height]: [usize; 2], size: usize) -> Option<Grid> {
        let (columns, rows) = (width / size, height / size);
        (rows * columns > 1).then_some(Grid { rows, columns })
    }
}

/// The two sizes that an image gets before it is cut, one after the other: with a longer side of `longest_edge`, and
/// then of whole squares of `size`.
pub(super) fn steps(own: [usize; 2], size: usize, longest_edge: usize) -> [[usize; 2]; 2] {
    let first = longest(own, longest_edge.min(MAX_EDGE));
    [first, multiples(first, size)]
}

/// Width and height with a longer side of `edge`; the other one is even.
fn longest([width, height]: [usize; 2], edge: usize) -> [usize; 2] {
    let ratio = width as f64 / height as f64;
    let even = |length: f64| (length as usize).next_multiple_of(2).max(1);
    match width >= height {
        true => [edge, even(edge as f64 / ratio)],
        false => [even(edge as f64 * ratio), edge],
    }
}

/// Width and height as multiples of `size`: the longer side rounded up, the other one in proportion and rounded up.
fn multiples([width, height]: [usize; 2], size: usize) -> [usize; 2] {
    let ratio = width as f64 / height as f64;
    let up = |length: usize| length.max(1).next_multiple_of(size);
    match width >= height {
        true => {
            let width = up(width);
            [width, up((width as f64 / ratio) as usize)]
        }
        false => {
            let height = up(height);
            [up((height as f64 * ratio) as usize), height]
        }
    }
}
