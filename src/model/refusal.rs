//! The reason why a model is not loaded, judging by its header: the plan of the load, and the memory budget of the
//! options.

use super::{
    inspect::{MemoryReport, for_sequences, host_bytes, inspect},
    load::{TowerPlan, plan},
    load_options::LoadOptions,
};
use crate::{Error, Result, ops::kv_memory::KvFormat, ops::step::PAGE_TOKENS, weights::Gguf};

/// Shorter contexts are not suggested.
const SHORTEST_CONTEXT: usize = 128;

/// The reason why this build does not load the model on a device whose kernels see `max_binding_bytes` of a buffer:
/// the error that a load ends with. `None` if the header shows no reason.
pub fn refusal(gguf: &Gguf, options: LoadOptions, max_binding_bytes: u64) -> Option<Error> {
    let planned = plan(gguf, options, max_binding_bytes).map(drop);
    planned
        .and_then(|()| check_budget(gguf, options, None))
        .err()
}

/// The reason why this build does not load a vision tower on such a device, beside the text model of `text` if that is known. `None` if the
/// headers show no reason.
pub fn tower_refusal(
    gguf: &Gguf,
    text: Option<(&Gguf, LoadOptions)>,
    max_binding_bytes: u64,
) -> Option<Error> {
    let planned = match text {
        None => TowerPlan::alone(gguf, max_binding_bytes),
        Some((text, options)) => plan(text, options, max_binding_bytes)
            .and_then(|text| TowerPlan::new(gguf, text.config(), max_binding_bytes)),
    };
    planned.err()
}

/// Compares what the model needs when it is loaded with `options` with their memory budget, and with the memory that
/// the device has at most, if that is known.
///
/// # Errors
/// [`Error::OutOfMemory`] with the sizes and what would fit.
pub fn check_budget(gguf: &Gguf, options: LoadOptions, device_bytes: Option<u64>) -> Result<()> {
    let budget = options.memory_budget_bytes;
    let limits = [
        budget.map(|bytes| (bytes, "memoryBudgetBytes allows")),
        // A table that stays on the host is in the same memory there.
        device_bytes.map(|bytes| {
            let rest = bytes.saturating_sub(host_bytes(gguf));
            (rest, "the CPU device can address")
        }),
    ];
    let Some((budget_bytes, who_allows)) = limits.into_iter().flatten().min() else {
        return Ok(());
    };
    let Some(need) = inspect(gguf, options).memory else {
        return Ok(());
    };
    if need.total_bytes <= budget_bytes {
        return Ok(());
    }
    let MemoryReport {
        weight_bytes,
        kv_bytes,
        state_bytes,
        scratch_bytes,
        total_bytes,
        kv_pool_tokens,
        kv_format,
        ..
    } = need;
    let states = match state_bytes {
        0 => String::new(),
        bytes => format!(", recurrent states {}", mebibytes(bytes)),
    };
    Err(Error::OutOfMemory(format!(
        "the model needs {} of memory (weights {}, KV cache of {kv_pool_tokens} tokens as {} {}{states}, steps {}), and \
         {who_allows} {}; {}",
        mebibytes(total_bytes),
        mebibytes(weight_bytes),
        kv_format.name(),
        mebibytes(kv_bytes),
        mebibytes(scratch_bytes),
        mebibytes(budget_bytes),
        suggestion(gguf, options, &need, budget_bytes),
    )))
}

/// A suggestion that fits: the longest context, in the format of the options or else a smaller one, or fewer bits
/// per weight.
fn suggestion(gguf: &Gguf, options: LoadOptions, need: &MemoryReport, budget_bytes: u64) -> String {
    for kv_format in [options.kv_format, KvFormat::Q8_0] {
        let options = LoadOptions {
            kv_format,
            ..options
        };
        if let Some(tokens) = longest_context(gguf, options, need.context_tokens, budget_bytes) {
            return format!(
                "it fits with load: {{ contextTokens: {tokens}, kvPoolTokens: {tokens}, kvFormat: \"{}\" }}",
                kv_format.name()
            );
        }
    }
    let others = need.total_bytes - need.weight_bytes;
    let bits = 8.0 * budget_bytes.saturating_sub(others) as f64;
    let elements: u64 = gguf.tensors.iter().map(|it| it.element_count()).sum();
    match bits / elements as f64 {
        per_weight if per_weight >= 1.0 => format!(
            "choose a file with fewer bits per weight, at most {per_weight:.1}, or a smaller model"
        ),
        _ => "choose a smaller model".to_owned(),
    }
}

/// The most tokens of context, whole pages, for which one sequence fits.
fn longest_context(
    gguf: &Gguf,
    options: LoadOptions,
    context_tokens: usize,
    budget_bytes: u64,
) -> Option<usize> {
    let fits = |pages: &usize| {
        let options = LoadOptions {
            context_tokens: Some(pages * PAGE_TOKENS),
            ..options
        };
        let memory = inspect(gguf, for_sequences(gguf, options, 1)).memory;
        memory.is_some_and(|memory| memory.total_bytes <= budget_bytes)
    };
    let all: Vec<usize> = (1..=context_tokens.div_ceil(PAGE_TOKENS)).collect();
    let tokens = all.partition_point(fits) * PAGE_TOKENS;
    (tokens >= SHORTEST_CONTEXT).then_some(tokens.min(context_tokens))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
