//! Images as the vision towers of models take them: pixels, resampling and tiles. How a family takes images is data
//! that `model::vision` fills in; how a model computes with the pixels is not known here.
//!
//! Order, lowest first: `bounds`, `image`, `file_header`, `bmp`, `webp_frames`, `decode`, `resample`, `grid`, `tiles`,
//! `format`.

mod bmp;
mod bounds;
#[cfg(not(target_arch = "wasm32"))]
mod decode;
mod file_header;
mod format;
mod grid;
mod image;
mod resample;
mod tiles;
#[cfg(not(target_arch = "wasm32"))]
mod webp_frames;

pub use self::image::Image;
pub use bounds::check_size;
pub use file_header::{FileFormat, FileHeader};
pub use format::{Cost, GeometrySummary, ImageFormat, ImageGeometry, ImageMarkup, Part};
pub use grid::GridSizes;
pub use resample::Filter;
pub use tiles::{Grid, TileSizes};

#[cfg(test)]
mod tests;
