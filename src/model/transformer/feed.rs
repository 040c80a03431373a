//! Feeds the input of sequences in steps: checks that their memory suffices, and gives steps the rows of images.

use std::rc::Rc;

use super::{
    Transformer,
    chunks::{chunks, image_cuts, segment},
    rotary::RotaryPositions,
};
use crate::{
    Error, Result,
    engine::{
        Input, Row, SequenceMemory,
        generation::{Content, Embeddings},
    },
    model::steps::{Fed, sizes::MAX_BATCH},
    ops::{
        matvec,
        step::{PAGE_TOKENS, Rotary, Segment},
    },
};

impl Transformer {
    /// Feeds tokens and embeddings of one sequence; returns the last step.
    pub(super) async fn feed_input(
        &mut self,
        memory: &mut SequenceMemory,
        input: Input<'_>,
    ) -> Result<Fed> {
        let mut fed = None;
        let mut start = 0;
        let whole_images = self.whole_images();
        // A text between images may be short. The kernels depend on where the prompt ends, not on where images are.
        let is_many = input.ids().len() > matvec::MAX_TOKENS;
        let cuts = match whole_images {
            true => image_cuts(input)?,
            false => {
                let ends = chunks(input.ids()).scan(0, |end, chunk| {
                    *end += chunk.len();
                    Some((*end, false))
                });
                ends.collect()
            }
        };
        for (end, is_image) in cuts {
            let part = input.part(start..end);
            start = end;
            self.check(memory, part.ids().len())?;
            let ids = self.give_rows(&part).await?;
            let is_text = part.embeddings().next().is_none();
            if is_text && ids.len() > 1 {
                self.remember_next(memory, ids[0])?;
            }
            let rotary = self.rotary(&part);
            let segment = Segment {
                is_seen_whole: is_image,
                ..segment(memory, ids.len(), rotary.of_segment())
            };
            let step = match whole_images && (is_many || is_image) {
                true => self.steps.feed_as_many(segment, &ids).await?,
                false => self.steps.feed_chunk(segment, &ids).await?,
            };
            if is_text {
                self.remember_fed(memory, &ids, &step)?;
            }
            fed = Some(step);
            memory.len_tokens += ids.len();
        }
        fed.ok_or_else(|| Error::Internal("a step without tokens".into()))
    }

    /// Gives the step the rows of its embeddings; returns its ids. Ids beyond the embedding table are rows that are given.
    async fn give_rows(&mut self, input: &Input<'_>) -> Result<Vec<u32>> {
        let mut ids = input.ids().to_vec();
        let dim = self.config.dim;
        let mut parts = vec![Vec::new(); self.row_width() / dim];
        for embeddings in input.embeddings() {
            let first = self.config.vocab + parts[0].len() / dim;
            let given = first as u32..;
            ids[embeddings.at]
                .iter_mut()
                .zip(given)
                .for_each(|(id, row)| *id = row);
            let values = self.rows_of(embeddings.embeddings).await?;
            let width = values.len() / embeddings.embeddings.positions;
            let rows = embeddings.rows.start * width..embeddings.rows.end * width;
            for row in values[rows].chunks_exact(width) {
                let mut values = row.chunks_exact(dim);
                for part in &mut parts {
                    match values.next() {
                        Some(values) => part.extend_from_slice(values),
                        None => part.resize(part.len() + dim, 0.0),
                    }
                }
            }
        }
        self.steps.give_rows(&parts)?;
        Ok(ids)
    }

    /// Whether the rows of an image attend to each other in the text model.
    pub(super) fn whole_images(&self) -> bool {
        let vision = self.vision.as_ref();
        vision.is_some_and(|vision| vision.config().tower.is_seen_whole)
    }

    /// Values of an image's row: those of the embedding, and those of the layers that take some.
    fn row_width(&self) -> usize {
        self.config.dim * (1 + self.config.deepstack_layers)
    }

