//! The format in which a model takes images, as data that its family fills in: the text that stands for an image in a prompt, the
//! sizes that its pixels get, and the text and the pixels that it becomes.

use super::bounds::check_size;
use super::{Filter, Grid, GridSizes, Image, TileSizes, grid, tiles};

/// An image of this width and a height of 1 is as narrow as any that matters.
const MAX_ASPECT: usize = 1 << 20;

/// The format in which a model takes images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFormat {
    /// Tokens and text of its family.
    pub markup: &'static ImageMarkup,
    /// The filter with which the family's processor resizes images.
    pub filter: Filter,
    /// The sizes that images get.
    pub geometry: ImageGeometry,
}

/// Tokens and text of prompts with images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageMarkup {
    /// The special token that stands for an image in a prompt. Chat templates of the family write it.
    pub placeholder: &'static str,
    /// The special token that stands for a row of pixels. Prompts with it are counted and displayed; its embedding is
    /// not used.
    pub row_token: &'static str,
    /// The text before everything else.
    pub before_all: &'static str,
    /// The text before each tile; `{row}` and `{column}` count from 1.
    pub before_tile: &'static str,
    /// The text after the last tile of each row of tiles.
    pub after_tile_row: &'static str,
    /// The text after all tiles.
    pub after_tiles: &'static str,
    /// The text before the whole image.
    pub before_whole: &'static str,
    /// The text after the whole image, which is last.
    pub after_whole: &'static str,
}

impl ImageMarkup {
    /// No text around pixels, and one token for images and rows.
    pub const fn plain(token: &'static str) -> ImageMarkup {
        ImageMarkup {
            placeholder: token,
            row_token: token,
            before_all: "",
            before_tile: "",
            after_tile_row: "",
            after_tiles: "",
            before_whole: "",
            after_whole: "",
        }
    }
}

/// The sizes that the pixels of an image get. A row is a row of the text model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageGeometry {
    /// Large images are cut into squares; the whole image follows in the same size.
    Tiles {
        /// Width and height of a square, in pixels.
        size: usize,
        /// The longest side that an image is resized to before it is cut, in pixels.
        longest_edge: usize,
        /// Rows that a square becomes.
        rows: usize,
    },
    /// The image in one size, whatever its shape.
    Stretched {
        /// Width and height, in pixels.
        size: usize,
        /// Rows that an image becomes.
        rows: usize,
    },
    /// The whole image in a size near its own, a row per square of pixels.
    Grid(GridSizes),
    /// The same; large images are cut into squares of one size, too.
    GridAndTiles(GridSizes, TileSizes),
    /// The whole image in the largest size with about its aspect ratio, a row per square of pixels.
    Largest {
        /// Width and height of the square that becomes a row, in pixels.
        side: usize,
        /// The maximum number of rows.
        rows: usize,
    },
}

/// The size of a resized image and the tiles that it is cut into.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    /// The sizes that it gets one after the other before it is cut; none if it is not.
    steps: Vec<[usize; 2]>,
    /// The tiles that it is cut into, if it is cut.
    pub(super) grid: Option<Grid>,
    /// The size of a tile, and the rows that it becomes.
    tile: ([usize; 2], usize),
    /// The size of the whole image, and the rows that it becomes.
    whole: ([usize; 2], usize),
    /// Whether the whole image is resized from its last step, not from the original.
    is_whole_of_last: bool,
}

/// The sizes of a geometry, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometrySummary {
    /// `square`, `tiles` or `any`.
    pub kind: &'static str,
    /// Width and height of a square, in pixels; of `any`, what both sides are multiples of.
    pub side_pixels: usize,
    /// The longest side that an image is resized to before it is cut.
    pub longest_edge_pixels: Option<usize>,
    /// Fewest and most rows that an image becomes.
    pub rows: [usize; 2],
}

