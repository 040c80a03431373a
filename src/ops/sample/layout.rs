//! The layout of samplers in device memory, shared by the host, the kernels
//! (`shaders/shared/sample/slot.wgsl`) and the twin.
//!
//! Parameters (only the host writes them): for each row the slot that samples it, and how; for each slot
//! the sampler's parameters, its bias table, its DRY breakers and its mask. Accounts (the device
//! updates them): for each slot what its sampler remembers.
//!
//! Longer than other files: the words, what writes them and what reads them change together.

use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;
use crate::sample::{
    DRY_MAX_LENGTH, DryParams, LogprobsMode, MirostatParams, Sampler, SamplingParams, ScoreRequest,
    StageMemory, TokenMask,
};

/// No slot: padding.
pub const NO_SLOT: u32 = u32::MAX;
/// Capacity of a slot's bias table.
pub const MAX_BIASES: usize = 1024;
/// Number of best tokens that a result can list.
pub const TOP: usize = 5;
/// Number of results that a slot keeps until the host reads them.
pub const RING: usize = 32;
/// The kernels number tiles of logits in workgroup memory.
const MAX_VOCAB: usize = 512 * TILE;
/// Logits whose largest the last kernel knows in advance.
pub(super) const TILE: usize = 1024;
/// Words of a result: id (or INVALID_TOKEN, or DEAD_END), raw log-probability, requested
/// log-probability, mirostat's limit after the token, the best ids, their log-probabilities.
pub(super) const RESULT_WORDS: usize = 4 + 2 * TOP;

// Words of a row.
pub(super) const CHOICE_WORDS: usize = 2;
const ROW_MASKED: u32 = 1;
const ROW_SCORED: u32 = 2;
const ROW_PROCESSED: u32 = 4;

// Words of a slot.
const STAGES: usize = 0;
const TEMPERATURE: usize = 1;
const INVERSE: usize = 2;
const TOP_K: usize = 3;
const TOP_P: usize = 4;
const MIN_P: usize = 5;
const REPETITION: usize = 6;
const FREQUENCY: usize = 7;
const PRESENCE: usize = 8;
const TARGET: usize = 9;
const RATE: usize = 10;
const SEED: usize = 11;
const CANDIDATE: usize = 13;
const BIASES: usize = 14;
/// Multiplier, base and allowed length, from which the table of penalties was computed; for the twin.
const DRY: usize = 15;
const DRY_PENALTIES: usize = 18;
const BIAS_IDS: usize = DRY_PENALTIES + DRY_MAX_LENGTH + 1;
const BIAS_VALUES: usize = BIAS_IDS + MAX_BIASES;
const BREAKERS: usize = BIAS_VALUES + MAX_BIASES;

const STAGE_GREEDY: u32 = 1;
const STAGE_BIAS: u32 = 2;
const STAGE_REPETITION: u32 = 4;
const STAGE_COUNTS: u32 = 8;
const STAGE_DRY: u32 = 16;
const STAGE_MIROSTAT: u32 = 32;
const STAGE_TOP_K: u32 = 64;
const STAGE_TOP_P: u32 = 128;
const STAGE_MIN_P: u32 = 256;

/// Stages that change logits.
const STAGES_ADJUSTING: u32 = STAGE_BIAS | STAGE_REPETITION | STAGE_COUNTS | STAGE_DRY;

// Words of an account.
const POSITION: usize = 0;
const MU: usize = 1;
const LEN: usize = 2;
const FAILED: usize = 3;
const HISTORY: usize = 4;

/// Bit of a count: the repetition penalty applies to this id.
const COUNT_SEEN: u32 = 1 << 31;

/// Sizes of a sampler memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SamplerShape {
    /// Capacity in samplers; also the largest number of rows of a step.
    pub slots: usize,
    /// Length of a row of logits.
    pub vocab: usize,
    /// Longest prompt and completion, in tokens.
    pub history_tokens: usize,
}

