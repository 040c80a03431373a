//! Steps of one sequence whose tokens the device chooses by the largest logit.

use super::Transformer;
use crate::{
    Error, Result, engine::Row, model::steps::sizes::CHOSEN_IDS, ops::argmax::INVALID_TOKEN,
    sample::Sampled,
};

impl Transformer {
    /// [`Chooser::Greedy`](crate::engine::Chooser::Greedy) of a row.
    pub(super) async fn greedy(
        &mut self,
        row: &mut Row<'_>,
        steps: usize,
    ) -> Result<Vec<Result<Sampled>>> {
        let input = row.input;
        let memory = &mut *row.memory;
        self.steps.prepare_greedy().await?;
        let start_ms = self.device().now_ms();
        let mut chosen = Vec::with_capacity(steps);
        let mut feed = None;
        let needs_tokens = self.steps.needs_tokens();
        let most = if needs_tokens { 1 } else { CHOSEN_IDS };
        while chosen.len() < steps {
            let count = (steps - chosen.len()).min(most);
            let next = feed
                .as_ref()
                .map_or_else(|| input, |id| input.after(std::slice::from_ref(id)));
            let ready = match next.ids() {
                [id] if !needs_tokens => self.steps.take_ready(memory, *id),
                _ => None,
            };
            let before = match ready {
                Some(before) => {
                    self.check(memory, count)?;
                    self.steps.greedy(count)?;
                    memory.len_tokens += count;
                    before
                }
                None => {
                    let fed = self.feed_input(memory, next).await?;
                    self.check(memory, count - 1)?;
                    self.steps.choose(fed)?;
                    self.steps.greedy(count - 1)?;
                    memory.len_tokens += count - 1;
                    0
                }
            };
            let ring = self.steps.chosen().await?;
            chosen.extend((before..before + count).map(|at| ring[at % CHOSEN_IDS]));
            let last = chosen[chosen.len() - 1];
            self.steps.note_ready(memory, last, before + count);
            feed = Some(last);
        }
        // The time of a prompt does not measure a step.
        if input.ids().len() == 1 {
            let ms = self.device().now_ms() - start_ms;
            self.pace.note_steps(ms, steps);
        }
        let invalid = chosen.iter().position(|&id| id == INVALID_TOKEN);
        let valid = chosen.iter().take(invalid.unwrap_or(steps));
        let valid = valid.map(|&id| Ok(Sampled { id, score: None }));
        let error = invalid.map(|position| Err(Error::InvalidLogits { position }));
        Ok(valid.chain(error).collect())
    }
}
