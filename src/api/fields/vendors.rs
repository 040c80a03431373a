//! Fields of vendors that are accepted with any value and not used (specification 4.6).

use super::declare::{Field, fields};
use super::kinds::{Shape, unused};

fields! {
    /// Accepted and not used.
    #[allow(dead_code)]
    VendorFields {
        /// Not used.
        cache_prompt: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        cache_salt: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        early_stopping: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        id_slot: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        metadata: Field<Shape> = unused(),
        /// Not used.
        n_discard: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        n_keep: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        priority: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        prompt_cache_isolation_key: Field<Shape> = unused().of("Fireworks"),
        /// Not used.
        prompt_cache_key: Field<Shape> = unused(),
        /// Not used.
        prompt_cache_max_len: Field<Shape> = unused().of("Fireworks"),
        /// Not used.
        prompt_cache_retention: Field<Shape> = unused(),
        /// Not used.
        request_id: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        safety_identifier: Field<Shape> = unused(),
        /// Not used.
        service_tier: Field<Shape> = unused(),
        /// Not used.
        spaces_between_special_tokens: Field<Shape> = unused().of("vLLM"),
        /// Not used: how many tokens are guessed follows from how often guesses were right.
        p_min("speculative.p_min"): Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        store: Field<Shape> = unused(),
        /// Not used.
        timings_per_token: Field<Shape> = unused().of("llama.cpp"),
    }
}
