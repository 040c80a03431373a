//! The vectors of specification 16 by their names, through the kernels.

use inpage::sample::{
    DryParams, LogprobsMode, MirostatParams, Sampler, SamplingParams, ScoreRequest, TokenMask,
    philox,
};

use super::device_rows::DeviceRows;
use crate::fixture::gpu;

const Z: [f32; 6] = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];
/// Number of seeds of each case.
const SEEDS: usize = 64;
/// Rows are padded to this length.
const VOCAB: usize = 10;

/// The inputs for the sampling of a token.
#[derive(Clone, Default)]
struct Case<'a> {
    z: &'a [f32],
    params: SamplingParams,
    prompt: &'a [u32],
    generated: &'a [u32],
    mask: Option<&'a [u32]>,
}

impl Case<'_> {
    fn sampler(&self, seed: i64) -> Sampler {
        let params = SamplingParams {
            seed,
            ..self.params.clone()
        };
        let mut sampler = Sampler::new(&params, 0, self.prompt);
        self.generated.iter().for_each(|&id| sampler.push(id));
        sampler
    }

    /// The row, padded.
    fn row(&self) -> Vec<f32> {
        let mut row = self.z.to_vec();
        row.resize(VOCAB, f32::NEG_INFINITY);
        row
    }

    fn mask(&self) -> Option<TokenMask> {
        self.mask.map(|ids| {
            let word = ids.iter().fold(0, |word, id| word | 1 << id);
            TokenMask::from_words(vec![word])
        })
    }

    /// Samples with many seeds. Checks that each uniform number selects the survivor that follows from the
    /// probabilities. Returns mirostat's limit after each survivor.
    fn draws(&self, rows: &mut DeviceRows, survivors: &[(u32, f32)]) -> Vec<f32> {
        for seed in 0..SEEDS {
            rows.load(seed, &self.sampler(seed as i64));
        }
        let masks = vec![self.mask(); SEEDS];
        rows.sample(&self.row().repeat(SEEDS), &masks, &[None; SEEDS]);
        let position = self.generated.len();
        let found = rows.results((0..SEEDS).map(|slot| (slot, position, None)));
        let mut limits = vec![None; survivors.len()];
        for (seed, found) in found.into_iter().enumerate() {
            let u = philox::uniform(seed as i64, 0, position as u64);
            let (found, mu) = found.unwrap();
            let mut end = 0.0;
            let rank = survivors.iter().position(|survivor| {
                end += survivor.1;
                u < end
            });
            let rank = rank.unwrap_or(survivors.len() - 1);
            assert_eq!(found.id, survivors[rank].0, "u = {u} of {survivors:?}");
            limits[rank] = Some(mu);
        }
        let drawn = limits
            .into_iter()
            .map(|limit| limit.expect("drawn by no seed"));
        drawn.collect()
    }

    /// Log-probabilities of all of at most five allowed tokens, after all stages.
    fn processed(&self, rows: &mut DeviceRows) -> Vec<(u32, f32)> {
        rows.load(0, &self.sampler(0));
        let score = Some(ScoreRequest {
            top: 5,
            mode: LogprobsMode::Processed,
        });
        rows.sample(&self.row(), &[self.mask()], &[score]);
        let found = rows.results([(0, self.generated.len(), score)]).remove(0);
        found.unwrap().0.score.unwrap().top
    }

    /// Checks the logits after stage 5 by their differences from the logit of `known`.
    fn adjusts_to(&self, rows: &mut DeviceRows, known: u32, expected: &[f32]) {
        for id in (0..self.z.len() as u32).filter(|id| *id != known) {
            let pair = [known, id];
            let mask = Some(&pair[..]);
            let scores = Case {
                mask,
                ..self.clone()
            }
            .processed(rows);
            let of = |id| scores.iter().find(|score| score.0 == id).unwrap().1;
            let found = expected[known as usize] + of(id) - of(known);
            let expected = expected[id as usize];
            assert!(
                (found - expected).abs() < 1e-5,
                "{id}: {found}, not {expected}"
            );
        }
    }
}

fn params() -> SamplingParams {
    SamplingParams::default()
}

fn z(params: SamplingParams) -> Case<'static> {
    Case {
        z: &Z,
        params,
        ..Case::default()
    }
}

fn v1_case() -> Case<'static> {
    Case {
        prompt: &[0, 4],
        generated: &[1, 1],
        ..z(SamplingParams {
            logit_bias: vec![(3, 1.5)],
            repetition_penalty: 1.2,
            frequency_penalty: 0.5,
            presence_penalty: 0.4,
            ..params()
        })
    }
}

/// All vectors run on one device, so that pipelines are compiled once.
#[test]
fn all_vectors() {
    let mut rows = DeviceRows::new(SEEDS, VOCAB, gpu().device());
    v1_to_v3(&mut rows);
    v4_to_v9(&mut rows);
    v10_to_v12(&mut rows);
    v13_to_v15(&mut rows);
    v16_to_v18(&mut rows);
    v19_and_v20(&mut rows);
}

fn v1_to_v3(rows: &mut DeviceRows) {
    v1_case().adjusts_to(rows, 2, &[2.5, 0.683333, 2.0, 2.5, 0.0, -1.0]);
    let mut v2 = v1_case();
    v2.params = SamplingParams {
        temperature: 0.8,
        top_k: Some(4),
        top_p: 0.85,
        min_p: 0.2,
        ..v2.params
    };
    v2.draws(rows, &[(0, 0.394437), (3, 0.394437), (2, 0.211127)]);
    let v3 = SamplingParams {
        repetition_penalty: 1.5,
        ..params()
    };
    let v3 = Case {
        prompt: &[5],
        ..z(v3)
    };
    v3.adjusts_to(rows, 0, &[3.0, 2.5, 2.0, 1.0, 0.0, -1.5]);
}

