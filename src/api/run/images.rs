//! Images of a request: fetched, decoded and put in the places of the placeholders (specification 4.2).
//!
//! An image becomes text and pixels before the prompt is tokenized: the endpoint fetches and decodes files through its
//! host (a browser; in Node the package sharp, on the main thread, because libraries may be unloaded with a thread; BMP
//! in Rust), `images` resamples them as the family's own preprocessor does, and the strings around them join the
//! prompt, so that tokens may merge across their borders as they did in training. The special token of a row is then
//! repeated and replaced by the rows. A vision tower (`model/image_rows.rs`) makes rows of pixels when a step first feeds
//! them; they are kept under the hash of the file (`model/features.rs`). The engine knows pixels only by their key.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::api::endpoint::Endpoint;
use crate::api::error::fault;
use crate::api::fields::images::{ImageFile, RequestImages};
use crate::api::host::ImageError;
use crate::api::http::Attachment;
use crate::api::models::{ImageReader, PromptTokenizer, ReadyModel};
use crate::engine::Reservation;
use crate::engine::generation::{Embeddings, Prompt, Span};
use crate::images::Cost;
use crate::text::Tokenizer;
use crate::{Error, RequestFault, Result};

use super::decoded_image::{Decoded, SizedImage};
use super::remote_images::RemoteImages;

/// The placeholder that prompts may have in place of a model's own.
const COMMON_PLACEHOLDER: &str = "<image>";

/// The maximum number of rows of the images of a request whose tokens are only counted, unless the context holds more.
const MAX_COUNTED_ROWS: usize = 1 << 20;

/// The images of a request that were not placed yet.
#[derive(Debug)]
pub(super) struct Supply {
    reader: Option<ImageReader>,
    field: &'static str,
    images: VecDeque<Rc<Decoded>>,
    /// The number of images of each prompt that follows, if the request has a list per prompt.
    per_prompt: Option<VecDeque<usize>>,
    /// The place in the queue. It is taken before anything is decoded.
    reservation: Option<Reservation>,
}

/// Sums over the images of a request.
struct Total {
    images: usize,
    rows: usize,
    bytes: u64,
    /// The maximum number of rows that are accepted.
    max_rows: usize,
    /// The tokens of the context, for the error.
    context_tokens: usize,
}

impl Total {
    fn new(max_rows: usize, context_tokens: usize) -> Total {
        Total {
            images: 0,
            rows: 0,
            bytes: 0,
            max_rows,
            context_tokens,
        }
    }
}

/// The images of one prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct PromptImages {
    reader: Option<ImageReader>,
    decoded: Vec<Rc<Decoded>>,
}

impl Supply {
    /// Fetches and decodes the images of a request of so many candidates. They may become as many rows as the context of the
    /// model holds. What their sizes show to be wrong is refused before any is decoded, and none is decoded before the
    /// request has a place in the queue.
    pub(super) async fn read(
        images: &RequestImages,
        model: &ReadyModel,
        candidates: usize,
        endpoint: &Endpoint,
    ) -> Result<Supply> {
        let mut supply = Supply::without_images(images, model.images);
        let Some(reader) = supply.reader_of(images.files.len())? else {
            return Ok(supply);
        };
        let mut remote = RemoteImages::new(&*endpoint.host, endpoint.switches.max_body_bytes);
        let mut files = Vec::with_capacity(images.files.len());
        let context_tokens = model.engine.context_tokens();
        let mut expected = Total::new(context_tokens, context_tokens);
        for (index, file) in images.files.iter().enumerate() {
            let file = supply.fetch(index, file, &mut remote).await?;
            let sized = SizedImage::new(file, reader.format);
            let sized = sized.map_err(|error| supply.unusable(index, error))?;
            supply.add(&mut expected, sized.cost())?;
            files.push(sized);
        }
        let mut reservation = model.engine.reserve(candidates)?;
        reservation.hold(expected.bytes).await;
        supply.reservation = Some(reservation);
        let mut found = Total::new(context_tokens, context_tokens);
        for (index, file) in files.into_iter().enumerate() {
            let decoded = file.decode(&reader, endpoint).await;
            let (decoded, cost) = decoded.map_err(|error| supply.unusable(index, error))?;
            supply.add(&mut found, cost)?;
            supply.images.push_back(Rc::new(decoded));
        }
        Ok(supply)
    }

