//! Resized images and tiles against the references that `scripts/references/images.py` makes with Pillow and
//! transformers.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct References {
    resized: Vec<Resized>,
    tiles: Vec<Cut>,
    stretched: Vec<Stretched>,
    grids: Vec<Fitted>,
}

/// The hashes that `scripts/references/images_2026.py` writes.
#[derive(Deserialize)]
struct Later {
    grids_and_tiles: Vec<CutOrWhole>,
    largest: Vec<Enlarged>,
}

#[derive(Deserialize)]
struct Enlarged {
    from: [usize; 2],
    rows: usize,
    side: usize,
    to: [usize; 2],
    hash: String,
}

#[derive(Deserialize)]
struct CutOrWhole {
    from: [usize; 2],
    /// Fewest and most rows of the whole image.
    rows: [usize; 2],
    side: usize,
    tile: usize,
    /// Rows and columns of tiles.
    grid: [usize; 2],
    hashes: Vec<String>,
}

#[derive(Deserialize)]
struct Fitted {
    from: [usize; 2],
    side: usize,
    pixels: [usize; 2],
    to: [usize; 2],
    hash: String,
}

#[derive(Deserialize)]
struct Resized {
    from: [usize; 2],
    to: [usize; 2],
    filter: String,
    hash: String,
}

#[derive(Deserialize)]
struct Cut {
    from: [usize; 2],
    size: usize,
    longest: usize,
    rows: usize,
    columns: usize,
    hashes: Vec<String>,
}

#[derive(Deserialize)]
struct Stretched {
    from: [usize; 2],
    size: usize,
    hash: String,
}

fn later() -> Later {
    serde_json::from_str(include_str!("references_2026.json")).unwrap()
}

fn references() -> References {
    serde_json::from_str(include_str!("references.json")).unwrap()
}

/// Gradients with noise, as the script makes them.
fn image([width, height]: [usize; 2]) -> Image {
    let mut rgb = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let noise = (x * 73 + y * 151 + channel * 199).pow(2) % 97;
                rgb.push(((x * 5 + y * 3 + channel * 40 + noise) % 256) as u8);
            }
        }
    }
    Image { width, height, rgb }
}

fn fnv1a(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    format!("{:016x}", bytes.iter().fold(0xCBF2_9CE4_8422_2325, step))
}

#[test]
fn resized_images_are_those_of_pillow() {
    for Resized {
        from,
        to,
        filter,
        hash,
    } in references().resized
    {
        let kind = match &*filter {
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            _ => Filter::Lanczos,
        };
        let found = image(from).resized(to[0], to[1], kind);
        assert_eq!((found.width, found.height), (to[0], to[1]));
        assert_eq!(found.rgb.len(), 3 * to[0] * to[1]);
        assert_eq!(fnv1a(&found.rgb), hash, "{from:?} to {to:?}, {filter}");
    }
}

/// The text around images of Idefics 3.
const TILES: ImageMarkup = ImageMarkup {
    before_tile: "<fake_token_around_image><row_{row}_col_{column}>",
    after_tile_row: "\n",
    after_tiles: "\n",
    before_whole: "<fake_token_around_image><global-img>",
    after_whole: "<fake_token_around_image>",
    ..ImageMarkup::plain("<image>")
};

const AROUND: ImageMarkup = ImageMarkup {
    before_whole: "before",
    after_whole: "after",
    ..PLAIN
};
const PLAIN: ImageMarkup = ImageMarkup::plain("<image>");

fn tiles(size: usize, longest_edge: usize, rows: usize) -> ImageFormat {
    ImageFormat {
        markup: &TILES,
        filter: Filter::Lanczos,
        geometry: ImageGeometry::Tiles {
            size,
            longest_edge,
            rows,
        },
    }
}

fn stretched(size: usize, rows: usize) -> ImageFormat {
    ImageFormat {
        markup: &AROUND,
        filter: Filter::Bilinear,
        geometry: ImageGeometry::Stretched { size, rows },
    }
}

fn grid(side: usize, [min_pixels, max_pixels]: [usize; 2]) -> ImageFormat {
    ImageFormat {
        markup: &PLAIN,
        filter: Filter::Bicubic,
        geometry: ImageGeometry::Grid(GridSizes {
            side,
            min_pixels,
            max_pixels,
        }),
    }
}