impl ImageGeometry {
    /// The layout of an image of this size.
    pub(super) fn layout(self, own: [usize; 2]) -> Layout {
        match self {
            ImageGeometry::Tiles {
                size,
                longest_edge,
                rows,
            } => {
                let steps = tiles::steps(own, size, longest_edge);
                let square = ([size, size], rows);
                Layout {
                    grid: Grid::of(steps[1], size),
                    steps: steps.to_vec(),
                    tile: square,
                    whole: square,
                    is_whole_of_last: true,
                }
            }
            ImageGeometry::Stretched { size, rows } => Layout::whole([size, size], rows),
            ImageGeometry::Grid(sizes) => sizes.layout(own),
            ImageGeometry::Largest { side, rows } => {
                let size = grid::largest(own, side, rows);
                Layout::whole(size, size[0] / side * (size[1] / side))
            }
            ImageGeometry::GridAndTiles(sizes, tiles) => {
                let size = tiles.size;
                let grid = tiles.grid(own, sizes);
                Layout {
                    steps: grid
                        .iter()
                        .map(|it| [it.columns * size, it.rows * size])
                        .collect(),
                    grid,
                    tile: ([size, size], sizes.rows([size, size])),
                    ..sizes.layout(own)
                }
            }
        }
    }

    /// Its sizes, and the numbers of rows.
    pub fn summary(self) -> GeometrySummary {
        let (kind, side_pixels, longest_edge_pixels, rows) = match self {
            ImageGeometry::Tiles {
                size, longest_edge, ..
            } => {
                let rows = |own| self.layout(own).all_rows();
                let rows = [[MAX_ASPECT, 1], [MAX_ASPECT, MAX_ASPECT]].map(rows);
                ("tiles", size, Some(longest_edge), rows)
            }
            ImageGeometry::Stretched { size, rows } => ("square", size, None, [rows, rows]),
            ImageGeometry::Grid(sizes) => {
                let square = sizes.side.pow(2);
                let most = (sizes.max_pixels / square).max(1);
                let least = sizes.min_pixels.div_ceil(square).clamp(1, most);
                ("any", sizes.side, None, [least, most])
            }
            // A side of less than two squares is one.
            ImageGeometry::Largest { side, rows } => ("any", side, None, [(rows / 2).max(1), rows]),
            ImageGeometry::GridAndTiles(sizes, tiles) => {
                let any = ImageGeometry::Grid(sizes).summary();
                let tile = sizes.rows([tiles.size, tiles.size]);
                let most = any.rows[1] + tiles.count[1] * tile;
                let longest = tiles.count[1] * tiles.size;
                ("any", sizes.side, Some(longest), [any.rows[0], most])
            }
        };
        GeometrySummary {
            kind,
            side_pixels,
            longest_edge_pixels,
            rows,
        }
    }
}

impl GridSizes {
    fn layout(self, own: [usize; 2]) -> Layout {
        let size = self.size_of(own[0], own[1]);
        Layout::whole(size, self.rows(size))
    }
}

impl Layout {
    /// An image that is not cut.
    fn whole(size: [usize; 2], rows: usize) -> Layout {
        Layout {
            steps: Vec::new(),
            grid: None,
            tile: ([0, 0], 0),
            whole: (size, rows),
            is_whole_of_last: false,
        }
    }

    fn tiles(&self) -> usize {
        self.grid.map_or(0, |grid| grid.rows * grid.columns)
    }

    /// Tiles and the whole image.
    pub(super) fn parts(&self) -> usize {
        1 + self.tiles()
    }

    /// Rows of all parts.
    fn all_rows(&self) -> usize {
        let tiles = self.tiles().saturating_mul(self.tile.1);
        tiles.saturating_add(self.whole.1)
    }

    /// Bytes of the pixels of all parts.
    fn all_bytes(&self) -> u64 {
        let bytes = |[width, height]: [usize; 2]| (3 * width as u64).saturating_mul(height as u64);
        let tiles = (self.tiles() as u64).saturating_mul(bytes(self.tile.0));
        tiles.saturating_add(bytes(self.whole.0))
    }
}

/// The cost of the parts of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Rows of the text model.
    pub rows: usize,
    /// Bytes of the pixels that the vision tower takes.
    pub bytes: u64,
}

/// Part of what an image becomes in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text, which may contain special tokens.
    Text(String),
    /// Pixels as the vision tower takes them, and the number of rows that it makes of them.
    Pixels(Image, usize),
}

