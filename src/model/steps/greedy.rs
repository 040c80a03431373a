//! Greedy steps: the device chooses the token with the largest logit and feeds it.

use super::{Fed, Ready, Steps, ids_of};
use crate::{Error, Result, engine::SequenceMemory, ops::argmax::argmax};

impl Steps {
    /// Chooses greedily after the last step; the next one-token step is ready then.
    pub fn choose(&mut self, fed: Fed) -> Result<()> {
        let rows = fed.rows;
        let logits = self.last_logits(fed)?;
        match self.device.recorder() {
            Some(gpu) => {
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { self.graphs[&rows].choose.replay(gpu) }
            }
            None => {
                let ids = ids_of(&mut self.ids, 1, self.device.tensors());
                argmax(logits, ids, &mut self.step, &mut self.chosen, self.variant);
                Ok(())
            }
        }
    }

    /// Greedy steps on what the last choice left on the device; nothing is uploaded.
    pub fn greedy(&mut self, steps: usize) -> Result<()> {
        if steps > 0 && self.needs_tokens() {
            return Err(Error::Internal(
                "steps whose tokens the host does not know".into(),
            ));
        }
        match (self.device.recorder(), &self.greedy) {
            (Some(gpu), Some(greedy)) => {
                // SAFETY: `self` owns every tensor the graphs were recorded with.
                unsafe { greedy.replay(gpu, steps) }
            }
            (Some(_), None) => Err(Error::Internal("a greedy step before its graph".into())),
            (None, _) => {
                for _ in 0..steps {
                    let ids = ids_of(&mut self.ids, 1, self.device.tensors());
                    let fed = ids.get();
                    let x = self
                        .decoder
                        .forward(fed, None, &mut self.memory, &self.step);
                    let logits = self.decoder.last_logits(x, &self.step);
                    argmax(logits, ids, &mut self.step, &mut self.chosen, self.variant);
                }
                Ok(())
            }
        }
    }

    /// Records what greedy steps replay.
    pub async fn prepare_greedy(&mut self) -> Result<()> {
        self.record(1).await
    }

    /// Records that the last greedy step chose `id` after the sequence's tokens, and that the ring
    /// holds `chosen` ids.
    pub fn note_ready(&mut self, memory: &SequenceMemory, id: u32, chosen: usize) {
        self.ready = Some(Ready {
            pages: memory.pages.clone(),
            state: memory.state,
            position: memory.len_tokens,
            id,
            chosen,
        });
    }

    /// If the device is ready to feed `id` to that sequence, returns how many ids are in the ring.
    /// The record is cleared: the caller continues from it, and may fail.
    pub fn take_ready(&mut self, memory: &SequenceMemory, id: u32) -> Option<usize> {
        let ready = self.ready.take().filter(|ready| {
            ready.id == id
                && ready.position == memory.len_tokens
                && ready.pages == memory.pages
                && ready.state == memory.state
        });
        ready.map(|ready| ready.chosen)
    }

    /// The ring of ids chosen since the last feed.
    pub async fn chosen(&self) -> Result<Vec<u32>> {
        let ring = self.chosen.get();
        let words = self.words(vec![ring]).await?;
        words
            .into_iter()
            .next()
            .ok_or_else(|| Error::Internal("no ids were read".into()))
    }
}
