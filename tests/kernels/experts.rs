//! Mixtures of experts: each op against its twin, and the layer against the formula.

use burn::tensor::{Device, Int, Tensor};
use inpage::{
    device::{Gpu, Graph, upload_words},
    model::{ExpertFeedForward, Norm},
    ops::{
        Activation, NormKind, Variant,
        embedding::embedding,
        expert_gated_product::{expert_gated_matmul, expert_gated_matvec},
        expert_matmul::expert_matmul,
        expert_matvec::expert_matvec,
        group_experts::{NONE, TILE_PAIRS, group_experts},
        matrix::Matrix,
        matvec::MAX_TOKENS,
        route_experts::{ExpertGroups, MAX_EXPERTS, RouteShape, Routes, route_experts},
        sum_experts::sum_experts,
        write_words,
    },
    tensor_types::TensorType,
};

use pollster::block_on;

use crate::fixture::{
    Noise, assert_close, gpu, ids, matrices, tensor, tilings, values, variants, variants_for, words,
};

const EXPERTS: usize = 5;
const USED: usize = 3;
const EPS: f32 = 1e-5;

fn experts_of(values: &[u32], used: usize, device: &Device) -> Tensor<2, Int> {
    let shape = [values.len() / used, used];
    upload_words(values.to_vec(), shape, device)
}

#[test]
fn routes_equal_their_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(20));
    let sizes = [
        (5, 3, 1),
        (1, 1, 2),
        (64, 8, 50),
        (128, 8, 9),
        (256, 16, 3),
        (300, 10, 5),
        (MAX_EXPERTS, 16, 2),
    ];
    for (experts, used, tokens) in sizes {
        for renormalize in [false, true] {
            // Few different numbers, with zeros of both signs, so that many logits are equal.
            let logits = noise.floats(tokens * experts);
            let logits: Vec<f32> = logits.iter().map(|v| (v * 8.0).round() / 2.0).collect();
            let shape = RouteShape {
                experts,
                used,
                renormalize,
                is_sigmoid: false,
                scale: 1.0,
                groups: None,
            };
            let scales = noise.floats(experts);
            let run = |device: &Device| {
                let routes = {
                    let scales = tensor(&scales, [experts], device);
                    let scales = renormalize.then_some(scales);
                    route_experts(
                        tensor(&logits, [tokens, experts], device),
                        None,
                        scales,
                        shape,
                    )
                };
                (words(routes.experts), values(routes.shares))
            };
            let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
            assert_eq!(on_gpu.0, on_cpu.0, "{shape:?}");
            assert_close(&format!("{shape:?}"), &on_gpu.1, &on_cpu.1, 1e-5);
            for (token, logits) in logits.chunks_exact(experts).enumerate() {
                let (chosen, mut shares) = routed(logits, shape);
                if renormalize {
                    for (share, expert) in shares.iter_mut().zip(&chosen) {
                        *share *= f64::from(scales[*expert as usize]);
                    }
                }
                assert_eq!(on_cpu.0[token * used..][..used], chosen, "{shape:?}");
                for (share, exact) in on_cpu.1[token * used..].iter().zip(shares) {
                    assert!((f64::from(*share) - exact).abs() < 1e-6, "{shape:?}");
                }
            }
        }
    }
}

/// The formula: repeatedly the first largest of the remaining logits, and a softmax.
fn routed(logits: &[f32], shape: RouteShape) -> (Vec<u32>, Vec<f64>) {
    let mut chosen: Vec<u32> = Vec::new();
    while chosen.len() < shape.used {
        let mut best: Option<u32> = None;
        for expert in (0..shape.experts as u32).filter(|expert| !chosen.contains(expert)) {
            if best.is_none_or(|best| logits[expert as usize] > logits[best as usize]) {
                best = Some(expert);
            }
        }
        chosen.extend(best);
    }
    let power = |expert: u32| f64::from(logits[expert as usize]).exp();
    let sum: f64 = if shape.renormalize {
        chosen.iter().map(|&expert| power(expert)).sum()
    } else {
        (0..shape.experts as u32).map(power).sum()
    };
    let shares = chosen.iter().map(|&expert| power(expert) / sum).collect();
    (chosen, shares)
}