fn v4_to_v9(rows: &mut DeviceRows) {
    let p = params;
    z(SamplingParams { top_p: 0.0, ..p() }).draws(rows, &[(0, 1.0)]);
    let three = [(0, 0.506480), (1, 0.307196), (2, 0.186324)];
    z(SamplingParams { top_p: 0.8, ..p() }).draws(rows, &three);
    z(SamplingParams {
        top_k: Some(2),
        top_p: 0.62,
        ..p()
    })
    .draws(rows, &[(0, 1.0)]);
    let two = [(0, 0.622459), (1, 0.377541)];
    z(SamplingParams {
        top_p: 0.6,
        min_p: 0.5,
        ..p()
    })
    .draws(rows, &two);
    let three = [(0, 0.419229), (1, 0.326496), (2, 0.254275)];
    z(SamplingParams {
        temperature: 2.0,
        top_p: 0.73,
        ..p()
    })
    .draws(rows, &three);
    z(SamplingParams { min_p: 1.0, ..p() }).draws(rows, &[(0, 1.0)]);
}

fn v10_to_v12(rows: &mut DeviceRows) {
    let v10 = SamplingParams {
        top_k: Some(1),
        ..params()
    };
    Case {
        mask: Some(&[2, 4]),
        ..z(v10)
    }
    .draws(rows, &[(2, 1.0)]);
    let greedy = SamplingParams {
        temperature: 0.0,
        ..params()
    };
    let v11 = SamplingParams {
        logit_bias: vec![(5, 100.0)],
        ..greedy.clone()
    };
    z(v11).draws(rows, &[(5, 1.0)]);
    let v12 = SamplingParams {
        top_k: Some(2),
        ..params()
    };
    let row = &[1.0, 1.0, 1.0, 0.0];
    Case { z: row, ..z(v12) }.draws(rows, &[(0, 0.5), (1, 0.5)]);
    Case {
        z: row,
        ..z(greedy)
    }
    .draws(rows, &[(0, 1.0)]);
}

fn v13_to_v15(rows: &mut DeviceRows) {
    let penalties = SamplingParams {
        repetition_penalty: 2.0,
        presence_penalty: 0.4,
        ..params()
    };
    let v13 = Case {
        z: &[0.3, 0.0],
        generated: &[0],
        ..z(penalties)
    };
    v13.adjusts_to(rows, 1, &[-0.25, 0.0]);
    let biased = SamplingParams {
        logit_bias: vec![(0, 1.0)],
        repetition_penalty: 2.0,
        ..params()
    };
    Case {
        z: &[1.0, 0.0],
        prompt: &[0],
        ..z(biased)
    }
    .adjusts_to(rows, 1, &[1.0, 0.0]);
    let counted = SamplingParams {
        frequency_penalty: 0.3,
        presence_penalty: 0.2,
        ..params()
    };
    let row = &[1.0, 0.5, 0.2];
    let history = &[0, 0, 1];
    let v15 = Case {
        z: row,
        ..z(counted)
    };
    Case {
        prompt: history,
        ..v15.clone()
    }
    .adjusts_to(rows, 2, row);
    Case {
        generated: history,
        ..v15
    }
    .adjusts_to(rows, 2, &[0.2, 0.0, 0.2]);
}

fn v16_to_v18(rows: &mut DeviceRows) {
    let history = [0, 1, 2, 2, 1, 2, 9, 0, 1, 2];
    type Penalties<'a> = &'a [(u32, f32)];
    let cases: [(usize, &[u32], Penalties); 5] = [
        (2, &[], &[(2, 1.4), (9, 0.8)]),
        (2, &[2], &[]),
        (2, &[1], &[]),
        (2, &[9], &[(2, 1.4)]),
        (1, &[1], &[(2, 0.8), (9, 0.8)]),
    ];
    for (allowed_length, breakers, penalties) in cases {
        let dry = SamplingParams {
            dry: Some(DryParams {
                multiplier: 0.8,
                base: 1.75,
                allowed_length,
                breakers: breakers.into(),
            }),
            ..params()
        };
        let mut expected = [0.0; 10];
        for &(id, penalty) in penalties {
            expected[id as usize] = -penalty;
        }
        let (prompt, generated) = history.split_at(4);
        let case = Case {
            z: &[0.0; 10],
            prompt,
            generated,
            ..z(dry)
        };
        case.adjusts_to(rows, 3, &expected);
    }
}

fn v19_and_v20(rows: &mut DeviceRows) {
    let mirostat = |target_perplexity: f32| SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: target_perplexity.log2(),
            learning_rate: 0.1,
        }),
        ..params()
    };
    let close = |a: f32, b: f32| (a - b).abs() < 1e-5;
    let three = [(0, 0.506480), (1, 0.307196), (2, 0.186324)];
    let limits = z(mirostat(4.0)).draws(rows, &three);
    assert!(close(limits[1], 4.015575), "{limits:?}");
    let limits = z(mirostat(1.5)).draws(rows, &[(0, 1.0)]);
    assert!(close(limits[0], 1.116131), "{limits:?}");
}
