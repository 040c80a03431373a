//! The engine's contract with a model: token ids in, logits or chosen tokens out. The transformer
//! implements [`CausalModel`], and so does a fake in the engine's tests. The engine uses nothing
//! else of a model.
//!
//! Some models see an image whole (`ModelLimits::whole_images`, Gemma 3): its rows attend to each other. Then
//! neither a chunk of a prompt nor a cached prefix nor a prepared part ends inside an image, and the model runs each
//! image as a step of its own, whose state says how far all rows see (`Segment::is_seen_whole`).

pub use super::prompt::{Input, InputEmbeddings};

use crate::sample::{Sampled, Sampler, SamplingParams, ScoreRequest, TokenMask, TokenScore};
use crate::{Error, Result};

/// Sizes of a model that do not change while an engine owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Length of a logits row; every token id is below it.
    pub vocab_size: usize,
    /// Longest sequence it can run, in tokens.
    pub context_tokens: usize,
    /// Tokens per KV page.
    pub page_tokens: usize,
    /// Number of KV pages.
    pub page_count: usize,
    /// The maximum number of rows of one [`CausalModel::step`]; at least 1.
    pub max_batch: usize,
    /// Steps of at most this many tokens may round differently than larger ones; 0 if all steps round
    /// alike. K, V and logits of a token depend, to the last bit, on its history and on which of the two
    /// kinds its step is, not on how many tokens the step feeds.
    pub few_tokens: usize,
    /// State slots of a model with recurrent layers, at least 2; 0 for a model without.
    pub state_slots: usize,
    /// Values per position of embeddings in a prompt; `None` if the model takes none.
    pub embedding_width: Option<usize>,
    /// Whether the rows of an image depend on all of its rows: an input has a whole image or none of it.
    pub whole_images: bool,
}

/// The memory of one sequence: its KV pages, how much of them is filled, and where the model has
/// recurrent layers, a state of fixed size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SequenceMemory {
    /// Page ids in order; position p lives in `pages[p / page_tokens]`.
    pub pages: Vec<u32>,
    /// Tokens whose K and V are in the pages. Lowering this number rolls the KV cache back, not the
    /// state.
    pub len_tokens: usize,
    /// The slot of its state, after `len_tokens` tokens; `None` if the model has no states.
    pub state: Option<u32>,
}

impl SequenceMemory {
    /// An empty sequence in these pages.
    pub fn new(pages: Vec<u32>) -> Self {
        Self {
            pages,
            ..Self::default()
        }
    }
}

/// A copy within the memory of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryCopy {
    /// K and V of a whole page.
    Page {
        /// The page to read.
        from: u32,
        /// The page to overwrite.
        to: u32,
    },
    /// A state: a snapshot of it, or a snapshot that is restored.
    State {
        /// The slot to read.
        from: u32,
        /// The slot to overwrite.
        to: u32,
    },
}

/// A sequence in a step.
#[derive(Debug)]
pub struct Row<'a> {
    /// Its memory; the pages cover all positions that the step writes.
    pub memory: &'a mut SequenceMemory,
    /// The input that the step feeds after `memory.len_tokens`; at least one position.
    pub input: Input<'a>,
}

/// The side that chooses the tokens that follow the rows of a step: the host or the device.
pub enum Chooser<'a> {
    /// The host: the step returns the logits after the last token of each row.
    Host,
    /// The device, `steps` (at least one) tokens with the largest logit, the lowest id on ties.
    /// Only for a step of one row.
    Greedy {
        /// The number of tokens.
        steps: usize,
    },
    /// The device, `steps` (at least one) tokens by each row's sampler.
    /// [`CausalModel::samples`] holds for every row.
    Samplers {
        /// The number of tokens.
        steps: usize,
        /// The samplers, one per row.
        samplers: Vec<RowSampler<'a>>,
        /// The masks of the rows. They are computed once, after the device's work was submitted.
        masks: Masks<'a>,
    },
}