    /// The rotary positions of an input.
    pub(super) fn rotary(&self, input: &Input) -> RotaryPositions {
        let by_parts = self.config.rope().is_some_and(|rope| rope.parts.is_some());
        let vision = self.vision.as_ref().filter(|_| by_parts);
        RotaryPositions::new(input, vision.and_then(|it| it.config().row_side()))
    }

    /// The rows of embeddings, each of [`row_width`](Self::row_width) values, or of those of the embedding alone.
    async fn rows_of(&mut self, embeddings: &Embeddings) -> Result<Rc<[f32]>> {
        let rows = match &embeddings.content {
            Content::Rows(values) => values.as_slice().into(),
            Content::Pixels(pixels) => match self.features.get(embeddings.key) {
                Some(rows) => rows,
                None => {
                    let vision = self.vision.as_mut();
                    let vision =
                        vision.ok_or_else(|| Error::Internal("images without a tower".into()))?;
                    let rows: Rc<[f32]> = vision.encode(pixels).await?.into();
                    self.features.put(embeddings.key, rows.clone());
                    rows
                }
            },
        };
        let widths = [self.row_width(), self.config.dim];
        match widths.map(|width| embeddings.positions * width) {
            sizes if embeddings.positions > 0 && sizes.contains(&rows.len()) => Ok(rows),
            _ => Err(Error::Internal("embeddings of another size".into())),
        }
    }

    /// Feeds all tokens of one sequence; returns the last step.
    pub(super) async fn feed_chunks(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
    ) -> Result<Fed> {
        let mut fed = None;
        for chunk in chunks(tokens) {
            self.check(memory, chunk.len())?;
            let segment = segment(memory, chunk.len(), Rotary::default());
            fed = Some(self.steps.feed_chunk(segment, chunk).await?);
            memory.len_tokens += chunk.len();
        }
        fed.ok_or_else(|| Error::Internal("a step without tokens".into()))
    }

    /// Enqueues the next token of each row; suspends only to record a batch of this size for the
    /// first time.
    pub(super) async fn feed_batch(&mut self, rows: &[Row<'_>]) -> Result<Fed> {
        let tokens: Vec<u32> = rows.iter().map(|row| row.input.ids()[0]).collect();
        let rotary: Vec<_> = rows.iter().map(|row| self.rotary(&row.input)).collect();
        let segments = rows.iter().zip(&rotary);
        let segments = segments.map(|(row, it)| segment(row.memory, 1, it.of_segment()));
        let segments: Vec<Segment> = segments.collect();
        self.steps.feed_batch(&segments, &tokens).await
    }

    /// An error unless the rows are a batch whose pages cover `steps` tokens more.
    pub(super) fn check_batch(&self, rows: &[Row<'_>], steps: usize) -> Result<()> {
        if rows.is_empty() || rows.len() > MAX_BATCH {
            return Err(Error::Internal(format!("a batch of {}", rows.len())));
        }
        if rows.iter().any(|row| row.input.ids().len() != 1) {
            return Err(Error::Internal("a batch of several tokens per row".into()));
        }
        rows.iter()
            .try_for_each(|row| self.check(row.memory, steps))
    }

    pub(super) fn check(&self, memory: &SequenceMemory, tokens: usize) -> Result<()> {
        if !self.config.is_causal {
            return Err(Error::Internal("an encoder feeds no sequences".into()));
        }
        let end = memory.len_tokens + tokens;
        let context_tokens = self.reservation.context_tokens;
        if end > context_tokens || end > memory.pages.len() * PAGE_TOKENS {
            return Err(Error::Internal(format!(
                "a step to {end} tokens with {} pages and a context of {context_tokens}",
                memory.pages.len(),
            )));
        }
        let slots = self.reservation.states.slots;
        if slots > 0 && memory.state.is_none_or(|slot| slot as usize >= slots) {
            return Err(Error::Internal(format!(
                "a step with the state {:?} of {slots}",
                memory.state
            )));
        }
        Ok(())
    }
}
