//! A smaller model that guesses the tokens of another one. It keeps one sequence: the text that it was given last. Which
//! guesses are right is decided by the other model.

use crate::{
    Result,
    engine::{CausalModel, Chooser, Input, KnownText, MemoryCopy, Row, SequenceMemory, StepOutput},
};

/// The slot of the state that passes through guesses.
const WORKING: u32 = 0;
/// The slot of the state after the text that is known.
const KEPT: u32 = 1;

/// A model with the same token ids as the one that it guesses for.
pub struct DraftModel<M> {
    model: M,
    memory: SequenceMemory,
    /// The tokens in its memory; with a state, those that the kept state passed through.
    fed: Vec<u32>,
}

impl<M: CausalModel> DraftModel<M> {
    /// `model` has not fed anything.
    pub fn new(model: M) -> Self {
        let limits = model.limits();
        let memory = SequenceMemory {
            state: (limits.state_slots > 0).then_some(WORKING),
            ..SequenceMemory::new((0..limits.page_count as u32).collect())
        };
        Self {
            model,
            memory,
            fed: Vec::new(),
        }
    }

    /// The model itself.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Feeds all of `text` but its last token.
    pub(super) async fn catch_up(&mut self, text: KnownText<'_>) -> Result<()> {
        let text = text.after(0);
        if !self.can_feed(&text, 0) {
            return Ok(());
        }
        let known = text.len() - 1;
        let pairs = self.fed.iter().zip(&text[..known]);
        let mut common = pairs.take_while(|(fed, id)| fed == id).count();
        if self.memory.state.is_some() {
            match common == self.fed.len() && common > 0 {
                true => self.model.copy(MemoryCopy::State {
                    from: KEPT,
                    to: WORKING,
                })?,
                // A state cannot be rolled back further, and the first token starts from an empty one.
                false => common = 0,
            }
        }
        self.memory.len_tokens = common;
        // Until this has succeeded, the memory beyond is not known.
        self.fed.truncate(common);
        if common < known {
            let input = Input::tokens(&text[common..known]);
            self.model.prefill(&mut self.memory, input).await?;
            self.fed.extend(&text[common..known]);
        }
        match self.memory.state {
            Some(_) => self.model.copy(MemoryCopy::State {
                from: WORKING,
                to: KEPT,
            }),
            None => Ok(()),
        }
    }

    /// At most `count` tokens after `text`, each by the largest logit; none where its context or its vocabulary ends.
    pub(super) async fn draft(&mut self, text: KnownText<'_>, count: usize) -> Result<Vec<u32>> {
        if !self.can_feed(&text.after(0), count) {
            return Ok(Vec::new());
        }
        self.catch_up(text).await?;
        let last = text.after(text.len() - 1);
        let row = Row {
            memory: &mut self.memory,
            input: Input::tokens(&last),
        };
        let chooser = Chooser::Greedy { steps: count };
        let output = self.model.step(&mut [row], chooser).await?;
        let chosen = match output {
            StepOutput::Chosen(mut rows) => rows.pop().unwrap_or_default(),
            StepOutput::Logits(_) => Vec::new(),
        };
        // After invalid logits there is nothing to guess.
        let drafted = chosen.into_iter().map_while(|it| it.ok().map(|it| it.id));
        let drafted: Vec<u32> = drafted.collect();
        if self.memory.state.is_none() && drafted.len() == count {
            self.fed.extend(last);
            self.fed.extend(&drafted[..count - 1]);
        }
        Ok(drafted)
    }

    fn can_feed(&self, text: &[u32], further: usize) -> bool {
        let limits = self.model.limits();
        let known = text.iter().all(|id| (*id as usize) < limits.vocab_size);
        known && text.len() > 1 && text.len() + further <= limits.context_tokens
    }
}
