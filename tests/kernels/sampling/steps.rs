//! Many steps without the host, and rows that fail.

use inpage::{
    Error,
    device::ComputeDevice,
    ops::{
        sample::{SamplerShape, samples},
        step::{ROWS, TOKENS},
    },
    sample::{DryParams, MirostatParams, Sampler, SamplingParams, TokenMask},
};
use pollster::block_on;

use super::device_rows::DeviceRows;
use super::random::{Dice, MARGIN, close};
use crate::fixture::{Noise, gpu};
use crate::reference::Reference;

/// Eight samplers with different kinds of state.
fn all_kinds() -> Vec<SamplingParams> {
    let plain = SamplingParams::default();
    let dry = Some(DryParams {
        multiplier: 1.5,
        base: 1.3,
        allowed_length: 1,
        breakers: [3, 30].into(),
    });
    let mirostat = Some(MirostatParams {
        target_bits: 2.5,
        learning_rate: 0.3,
    });
    let counting = SamplingParams {
        repetition_penalty: 1.3,
        frequency_penalty: 0.4,
        presence_penalty: -0.2,
        ..plain.clone()
    };
    vec![
        plain.clone(),
        SamplingParams {
            temperature: 0.0,
            ..counting.clone()
        },
        SamplingParams {
            dry: dry.clone(),
            temperature: 0.7,
            ..plain.clone()
        },
        SamplingParams {
            mirostat,
            ..plain.clone()
        },
        SamplingParams {
            mirostat,
            dry: dry.clone(),
            ..counting.clone()
        },
        SamplingParams {
            frequency_penalty: 0.7,
            top_p: 0.9,
            ..plain.clone()
        },
        SamplingParams {
            repetition_penalty: 0.6,
            top_k: Some(9),
            ..plain.clone()
        },
        SamplingParams {
            dry,
            temperature: 0.0,
            logit_bias: vec![(5, 2.0)],
            ..plain
        },
    ]
}

/// Counts, histories, limits and positions on the device equal those on the CPU.
#[test]
fn fifty_steps_without_the_host() {
    const STEPS: usize = 50;
    const VOCAB: usize = 33;
    let (gpu, mut dice) = (gpu(), Dice(Noise(77)));
    let prompt = [1, 2, 3, 1, 2];
    let samplers = all_kinds().into_iter().enumerate();
    let samplers = samplers.map(|(i, params)| (Sampler::new(&params, i as u32, &prompt), params));
    let mut samplers: Vec<_> = samplers
        .enumerate()
        .map(|(i, (sampler, params))| (sampler, Reference::new(&params, i as u32, &prompt)))
        .collect();
    let count = samplers.len();
    let mut rows = DeviceRows::new(count, VOCAB, gpu.device());
    for (slot, (sampler, _)) in samplers.iter().enumerate() {
        rows.load(slot, sampler);
    }
    let none = (vec![None; count], vec![None; count]);
    // Rows in which a close decision differed. They differ from there on.
    let mut is_lost = vec![false; count];
    for first in (0..STEPS).step_by(25) {
        let all_logits: Vec<Vec<Vec<f32>>> = (0..25)
            .map(|_| {
                let mut row = || dice.0.floats(VOCAB).iter().map(|z| z * 2.5).collect();
                (0..count).map(|_| row()).collect()
            })
            .collect();
        for logits in &all_logits {
            rows.sample(&logits.concat(), &none.0, &none.1);
        }
        let wanted = (0..25).flat_map(|i| (0..count).map(move |slot| (slot, first + i, None)));
        let mut found = rows.results(wanted).into_iter();
        for logits in &all_logits {
            for (slot, row) in logits.iter().enumerate() {
                let (found, mu) = found.next().unwrap().unwrap();
                let (sampler, reference) = &mut samplers[slot];
                if is_lost[slot] {
                    continue;
                }
                let clear = reference.sample(row, None, MARGIN);
                let expected = sampler.sample(&mut row.clone(), None, None).unwrap().id;
                if found.id != expected {
                    assert_eq!(clear, None, "row {slot} at {}", sampler.position());
                    is_lost[slot] = true;
                } else if let Some(limit) = sampler.mirostat_mu() {
                    assert!(close(mu, limit), "{mu} {limit}");
                }
            }
        }
    }
    assert!(is_lost.iter().filter(|is_lost| **is_lost).count() <= 1);
    let (ids, step) = rows.next();
    assert_eq!(step[TOKENS], count as u32);
    for (slot, (_, reference)) in samplers.iter().enumerate() {
        assert_eq!(step[ROWS + 2 * slot], 40 + STEPS as u32);
        if !is_lost[slot] {
            assert_eq!(ids[slot], *reference.generated.last().unwrap());
        }
    }
}

