//! Verifies a draft: feeds the token chosen last and the draft in one step, chooses after each position as single steps
//! would, and keeps the tokens up to the first that the draft did not guess. So the tokens are those of single steps. What
//! was fed beyond them is rolled back. The draft is known, or the model makes it at the beginning of the step.
//!
//! A step that verifies is a batch over positions, of at most 8 rows, whose bits are those of single tokens. The sampler and the
//! mask that a single step would use choose each position.

use futures_util::future::join;

use super::candidate::{Allowed, Candidate};
use super::draft::PlannedDraft;
use super::model::{
    CausalModel, Chooser, MemoryCopy, Row, RowSampler, SequenceMemory, expect, expect_chosen,
    expect_draft,
};
use super::sequence::Sequence;
use crate::Result;

impl Sequence {
    /// Runs a step whose tokens the pages cover. Where the model has states, the one before the step is kept in the slot
    /// `spare` meanwhile.
    pub(super) async fn verify<M: CausalModel>(
        &mut self,
        model: &mut M,
        draft: PlannedDraft,
        spare: Option<u32>,
    ) -> Result<()> {
        let fed_tokens = self.memory.len_tokens;
        let is_by_model = matches!(draft, PlannedDraft::OfModel(_));
        let draft = match draft {
            PlannedDraft::Tokens(tokens) => tokens,
            PlannedDraft::OfModel(count) => {
                let drafted = model.draft(&self.memory, self.text(), count).await?;
                expect_draft(&drafted, count, model.limits().vocab_size)?;
                drafted
            }
        };
        let mut tokens = vec![self.last_token()];
        tokens.extend(draft);
        let state = self.memory.state.zip(spare);
        if let Some((from, to)) = state {
            model.copy(MemoryCopy::State { from, to })?;
        }
        let generation = self.candidate.generation().clone();
        let Self {
            memory, candidate, ..
        } = self;
        match model.samples(&generation.sampling, generation.scores) {
            true => choose_on_device(model, memory, candidate, &tokens).await?,
            false => choose_on_host(model, memory, candidate, &tokens).await?,
        }
        expect(
            "KV tokens",
            self.memory.len_tokens,
            fed_tokens + tokens.len(),
        )?;
        self.roll_back();
        let right = self.memory.len_tokens - fed_tokens;
        if is_by_model && !self.candidate.is_closed() {
            // A model that drafts nothing should not be asked again and again.
            self.note_drafted((tokens.len() - 1).max(1), right - 1);
        }
        let (true, Some((to, from))) = (right < tokens.len(), state) else {
            return Ok(());
        };
        if self.candidate.is_closed() {
            return Ok(());
        }
        // A state cannot be rolled back: it passes through the right tokens once more.
        model.copy(MemoryCopy::State { from, to })?;
        self.memory.len_tokens = fed_tokens;
        let again = generation.prompt.after(&tokens[..right]);
        model.prefill(&mut self.memory, again).await?;
        expect("KV tokens", self.memory.len_tokens, fed_tokens + right)
    }
}

/// Chooses on the host after each of `tokens`, while the draft is right.
async fn choose_on_host<M: CausalModel>(
    model: &mut M,
    memory: &mut SequenceMemory,
    candidate: &mut Candidate,
    tokens: &[u32],
) -> Result<()> {
    let vocab_size = model.limits().vocab_size;
    let generation = candidate.generation().clone();
    let input = generation.prompt.after(tokens);
    let step = model.verify(Row { memory, input }, Chooser::Host);
    let (output, first) = join(step, async { candidate.allowed() }).await;
    let rows = output?.into_logits()?;
    expect("rows of logits", rows.len(), tokens.len())?;
    let mut first = Some(first);
    for (at, mut logits) in rows.into_iter().enumerate() {
        expect("logits", logits.len(), vocab_size)?;
        let allowed = first.take().unwrap_or_else(|| candidate.allowed());
        candidate.choose(&mut logits, &allowed);
        if !goes_on(candidate, tokens, at) {
            break;
        }
    }
    Ok(())
}

/// Lets the device choose after each of `tokens` as if the draft were right, and keeps what was chosen while it is.
async fn choose_on_device<M: CausalModel>(
    model: &mut M,
    memory: &mut SequenceMemory,
    candidate: &mut Candidate,
    tokens: &[u32],
) -> Result<()> {
    let vocab_size = model.limits().vocab_size;
    let generation = candidate.generation().clone();
    let input = generation.prompt.after(tokens);
    let draft = &tokens[1..];
    let mut forks = candidate.forks(draft);
    let mut allowed = Vec::new();
    let masks = || {
        allowed = match generation.is_restricted() {
            true => candidate.allowed_along(draft),
            false => vec![Ok(Allowed::Any); tokens.len()],
        };
        let masks = allowed.iter().map(|it| Allowed::mask(it).cloned());
        masks.collect()
    };
    let samplers = forks.iter_mut().map(|sampler| RowSampler {
        sampler,
        score: generation.scores,
    });
    let chooser = Chooser::Samplers {
        steps: 1,
        samplers: samplers.collect(),
        masks: Box::new(masks),
    };
    let output = model.verify(Row { memory, input }, chooser).await?;
    let chosen = output.into_chosen()?;
    expect("rows of tokens", chosen.len(), tokens.len())?;
    for (at, ((mut chosen, fork), allowed)) in
        chosen.into_iter().zip(forks).zip(&allowed).enumerate()
    {
        expect_chosen(&chosen, 1, vocab_size)?;
        expect("tokens", chosen.len(), 1)?;
        candidate.take_forked(fork, chosen.remove(0), allowed);
        if !goes_on(candidate, tokens, at) {
            break;
        }
    }
    Ok(())
}

/// Whether the token chosen last is the one that was fed after position `at`.
fn goes_on(candidate: &Candidate, tokens: &[u32], at: usize) -> bool {
    !candidate.is_closed() && candidate.chosen().last() == tokens.get(at + 1)
}