/// Groups of a size that is no power of two, with and without sigmoids and their biases.
#[test]
fn routes_in_groups_equal_their_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(26));
    for (experts, used, count, chosen, tokens) in
        [(15, 4, 5, 2, 9), (6, 2, 3, 2, 1), (384, 8, 12, 5, 3)]
    {
        for (is_sigmoid, has_bias) in [(false, false), (true, false), (true, true)] {
            let logits: Vec<f32> = noise
                .floats(tokens * experts)
                .iter()
                .map(|v| 3.0 * v)
                .collect();
            let bias = noise.floats(experts);
            let groups = ExpertGroups {
                count,
                used: chosen,
            };
            let shape = RouteShape {
                experts,
                used,
                renormalize: is_sigmoid,
                is_sigmoid,
                scale: 1.0,
                groups: Some(groups),
            };
            let run = |device: &Device| {
                let routes = route_experts(
                    tensor(&logits, [tokens, experts], device),
                    has_bias.then(|| tensor(&bias, [experts], device)),
                    None,
                    shape,
                );
                (words(routes.experts), values(routes.shares))
            };
            let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
            assert_eq!(on_gpu.0, on_cpu.0, "{shape:?}");
            assert_close(&format!("{shape:?}"), &on_gpu.1, &on_cpu.1, 1e-5);
            for (token, logits) in logits.chunks_exact(experts).enumerate() {
                let bias = has_bias.then_some(&bias[..]);
                let expected = routed_in_groups(logits, bias, shape, groups);
                let found = &on_cpu.0[token * used..][..used];
                assert_eq!(found, expected, "{shape:?}");
                let weight = |expert: &u32| {
                    let logit = f64::from(logits[*expert as usize]);
                    if is_sigmoid {
                        1.0 / (1.0 + (-logit).exp())
                    } else {
                        logit.exp()
                    }
                };
                let sum: f64 = match is_sigmoid {
                    true => expected.iter().map(weight).sum(),
                    // Experts that are left out have a part in the softmax.
                    false => (0..experts as u32).map(|it| weight(&it)).sum(),
                };
                for (share, expert) in on_cpu.1[token * used..].iter().zip(&expected) {
                    let exact = weight(expert) / sum;
                    assert!((f64::from(*share) - exact).abs() < 1e-5, "{shape:?}");
                }
            }
        }
    }
}

/// The experts of a token in f64: the best groups, then the best experts in them.
fn routed_in_groups(
    logits: &[f32],
    bias: Option<&[f32]>,
    shape: RouteShape,
    groups: ExpertGroups,
) -> Vec<u32> {
    let scores: Vec<f64> = (0..shape.experts)
        .map(|expert| {
            let logit = f64::from(logits[expert]);
            let score = if shape.is_sigmoid {
                1.0 / (1.0 + (-logit).exp())
            } else {
                logit
            };
            score + bias.map_or(0.0, |bias| f64::from(bias[expert]))
        })
        .collect();
    let len = shape.experts / groups.count;
    let best = |of: &dyn Fn(usize) -> f64, numbers: Vec<usize>| {
        let mut numbers = numbers;
        numbers.sort_by(|a, b| of(*b).total_cmp(&of(*a)));
        numbers
    };
    let score = |expert: usize| scores[expert];
    let of_group = |group: usize| {
        let experts = best(&score, (group * len..(group + 1) * len).collect());
        let counted = if shape.is_sigmoid { 2 } else { 1 };
        experts[..counted].iter().map(|it| score(*it)).sum::<f64>()
    };
    let chosen = best(&of_group, (0..groups.count).collect());
    let chosen = &chosen[..groups.used];
    let experts = (0..shape.experts).filter(|it| chosen.contains(&(it / len)));
    let experts = best(&score, experts.collect());
    experts[..shape.used].iter().map(|it| *it as u32).collect()
}

