//! The engine's fixed limits. Knows nothing of the model's own (context, pages).

/// Limits of an engine; the defaults are those of specification 14 where it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// Requests that may wait; a running one does not count.
    pub max_queue: usize,
    /// Unread events of one candidate at which its generation pauses; at least 2.
    pub max_unread_events: usize,
    /// Prompt tokens fed in one step, in whole pages, at least one. Bounds how long a cancel may take
    /// and how long a prompt holds up those who generate.
    pub prefill_chunk_tokens: usize,
    /// Tokens that may be chosen ahead in one step, before a reader sees the first of them; at
    /// least 1.
    pub max_run_ahead_tokens: usize,
    /// KV pages kept for prompts that begin alike when no sequence holds them.
    pub max_cached_pages: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_queue: 16,
            max_unread_events: 256,
            prefill_chunk_tokens: 512,
            max_run_ahead_tokens: 16,
            max_cached_pages: usize::MAX,
        }
    }
}

impl EngineLimits {
    /// The same with every limit raised to its least value.
    pub(super) fn at_least_minimal(self) -> Self {
        Self {
            max_unread_events: self.max_unread_events.max(2),
            prefill_chunk_tokens: self.prefill_chunk_tokens.max(1),
            max_run_ahead_tokens: self.max_run_ahead_tokens.max(1),
            ..self
        }
    }
}