#[test]
fn tiles_are_those_of_the_processor() {
    for cut in references().tiles {
        let from = cut.from;
        let format = tiles(cut.size, cut.longest, 1);
        let grid = (cut.rows > 0).then_some(Grid {
            rows: cut.rows,
            columns: cut.columns,
        });
        let layout = format.geometry.layout(from);
        assert_eq!(layout.grid, grid, "{from:?}");
        assert_eq!(layout.parts(), cut.hashes.len());
        let parts = format.parts(&image(from)).into_iter();
        let hashes = parts.filter_map(|part| match part {
            Part::Pixels(pixels, _) => Some(fnv1a(&pixels.rgb)),
            Part::Text(_) => None,
        });
        assert_eq!(hashes.collect::<Vec<_>>(), cut.hashes, "{from:?}");
    }
}

#[test]
fn tiles_have_text_around_them() {
    let text = |size| {
        let parts = tiles(8, 16, 1).parts(&image(size)).into_iter();
        let text = parts.map(|part| match part {
            Part::Text(text) => text.replace("<fake_token_around_image>", "|"),
            Part::Pixels(..) => ".".to_owned(),
        });
        text.collect::<Vec<_>>()
    };
    assert_eq!(
        text([40, 40]),
        [
            "|<row_1_col_1>",
            ".",
            "|<row_1_col_2>",
            ".",
            "\n|<row_2_col_1>",
            ".",
            "|<row_2_col_2>",
            ".",
            "\n\n|<global-img>",
            ".",
            "|"
        ]
    );
    // The longer side is that of a square.
    assert_eq!(tiles(8, 8, 1).parts(&image([8, 8])).len(), 3);
}

#[test]
fn stretched_images_are_those_of_the_processor() {
    for Stretched { from, size, hash } in references().stretched {
        let parts = stretched(size, 7).parts(&image(from));
        let [
            Part::Text(before),
            Part::Pixels(pixels, 7),
            Part::Text(after),
        ] = &parts[..]
        else {
            panic!("{parts:?}");
        };
        assert_eq!((&**before, &**after), ("before", "after"));
        assert_eq!((pixels.width, pixels.height), (size, size));
        assert_eq!(fnv1a(&pixels.rgb), hash, "{from:?}");
    }
}

#[test]
fn grids_are_those_of_the_processor() {
    for fitted in references().grids {
        let parts = grid(fitted.side, fitted.pixels).parts(&image(fitted.from));
        let [Part::Pixels(found, rows)] = &parts[..] else {
            panic!("{} parts", parts.len());
        };
        assert_eq!([found.width, found.height], fitted.to, "{:?}", fitted.from);
        assert_eq!(fnv1a(&found.rgb), fitted.hash, "{:?}", fitted.from);
        let squares = fitted.to.map(|pixels| pixels / fitted.side);
        assert_eq!(*rows, squares[0] * squares[1]);
    }
}

/// The format of LFM2-VL: small images are one grid, and large ones are cut into tiles.
fn grid_and_tiles(side: usize, rows: [usize; 2], tile: usize) -> ImageFormat {
    let [min_pixels, max_pixels] = rows.map(|rows| rows * side.pow(2));
    let whole = GridSizes {
        side,
        min_pixels,
        max_pixels,
    };
    let tiles = TileSizes {
        size: tile,
        count: [2, 10],
        max_whole_pixels: 2 * max_pixels,
    };
    ImageFormat {
        markup: &ImageMarkup {
            before_all: "before",
            ..TILES
        },
        filter: Filter::Bilinear,
        geometry: ImageGeometry::GridAndTiles(whole, tiles),
    }
}

#[test]
fn large_images_are_cut_beside_the_whole_in_a_size_of_its_own() {
    for case in later().grids_and_tiles {
        let format = grid_and_tiles(case.side, case.rows, case.tile);
        let layout = format.geometry.layout(case.from);
        let [rows, columns] = case.grid;
        let grid = (rows * columns > 1).then_some(Grid { rows, columns });
        assert_eq!(layout.grid, grid, "{:?}", case.from);
        let parts = format.parts(&image(case.from));
        assert!(matches!(&parts[0], Part::Text(text) if text.starts_with("before")));
        let pixels = parts.iter().filter_map(|part| match part {
            Part::Pixels(pixels, rows) => Some((pixels, rows)),
            Part::Text(_) => None,
        });
        let hashes = pixels.map(|(pixels, rows)| {
            assert_eq!(*rows, pixels.width * pixels.height / case.side.pow(2));
            fnv1a(&pixels.rgb)
        });
        assert_eq!(hashes.collect::<Vec<_>>(), case.hashes, "{:?}", case.from);
    }
}