#[test]
fn routes_of_invalid_logits_are_still_experts() {
    let (gpu, cpu) = (gpu(), Device::flex());
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [
        ([nan, nan, nan, nan, nan], [0, 1, 2]),
        ([nan, 1.0, -nan, 2.0, nan], [3, 1, 0]),
        ([-inf, nan, -inf, -inf, -1.0], [4, 0, 2]),
        ([inf, -inf, nan, inf, 0.0], [0, 3, 4]),
        ([-inf; 5], [0, 1, 2]),
    ];
    let logits = rows.map(|(logits, _)| logits).concat();
    for renormalize in [false, true] {
        for device in [gpu.device(), &cpu] {
            let shape = RouteShape {
                experts: EXPERTS,
                used: USED,
                renormalize,
                is_sigmoid: false,
                scale: 1.0,
                groups: None,
            };
            let routes = route_experts(
                tensor(&logits, [rows.len(), EXPERTS], device),
                None,
                None,
                shape,
            );
            let wanted = rows.map(|(_, wanted)| wanted).concat();
            assert_eq!(words(routes.experts), wanted, "{device:?}");
        }
    }
}

/// Experts of `tokens`: random ones, all but the last expert, and a single expert.
fn patterns(tokens: usize, noise: &mut Noise) -> Vec<Vec<u32>> {
    let mut random = Vec::new();
    for _ in 0..tokens {
        let first = (noise.next().abs() * EXPERTS as f32) as u32;
        random.extend((0..USED as u32).map(|i| (first + i) % EXPERTS as u32));
    }
    let pairs = tokens * USED;
    let uneven = (0..pairs as u32).map(|i| i % (EXPERTS as u32 - 1));
    vec![random, uneven.collect(), vec![3; pairs]]
}

#[test]
fn groups_equal_their_twin_and_contain_every_pair_once() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(21));
    for tokens in [9, 16, 50] {
        let of_few = patterns(tokens, &mut noise).into_iter();
        // More experts than lanes of the workgroup, and than pairs.
        let of_many = (0..(tokens * USED) as u32).map(|i| i * 37 % 300).collect();
        for (experts, count) in of_few.map(|it| (it, EXPERTS)).chain([(of_many, 300)]) {
            let run = |device| words(group_experts(experts_of(&experts, USED, device), count));
            let groups = run(gpu.device());
            assert_eq!(groups, run(&cpu), "{tokens} tokens");
            let mut found = vec![0; experts.len()];
            for tile in groups.chunks_exact(1 + TILE_PAIRS) {
                for &pair in tile[1..].iter().filter(|&&pair| pair != NONE) {
                    assert_eq!(experts[pair as usize], tile[0], "pair {pair} of {tokens}");
                    found[pair as usize] += 1;
                }
            }
            assert!(found.iter().all(|&count| count == 1), "{tokens} tokens");
        }
    }
}

/// The three matrices of a layer's experts, on two devices.
struct Matrices {
    gate: [Matrix; 2],
    up: [Matrix; 2],
    down: [Matrix; 2],
    dim: usize,
    ffn_dim: usize,
}

impl Matrices {
    /// Sizes that fill neither a tile nor, if unquantized, a block.
    fn new([gate, up, down]: [TensorType; 3], noise: &mut Noise, devices: [&Device; 2]) -> Self {
        let input_multiple = gate.row_multiple().max(up.row_multiple());
        let dim = 172usize.next_multiple_of(input_multiple);
        let ffn_dim = 24usize.next_multiple_of(down.row_multiple());
        Self {
            gate: matrices(gate, EXPERTS * ffn_dim, dim, noise, devices),
            up: matrices(up, EXPERTS * ffn_dim, dim, noise, devices),
            down: matrices(down, EXPERTS * dim, ffn_dim, noise, devices),
            dim,
            ffn_dim,
        }
    }
}

/// The outputs of both halves of a layer.
struct Halves {
    gated: Vec<f32>,
    down: Vec<f32>,
}

