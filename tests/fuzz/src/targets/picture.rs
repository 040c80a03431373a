//! A picture's file: its header, its pixels, and what each family makes of them.

use inpage::pictures::{FileHeader, GridSizes, Picture, PictureFormat};

/// Larger pictures are decoded correctly, but slowly without optimization.
const MAX_DECODED_PIXELS: usize = 1 << 18;

const FORMATS: [PictureFormat; 3] = [
    PictureFormat::Tiles {
        size: 32,
        longest_edge: 128,
        rows: 4,
    },
    PictureFormat::Stretched { size: 64, rows: 4 },
    PictureFormat::Grid(GridSizes {
        side: 16,
        min_pixels: 1024,
        max_pixels: 1 << 14,
    }),
];

pub fn run(input: &[u8]) {
    let Ok(header) = FileHeader::read(input) else {
        return;
    };
    if header.width * header.height > MAX_DECODED_PIXELS {
        return;
    }
    let Ok(picture) = Picture::decode(input, header) else {
        return;
    };
    for format in FORMATS {
        let _ = format.parts(&picture);
    }
}