fn largest(side: usize, rows: usize) -> ImageFormat {
    ImageFormat {
        markup: &PLAIN,
        filter: Filter::Bicubic,
        geometry: ImageGeometry::Largest { side, rows },
    }
}

#[test]
fn images_get_the_largest_size_of_the_processor() {
    for case in later().largest {
        let parts = largest(case.side, case.rows).parts(&image(case.from));
        let [Part::Pixels(found, rows)] = &parts[..] else {
            panic!("{} parts", parts.len());
        };
        assert_eq!([found.width, found.height], case.to, "{:?}", case.from);
        assert_eq!(fnv1a(&found.rgb), case.hash, "{:?}", case.from);
        let squares = case.to.map(|pixels| pixels / case.side);
        assert_eq!(*rows, squares[0] * squares[1]);
    }
}

fn formats() -> [ImageFormat; 5] {
    [
        largest(48, 280),
        grid_and_tiles(32, [64, 256], 512),
        tiles(64, 256, 3),
        stretched(96, 7),
        grid(32, [1 << 14, 1 << 17]),
    ]
}

#[test]
fn costs_are_those_of_the_parts() {
    let sizes = [[1, 1], [1, 150], [200, 1], [37, 23], [512, 400], [90, 700]];
    for format in formats() {
        for size in sizes {
            let mut found = Cost::default();
            for part in format.parts(&image(size)) {
                if let Part::Pixels(pixels, rows) = part {
                    found.rows += rows;
                    found.bytes += pixels.rgb.len() as u64;
                }
            }
            assert_eq!(format.cost(size), Ok(found), "{format:?} of {size:?}");
        }
    }
}

const MARKED: ImageMarkup = ImageMarkup {
    placeholder: "<image>",
    row_token: "<row>",
    before_all: "a",
    before_tile: "b{row}.{column}",
    after_tile_row: "c",
    after_tiles: "d",
    before_whole: "e",
    after_whole: "f",
};

#[test]
fn outlines_are_those_of_the_parts() {
    let marked = |format: ImageFormat| ImageFormat {
        markup: &MARKED,
        ..format
    };
    for format in formats().into_iter().chain(formats().map(marked)) {
        for size in [[1, 1], [37, 23], [512, 400], [400, 512], [90, 700]] {
            let (mut text, mut rows) = (String::new(), Vec::new());
            for part in format.parts(&image(size)) {
                match part {
                    Part::Text(part) => text.push_str(&part),
                    Part::Pixels(_, count) => {
                        text.push_str(format.row_token());
                        rows.push(count);
                    }
                }
            }
            assert_eq!(format.outline(size), (text, rows), "{format:?} of {size:?}");
        }
    }
}

#[test]
fn sizes_beyond_the_bounds_are_refused() {
    const MOST: usize = usize::MAX;
    for format in formats() {
        for [width, height] in [
            [1, 8_000_000],
            [60_000_000, 1],
            [0, 9],
            [8193, 8192],
            [MOST, MOST],
        ] {
            let message = format.cost([width, height]).unwrap_err();
            assert!(message.contains("pixels"), "{message}");
        }
        assert!(format.cost([8192, 8192]).is_ok());
        assert!(format.cost([164, 32_767]).is_ok());
    }
    let [_, _, cut, whole, any] = formats();
    assert!(any.cost([1, 200]).is_ok());
    let message = any.cost([201, 1]).unwrap_err();
    assert!(message.contains("200 times"), "{message}");
    assert!(cut.cost([1, 32_767]).is_ok() && whole.cost([32_767, 1]).is_ok());
    // Sizes of a model's file, not of an image's.
    for size in [8193, 40_000, 1 << 30] {
        let message = stretched(size, 1).cost([8, 8]).unwrap_err();
        assert!(message.contains("for this model"), "{message}");
        assert!(tiles(size, 64, 1).cost([8, 8]).is_err());
    }
}

#[test]
fn channels_are_normalized_one_after_another() {
    let image = Image {
        width: 2,
        height: 1,
        rgb: vec![0, 51, 255, 255, 102, 0],
    };
    let values = image.normalized([0.5, 0.0, 0.5], [0.5, 1.0, 0.25]);
    assert_eq!(values, [-1.0, 1.0, 0.2, 0.4, 2.0, -2.0]);
}
