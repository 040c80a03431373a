//! How a family of models takes pictures: the text that stands for one in a prompt, and the text and the pixels that it
//! becomes.

use super::bounds::check_size;
use super::{Filter, Grid, GridSizes, Picture, Tiles};

/// A picture of this width and a height of 1 is as narrow as any that matters.
const MAX_ASPECT: usize = 1 << 20;

/// What a model wants of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureFormat {
    /// SmolVLM and Idefics 3: squares, and the whole picture in the same size.
    Tiles {
        /// Width and height of a square, in pixels.
        size: usize,
        /// The longest side that a picture is resized to before it is cut, in pixels.
        longest_edge: usize,
        /// Rows of the text model that a square becomes.
        rows: usize,
    },
    /// Gemma 3: the picture in one size, whatever its shape.
    Stretched {
        /// Width and height, in pixels.
        size: usize,
        /// Rows of the text model that a picture becomes.
        rows: usize,
    },
    /// Qwen3-VL: the whole picture in a size near its own, a row per square of pixels.
    Grid(GridSizes),
}

/// What the parts of a picture take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Rows of the text model.
    pub rows: usize,
    /// Bytes of the pixels that the vision tower takes.
    pub bytes: u64,
}

/// Part of what a picture becomes in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text, which may contain special tokens.
    Text(String),
    /// Pixels as the vision tower takes them, and the number of rows that it makes of them.
    Pixels(Picture, usize),
}

impl PictureFormat {
    /// The text that stands for a picture in a prompt: a special token, which chat templates of the family write.
    pub fn placeholder(self) -> &'static str {
        match self {
            PictureFormat::Tiles { .. } => "<image>",
            PictureFormat::Stretched { .. } => "<start_of_image>",
            PictureFormat::Grid(_) => "<|image_pad|>",
        }
    }

    /// The special token that stands for a row of pixels. Prompts with it are counted and displayed; its embedding is
    /// not used.
    pub fn row_token(self) -> &'static str {
        match self {
            PictureFormat::Tiles { .. } => "<image>",
            PictureFormat::Stretched { .. } => "<image_soft_token>",
            PictureFormat::Grid(_) => "<|image_pad|>",
        }
    }

    /// Fewest and most rows of the text model that a picture becomes.
    pub fn tokens(self) -> [usize; 2] {
        match self {
            PictureFormat::Tiles {
                size,
                longest_edge,
                rows,
            } => {
                let count = |height| Tiles::count([MAX_ASPECT, height], size, longest_edge);
                [count(1) * rows, count(MAX_ASPECT) * rows]
            }
            PictureFormat::Stretched { rows, .. } => [rows, rows],
            PictureFormat::Grid(sizes) => {
                let square = sizes.side.pow(2);
                let most = (sizes.max_pixels / square).max(1);
                [sizes.min_pixels.div_ceil(square).clamp(1, most), most]
            }
        }
    }

    /// What a picture of this size will take. The error says why no such picture is resized: its own size, its shape, or a
    /// size that it would get.
    pub fn cost(self, own: [usize; 2]) -> Result<Cost, String> {
        check_size(own)?;
        let bytes = |pixels: [usize; 2]| {
            let checked = check_size(pixels).map(|()| 3 * pixels[0] as u64 * pixels[1] as u64);
            checked.map_err(|reason| format!("for this model it would be enlarged: {reason}"))
        };
        Ok(match self {
            PictureFormat::Tiles {
                size,
                longest_edge,
                rows,
            } => {
                for size in Tiles::sizes(own, size, longest_edge) {
                    bytes(size)?;
                }
                let tiles = Tiles::count(own, size, longest_edge);
                Cost {
                    rows: tiles.saturating_mul(rows),
                    bytes: (tiles as u64).saturating_mul(bytes([size, size])?),
                }
            }
            PictureFormat::Stretched { size, rows } => Cost {
                rows,
                bytes: bytes([size, size])?,
            },
            PictureFormat::Grid(sizes) => {
                sizes.check_shape(own)?;
                let size = sizes.size_of(own[0], own[1]);
                Cost {
                    rows: sizes.rows(size),
                    bytes: bytes(size)?,
                }
            }
        })
    }

    /// What replaces the placeholder.
    pub fn parts(self, picture: &Picture) -> Vec<Part> {
        match self {
            PictureFormat::Tiles {
                size,
                longest_edge,
                rows,
            } => tiles(Tiles::of(picture, size, longest_edge), rows),
            PictureFormat::Stretched { size, rows } => stretched(picture, size, rows),
            PictureFormat::Grid(sizes) => {
                let picture = sizes.fit(picture);
                let rows = sizes.rows([picture.width, picture.height]);
                vec![Part::Pixels(picture, rows)]
            }
        }
    }
}

fn stretched(picture: &Picture, size: usize, rows: usize) -> Vec<Part> {
    let pixels = picture.resized(size, size, Filter::Bilinear);
    vec![
        Part::Text("\n\n<start_of_image>".to_owned()),
        Part::Pixels(pixels, rows),
        Part::Text("<end_of_image>\n\n".to_owned()),
    ]
}

fn tiles(cut: Tiles, rows: usize) -> Vec<Part> {
    const AROUND: &str = "<fake_token_around_image>";
    let mut parts = Vec::new();
    let mut text = String::new();
    if let Some(grid) = cut.grid {
        for (index, tile) in cut.tiles.into_iter().enumerate() {
            let Grid { columns, .. } = grid;
            let (row, column) = (index / columns + 1, index % columns + 1);
            text.push_str(&format!("{AROUND}<row_{row}_col_{column}>"));
            parts.push(Part::Text(std::mem::take(&mut text)));
            parts.push(Part::Pixels(tile, rows));
            if column == columns {
                text.push('\n');
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("{AROUND}<global-img>"));
    parts.push(Part::Text(text));
    parts.push(Part::Pixels(cut.whole, rows));
    parts.push(Part::Text(AROUND.to_owned()));
    parts
}
