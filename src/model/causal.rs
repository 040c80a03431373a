//! What a causal language model offers: token ids in, logits or greedy ids out. The transformer
//! implements it for the engine, and a fake does in the engine's tests.

use futures_util::future::join;

use crate::Result;
use crate::sample::{Sampled, Sampler, SamplingParams, ScoreRequest, TokenMask, TokenScore};

/// The KV memory of one sequence: a block table and how much of it is filled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SequenceKv {
    /// Page ids in order; position p lives in `pages[p / page_tokens]`.
    pub pages: Vec<u32>,
    /// Tokens whose keys and values are in the pages. Rolling back is lowering this number.
    pub len_tokens: usize,
}

/// A sequence of which [`CausalModel::feed_sampled`] chooses tokens.
pub struct SampledRow<'a> {
    /// Its keys and values.
    pub kv: &'a mut SequenceKv,
    /// Its last token, not fed yet.
    pub token: u32,
    /// Chooses; takes in what is chosen, and nobody else may meanwhile.
    pub sampler: &'a mut Sampler,
    /// What to tell of every token.
    pub score: Option<ScoreRequest>,
}

/// A causal language model with paged KV memory. One step runs at a time.
#[allow(async_fn_in_trait)]
pub trait CausalModel {
    /// Length of a logits row.
    fn vocab_size(&self) -> usize;
    /// Longest sequence it can run, in tokens.
    fn context_tokens(&self) -> usize;
    /// Tokens per KV page.
    fn page_tokens(&self) -> usize;
    /// KV pages there are.
    fn page_count(&self) -> usize;
    /// Most sequences one [`feed_batch`](Self::feed_batch) takes; at least 1.
    fn max_batch(&self) -> usize;
    /// Most tokens of a step that may round differently than larger ones; 0 if all round alike. The
    /// keys, values and logits of a token depend, to the last bit, on its history and on which of
    /// the two kinds its step is, not on how many tokens that feeds.
    fn few_tokens(&self) -> usize;

    /// Whether [`feed_sampled`](Self::feed_sampled) chooses on the device for rows with such
    /// parameters: only then is it worth running ahead with them. The same answer every time.
    fn chooses(&self, _params: &SamplingParams, _score: Option<ScoreRequest>) -> bool {
        false
    }

    /// Most steps to choose on the device at once: more would keep readers waiting.
    fn run_ahead_steps(&self) -> usize {
        usize::MAX
    }

    /// Feeds `tokens` (at least one) after `kv.len_tokens`, as [`feed`](Self::feed), for a prompt
    /// that goes on: no logits are computed.
    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()>;

    /// Feeds `tokens` (at least one) after `kv.len_tokens` and returns the f32 logits
    /// `[vocab_size]` after the last one. `kv.pages` must already cover the new length; on
    /// success `kv.len_tokens` has grown by `tokens.len()`.
    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>>;

    /// Feeds one token to each of several sequences (at least one, at most
    /// [`max_batch`](Self::max_batch)); returns the logits `[vocab_size]` after each. Sequences may
    /// share full pages, never the one that is written. A row's logits do not depend on the others
    /// and are those that [`feed`](Self::feed) of that one token gives.
    ///
    /// The device's work is submitted before the future first suspends, so that the caller can
    /// compute while it runs.
    async fn feed_batch(&mut self, rows: &mut [(&mut SequenceKv, u32)]) -> Result<Vec<Vec<f32>>>;

    /// Feeds `tokens` (at least one) after `kv.len_tokens` and scores what follows each of them:
    /// `next[i]` is the token after `tokens[i]`, and result `i` its raw log-probability and the
    /// `top` best tokens there (all, if there are fewer). `next` is as long as `tokens`.
    ///
    /// Invalid logits (NaN, +inf, nothing finite) are [`crate::Error::InvalidLogits`].
    async fn score(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>>;

    /// Copies the keys and values of a whole page to another, after what was fed so far.
    fn copy_page(&mut self, from: u32, to: u32) -> Result<()>;

    /// Feeds `tokens` (at least one), then lets the device choose `steps` (at least one) tokens
    /// greedily (argmax, lowest id on ties), feeding each back; returns the chosen ids. The last
    /// chosen id is not fed: `kv.len_tokens` grows by `tokens.len() + steps - 1`, and the caller
    /// feeds the last id next, or lowers `len_tokens` past a stop.
    ///
    /// Invalid logits (NaN, +inf, nothing finite) are [`crate::Error::InvalidLogits`].
    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>>;

    /// Feeds one token to each of several sequences, as [`feed_batch`](Self::feed_batch), lets each
    /// row's sampler choose the next one, and feeds that, until each has chosen `steps` (at least
    /// one). The last ones are not fed: every `kv.len_tokens` grows by `steps`, and the caller
    /// feeds the last token next, or lowers `len_tokens` past a stop.
    ///
    /// `masks` is asked once, after the device's work was submitted, and says what each row may
    /// choose; rows without a mask, and rows beyond the list, may choose anything. A mask holds for
    /// one token: with several steps there is none. Rows of one call are either all chosen for on
    /// the device or all on the host: a row's result must not depend on the others.
    ///
    /// A row whose logits are invalid, or whose mask leaves nothing, ends with that error, and its
    /// sampler stays as it was before it; the other rows go on.
    ///
    /// This implementation chooses on the host.
    async fn feed_sampled(
        &mut self,
        rows: &mut [SampledRow<'_>],
        steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<Vec<Result<Sampled>>>>
    where
        Self: Sized,
    {
        feed_sampled_on_host(self, rows, steps, masks).await
    }
}

/// [`CausalModel::feed_sampled`] by reading all logits.
pub(crate) async fn feed_sampled_on_host<M: CausalModel>(
    model: &mut M,
    rows: &mut [SampledRow<'_>],
    steps: usize,
    masks: impl FnOnce() -> Vec<Option<TokenMask>>,
) -> Result<Vec<Vec<Result<Sampled>>>> {
    let mut chosen: Vec<Vec<Result<Sampled>>> = rows.iter().map(|_| Vec::new()).collect();
    let mut masks = Some(masks);
    for _ in 0..steps {
        let inputs = rows.iter_mut().zip(&chosen).map(|(row, chosen)| {
            let token = chosen.last().map_or(row.token, |last| match last {
                Ok(sampled) => sampled.id,
                // It has ended: what it is fed means nothing.
                Err(_) => row.token,
            });
            (&mut *row.kv, token)
        });
        let mut inputs: Vec<(&mut SequenceKv, u32)> = inputs.collect();
        let masks = masks.take();
        let masks = async { masks.map(|masks| masks()).unwrap_or_default() };
        let (logits, masks) = join(model.feed_batch(&mut inputs), masks).await;
        let masks = masks
            .iter()
            .map(Option::as_ref)
            .chain(std::iter::repeat(None));
        let logits = logits?;
        if logits.len() != rows.len() {
            // The caller sees that results are missing.
            chosen.truncate(logits.len());
            return Ok(chosen);
        }
        let rows = rows.iter_mut().zip(logits).zip(masks);
        for (((row, mut logits), mask), chosen) in rows.zip(&mut chosen) {
            if chosen.last().is_none_or(Result::is_ok) {
                chosen.push(row.sampler.sample(&mut logits, mask, row.score));
            }
        }
    }
    Ok(chosen)
}
