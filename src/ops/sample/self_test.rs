//! Validates the sampler's kernels on the current device, in the shape in which they will run.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::{RowChoice, SamplerMemory, SamplerShape, parse, sample};
use crate::{
    Error, Result,
    device::{ComputeDevice, read, upload},
    ops::{
        in_place::InPlace,
        step::{Segment, Step},
    },
    sample::{DryParams, MirostatParams, Sampler, SamplingParams},
};

/// The result of [`samples`] for one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerVerdict {
    /// The shape that was tested.
    pub shape: SamplerShape,
    /// Whether the kernels agree with their twin.
    pub is_right: bool,
}

/// Whether the sampler kernels sample the same tokens as their twin, in the shape in which they will run.
///
/// # Errors
/// Fails when the device fails.
pub async fn samples(device: &ComputeDevice, shape: SamplerShape) -> Result<bool> {
    if device.is_reference() {
        return Ok(true);
    }
    let computed = sampled(device.tensors(), shape).await;
    let computed = computed.map_err(|e| device.failure(e))?;
    let expected = sampled(&Device::flex(), shape).await?;
    Ok(computed == expected)
}

/// Samplers that together run every stage.
fn kinds() -> [SamplingParams; 5] {
    let plain = SamplingParams {
        temperature: 0.8,
        seed: 7,
        ..SamplingParams::default()
    };
    let truncated = SamplingParams {
        top_k: Some(40),
        top_p: 0.9,
        min_p: 0.02,
        ..plain.clone()
    };
    let penalised = SamplingParams {
        repetition_penalty: 1.2,
        frequency_penalty: 0.5,
        logit_bias: vec![(3, 2.0)],
        dry: Some(DryParams {
            multiplier: 1.0,
            base: 1.5,
            allowed_length: 1,
            breakers: [].into(),
        }),
        ..plain.clone()
    };
    let greedy = SamplingParams {
        temperature: 0.0,
        ..penalised.clone()
    };
    let mirostat = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 3.0,
            learning_rate: 0.1,
        }),
        ..plain.clone()
    };
    [plain, truncated, penalised, greedy, mirostat]
}

/// Two tokens from each of the samplers that [`kinds`] describes.
async fn sampled(device: &Device, shape: SamplerShape) -> Result<Vec<Result<u32>>> {
    const STEPS: usize = 2;
    let mut kinds = kinds().to_vec();
    kinds.truncate(shape.slots);
    let count = kinds.len();
    let mut memory = SamplerMemory::new(shape, device);
    let row = |slot| RowChoice {
        slot,
        is_masked: false,
        score: None,
    };
    for (slot, params) in kinds.iter().enumerate() {
        let prompt = [1, 2, 1, 2].map(|id| id % shape.vocab as u32);
        memory.load(slot, &Sampler::new(params, 0, &prompt));
    }
    memory.set_rows(&(0..count).map(row).collect::<Vec<_>>());
    let mut step = Step::new(count, 1, device);
    let segment = Segment {
        position: 0,
        tokens: 1,
        pages: &[],
        state: 0,
        is_seen_whole: false,
        rotary: Default::default(),
    };
    step.set(&vec![segment; count]);
    let mut ids = InPlace::upload(vec![0; count], device);
    // A few likely tokens, many unlikely ones, and ties.
    let wave =
        |i: usize| (i as f32 * 0.7).sin() * 4.0 + if i.is_multiple_of(97) { 5.0 } else { 0.0 };
    let logits: Vec<f32> = (0..count * shape.vocab).map(wave).collect();
    for _ in 0..STEPS {
        let logits = upload(logits.clone(), [count, shape.vocab], device);
        sample(logits, &mut memory, &mut ids, &mut step);
    }
    let words = read(memory.results().into_dispatch()).await;
    let words = words.map_err(Error::Internal)?;
    let wanted = (0..count).flat_map(|slot| (0..STEPS).map(move |step| (slot, step)));
    let ids = wanted.map(|(slot, step)| {
        let chosen = parse(&words, slot, step, None)?;
        Ok(chosen.0.id)
    });
    Ok(ids.collect())
}
