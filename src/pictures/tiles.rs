//! Cuts large pictures into tiles of the size that a vision tower takes, beside the whole picture in that size, as
//! Idefics 3 and SmolVLM do (Laurençon et al. 2024, <https://arxiv.org/abs/2408.12637>).

use super::{Filter, Picture};

/// Longest side of a picture before it is cut, whatever a file says.
const MAX_EDGE: usize = 4096;

/// How a picture was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Tiles above each other.
    pub rows: usize,
    /// Tiles beside each other.
    pub columns: usize,
}

/// A picture in the size of the tower, and the tiles that it was cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles {
    /// `None` if the picture is not cut.
    pub grid: Option<Grid>,
    /// Row by row.
    pub tiles: Vec<Picture>,
    /// The whole picture, stretched to a square.
    pub whole: Picture,
}

impl Tiles {
    /// Resizes a picture so that its longer side is `longest_edge`, then so that it can be cut into squares of `size`.
    /// Both resize with Lanczos weights.
    pub fn of(picture: &Picture, size: usize, longest_edge: usize) -> Tiles {
        let own = [picture.width, picture.height];
        let [first, [width, height]] = Tiles::sizes(own, size, longest_edge);
        let picture = picture.resized(first[0], first[1], Filter::Lanczos);
        let picture = picture.resized(width, height, Filter::Lanczos);
        let (columns, rows) = (width / size, height / size);
        let mut tiles = Vec::new();
        if rows * columns > 1 {
            for row in 0..rows {
                let tile = |column: usize| picture.crop(column * size, row * size, size, size);
                tiles.extend((0..columns).map(tile));
            }
        }
        Tiles {
            grid: (!tiles.is_empty()).then_some(Grid { rows, columns }),
            tiles,
            whole: picture.resized(size, size, Filter::Lanczos),
        }
    }

    /// The two sizes that [`of`](Self::of) gives a picture of this size, one after the other.
    pub(super) fn sizes(own: [usize; 2], size: usize, longest_edge: usize) -> [[usize; 2]; 2] {
        let first = longest(own, longest_edge.min(MAX_EDGE));
        [first, multiples(first, size)]
    }

    /// How many tiles [`of`](Self::of) makes of a picture of this size, the whole picture included.
    pub fn count(own: [usize; 2], size: usize, longest_edge: usize) -> usize {
        let [_, [width, height]] = Tiles::sizes(own, size, longest_edge);
        match (width / size) * (height / size) {
            1 => 1,
            tiles => tiles + 1,
        }
    }
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