    /// Fetches and measures the images of a request whose tokens are only counted. It needs no place in the queue and makes no
    /// pixels, and there may be more rows than the context holds.
    pub(super) async fn measure(
        images: &RequestImages,
        model: &PromptTokenizer,
        endpoint: &Endpoint,
    ) -> Result<Supply> {
        let mut supply = Supply::without_images(images, model.images);
        let Some(reader) = supply.reader_of(images.files.len())? else {
            return Ok(supply);
        };
        let mut remote = RemoteImages::new(&*endpoint.host, endpoint.switches.max_body_bytes);
        let max_rows = model.context_tokens.max(MAX_COUNTED_ROWS);
        let mut total = Total::new(max_rows, model.context_tokens);
        for (index, file) in images.files.iter().enumerate() {
            let file = supply.fetch(index, file, &mut remote).await?;
            let measured = async {
                SizedImage::new(file, reader.format)?
                    .measure(&reader, endpoint)
                    .await
            };
            let measured = measured.await;
            let (measured, cost) = measured.map_err(|error| supply.unusable(index, error))?;
            supply.add(&mut total, cost)?;
            supply.images.push_back(Rc::new(measured));
        }
        Ok(supply)
    }

    fn without_images(images: &RequestImages, reader: Option<ImageReader>) -> Supply {
        Supply {
            reader,
            field: images.field,
            images: VecDeque::new(),
            per_prompt: images.per_prompt.clone().map(Into::into),
            reservation: None,
        }
    }

    /// The reader of so many images; `None` if there are no images.
    ///
    /// # Errors
    /// `unsupported_parameter` for images of a model that takes text only.
    fn reader_of(&self, images: usize) -> Result<Option<ImageReader>> {
        if images > 0 && self.reader.is_none() {
            let reason = format!("the model takes text only, but {images} images are given");
            return Err(self.fault(RequestFault::UnsupportedParameter, &reason));
        }
        Ok(self.reader.filter(|_| images > 0))
    }

    /// The file or the pixels of the image of this number.
    async fn fetch(
        &self,
        index: usize,
        file: &ImageFile,
        remote: &mut RemoteImages<'_>,
    ) -> Result<Attachment> {
        match file {
            ImageFile::Given(given) => Ok(given.clone()),
            ImageFile::Remote(url) => {
                let fetched = remote.fetch(url).await;
                fetched.map_err(|error| self.unusable(index, error))
            }
            ImageFile::Attached(_) => Err(Error::Internal("an image that was not attached".into())),
        }
    }

    /// Adds the cost of the next image; fails if there are more rows than are accepted.
    fn add(&self, total: &mut Total, cost: Cost) -> Result<()> {
        total.images += 1;
        total.rows = total.rows.saturating_add(cost.rows);
        total.bytes = total.bytes.saturating_add(cost.bytes);
        if total.rows > total.max_rows {
            let Total {
                images,
                rows,
                context_tokens,
                ..
            } = total;
            let sent = format!("The first {images} images have {rows} tokens");
            return Err(Error::exceeds_context(self.field, *context_tokens, sent));
        }
        Ok(())
    }

    /// The reserved place in the queue. The first call takes it.
    pub(super) fn take_reservation(&mut self) -> Option<Reservation> {
        self.reservation.take()
    }

    /// The text of a prompt that a person wrote, with the model's placeholder instead of the one that all models have in
    /// common.
    pub(super) fn with_own_placeholders(&self, text: String) -> String {
        let own = self.reader.map(|reader| reader.format.placeholder());
        match own.filter(|own| !self.images.is_empty() && *own != COMMON_PLACEHOLDER) {
            Some(own) => text.replace(COMMON_PLACEHOLDER, own),
            None => text,
        }
    }

    /// The images of the next prompt, which is this text.
    pub(super) fn take_for_text(&mut self, text: &str) -> Result<PromptImages> {
        let own = self.reader.map(|reader| reader.format.placeholder());
        self.take(own.map_or(0, |own| text.matches(own).count()))
    }

    /// The images of the next prompt, which is these ids.
    pub(super) fn take_for_ids(&mut self, ids: &[u32]) -> Result<PromptImages> {
        let own = self.reader.map(|reader| reader.placeholder_id);
        self.take(ids.iter().filter(|id| Some(**id) == own).count())
    }

    /// The images of the next prompt, which has as many placeholders.
    fn take(&mut self, placeholders: usize) -> Result<PromptImages> {
        let given = self.per_prompt.as_mut().and_then(VecDeque::pop_front);
        let left = given.unwrap_or(self.images.len());
        let is_wrong = match given {
            Some(count) => count != placeholders,
            None => left < placeholders,
        };
        match is_wrong {
            true => Err(self.wrong_count(placeholders, left)),
            false => Ok(PromptImages {
                reader: self.reader,
                decoded: self.images.drain(..placeholders).collect(),
            }),
        }
    }

