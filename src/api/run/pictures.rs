//! Pictures of a request: decoded, cut into tiles, and put in the places of the prompt's placeholders (specification
//! 4.2). A placeholder is a token of the model, which a text may spell and a chat template writes.

use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

use crate::api::error::fault;
use crate::api::fields::images::{ImageFile, Images, NAME};
use crate::api::host::Host;
use crate::api::models::PictureReader;
use crate::engine::generation::{Content, Embeddings};
use crate::pictures::{Grid, Picture, Tiles};
use crate::text::Tokenizer;
use crate::{Error, RequestFault, Result};

/// Most pixels of a picture: one of them may take gigabytes otherwise.
const MAX_PIXELS: usize = 64 << 20;

/// What stands for a picture in a prompt.
#[derive(Debug, Clone)]
pub(super) struct PlacedPicture {
    /// With the placeholder once per tile.
    ids: Vec<u32>,
    tiles: Vec<Rc<Embeddings>>,
}

/// The ids of a prompt with its pictures.
pub(super) struct Placed {
    /// One id per position; those of a picture's rows are placeholders.
    pub ids: Vec<u32>,
    /// Where rows of pictures begin.
    pub embeddings: Vec<(usize, Rc<Embeddings>)>,
}

/// Decodes pictures, those of each prompt in a list, or all in one.
pub(super) async fn read(
    images: &Images,
    reader: Option<&PictureReader>,
    tokenizer: &Tokenizer,
    host: &dyn Host,
) -> Result<Vec<PlacedPicture>> {
    let count = images.count();
    if count == 0 {
        return Ok(Vec::new());
    }
    let reader = reader.ok_or_else(|| {
        let message = format!("images: the model takes text only, but {count} images are given");
        fault(RequestFault::UnsupportedParameter, NAME, message)
    })?;
    let mut placed = Vec::with_capacity(count);
    for (index, file) in images.files().enumerate() {
        let picture = decode(file, host).await;
        let picture = picture.map_err(|reason| {
            let message = format!("images: picture {index} {reason}");
            fault(RequestFault::InvalidValue, NAME, message)
        })?;
        placed.push(place(file, &picture, reader, tokenizer)?);
    }
    Ok(placed)
}

async fn decode(file: &ImageFile, host: &dyn Host) -> std::result::Result<Picture, String> {
    let picture = host.decode_picture(file.mime_type, &file.bytes, MAX_PIXELS).await?;
    let Picture { width, height, rgb } = &picture;
    match *width > 0 && *height > 0 && rgb.len() == 3 * width * height {
        true => Ok(picture),
        false => Err("has no pixels".into()),
    }
}

/// The text of a picture, and its tiles.
fn place(
    file: &ImageFile,
    picture: &Picture,
    reader: &PictureReader,
    tokenizer: &Tokenizer,
) -> Result<PlacedPicture> {
    let config = &reader.config;
    let cut = Tiles::of(picture, config.image_size, reader.longest_edge);
    let text = text_of(cut.grid);
    let tiles = cut.tiles.iter().chain([&cut.whole]).enumerate();
    let tiles = tiles.map(|(index, tile)| {
        Rc::new(Embeddings {
            key: key(&file.bytes, index),
            positions: config.rows(),
            content: Content::Pixels(tile.normalized(config.mean, config.std)),
        })
    });
    let tiles: Vec<_> = tiles.collect();
    let ids = tokenizer.encode(&text, false)?;
    let places = ids.iter().filter(|id| **id == reader.placeholder_id).count();
    match places == tiles.len() {
        true => Ok(PlacedPicture { ids, tiles }),
        false => Err(Error::Internal("a picture without its placeholders".into())),
    }
}

/// How Idefics 3 and SmolVLM write a picture.
fn text_of(grid: Option<Grid>) -> String {
    const AROUND: &str = "<fake_token_around_image>";
    let mut text = String::new();
    if let Some(Grid { rows, columns }) = grid {
        for row in 1..=rows {
            for column in 1..=columns {
                text.push_str(&format!("{AROUND}<row_{row}_col_{column}><image>"));
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text + &format!("{AROUND}<global-img><image>{AROUND}")
}

/// A name for a tile of a picture, for this run of the program.
fn key(bytes: &[u8], tile: usize) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write_usize(tile);
        hasher.write(bytes);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// Puts pictures, in order, in the places of the placeholders.
///
/// # Errors
/// `invalid_value` unless there are as many of both.
pub(super) fn insert(
    ids: Vec<u32>,
    pictures: &mut impl Iterator<Item = PlacedPicture>,
    placeholder_id: u32,
) -> Result<Placed> {
    let mut placed = Placed {
        ids: Vec::with_capacity(ids.len()),
        embeddings: Vec::new(),
    };
    for id in ids {
        if id != placeholder_id {
            placed.ids.push(id);
            continue;
        }
        let picture = pictures.next().ok_or_else(|| wrong_count("more placeholders than pictures"))?;
        let mut tiles = picture.tiles.into_iter();
        for id in picture.ids {
            if id != placeholder_id {
                placed.ids.push(id);
            } else if let Some(tile) = tiles.next() {
                let positions = tile.positions;
                placed.embeddings.push((placed.ids.len(), tile));
                placed.ids.extend(std::iter::repeat_n(id, positions));
            }
        }
    }
    Ok(placed)
}

/// The error of prompts and pictures that do not match.
pub(super) fn wrong_count(reason: &str) -> Error {
    let message = format!("images: the prompts have {reason}; a placeholder is the model's token <image>");
    fault(RequestFault::InvalidValue, NAME, message)
}
