//! A prompt as a list of spans: token ids, or embeddings such as those of an image. The engine
//! counts positions and compares content keys; only the model reads the values of embeddings. The content key is part
//! of the key of a cached page. Each position of embeddings has a number of its own beyond the vocabulary, so that
//! penalties and DRY never match it.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use crate::images::Image;

/// Part of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum Span {
    /// Token ids.
    Tokens(Vec<u32>),
    /// Rows that take the place of token embeddings.
    Embeddings(Rc<Embeddings>),
}

/// Rows in the place of token embeddings, a row of the residual stream per position.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// Names the content, such as a hash of an image: equal keys mean equal values.
    pub key: u128,
    /// Number of positions.
    pub positions: usize,
    /// The source of the rows.
    pub content: Content,
}

/// Rows, or what a model makes rows of.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// `[positions, width]`; the width is [`ModelLimits::embedding_width`](super::ModelLimits).
    Rows(Vec<f32>),
    /// An image, or a part of one, in the size that the model's vision tower takes.
    Pixels(Image),
}

/// A prompt, by position. Each position of embeddings has a number of its own instead of a token
/// id, counted down from `u32::MAX`: no token and no other position equals it, so that nothing in
/// the history of a sampler matches it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    ids: Vec<u32>,
    embeddings: Vec<Placed>,
}

/// Embeddings and the position of their first row.
#[derive(Debug, Clone, PartialEq)]
struct Placed {
    start: usize,
    content: Rc<Embeddings>,
}

impl Placed {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.content.positions
    }
}

impl Prompt {
    /// The spans one after another.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut prompt = Self::default();
        let mut placeholder = u32::MAX;
        for span in spans {
            match span {
                Span::Tokens(ids) => prompt.ids.extend(ids),
                Span::Embeddings(content) => {
                    let start = prompt.ids.len();
                    for _ in 0..content.positions {
                        prompt.ids.push(placeholder);
                        placeholder -= 1;
                    }
                    prompt.embeddings.push(Placed { start, content });
                }
            }
        }
        prompt
    }

    /// Its length in positions.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether it has no position.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// One id per position: what samplers remember of the prompt. Positions of embeddings have
    /// numbers beyond every vocabulary.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Whether it consists of tokens alone.
    pub fn is_text(&self) -> bool {
        self.embeddings.is_empty()
    }

    /// Its token ids, without the positions of embeddings.
    pub(super) fn tokens(&self) -> impl Iterator<Item = u32> {
        let positions = self.ids.iter().enumerate();
        let tokens = positions.filter(|(at, _)| {
            let mut embeddings = self.embeddings.iter();
            !embeddings.any(|placed| placed.range().contains(at))
        });
        tokens.map(|(_, &id)| id)
    }

    /// Its embeddings, in order.
    pub(super) fn embeddings(&self) -> impl Iterator<Item = &Embeddings> {
        self.embeddings.iter().map(|placed| &*placed.content)
    }

    /// Its first positions. Embeddings that they cut stay whole; only their first rows are fed.
    pub(super) fn first(&self, positions: usize) -> Self {
        let is_within = |placed: &&Placed| placed.start < positions;
        Self {
            ids: self.ids[..positions].to_vec(),
            embeddings: self.embeddings.iter().filter(is_within).cloned().collect(),
        }
    }

    /// The input at these positions.
    pub fn input(&self, positions: Range<usize>) -> Input<'_> {
        Input {
            start: positions.start,
            ids: &self.ids[positions],
            embeddings: &self.embeddings,
        }
    }

    /// The positions of the image that a cut at `position` would divide.
    pub(super) fn image_around(&self, position: usize) -> Option<Range<usize>> {
        let images = self.embeddings.iter().filter(|placed| {
            let range = placed.range();
            let is_image = matches!(placed.content.content, Content::Pixels(_));
            is_image && range.start < position && position < range.end
        });
        images.map(Placed::range).next()
    }

    /// Tokens that follow the prompt.
    pub fn after<'a>(&'a self, ids: &'a [u32]) -> Input<'a> {
        Input {
            start: self.ids.len(),
            ids,
            embeddings: &self.embeddings,
        }
    }

    /// Keys of the first whole pages of `positions` positions. Equal keys, after equal keys of all
    /// pages before, mean equal content: the ids, then the key of each of the embeddings and where
    /// on the page it begins (or how many of its rows precede the page).
    pub(super) fn page_keys(
        &self,
        positions: usize,
        page_tokens: usize,
    ) -> impl Iterator<Item = Cow<'_, [u32]>> {
        let pages = self.ids[..positions].chunks_exact(page_tokens);
        pages.enumerate().map(move |(page, ids)| {
            let page = page * page_tokens..(page + 1) * page_tokens;
            let on_page = |it: &&Placed| overlap(&it.range(), &page).is_some();
            let mut key = Cow::Borrowed(ids);
            for placed in self.embeddings.iter().filter(on_page) {
                let key = key.to_mut();
                let before = placed.start.wrapping_sub(page.start);
                key.push(before as u32);
                let content = placed.content.key;
                key.extend((0..4).map(|word| (content >> (32 * word)) as u32));
            }
            key
        })
    }
}

impl From<Vec<u32>> for Prompt {
    fn from(ids: Vec<u32>) -> Self {
        Self {
            ids,
            embeddings: Vec::new(),
        }
    }
}