impl ImageFormat {
    /// [`ImageMarkup::placeholder`].
    pub fn placeholder(self) -> &'static str {
        self.markup.placeholder
    }

    /// [`ImageMarkup::row_token`].
    pub fn row_token(self) -> &'static str {
        self.markup.row_token
    }

    /// The cost of an image of this size. The error says why no such image is resized: its own size, its shape, or a
    /// size that it would get.
    pub fn cost(self, own: [usize; 2]) -> Result<Cost, String> {
        check_size(own)?;
        if let ImageGeometry::Grid(sizes) = self.geometry {
            sizes.check_shape(own)?;
        }
        let layout = self.geometry.layout(own);
        for size in layout.steps.iter().chain([&layout.whole.0]) {
            check_size(*size)
                .map_err(|reason| format!("for this model it would be enlarged: {reason}"))?;
        }
        Ok(Cost {
            rows: layout.all_rows(),
            bytes: layout.all_bytes(),
        })
    }

    /// The parts that replace the placeholder.
    pub fn parts(self, image: &Image) -> Vec<Part> {
        let layout = self.geometry.layout([image.width, image.height]);
        let resized =
            |image: &Image, [width, height]: [usize; 2]| image.resized(width, height, self.filter);
        let mut cut = None;
        for size in &layout.steps {
            cut = Some(resized(cut.as_ref().unwrap_or(image), *size));
        }
        let cut = cut.as_ref().unwrap_or(image);
        let part = |place| match place {
            Place::Text(text) => Part::Text(text),
            Place::Tile { row, column } => {
                let ([width, height], rows) = layout.tile;
                let tile = cut.crop(column * width, row * height, width, height);
                Part::Pixels(tile, rows)
            }
            Place::Whole => {
                let of = if layout.is_whole_of_last { cut } else { image };
                let (size, rows) = layout.whole;
                Part::Pixels(resized(of, size), rows)
            }
        };
        self.places(&layout).into_iter().map(part).collect()
    }

    /// The text that replaces the placeholder of an image of this size, with a row token for each part that is pixels, and
    /// the rows of each of these parts.
    pub fn outline(self, own: [usize; 2]) -> (String, Vec<usize>) {
        let layout = self.geometry.layout(own);
        let (mut text, mut rows) = (String::new(), Vec::new());
        for place in self.places(&layout) {
            let (written, pixels) = match &place {
                Place::Text(text) => (&**text, None),
                Place::Tile { .. } => (self.row_token(), Some(layout.tile.1)),
                Place::Whole => (self.row_token(), Some(layout.whole.1)),
            };
            text.push_str(written);
            rows.extend(pixels);
        }
        (text, rows)
    }

    /// The parts of an image with this layout, in their order.
    fn places(self, layout: &Layout) -> Vec<Place> {
        let mut places = Vec::with_capacity(2 * layout.parts() + 1);
        let mut text = self.markup.before_all.to_owned();
        let mut add = |text: &mut String, pixels: Option<Place>| {
            if !text.is_empty() {
                places.push(Place::Text(std::mem::take(text)));
            }
            places.extend(pixels);
        };
        if let Some(Grid { rows, columns }) = layout.grid {
            for row in 0..rows {
                for column in 0..columns {
                    text.push_str(&self.markup.of_tile(row + 1, column + 1));
                    add(&mut text, Some(Place::Tile { row, column }));
                }
                text.push_str(self.markup.after_tile_row);
            }
            text.push_str(self.markup.after_tiles);
        }
        text.push_str(self.markup.before_whole);
        add(&mut text, Some(Place::Whole));
        text.push_str(self.markup.after_whole);
        add(&mut text, None);
        places
    }
}

/// A part of an image of some size, without its pixels.
enum Place {
    Text(String),
    /// Counted from 0.
    Tile {
        row: usize,
        column: usize,
    },
    Whole,
}

impl ImageMarkup {
    fn of_tile(&self, row: usize, column: usize) -> String {
        let text = self.before_tile.replace("{row}", &row.to_string());
        text.replace("{column}", &column.to_string())
    }
}
