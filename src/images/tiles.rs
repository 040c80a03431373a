//! The tiles that large images are cut into, beside the whole image: as Idefics 3 and SmolVLM cut them (Laurençon et al. 2024,
//! <https://arxiv.org/abs/2408.12637>), in the size of the whole image, and as LFM2-VL does, in a number whose shape is close
//! to that of the image.

use super::GridSizes;

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

/// Tiles of images whose own size is too large to be seen at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileSizes {
    /// Width and height of a tile, in pixels.
    pub size: usize,
    /// Fewest and most tiles.
    pub count: [usize; 2],
    /// Images of more pixels are cut.
    pub max_whole_pixels: usize,
}

impl TileSizes {
    /// The grid of tiles of an image of this size; `None` if it is not cut. `whole` has the sizes of the whole image.
    pub(super) fn grid(self, own: [usize; 2], whole: GridSizes) -> Option<Grid> {
        let side = whole.side as f64;
        let near = own.map(|length| (length as f64 / side).round_ties_even() * side);
        // A side of less than half a square counts as half of one.
        let [width, height] = near.map(|length| length.max(side / 2.0));
        if width * height <= self.max_whole_pixels as f64 {
            return None;
        }
        let grid = self.closest(own);
        (grid.rows * grid.columns > 1).then_some(grid)
    }

    /// The grid of tiles whose ratio of width and height is the closest; of equal ones the largest that the image has half of
    /// the pixels of.
    fn closest(self, own: [usize; 2]) -> Grid {
        let [width, height] = own.map(|length| length as f64);
        let [least, most] = self.count;
        let pairs =
            (1..=most).flat_map(|columns| (1..=most).map(move |rows| Grid { rows, columns }));
        let tiles = |grid: &Grid| grid.rows * grid.columns;
        let mut grids: Vec<Grid> = pairs
            .filter(|it| (least..=most).contains(&tiles(it)))
            .collect();
        grids.sort_by_key(tiles);
        let (mut best, mut smallest) = (
            Grid {
                rows: 1,
                columns: 1,
            },
            f64::INFINITY,
        );
        for grid in grids {
            let ratio = grid.columns as f64 / grid.rows as f64;
            let difference = (width / height - ratio).abs();
            let pixels = (tiles(&grid) * self.size.pow(2)) as f64;
            if difference < smallest {
                (best, smallest) = (grid, difference);
            } else if difference == smallest && width * height > 0.5 * pixels {
                best = grid;
            }
        }
        best
    }
}