/// The sampler of a row of a step, and its options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowChoice {
    /// The slot of its sampler.
    pub slot: usize,
    /// Whether the slot's mask applies to this step.
    pub is_masked: bool,
    /// The scores to report for the token.
    pub score: Option<ScoreRequest>,
}

/// Whether the device can sample with these parameters from rows of `vocab` logits.
pub fn accepts(params: &SamplingParams, score: Option<ScoreRequest>, vocab: usize) -> bool {
    params.logit_bias.len() <= MAX_BIASES
        && score.is_none_or(|score| score.top <= TOP)
        && vocab <= MAX_VOCAB
        && supported(params) == *params
}

/// The parameters with every stage off that the kernels lack. A parameter that is not listed here
/// belongs to such a stage.
// The list may be complete today; it need not grow with the chain.
#[allow(clippy::needless_update)]
fn supported(params: &SamplingParams) -> SamplingParams {
    SamplingParams {
        logit_bias: params.logit_bias.clone(),
        repetition_penalty: params.repetition_penalty,
        frequency_penalty: params.frequency_penalty,
        presence_penalty: params.presence_penalty,
        dry: params.dry.clone(),
        temperature: params.temperature,
        mirostat: params.mirostat,
        top_k: params.top_k,
        top_p: params.top_p,
        min_p: params.min_p,
        seed: params.seed,
        ..SamplingParams::default()
    }
}

impl SamplerShape {
    fn set_words(self) -> usize {
        self.vocab.div_ceil(32)
    }

    fn mask_at(self) -> usize {
        BREAKERS + self.set_words()
    }

    fn slot_words(self) -> usize {
        self.mask_at() + self.set_words()
    }

    /// Words of a whole sampler memory.
    pub fn words(self) -> usize {
        self.params_words() + self.slots * (self.account_words() + RING * RESULT_WORDS)
    }

    pub(super) fn params_words(self) -> usize {
        self.slots * (CHOICE_WORDS + self.slot_words())
    }

    /// Word of the parameters at which a slot begins.
    pub(super) fn slot_at(self, slot: usize) -> usize {
        self.slots * CHOICE_WORDS + slot * self.slot_words()
    }

    /// Word of the parameters at which a slot's mask begins.
    pub(super) fn slot_mask_at(self, slot: usize) -> usize {
        self.slot_at(slot) + self.mask_at()
    }

    fn counts_at(self) -> usize {
        HISTORY + self.history_tokens
    }

    fn marks_at(self) -> usize {
        self.counts_at() + self.vocab
    }

    pub(super) fn account_words(self) -> usize {
        self.marks_at() + self.vocab
    }
}