/// Each format with one variant for few tokens, and thorough ones with every tiling for many tokens, others with one. Not
/// with all variants, because pipelines take time to compile.
fn cases(gpu: &Gpu) -> Vec<(TensorType, Variant, Vec<usize>)> {
    let (variants, tilings) = (variants(gpu), tilings(gpu));
    let mut cases = Vec::new();
    for (i, format) in TensorType::ALL.iter().copied().enumerate() {
        let variant = variants[i % variants.len()];
        cases.push((format, variant, vec![1, 3, MAX_TOKENS]));
        let tilings = variants_for(format, &tilings).into_iter();
        cases.extend(tilings.map(|tiling| (format, tiling, vec![9, 50])));
    }
    cases
}

#[test]
fn experts_equal_their_twins() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(22));
    for (i_case, (format, variant, token_counts)) in cases(&gpu).into_iter().enumerate() {
        let activation = Activation::ALL[i_case % Activation::ALL.len()];
        let layer = Matrices::new([format; 3], &mut noise, [gpu.device(), &cpu]);
        let (dim, ffn_dim) = (layer.dim, layer.ffn_dim);
        for tokens in token_counts {
            let (x, norm) = (noise.floats(tokens * dim), noise.floats(dim));
            let inner = noise.floats(tokens * USED * ffn_dim);
            let shares = noise.floats(tokens * USED);
            let gate_biases = noise.floats(EXPERTS * 2 * ffn_dim);
            let down_biases = noise.floats(EXPERTS * dim);
            for experts in patterns(tokens, &mut noise) {
                let run = |device: &Device, i: usize| {
                    let (gate, up, down) = (&layer.gate[i], &layer.up[i], &layer.down[i]);
                    let x = tensor(&x, [tokens, dim], device);
                    let experts = experts_of(&experts, USED, device);
                    let inner = tensor(&inner, [tokens * USED, ffn_dim], device);
                    let shares = tensor(&shares, [tokens, USED], device);
                    let (has_biases, has_factors) = (i_case % 3 == 1, i_case % 3 == 2);
                    let biases = |values: &[f32]| {
                        let shape = [EXPERTS, values.len() / EXPERTS];
                        has_biases.then(|| tensor(values, shape, device))
                    };
                    let (of_gate, of_down) = (biases(&gate_biases), biases(&down_biases));
                    let factors = has_factors.then(|| shares.clone());
                    let routes = Routes {
                        experts: experts.clone(),
                        shares,
                    };
                    if tokens <= MAX_TOKENS {
                        let norm = (tensor(&norm, [dim], device), EPS);
                        let norm = (!has_biases && !has_factors).then_some(norm);
                        let to = experts.clone();
                        let gated = expert_gated_matvec(
                            x.clone(),
                            norm,
                            gate,
                            up,
                            ffn_dim,
                            to,
                            of_gate,
                            factors,
                            activation,
                            variant,
                        );
                        Halves {
                            gated: values(gated),
                            down: values(expert_matvec(
                                inner,
                                down,
                                of_down,
                                routes,
                                (i_case % 2 > 0).then_some(x),
                                dim,
                                variant,
                            )),
                        }
                    } else {
                        let groups = group_experts(experts, EXPERTS);
                        let to = groups.clone();
                        let gated = expert_gated_matmul(
                            x.clone(),
                            gate,
                            up,
                            ffn_dim,
                            USED,
                            to,
                            of_gate,
                            factors,
                            activation,
                            variant,
                        );
                        let products = expert_matmul(inner, down, dim, groups, variant);
                        Halves {
                            gated: values(gated),
                            down: values(sum_experts(
                                products,
                                routes,
                                of_down,
                                (i_case % 2 > 0).then_some(x),
                            )),
                        }
                    }
                };
                let what = format!("{format:?}, {tokens} tokens, {variant:?}, {experts:?}");
                let (a, b) = (run(gpu.device(), 0), run(&cpu, 1));
                assert_close(&format!("gated, {what}"), &a.gated, &b.gated, 2e-4);
                assert_close(&format!("down, {what}"), &a.down, &b.down, 1e-4);
            }
        }
    }
}

