//! An image's file: its header, its pixels, and what each geometry makes of them.

use inpage::images::{
    FileHeader, Filter, GridSizes, Image, ImageFormat, ImageGeometry, ImageMarkup,
};

/// Larger images are decoded correctly, but slowly without optimization.
const MAX_DECODED_PIXELS: usize = 1 << 18;

const GEOMETRIES: [(ImageGeometry, Filter); 3] = [
    (
        ImageGeometry::Tiles {
            size: 32,
            longest_edge: 128,
            rows: 4,
        },
        Filter::Lanczos,
    ),
    (
        ImageGeometry::Stretched { size: 64, rows: 4 },
        Filter::Bilinear,
    ),
    (
        ImageGeometry::Grid(GridSizes {
            side: 16,
            min_pixels: 1024,
            max_pixels: 1 << 14,
        }),
        Filter::Bicubic,
    ),
];

pub fn run(input: &[u8]) {
    let Ok(header) = FileHeader::read(input) else {
        return;
    };
    if header.width * header.height > MAX_DECODED_PIXELS {
        return;
    }
    let Ok(image) = Image::decode(input, header) else {
        return;
    };
    for (geometry, filter) in GEOMETRIES {
        let format = ImageFormat {
            markup: const { &ImageMarkup::plain("<image>") },
            filter,
            geometry,
        };
        let _ = format.parts(&image);
    }
}