/// Declares the layout for the kernels.
pub(super) fn constants(kernel: Kernel, shape: SamplerShape) -> Kernel {
    let words = [
        ("NO_SLOT", NO_SLOT as usize),
        ("VOCAB", shape.vocab),
        ("HISTORY_TOKENS", shape.history_tokens),
        ("DRY_MAX_LENGTH", DRY_MAX_LENGTH),
        ("CHOICE_WORDS", CHOICE_WORDS),
        ("ROW_MASKED", ROW_MASKED as usize),
        ("ROW_SCORED", ROW_SCORED as usize),
        ("ROW_PROCESSED", ROW_PROCESSED as usize),
        ("SLOTS_AT", shape.slot_at(0)),
        ("SLOT_WORDS", shape.slot_words()),
        ("SLOT_STAGES", STAGES),
        ("SLOT_TEMPERATURE", TEMPERATURE),
        ("SLOT_INVERSE", INVERSE),
        ("SLOT_TOP_K", TOP_K),
        ("SLOT_TOP_P", TOP_P),
        ("SLOT_MIN_P", MIN_P),
        ("SLOT_REPETITION", REPETITION),
        ("SLOT_FREQUENCY", FREQUENCY),
        ("SLOT_PRESENCE", PRESENCE),
        ("SLOT_TARGET", TARGET),
        ("SLOT_RATE", RATE),
        ("SLOT_SEED", SEED),
        ("SLOT_CANDIDATE", CANDIDATE),
        ("SLOT_BIASES", BIASES),
        ("SLOT_DRY_PENALTIES", DRY_PENALTIES),
        ("SLOT_BIAS_IDS", BIAS_IDS),
        ("SLOT_BIAS_VALUES", BIAS_VALUES),
        ("SLOT_BREAKERS", BREAKERS),
        ("SLOT_MASK", shape.mask_at()),
        ("STAGE_GREEDY", STAGE_GREEDY as usize),
        ("STAGE_BIAS", STAGE_BIAS as usize),
        ("STAGE_REPETITION", STAGE_REPETITION as usize),
        ("STAGE_COUNTS", STAGE_COUNTS as usize),
        ("STAGE_DRY", STAGE_DRY as usize),
        ("STAGE_MIROSTAT", STAGE_MIROSTAT as usize),
        ("STAGE_TOP_K", STAGE_TOP_K as usize),
        ("STAGE_TOP_P", STAGE_TOP_P as usize),
        ("STAGE_MIN_P", STAGE_MIN_P as usize),
        ("STAGES_ADJUSTING", STAGES_ADJUSTING as usize),
        ("ACCOUNT_WORDS", shape.account_words()),
        ("ACCOUNT_POSITION", POSITION),
        ("ACCOUNT_MU", MU),
        ("ACCOUNT_LEN", LEN),
        ("ACCOUNT_FAILED", FAILED),
        ("ACCOUNT_HISTORY", HISTORY),
        ("ACCOUNT_COUNTS", shape.counts_at()),
        ("ACCOUNT_MARKS", shape.marks_at()),
        ("COUNT_SEEN", COUNT_SEEN as usize),
    ];
    let declare = |kernel: Kernel, (name, value): (&str, usize)| kernel.constant(name, value);
    words.into_iter().fold(kernel, declare)
}

/// The words of a step's rows, padded to `slots` rows.
pub(super) fn row_words(choices: &[RowChoice], slots: usize) -> Vec<u32> {
    let mut words: Vec<u32> = choices
        .iter()
        .flat_map(|choice| {
            let score = choice.score.map_or(0, |score| match score.mode {
                LogprobsMode::Raw => ROW_SCORED,
                LogprobsMode::Processed => ROW_SCORED | ROW_PROCESSED,
            });
            let mask = if choice.is_masked { ROW_MASKED } else { 0 };
            [choice.slot as u32, score | mask]
        })
        .collect();
    words.resize(slots * CHOICE_WORDS, NO_SLOT);
    words
}

/// The choice of a row; `None` for padding.
pub(super) fn read_row(params: &[u32], row: usize) -> Option<RowChoice> {
    let [slot, options] = [0, 1].map(|word| params[row * CHOICE_WORDS + word]);
    let mode = match options & ROW_PROCESSED {
        0 => LogprobsMode::Raw,
        _ => LogprobsMode::Processed,
    };
    (slot != NO_SLOT).then_some(RowChoice {
        slot: slot as usize,
        is_masked: options & ROW_MASKED != 0,
        score: (options & ROW_SCORED != 0).then_some(ScoreRequest { top: TOP, mode }),
    })
}