impl Chooser<'_> {
    /// Tokens that are chosen for each row.
    pub fn steps(&self) -> usize {
        match self {
            Self::Host => 1,
            Self::Greedy { steps } | Self::Samplers { steps, .. } => *steps,
        }
    }
}

/// The tokens that each row may choose; a row without a mask, and a row beyond the list, may choose
/// any. A mask holds for one token: a step that chooses several has none.
pub type Masks<'a> = Box<dyn FnOnce() -> Vec<Option<TokenMask>> + 'a>;

/// The device's way to choose for a row.
#[derive(Debug)]
pub struct RowSampler<'a> {
    /// Records the chosen tokens. Nothing else may use it during the step.
    pub sampler: &'a mut Sampler,
    /// The scores to report for each token.
    pub score: Option<ScoreRequest>,
}

/// The result of a step, one item per row.
#[derive(Debug, PartialEq)]
pub enum StepOutput {
    /// f32 logits `[vocab_size]` after each row, for [`Chooser::Host`].
    Logits(Vec<Vec<f32>>),
    /// The chosen tokens of each row. A row whose logits are invalid (NaN, +inf, nothing finite),
    /// or whose mask leaves nothing, ends with that error; its sampler stays as it was before it.
    Chosen(Vec<Vec<Result<Sampled>>>),
}

impl StepOutput {
    /// The logits.
    ///
    /// # Errors
    /// [`Error::Internal`] if the step returned chosen tokens.
    pub fn into_logits(self) -> Result<Vec<Vec<f32>>> {
        match self {
            Self::Logits(logits) => Ok(logits),
            Self::Chosen(_) => Err(wrong("chosen tokens instead of logits")),
        }
    }

    /// The chosen tokens.
    ///
    /// # Errors
    /// [`Error::Internal`] if the step returned logits.
    pub fn into_chosen(self) -> Result<Vec<Vec<Result<Sampled>>>> {
        match self {
            Self::Chosen(chosen) => Ok(chosen),
            Self::Logits(_) => Err(wrong("logits instead of chosen tokens")),
        }
    }
}

/// The tokens of a sequence.
#[derive(Debug, Clone, Copy)]
pub struct KnownText<'a> {
    /// One id per position of its prompt.
    pub prompt: &'a [u32],
    /// The tokens chosen after it, at least one. The last one is not fed yet.
    pub chosen: &'a [u32],
}

impl KnownText<'_> {
    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.prompt.len() + self.chosen.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens from `first` on.
    pub fn after(&self, first: usize) -> Vec<u32> {
        let all = self.prompt.iter().chain(self.chosen);
        all.skip(first).copied().collect()
    }
}

/// A causal language model with a paged KV cache. One call runs at a time.
#[allow(async_fn_in_trait)]
pub trait CausalModel {
    /// Its sizes.
    fn limits(&self) -> ModelLimits;

    /// Whether the device can choose for rows with such parameters ([`Chooser::Samplers`]). The
    /// same answer every time.
    fn samples(&self, _params: &SamplingParams, _score: Option<ScoreRequest>) -> bool {
        false
    }

    /// The maximum number of tokens worth choosing on the device in one step: more would keep readers waiting. May
    /// change as steps are measured.
    fn run_ahead_steps(&self) -> usize {
        usize::MAX
    }

    /// Feeds `input` after `memory.len_tokens`, for a prompt that continues: no logits are computed.
    /// On success `memory.len_tokens` has grown by the length of the input.
    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()>;

    /// Feeds each row's input. The chooser then chooses tokens, and all of them but the last are fed.
    ///
    /// A step has one row, or at most `max_batch` rows of one token each. Rows may share full pages, but
    /// neither a page that is written nor a state. The result of a row does not depend on the rows
    /// beside it.
    ///
    /// On success every `memory.len_tokens` has grown by the row's input, and by the chosen tokens
    /// but one: the caller feeds the last one next, or lowers `len_tokens` past a stop. A state cannot
    /// follow: the caller continues a sequence with a state only from where its last step ended.
    /// A row that feeds position 0 starts from the empty state, regardless of what the slot holds. After
    /// a call that fails, the states of its sequences are undefined.
    ///
    /// The device's work is submitted before the future first suspends, so that the caller can
    /// compute while the device runs.
    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput>;