    /// Fails if images are left after the last prompt.
    pub(super) fn finish(&self) -> Result<()> {
        match self.images.len() {
            0 => Ok(()),
            left => Err(self.wrong_count(0, left)),
        }
    }

    fn wrong_count(&self, placeholders: usize, images: usize) -> Error {
        let own = self.reader.map_or("", |reader| reader.format.placeholder());
        let reason = format!(
            "{images} images are left for {placeholders} placeholders: each image needs one {own} in a prompt"
        );
        self.fault(RequestFault::InvalidValue, &reason)
    }

    /// The error of the image of this number.
    fn unusable(&self, index: usize, error: ImageError) -> Error {
        let (kind, reason) = match error {
            ImageError::Invalid(reason) => (RequestFault::InvalidValue, reason),
            ImageError::Unsupported(reason) => (RequestFault::UnsupportedParameter, reason),
        };
        self.fault(kind, &format!("image {index}: {reason}"))
    }

    /// An error that names the field of the images.
    pub(super) fn fault(&self, kind: RequestFault, reason: &str) -> Error {
        fault(kind, self.field, format!("{}: {reason}", self.field))
    }
}

impl PromptImages {
    pub(super) fn is_empty(&self) -> bool {
        self.decoded.is_empty()
    }

    /// The placeholder of an image in prompts of this model.
    pub(super) fn placeholder(&self) -> Option<&'static str> {
        self.reader.map(|reader| reader.format.placeholder())
    }

    /// Replaces the placeholders of a text, as far as there are images.
    pub(super) fn place_in_text(&self, text: String) -> String {
        let own = self.placeholder().filter(|_| !self.is_empty());
        let Some(own) = own else {
            return text;
        };
        let mut parts = text.split(own);
        let mut placed = parts.next().unwrap_or_default().to_owned();
        let mut decoded = self.decoded.iter();
        for part in parts {
            placed.push_str(decoded.next().map_or(own, |image| &image.text));
            placed.push_str(part);
        }
        placed
    }

    /// Replaces the placeholders of ids.
    pub(super) fn place_in_ids(&self, ids: Vec<u32>, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        let reader = self.reader.filter(|_| !self.is_empty());
        let Some(ImageReader { placeholder_id, .. }) = reader else {
            return Ok(ids);
        };
        let mut parts = ids.split(|id| *id == placeholder_id);
        let mut placed = parts.next().unwrap_or_default().to_vec();
        for (image, part) in self.decoded.iter().zip(parts) {
            placed.extend(tokenizer.encode(&image.text, false)?);
            placed.extend_from_slice(part);
        }
        Ok(placed)
    }

    /// The ids with the id of a row as often as an image has rows.
    ///
    /// # Errors
    /// [`Error::Internal`] if there are more or fewer places than images.
    pub(super) fn spread(&self, ids: Vec<u32>) -> Result<Vec<u32>> {
        if self.is_empty() {
            return Ok(ids);
        }
        let misplaced = || Error::Internal("an image without its place in the prompt".into());
        let mut rows = self.decoded.iter().flat_map(|image| &image.rows);
        let mut spread = Vec::with_capacity(ids.len());
        for id in ids {
            let positions = match self.is_row(id) {
                true => rows.next().copied(),
                false => Some(1),
            };
            spread.extend(std::iter::repeat_n(id, positions.ok_or_else(misplaced)?));
        }
        match rows.next() {
            None => Ok(spread),
            Some(_) => Err(misplaced()),
        }
    }

    /// The prompt of ids that were [spread](PromptImages::spread), or of their beginning.
    pub(super) fn prompt(&self, ids: &[u32]) -> Prompt {
        if self.is_empty() {
            return ids.to_vec().into();
        }
        let mut spans = Vec::new();
        let mut rest = ids;
        for embeddings in self.embeddings() {
            let start = rest.iter().position(|id| self.is_row(*id));
            let (text, rows) = rest.split_at(start.unwrap_or(rest.len()));
            spans.push(Span::Tokens(text.to_vec()));
            // An image that does not end within the ids is left out, with everything that follows.
            let Some(after) = rows.get(embeddings.positions..) else {
                return Prompt::new(spans);
            };
            spans.push(Span::Embeddings(embeddings.clone()));
            rest = after;
        }
        spans.push(Span::Tokens(rest.to_vec()));
        Prompt::new(spans)
    }

    fn embeddings(&self) -> impl Iterator<Item = &Rc<Embeddings>> {
        self.decoded.iter().flat_map(|image| &image.pixels)
    }

    fn is_row(&self, id: u32) -> bool {
        self.reader.is_some_and(|reader| id == reader.row_id)
    }
}
