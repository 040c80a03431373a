//! Ops on logits.

use burn::tensor::Device;
use inpage::ops::{
    InPlace, Variant,
    argmax::{INVALID_TOKEN, argmax},
    score::{RowScore, parse, score, score_words},
    step::{self, Step},
};

use crate::fixture::{Noise, gpu, ids, segment, tensor, words};

/// The definition, in f64.
fn expected_score(logits: &[f32], next: u32, top: usize) -> Option<RowScore> {
    let finite = logits.iter().any(|logit| logit.is_finite());
    if !finite || logits.iter().any(|l| l.is_nan() || *l == f32::INFINITY) {
        return None;
    }
    let sum: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
    let logprob = |id: u32| (f64::from(logits[id as usize]) - sum.ln()) as f32;
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    order.sort_by(|a, b| {
        let (x, y) = (logits[*a as usize], logits[*b as usize]);
        y.partial_cmp(&x).unwrap().then(a.cmp(b))
    });
    order.truncate(top);
    Some(RowScore {
        logprob: logprob(next),
        top: order.into_iter().map(|id| (id, logprob(id))).collect(),
    })
}

#[test]
fn score_equals_its_twin_and_the_definition() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(14));
    let infinite = f32::NEG_INFINITY;
    let mut cases: Vec<(usize, usize, Vec<f32>, Vec<u32>)> = Vec::new();
    for (vocab, tokens, top) in [
        (1, 2, 1),
        (255, 3, 0),
        (257, 9, 20),
        (300, 2, 300),
        (4097, 33, 5),
    ] {
        let logits = noise
            .floats(tokens * vocab)
            .iter()
            .map(|v| v * 20.0)
            .collect();
        let next = (0..tokens).map(|i| (i * 131 % vocab) as u32).collect();
        cases.push((vocab, top, logits, next));
    }
    // Ties, also between zeros of both signs; -inf among the best; invalid rows.
    let mut tied = vec![-3.0; 300];
    (tied[299], tied[7], tied[280]) = (1.5, 1.5, 1.5);
    (tied[100], tied[20]) = (0.0, -0.0);
    let mut few = vec![infinite; 300];
    (few[40], few[200]) = (-7.0, 90.0);
    let mut rows_of = vec![tied.clone(), few.clone(), vec![infinite; 300]];
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
        rows_of.push(few.clone());
        rows_of.last_mut().unwrap()[299] = bad;
    }
    rows_of.push(tied);
    cases.push((300, 7, rows_of.concat(), vec![280, 3, 0, 40, 40, 40, 20]));
    for (vocab, top, logits, next) in cases {
        let tokens = next.len();
        let run = |device: &Device| -> Vec<Option<RowScore>> {
            let logits = tensor(&logits, [tokens, vocab], device);
            let words = words(score(logits, ids(&next, device), top));
            words.chunks_exact(score_words(top)).map(parse).collect()
        };
        let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
        for (i, &next) in next.iter().enumerate() {
            let row = &logits[i * vocab..][..vocab];
            let expected = expected_score(row, next, top);
            for (device, got) in [("GPU", &on_gpu[i]), ("CPU", &on_cpu[i])] {
                let what = format!("row {i} of {tokens}x{vocab} on the {device}");
                assert_eq!(got.is_some(), expected.is_some(), "{what}: {got:?}");
                let (Some(got), Some(expected)) = (got, &expected) else {
                    continue;
                };
                let close = |a: f32, b: f32| a == b || (a - b).abs() < 1e-4;
                assert!(
                    got.logprob <= 0.0 && close(got.logprob, expected.logprob),
                    "{what}"
                );
                assert_eq!(got.top.len(), expected.top.len(), "{what}");
                for (a, b) in got.top.iter().zip(&expected.top) {
                    assert_eq!(a.0, b.0, "{what}: {got:?}");
                    assert!(a.1 <= 0.0 && close(a.1, b.1), "{what}: {a:?}, not {b:?}");
                    if a.0 == next {
                        assert_eq!(a.1.to_bits(), got.logprob.to_bits(), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn argmax_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(9));
    let mut rows: Vec<(Vec<f32>, Option<u32>)> = Vec::new();
    for vocab in [1, 255, 4097] {
        rows.push((noise.floats(vocab), None));
    }
    let mut tied = vec![-1.0; 1000];
    tied[997] = 2.5;
    tied[301] = 2.5;
    rows.push((tied.clone(), Some(301)));
    rows.push((vec![f32::NEG_INFINITY; 300], Some(INVALID_TOKEN)));
    for bad in [f32::NAN, f32::INFINITY] {
        tied[640] = bad;
        rows.push((tied.clone(), Some(INVALID_TOKEN)));
    }
    tied[640] = f32::NEG_INFINITY;
    rows.push((tied, Some(301)));
    for (logits, expected) in rows {
        let run = |device: &Device, variant| {
            let mut step = Step::new(3, 2, device);
            step.set(&[segment(40, 3, &[6, 1])]);
            let mut chosen = InPlace::new(ids(&[9; 4], device));
            let mut next = InPlace::new(ids(&[7], device));
            for _ in 0..5 {
                argmax(
                    tensor(&logits, [1, logits.len()], device),
                    &mut next,
                    &mut step,
                    &mut chosen,
                    variant,
                );
            }
            let state = words(step.words());
            (words(next.get()), words(chosen.get()), state)
        };
        let on_gpu = run(gpu.device(), Variant::PORTABLE);
        assert_eq!(on_gpu, run(&cpu, Variant::PORTABLE));
        assert_eq!(on_gpu, run(&cpu, Variant::CPU), "on the CPU");
        let row = &on_gpu.2[step::ROWS..];
        assert_eq!(row[0], 40 + 3 + 4, "position");
        assert_eq!(on_gpu.2[row[1] as usize..][..2], [6, 1], "block table");
        assert_eq!(on_gpu.2[step::TOKENS], 1);
        assert_eq!(on_gpu.2[step::CHOSEN], 5);
        if let Some(expected) = expected {
            assert_eq!(on_gpu.0, [expected]);
        }
    }
}