/// The input of a step for a sequence: token ids, and embeddings in place of some of them.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The position of the first id in the prompt; the end of the prompt, or more, for tokens that follow it.
    start: usize,
    ids: &'a [u32],
    /// The embeddings of the whole prompt.
    embeddings: &'a [Placed],
}

/// Rows of embeddings in an [`Input`].
#[derive(Debug, Clone, PartialEq)]
pub struct InputEmbeddings<'a> {
    /// Indices into the input.
    pub at: Range<usize>,
    /// The embeddings.
    pub embeddings: &'a Embeddings,
    /// The rows of them that are fed.
    pub rows: Range<usize>,
}

impl<'a> Input<'a> {
    /// Token ids alone.
    pub fn tokens(ids: &'a [u32]) -> Self {
        Self {
            start: 0,
            ids,
            embeddings: &[],
        }
    }

    /// One id per position; those of embeddings mean nothing.
    pub fn ids(&self) -> &'a [u32] {
        self.ids
    }

    /// Some of its positions.
    pub fn part(&self, positions: Range<usize>) -> Self {
        Self {
            start: self.start + positions.start,
            ids: &self.ids[positions],
            embeddings: self.embeddings,
        }
    }

    /// Tokens that follow it.
    pub fn after<'b>(&self, ids: &'b [u32]) -> Input<'b>
    where
        'a: 'b,
    {
        Input {
            start: self.start + self.ids.len(),
            ids,
            embeddings: self.embeddings,
        }
    }

    /// The position of the first id in the prompt; the end of the prompt, or more, for tokens that follow it.
    pub fn start(&self) -> usize {
        self.start
    }

    /// All embeddings of the prompt, each with the position of its first row.
    pub fn prompt_embeddings(&self) -> impl Iterator<Item = (usize, &'a Embeddings)> {
        let placed = self.embeddings.iter();
        placed.map(|placed| (placed.start, &*placed.content))
    }

    /// Its embeddings, in order.
    pub fn embeddings(&self) -> impl Iterator<Item = InputEmbeddings<'a>> {
        let Self {
            start,
            ids,
            embeddings,
        } = *self;
        let fed = start..start + ids.len();
        embeddings.iter().filter_map(move |placed| {
            let positions = overlap(&placed.range(), &fed)?;
            Some(InputEmbeddings {
                at: positions.start - start..positions.end - start,
                embeddings: &placed.content,
                rows: positions.start - placed.start..positions.end - placed.start,
            })
        })
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Option<Range<usize>> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (!both.is_empty()).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(key: u128, positions: usize) -> Span {
        Span::Embeddings(Rc::new(Embeddings {
            key,
            positions,
            content: Content::Rows((0..2 * positions).map(|i| i as f32).collect()),
        }))
    }

    /// Tokens 1 and 2, three positions of an image, token 3.
    fn prompt(key: u128) -> Prompt {
        Prompt::new([
            Span::Tokens(vec![1, 2]),
            image(key, 3),
            Span::Tokens(vec![3]),
        ])
    }

    #[test]
    fn every_position_of_embeddings_has_a_number_of_its_own() {
        let prompt = prompt(7);
        assert_eq!(
            prompt.ids(),
            [1, 2, u32::MAX, u32::MAX - 1, u32::MAX - 2, 3]
        );
        assert_eq!(prompt.tokens().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((prompt.len(), prompt.embeddings().count()), (6, 1));
    }

    #[test]
    fn an_input_holds_the_rows_of_its_positions() {
        let prompt = prompt(7);
        let rows = |positions: Range<usize>| {
            let input = prompt.input(positions);
            let rows = input.embeddings().map(|it| (it.at, it.rows));
            rows.collect::<Vec<_>>()
        };
        assert_eq!(rows(0..2), []);
        assert_eq!(rows(1..4), [(1..3, 0..2)]);
        assert_eq!(rows(4..6), [(0..1, 2..3)]);
        assert_eq!(Input::tokens(&[1]).embeddings().count(), 0);
    }

    #[test]
    fn a_cut_divides_an_image_only_inside_of_it() {
        let rows = prompt(7);
        let pixels = Content::Pixels(Image {
            width: 1,
            height: 1,
            rgb: vec![0; 3],
        });
        let mut image = rows.clone();
        image.embeddings[0].content = Rc::new(Embeddings {
            content: pixels,
            ..(*rows.embeddings[0].content).clone()
        });
        let around = |prompt: &Prompt| [1, 2, 3, 4, 5, 6].map(|at| prompt.image_around(at));
        assert_eq!(
            around(&image),
            [None, None, Some(2..5), Some(2..5), None, None]
        );
        assert_eq!(around(&rows), [const { None }; 6]);
    }

    #[test]
    fn page_keys_distinguish_contents_and_positions() {
        let keys = |prompt: &Prompt| -> Vec<Vec<u32>> {
            let keys = prompt.page_keys(6, 2);
            keys.map(Cow::into_owned).collect()
        };
        let [one, other] = [7, 1 << 100].map(|key| keys(&prompt(key)));
        assert_eq!(one[0], [1, 2], "a page of text has its ids as its key");
        assert_eq!(one[0], other[0]);
        assert!(one[1] != other[1] && one[2] != other[2]);
        // The same positions, split differently between two contents.
        let split = |first, second| keys(&Prompt::new([image(1, first), image(1, second)]));
        assert_ne!(split(2, 4)[1], split(3, 3)[1]);
    }
}
