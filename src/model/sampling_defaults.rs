//! The sampling parameters that a GGUF file recommends: the keys `general.sampling.*`, which converters
//! copy from a checkpoint's `generation_config.json`.

use crate::sample::SamplingDefaults;
use crate::weights::Metadata;

/// The recommendations that have the right type and lie within the ranges of the endpoint's fields. Others
/// are ignored, because a bad recommendation is no reason to refuse a model.
pub fn sampling_defaults(metadata: &Metadata) -> SamplingDefaults {
    let number = |name: &str, range: std::ops::RangeInclusive<f32>| {
        let value = metadata.f32(&format!("general.sampling.{name}"));
        value.ok().flatten().filter(|value| range.contains(value))
    };
    let top_k = metadata.i64("general.sampling.top_k").ok().flatten();
    SamplingDefaults {
        temperature: number("temp", 0.0..=2.0),
        top_p: number("top_p", 0.0..=1.0),
        top_k: top_k.filter(|top_k| *top_k >= -1),
        min_p: number("min_p", 0.0..=1.0),
        repetition_penalty: number("penalty_repeat", f32::MIN_POSITIVE..=2.0),
    }
}

#[cfg(test)]
mod tests {
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
        let expected = SamplingDefaults {
            temperature: Some(0.5),
            top_k: Some(20),
            repetition_penalty: Some(1.05),
            ..SamplingDefaults::default()
        };
        assert_eq!(sampling_defaults(&metadata), expected);
    }
}
