//! The sampling parameters that a GGUF file recommends: the keys `general.sampling.*`, which converters
//! copy from a checkpoint's `generation_config.json`.

use super::hugging_face::MAX_NEW_TOKENS_KEY;
use crate::sample::SamplingDefaults;
use crate::weights::Metadata;

/// The recommendations that have the right type and lie within the ranges of the endpoint's fields. Others
/// are ignored, because a bad recommendation is no reason to refuse a model.
pub fn sampling_defaults(metadata: &Metadata) -> SamplingDefaults {
    let number = |name: &str, range: std::ops::RangeInclusive<f32>| {
        let value = metadata.f32(&format!("general.sampling.{name}"));
        value.ok().flatten().filter(|value| range.contains(value))
    };
    let integer = |key: &str| metadata.i64(key).ok().flatten();
    let max_tokens = integer(MAX_NEW_TOKENS_KEY).filter(|tokens| *tokens > 0);
    SamplingDefaults {
        temperature: number("temp", 0.0..=2.0),
        top_p: number("top_p", 0.0..=1.0),
        top_k: integer("general.sampling.top_k").filter(|top_k| *top_k >= -1),
        min_p: number("min_p", 0.0..=1.0),
        repetition_penalty: number("penalty_repeat", f32::MIN_POSITIVE..=2.0),
        max_tokens: max_tokens.and_then(|tokens| usize::try_from(tokens).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hugging_face::add_recommendations;
    use super::*;

    #[test]
    fn recommendations_within_the_ranges_are_used() {
        let mut metadata = Metadata::new();
        assert_eq!(sampling_defaults(&metadata), SamplingDefaults::default());
        metadata.insert("general.sampling.temp", 0.5_f32);
        metadata.insert("general.sampling.top_k", 20_i32);
        metadata.insert("general.sampling.top_p", 1.5_f32);
        metadata.insert("general.sampling.min_p", "a lot");
        metadata.insert("general.sampling.penalty_repeat", 1.05_f32);
        metadata.insert(MAX_NEW_TOKENS_KEY, 0_i32);
        let expected = SamplingDefaults {
            temperature: Some(0.5),
            top_k: Some(20),
            repetition_penalty: Some(1.05),
            ..SamplingDefaults::default()
        };
        assert_eq!(sampling_defaults(&metadata), expected);
    }

    #[test]
    fn a_folder_recommends_in_generation_config_json() {
        let mut metadata = Metadata::new();
        let config = br#"{"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.1,
            "max_new_tokens": 512, "do_sample": true, "eos_token_id": [1, 2]}"#;
        add_recommendations(&mut metadata, config).unwrap();
        let expected = SamplingDefaults {
            temperature: Some(0.6),
            top_p: Some(0.95),
            top_k: Some(20),
            min_p: Some(0.05),
            repetition_penalty: Some(1.1),
            max_tokens: Some(512),
        };
        assert_eq!(sampling_defaults(&metadata), expected);
    }
}