/// A row fails alone, keeps its first failure, and distinguishes an invalid row from a dead end.
#[test]
fn rows_fail_alone() {
    const VOCAB: usize = 100;
    let gpu = gpu();
    let sound = vec![0.5; VOCAB];
    let with = |id: usize, z: f32| {
        let mut row = sound.clone();
        row[id] = z;
        row
    };
    let mut gap = vec![f32::NEG_INFINITY; VOCAB];
    gap[70] = -3.0;
    let only = |id: u32| {
        let mut words = vec![0; 4];
        words[id as usize / 32] = 1 << (id % 32);
        Some(TokenMask::from_words(words))
    };
    let invalid = Error::InvalidLogits { position: 0 };
    let dead_end = Error::GrammarDeadEnd { position: 0 };
    let cases = [
        (sound.clone(), None, None),
        (with(99, f32::NAN), None, Some(&invalid)),
        (with(0, -f32::NAN), None, Some(&invalid)),
        (with(64, f32::INFINITY), only(3), Some(&invalid)),
        (vec![f32::NEG_INFINITY; VOCAB], None, Some(&invalid)),
        (gap.clone(), only(71), Some(&dead_end)),
        (
            gap.clone(),
            Some(TokenMask::from_words(vec![])),
            Some(&dead_end),
        ),
        (gap, only(70), None),
    ];
    for temperature in [0.0, 1.0] {
        let params = SamplingParams {
            temperature,
            frequency_penalty: 0.5,
            ..SamplingParams::default()
        };
        let mut rows = DeviceRows::new(cases.len(), VOCAB, gpu.device());
        for slot in 0..cases.len() {
            rows.load(slot, &Sampler::new(&params, 0, &[]));
        }
        let logits: Vec<f32> = cases.iter().flat_map(|case| case.0.clone()).collect();
        let masks: Vec<_> = cases.iter().map(|case| case.1.clone()).collect();
        let none = vec![None; cases.len()];
        rows.sample(&logits, &masks, &none);
        // All rows are valid now, but failed rows stay failed.
        rows.sample(&sound.repeat(cases.len()), &vec![None; cases.len()], &none);
        let wanted = (0..cases.len()).map(|slot| (slot, 0, None));
        let found = rows.results(wanted);
        for (slot, (found, (row, mask, failure))) in found.into_iter().zip(&cases).enumerate() {
            let mut sampler = Sampler::new(&params, 0, &[]);
            let expected = sampler.sample(&mut row.clone(), mask.as_ref(), None);
            assert_eq!(expected.as_ref().err(), *failure);
            assert_eq!(found.map(|it| it.0), expected, "row {slot}");
        }
    }
}

/// A model runs this self-test before it samples on a device.
#[test]
fn the_self_test_passes() {
    let device = ComputeDevice::Gpu(gpu());
    for vocab in [1, 300] {
        let shape = SamplerShape {
            slots: 8,
            vocab,
            history_tokens: 64,
        };
        assert_eq!(block_on(samples(&device, shape)), Ok(true));
    }
}
