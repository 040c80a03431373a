//! Pictures as the vision towers of models take them: pixels, resampling and tiles. What a family wants of a picture is data
//! that `model::vision` fills in; what a model makes of the pixels is not known here.
//!
//! Order, lowest first: `bounds`, `picture`, `file_header`, `bmp`, `webp_frames`, `decode`, `resample`, `tiles`, `grid`,
//! `format`.

mod bmp;
mod bounds;
#[cfg(not(target_arch = "wasm32"))]
mod decode;
mod file_header;
mod format;
mod grid;
mod picture;
mod resample;
mod tiles;
#[cfg(not(target_arch = "wasm32"))]
mod webp_frames;

pub use bounds::check_size;
pub use file_header::{FileFormat, FileHeader};
pub use format::{Cost, GeometrySummary, Part, PictureFormat, PictureGeometry, PictureTexts};
pub use grid::GridSizes;
pub use picture::Picture;
pub use resample::Filter;
pub use tiles::Grid;

#[cfg(test)]
mod tests;