/// The words of a slot for a sampler, as pieces with their offsets in the slot.
pub(super) fn slot_pieces(sampler: &Sampler, shape: SamplerShape) -> Vec<(usize, Vec<u32>)> {
    let params = sampler.params();
    let mut biases = params.logit_bias.clone();
    biases.sort_unstable_by_key(|&(id, _)| id);
    let mut words = vec![0; BIAS_IDS];
    words[STAGES] = stages(params);
    let temperature = if params.is_greedy() {
        1.0
    } else {
        params.temperature
    };
    let top_k = params.top_k.unwrap_or(0).min(u32::MAX as usize);
    for (word, value) in [
        (TEMPERATURE, temperature),
        (INVERSE, 1.0 / temperature),
        (TOP_P, params.top_p),
        (MIN_P, params.min_p),
        (REPETITION, params.repetition_penalty),
        (FREQUENCY, params.frequency_penalty),
        (PRESENCE, params.presence_penalty),
        (TARGET, params.mirostat.map_or(0.0, |it| it.target_bits)),
        (RATE, params.mirostat.map_or(0.0, |it| it.learning_rate)),
    ] {
        words[word] = value.to_bits();
    }
    words[TOP_K] = top_k as u32;
    words[SEED] = params.seed as u32;
    words[SEED + 1] = (params.seed >> 32) as u32;
    words[CANDIDATE] = sampler.candidate();
    words[BIASES] = biases.len() as u32;
    let mut pieces = Vec::new();
    if let Some(dry) = &params.dry {
        pieces.push((BREAKERS, dry_words(dry, &mut words, shape)));
    }
    pieces.push((0, words));
    if !biases.is_empty() {
        let (ids, values) = biases
            .iter()
            .map(|(id, bias)| (*id, bias.to_bits()))
            .unzip();
        pieces.extend([(BIAS_IDS, ids), (BIAS_VALUES, values)]);
    }
    pieces
}

/// The stages that change something.
fn stages(params: &SamplingParams) -> u32 {
    let stages = [
        (params.is_greedy(), STAGE_GREEDY),
        (!params.logit_bias.is_empty(), STAGE_BIAS),
        (params.repetition_penalty != 1.0, STAGE_REPETITION),
        (params.counts(), STAGE_COUNTS),
        (params.dry.is_some(), STAGE_DRY),
        (params.mirostat.is_some(), STAGE_MIROSTAT),
        (params.top_k.is_some(), STAGE_TOP_K),
        (params.top_p < 1.0, STAGE_TOP_P),
        (params.min_p > 0.0, STAGE_MIN_P),
    ];
    let on = stages.into_iter().filter(|(is_on, _)| *is_on);
    on.fold(0, |all, (_, stage)| all | stage)
}

/// Writes the words of DRY and returns the set of its breakers.
fn dry_words(dry: &DryParams, words: &mut [u32], shape: SamplerShape) -> Vec<u32> {
    words[DRY] = dry.multiplier.to_bits();
    words[DRY + 1] = dry.base.to_bits();
    words[DRY + 2] = dry.allowed_length.min(u32::MAX as usize) as u32;
    for length in 0..=DRY_MAX_LENGTH {
        let penalty = dry.penalty(length).unwrap_or(0.0).min(f32::MAX);
        words[DRY_PENALTIES + length] = penalty.to_bits();
    }
    let mut set = vec![0; shape.set_words()];
    for &id in dry.breakers.iter() {
        if let Some(word) = set.get_mut(id as usize / 32) {
            *word |= 1 << (id % 32);
        }
    }
    set
}

/// The words of an account for a sampler, as pieces with their offsets in the account. Counts are
/// included only if a stage needs them.
pub(super) fn account_pieces(sampler: &Sampler, shape: SamplerShape) -> Vec<(usize, Vec<u32>)> {
    let memory = sampler.memory();
    let mut words = vec![0; HISTORY];
    words[POSITION] = sampler.position() as u32;
    words[MU] = memory.mu.unwrap_or(0.0).to_bits();
    let skipped = memory.history.len().saturating_sub(shape.history_tokens);
    let history = &memory.history[skipped..];
    words[LEN] = history.len() as u32;
    words.extend(history);
    let mut pieces = vec![(0, words)];
    if has_counts(sampler.params()) {
        let mut counts = vec![0; shape.vocab];
        for (id, count) in memory.counts {
            if let Some(word) = counts.get_mut(id as usize) {
                *word = count;
            }
        }
        for id in memory.seen {
            if let Some(word) = counts.get_mut(id as usize) {
                *word |= COUNT_SEEN;
            }
        }
        pieces.push((shape.counts_at(), counts));
    }
    pieces
}