/// A layer with its own router and norm, on each of two devices.
fn layers(
    experts: &Matrices,
    renormalize: bool,
    variant: Variant,
    noise: &mut Noise,
    devices: [&Device; 2],
) -> [ExpertFeedForward; 2] {
    let dim = experts.dim;
    let norm = noise.floats(dim);
    let router = matrices(TensorType::F32, EXPERTS, dim, noise, devices);
    [0, 1].map(|i| ExpertFeedForward {
        ffn_norm: Norm {
            weight: tensor(&norm, [dim], devices[i]),
            bias: None,
            kind: NormKind::Rms,
            eps: EPS,
            variant,
        },
        ffn_gate_inp: router[i].clone(),
        router_norm: None,
        shares_scale: None,
        ffn_gate_inp_bias: None,
        bias: None,
        is_sigmoid: false,
        scales_inputs: false,
        scale: 1.0,
        groups: None,
        ffn_gate_exps: experts.gate[i].clone(),
        ffn_up_exps: experts.up[i].clone(),
        ffn_down_exps: experts.down[i].clone(),
        gate_biases: None,
        down_biases: None,
        used: USED,
        activation: Activation::Silu,
        renormalize,
        variant,
    })
}

#[test]
fn the_layer_equals_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(23));
    let variants = variants(&gpu);
    let of_files = [
        [TensorType::F32; 3],
        [TensorType::Q8_0; 3],
        [TensorType::Q4_0, TensorType::F16, TensorType::Q6_K],
    ];
    for (i, formats) in of_files.into_iter().enumerate() {
        let devices = [gpu.device(), &cpu];
        let experts = Matrices::new(formats, &mut noise, devices);
        let variant = variants[variants.len() - 1 - i];
        for renormalize in [false, true] {
            let layers = layers(&experts, renormalize, variant, &mut noise, devices);
            for tokens in [1, MAX_TOKENS, 9, 50] {
                let x = noise.floats(tokens * experts.dim);
                let exact = formula(&layers[1], &x);
                // Sums lose precision by cancellation, so errors are relative to the largest output.
                let largest = exact.iter().fold(0.0f32, |max, v| max.max(v.abs()));
                let scaled =
                    |values: Vec<f32>| values.iter().map(|v| v / largest).collect::<Vec<_>>();
                let exact = scaled(exact);
                for (layer, device) in layers.iter().zip(devices) {
                    let x = tensor(&x, [tokens, experts.dim], device);
                    let what = format!("{tokens} tokens, {formats:?}, {renormalize}, {device:?}");
                    assert_close(&what, &scaled(values(layer.forward(x))), &exact, 1e-5);
                }
            }
        }
    }
}

/// Computes the layer in f64, one token and one expert at a time.
fn formula(layer: &ExpertFeedForward, x: &[f32]) -> Vec<f32> {
    let norm = values(layer.ffn_norm.weight.clone());
    let (dim, ffn_dim) = (norm.len(), layer.ffn_down_exps.shape.cols);
    let router = dense(&layer.ffn_gate_inp);
    let (gate, up) = (dense(&layer.ffn_gate_exps), dense(&layer.ffn_up_exps));
    let down = dense(&layer.ffn_down_exps);
    let shape = RouteShape {
        experts: EXPERTS,
        used: layer.used,
        renormalize: layer.renormalize,
        is_sigmoid: false,
        scale: 1.0,
        groups: None,
    };
    let mut out = Vec::new();
    for x in x.chunks_exact(dim) {
        let square = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / dim as f64;
        let scale = 1.0 / (square + f64::from(EPS)).sqrt();
        let normed = x.iter().zip(&norm);
        let normed: Vec<f64> = normed
            .map(|(v, n)| f64::from(*v) * f64::from(*n) * scale)
            .collect();
        let logits = product(&router, &normed);
        let logits: Vec<f32> = logits.iter().map(|v| *v as f32).collect();
        let (chosen, shares) = routed(&logits, shape);
        let mut sum: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
        for (expert, share) in chosen.into_iter().zip(shares) {
            let expert = expert as usize;
            let size = dim * ffn_dim;
            let gates = product(&gate[expert * size..][..size], &normed);
            let ups = product(&up[expert * size..][..size], &normed);
            let hidden = gates.iter().zip(ups);
            let hidden: Vec<f64> = hidden.map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            let outputs = product(&down[expert * size..][..size], &hidden);
            sum.iter_mut()
                .zip(outputs)
                .for_each(|(sum, output)| *sum += share * output);
        }
        out.extend(sum.iter().map(|v| *v as f32));
    }
    out
}

fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    let dot = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum();
    matrix.chunks_exact(x.len()).map(dot).collect()
}

/// All elements, row after row.
fn dense(matrix: &Matrix) -> Vec<f64> {
    let shape = matrix.shape;
    let (quants, scales) = (words(matrix.quants.clone()), words(matrix.scales.clone()));
    let mut elements = Vec::new();
    for row in 0..shape.rows {
        let blocks = row * shape.row_blocks()..(row + 1) * shape.row_blocks();
        let row = blocks.flat_map(|block| shape.decode_block(&quants, &scales, block));
        elements.extend(row.take(shape.cols).map(f64::from));
    }
    elements
}

/// The output of a token does not depend on the other tokens, whether they share its experts and tiles or not.
#[test]
fn the_output_of_a_token_does_not_depend_on_other_tokens() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(24));
    let devices = [gpu.device(), &cpu];
    for (format, variant) in [TensorType::Q4_0, TensorType::F16]
        .into_iter()
        .zip(tilings(&gpu))
    {
        let experts = Matrices::new([format; 3], &mut noise, devices);
        let dim = experts.dim;
        for layer in layers(&experts, true, variant, &mut noise, devices) {
            let device = layer.ffn_gate_exps.quants.device();
            let x = noise.floats(50 * dim);
            let run = |order: &[usize]| {
                let rows = order.iter().map(|&token| &x[token * dim..][..dim]);
                let rows: Vec<f32> = rows.flatten().copied().collect();
                values(layer.forward(tensor(&rows, [order.len(), dim], &device)))
            };
            let all: Vec<usize> = (0..50).collect();
            let backwards: Vec<usize> = (0..50).rev().collect();
            for (company, others) in [
                (&all[..], &backwards[..]),
                (&all, &all[17..26]),
                (&all[..8], &all[5..6]),
                (&all[..8], &all[2..5]),
            ] {
                let (many, few) = (run(company), run(others));
                for (at, token) in others.iter().enumerate() {
                    let there = company.iter().position(|other| other == token);
                    let there = there.expect("in both companies");
                    assert_eq!(
                        few[at * dim..][..dim],
                        many[there * dim..][..dim],
                        "token {token} of {company:?} and of {others:?}, {variant:?}, {device:?}"
                    );
                }
            }
        }
    }
}

/// Between replays only the buffer of ids changes, and tokens are routed to other experts.
#[test]
fn a_captured_layer_routes_again_at_every_replay() {
    let (gpu, mut noise) = (gpu(), Noise(25));
    let device = gpu.device();
    let experts = Matrices::new([TensorType::Q8_0; 3], &mut noise, [device; 2]);
    let [layer, _] = layers(&experts, false, Variant::PORTABLE, &mut noise, [device; 2]);
    let [table, _] = matrices(TensorType::F32, 23, experts.dim, &mut noise, [device; 2]);
    for tokens in [1, 33] {
        let row = ids(&vec![0; tokens], device);
        let forward = || layer.forward(embedding(row.clone(), &table, 1.0));
        let graph = block_on(Graph::record(&gpu, forward)).expect("a recording");
        for first in [3, 11] {
            let wanted: Vec<u32> = (0..tokens as u32).map(|i| (first + i * i) % 23).collect();
            write_words(row.clone(), 0, wanted.clone());
            // SAFETY: the layer, the table and the ids outlive the graph, on this thread.
            unsafe { graph.replay(&gpu) }.expect("a replay");
            let replayed = values(graph.output().clone());
            let direct = values(layer.forward(embedding(ids(&wanted, device), &table, 1.0)));
            assert_eq!(replayed, direct, "{tokens} tokens from {first}");
        }
    }
}
