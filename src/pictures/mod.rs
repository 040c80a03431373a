//! Pictures as the vision towers of models take them: pixels, resampling and tiles. What a picture's file looks like and
//! what a model makes of the pixels is not known here.
//!
//! Order, lowest first: `picture`, `resample`, `tiles`, `grid`, `format`.

mod format;
mod grid;
mod picture;
mod resample;
mod tiles;

pub use format::{Part, PictureFormat};
pub use grid::GridSizes;
pub use picture::Picture;
pub use resample::Filter;
pub use tiles::{Grid, Tiles};

#[cfg(test)]
mod tests;
