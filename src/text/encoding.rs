//! Encodes text to token ids: whole or in slices, with the places of tokens, around a gap, and the prompts of chat templates
//! (specification 4.2, 6.3).

use std::future::{Future, ready};
use std::pin::Pin;

use futures_util::FutureExt;

use super::chat_template::Marker;
use super::fill_in_middle::MiddleTokens;
use super::normalizer::Normalized;
use super::placement::{self, Place, PlacedSegment};
use super::special_tokens::Segment;
use super::tokenizer::Tokenizer;
use crate::{Error, Result};

/// Bytes of a text that are tokenized at once: some milliseconds in a page.
const SLICE_BYTES: usize = 32 << 10;

/// Makes what is awaited between slices of a long text, so that other tasks can run.
pub type Pause<'p> = &'p dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// The treatment of special tokens when text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// No tokens are added.
    None,
    /// The model's start- and end-of-text tokens are added as it wants them.
    Added,
    /// The rules for the prompt of a chat template: [`Tokenizer::encode_rendered`].
    Rendered(Marker),
}

impl Tokenizer {
    /// The ids of `text`. The literal text of a special token becomes that token. `add_special`
    /// applies the model's rule for start- and end-of-text tokens.
    ///
    /// # Errors
    /// [`Error::Internal`] if the BPE library fails.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        let special = match add_special {
            true => Special::Added,
            false => Special::None,
        };
        at_once(self.encode_segments(text, special, usize::MAX, &never_pause, |_| ()))
    }

    /// [`Self::encode`], with a pause after each slice of a long text. The ids are the same. What a tokenizer cannot
    /// divide is one slice: a word, or the whole text if it has neither a pre-tokenizer nor words.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub async fn encode_in_slices(
        &self,
        text: &str,
        special: Special,
        pause: Pause<'_>,
    ) -> Result<Vec<u32>> {
        self.encode_slices_of(SLICE_BYTES, text, special, pause)
            .await
    }

    pub(super) async fn encode_slices_of(
        &self,
        slice_bytes: usize,
        text: &str,
        special: Special,
        pause: Pause<'_>,
    ) -> Result<Vec<u32>> {
        self.encode_segments(text, special, slice_bytes, pause, |_| ())
            .await
    }

    /// [`Self::encode`], and where each token lies in `text`. Tokens that are not from the text have
    /// no width.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub fn encode_placed(&self, text: &str, add_special: bool) -> Result<(Vec<u32>, Vec<Place>)> {
        let special = match add_special {
            true => Special::Added,
            false => Special::None,
        };
        at_once(self.encode_placed_in_slices(text, special, &never_pause))
    }

    /// [`Self::encode_placed`], as [`Self::encode_in_slices`].
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub async fn encode_placed_in_slices(
        &self,
        text: &str,
        special: Special,
        pause: Pause<'_>,
    ) -> Result<(Vec<u32>, Vec<Place>)> {
        let mut segments = Vec::new();
        let keep = |segment| segments.push(segment);
        let ids = self
            .encode_segments(text, special, SLICE_BYTES, pause, keep)
            .await?;
        let places = placement::place(&self.vocabulary, text, &ids, &segments);
        Ok((ids, places))
    }

    /// The ids of a prompt that a chat template rendered. Special tokens whose strings are marked are text. The
    /// start-of-text token is added if the model wants one and the template did not write it; a prompt never ends
    /// with the end-of-text token.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub fn encode_rendered(&self, text: &str, marker: Marker) -> Result<Vec<u32>> {
        let special = Special::Rendered(marker);
        at_once(self.encode_segments(text, special, usize::MAX, &never_pause, |_| ()))
    }

    /// `text` with a marker in every text of a control token, so that [`Self::encode_rendered`] reads it as text;
    /// `None` if there is none. At the end, the beginning of such a text counts too, because the template may put
    /// another text after it. `is_exempt` names tokens that are left as they are.
    pub fn mark(
        &self,
        text: &str,
        marker: Marker,
        is_exempt: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let bytes = text.as_bytes();
        let mut marked = None::<String>;
        let mut done = 0;
        for (at, character) in text.char_indices() {
            if !self.control.starts_with(bytes[at]) {
                continue;
            }
            let is_whole = self
                .control
                .text_at(&bytes[at..])
                .is_some_and(|found| !is_exempt(found));
            if is_whole || self.control.may_begin_with(&bytes[at..]) {
                let end = at + character.len_utf8();
                let marked = marked.get_or_insert_default();
                marked.push_str(&text[done..end]);
                marked.push(marker.char());
                done = end;
            }
        }
        marked.map(|marked| marked + &text[done..])
    }

    /// Encodes and calls `visit` with each segment of the text.
    async fn encode_segments<'t>(
        &self,
        text: &'t str,
        special: Special,
        slice_bytes: usize,
        pause: Pause<'_>,
        mut visit: impl FnMut(PlacedSegment<'t>),
    ) -> Result<Vec<u32>> {
        let marker = match special {
            Special::Rendered(marker) => Some(marker),
            Special::None | Special::Added => None,
        };
        let mut slices = Slices {
            tokenizer: self,
            slice_bytes,
            pause,
            done_bytes: 0,
            ids: self.added_bos(text, special).into_iter().collect(),
        };
        let mut segments = Vec::new();
        self.special
            .split_marked(text, marker.map(Marker::char), |start_byte, segment| {
                segments.push((start_byte, segment));
                Ok::<(), Error>(())
            })?;
        for (start_byte, segment) in segments {
            let first = slices.ids.len();
            let (normalized, drops_space) = match segment {
                Segment::Special(id) => {
                    slices.ids.push(id);
                    (Normalized::default(), false)
                }
                Segment::Text(text) => {
                    let normalized = self.normalized(text, marker);
                    let text = &normalized.text;
                    let drops_space = self.space_prefix.applies(self.spelling, start_byte, text);
                    match drops_space {
                        true => slices.encode(&format!(" {text}")).await?,
                        false => slices.encode(text).await?,
                    }
                    (normalized, drops_space)
                }
            };
            visit(PlacedSegment {
                tokens: first..slices.ids.len(),
                start_byte,
                normalized,
                drops_space,
            });
        }
        let mut ids = slices.ids;
        let adds_eos = special == Special::Added && self.adds_eos;
        ids.extend(self.vocabulary.eos_id.filter(|_| adds_eos));
        Ok(ids)
    }

    /// The start-of-text token, if it is put in front of `text`.
    fn added_bos(&self, text: &str, special: Special) -> Option<u32> {
        self.bos_id().filter(|id| match special {
            Special::None => false,
            Special::Added => self.adds_bos,
            Special::Rendered(_) => {
                self.adds_bos && !text.as_bytes().starts_with(self.token_bytes(*id))
            }
        })
    }

    /// `text` without markers, normalized.
    fn normalized<'t>(&self, text: &'t str, marker: Option<Marker>) -> Normalized<'t> {
        match marker {
            Some(marker) if text.contains(marker.char()) => {
                let text = marker.remove(text);
                self.normalizer.normalize(&text).into_owned()
            }
            _ => self.normalizer.normalize(text),
        }
    }

    /// The fill-in-the-middle prompt for the text between `prefix` and `suffix`, and where its tokens
    /// lie in `prefix`; tokens after the prefix lie at its end without width. `None` if the model has
    /// no fill-in-the-middle tokens.
    ///
    /// # Errors
    /// The errors of [`Self::encode`].
    pub async fn encode_around(
        &self,
        prefix: &str,
        suffix: &str,
        pause: Pause<'_>,
    ) -> Result<Option<(Vec<u32>, Vec<Place>)>> {
        let Some(MiddleTokens {
            prefix: prefix_id,
            suffix: suffix_id,
            middle: middle_id,
        }) = self.middle_tokens
        else {
            return Ok(None);
        };
        let bos_id = self.bos_id().filter(|_| self.adds_bos);
        let mut ids: Vec<u32> = bos_id.into_iter().chain([prefix_id]).collect();
        let mut places = vec![Place::default(); ids.len()];
        let (prefix_ids, prefix_places) = self
            .encode_placed_in_slices(prefix, Special::None, pause)
            .await?;
        ids.extend(prefix_ids);
        places.extend(prefix_places);
        ids.push(suffix_id);
        ids.extend(self.encode_in_slices(suffix, Special::None, pause).await?);
        ids.push(middle_id);
        let end = Place {
            start: prefix.chars().count(),
            drops_space: false,
        };
        places.resize(ids.len(), end);
        Ok(Some((ids, places)))
    }
}