    /// The maximum number of positions that [`verify`](Self::verify) takes; 0 if it takes none. The same answer every time.
    fn verified_rows(&self) -> usize {
        0
    }

    /// Feeds the input of one row: the token chosen last and a draft of those after it. Chooses one token after each
    /// position, as a batch of that many rows would: K, V, logits and tokens equal, to the last bit, those of steps that
    /// feed one token each. With [`Chooser::Samplers`] there is a sampler, and perhaps a mask, for each position, and one
    /// step. [`Chooser::Greedy`] is not used.
    ///
    /// On success `row.memory.len_tokens` has grown by the input. The caller lowers it past the first token that the draft
    /// did not guess; it copies a state before and restores it.
    ///
    /// # Errors
    /// [`Error::Internal`] for an input that is too long, or by a model that verifies nothing.
    async fn verify(&mut self, _row: Row<'_>, _chooser: Chooser<'_>) -> Result<StepOutput> {
        Err(wrong("nothing: it verifies no drafts"))
    }

    /// Whether it guesses tokens: by a head of its own, or by a smaller model. The same answer every time.
    fn drafts(&self) -> bool {
        false
    }

    /// Lets it read what it has not read of `text`, before [`draft`](Self::draft): how long this takes says nothing about
    /// how long drafts take.
    async fn prepare_draft(&mut self, _text: KnownText<'_>) -> Result<()> {
        Ok(())
    }

    /// Guesses at most `count` tokens after `text`, whose tokens but the last are in `memory`. Its pages cover all of them.
    /// Whatever is guessed changes neither the memory as other calls see it nor their results. The prompt consists of
    /// tokens.
    ///
    /// # Errors
    /// [`Error::Internal`] by a model that guesses nothing.
    async fn draft(
        &mut self,
        _memory: &SequenceMemory,
        _text: KnownText<'_>,
        _count: usize,
    ) -> Result<Vec<u32>> {
        Err(wrong("no draft: it guesses nothing"))
    }

    /// Feeds `tokens` (at least one) after `memory.len_tokens` and scores what follows each of them.
    /// `next[i]` is the token after `tokens[i]`; result `i` has its raw log-probability and the `top`
    /// best tokens at that position (all, if there are fewer). `next` is as long as `tokens`.
    ///
    /// # Errors
    /// [`Error::InvalidLogits`] (NaN, +inf, nothing finite).
    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>>;

    /// Copies a part of its memory, after everything fed so far.
    fn copy(&mut self, copy: MemoryCopy) -> Result<()>;
}

/// An internal error unless the model returned as many as requested.
pub(super) fn expect(what: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(wrong(&format!("{found} {what} instead of {wanted}")))
}

/// The result of the model for the only row of a step.
pub(super) fn only<T>(what: &str, mut rows: Vec<T>) -> Result<T> {
    expect(what, rows.len(), 1)?;
    Ok(rows.remove(0))
}

/// An internal error unless the model chose `steps` tokens of its vocabulary for a row, or fewer and
/// then failed.
pub(super) fn expect_chosen(
    chosen: &[Result<Sampled>],
    steps: usize,
    vocab_size: usize,
) -> Result<()> {
    for sampled in chosen.iter().flatten() {
        if sampled.id as usize >= vocab_size {
            return Err(wrong(&format!("token id {}", sampled.id)));
        }
    }
    match chosen.last() {
        Some(Err(_)) => Ok(()),
        _ => expect("tokens", chosen.len(), steps),
    }
}

/// An internal error unless a draft has at most `count` tokens of the vocabulary.
pub(super) fn expect_draft(draft: &[u32], count: usize, vocab_size: usize) -> Result<()> {
    match draft.len() <= count && draft.iter().all(|id| (*id as usize) < vocab_size) {
        true => Ok(()),
        false => Err(wrong(&format!("a draft {draft:?} of {count}"))),
    }
}

fn wrong(returned: &str) -> Error {
    Error::Internal(format!("the model returned {returned}"))
}