/// Whether a stage needs to know which ids were generated.
fn has_counts(params: &SamplingParams) -> bool {
    params.counts() || params.repetition_penalty != 1.0
}

/// The account of a slot.
pub(super) fn account_mut(accounts: &mut [u32], slot: usize, shape: SamplerShape) -> &mut [u32] {
    &mut accounts[slot * shape.account_words()..][..shape.account_words()]
}

/// The sampler that a slot's words describe.
pub(super) fn read_sampler(
    params: &[u32],
    account: &[u32],
    slot: usize,
    shape: SamplerShape,
) -> Sampler {
    let words = &params[shape.slot_at(slot)..][..shape.slot_words()];
    let float = |word: usize| f32::from_bits(words[word]);
    let has = |stage: u32| words[STAGES] & stage != 0;
    let biases = 0..words[BIASES] as usize;
    let biases = biases.map(|i| (words[BIAS_IDS + i], float(BIAS_VALUES + i)));
    let set = &words[BREAKERS..][..shape.set_words()];
    let breakers =
        (0..shape.vocab as u32).filter(|id| set[*id as usize / 32] >> (id % 32) & 1 == 1);
    #[allow(clippy::needless_update)] // as in `supported`
    let sampling = SamplingParams {
        logit_bias: biases.collect(),
        repetition_penalty: float(REPETITION),
        frequency_penalty: float(FREQUENCY),
        presence_penalty: float(PRESENCE),
        dry: has(STAGE_DRY).then(|| DryParams {
            multiplier: float(DRY),
            base: float(DRY + 1),
            allowed_length: words[DRY + 2] as usize,
            breakers: breakers.collect(),
        }),
        temperature: if has(STAGE_GREEDY) {
            0.0
        } else {
            float(TEMPERATURE)
        },
        mirostat: has(STAGE_MIROSTAT).then(|| MirostatParams {
            target_bits: float(TARGET),
            learning_rate: float(RATE),
        }),
        top_k: has(STAGE_TOP_K).then_some(words[TOP_K] as usize),
        top_p: float(TOP_P),
        min_p: float(MIN_P),
        seed: i64::from(words[SEED]) | i64::from(words[SEED + 1]) << 32,
        ..SamplingParams::default()
    };
    let counts = (0u32..).zip(&account[shape.counts_at()..][..shape.vocab]);
    let generated = counts.clone().map(|(id, count)| (id, count & !COUNT_SEEN));
    let memory = StageMemory {
        seen: counts.filter(|it| *it.1 != 0).map(|it| it.0).collect(),
        counts: generated.filter(|it| it.1 != 0).collect(),
        history: account[HISTORY..][..account[LEN] as usize].to_vec(),
        mu: Some(f32::from_bits(account[MU])),
    };
    let position = account[POSITION] as usize;
    Sampler::resume(&sampling, words[CANDIDATE], position, memory)
}

/// The mask of a slot.
pub(super) fn read_mask(params: &[u32], slot: usize, shape: SamplerShape) -> TokenMask {
    let words = &params[shape.slot_mask_at(slot)..][..shape.set_words()];
    TokenMask::from_words(words.to_vec())
}

/// Whether sampling has failed since the account was written.
pub(super) fn has_failed(account: &[u32]) -> bool {
    account[FAILED] != 0
}

/// Records in the account a token that `sampler` has recorded already; without a token, a failure.
pub(super) fn take_in(
    account: &mut [u32],
    id: Option<u32>,
    sampler: &Sampler,
    shape: SamplerShape,
) {
    let Some(id) = id else {
        account[FAILED] = 1;
        return;
    };
    let params = sampler.params();
    account[POSITION] += 1;
    account[MU] = sampler.mirostat_mu().unwrap_or(0.0).to_bits();
    let len = account[LEN] as usize;
    if params.dry.is_some() && len < shape.history_tokens {
        account[HISTORY + len] = id;
        account[LEN] += 1;
    }
    if has_counts(params) {
        account[shape.counts_at() + id as usize] += 1;
    }
}