/// Encodes a long text in slices, with pauses between them.
struct Slices<'a> {
    tokenizer: &'a Tokenizer,
    slice_bytes: usize,
    pause: Pause<'a>,
    /// Bytes since the last pause.
    done_bytes: usize,
    /// The ids so far.
    ids: Vec<u32>,
}

impl Slices<'_> {
    /// Appends the ids of a text.
    async fn encode(&mut self, mut text: &str) -> Result<()> {
        while !text.is_empty() {
            if self.done_bytes >= self.slice_bytes {
                (self.pause)().await;
                self.done_bytes = 0;
            }
            let end = self.encode_slice(text)?;
            self.done_bytes += end;
            text = &text[end..];
        }
        Ok(())
    }

    /// Appends the ids of a slice that `text` begins with, and returns its bytes. A slice ends where the text after it
    /// has the same ids alone, from `slice_bytes` on.
    fn encode_slice(&mut self, text: &str) -> Result<usize> {
        let Tokenizer {
            splitter, encoder, ..
        } = self.tokenizer;
        let text = match splitter.is_empty() && encoder.words_stand_apart() {
            true => &text[..next_word(text, self.slice_bytes)],
            false => text,
        };
        splitter.split_first(text, self.slice_bytes, &mut |piece| {
            encoder.encode(piece, &mut self.ids)
        })
    }
}

/// The first place from `least_bytes` on where a space follows another character; else the end of `text`.
fn next_word(text: &str, least_bytes: usize) -> usize {
    let is_space = |byte: u8| byte == b' ';
    let bytes = text.as_bytes();
    let mut places = least_bytes.max(3)..bytes.len();
    // A ▁ in the text is a space, too.
    let is_place = |at: &usize| {
        is_space(bytes[*at]) && !is_space(bytes[at - 1]) && !bytes[..*at].ends_with("▁".as_bytes())
    };
    places.find(is_place).unwrap_or(bytes.len())
}

fn never_pause() -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(ready(()))
}

/// The result of work that never waits.
fn at_once<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let waited = || Error::Internal("tokenization waited".into());
    work.now_or_never().ok_or_else(waited)?
}
