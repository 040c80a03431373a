//! Attention of every kind of layer, on both devices and with every kernel, against the formula of the
//! papers.

use std::ops::Range;

use burn::tensor::Device;
use inpage::ops::{
    Variant,
    attention::{AttentionShape, Window, attention},
    attention_split::{self, attention_split},
    kv_memory::{KvFormat, KvMemory},
    rope_kv::{RopeShape, Temperature, rope_kv, turns},
    step::{PAGE_TOKENS, Segment, Step},
};

use crate::fixture::{Noise, assert_close, gpu, segment, tensor, tilings, tolerance, values};

const NORM_EPS: f32 = 1e-6;

/// A layer's attention.
#[derive(Debug, Clone, Copy)]
struct Layer {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    neox: bool,
    rope_dims: usize,
    window: Option<Window>,
    soft_cap: Option<f32>,
    has_norm: bool,
    /// The weights of the norm come after the rotation.
    norm_last: bool,
    has_sinks: bool,
    norms_values: bool,
    /// Keys and values are written by another layer before.
    only_queries: bool,
    temperature: Option<Temperature>,
}

const PLAIN: Layer = Layer {
    heads: 8,
    kv_heads: 4,
    head_dim: 8,
    neox: false,
    rope_dims: 8,
    window: None,
    soft_cap: None,
    has_norm: false,
    norm_last: false,
    has_sinks: false,
    norms_values: false,
    only_queries: false,
    temperature: None,
};

/// Workgroups of one, two, three, four (of eight) and seven query heads, and pairs that do not fill a vector.
const LAYERS: [Layer; 10] = [
    PLAIN,
    Layer {
        heads: 14,
        kv_heads: 2,
        head_dim: 64,
        neox: true,
        rope_dims: 64,
        has_sinks: true,
        ..PLAIN
    },
    Layer {
        heads: 6,
        kv_heads: 2,
        head_dim: 80,
        neox: true,
        rope_dims: 20,
        window: Some(Window::Sliding(70)),
        soft_cap: Some(0.5),
        ..PLAIN
    },
    Layer {
        heads: 3,
        kv_heads: 3,
        head_dim: 12,
        rope_dims: 8,
        window: Some(Window::Sliding(129)),
        has_norm: true,
        ..PLAIN
    },
    Layer {
        heads: 8,
        kv_heads: 1,
        head_dim: 256,
        neox: true,
        rope_dims: 256,
        window: Some(Window::Sliding(3)),
        soft_cap: Some(30.0),
        has_norm: true,
        has_sinks: true,
        norms_values: true,
        ..PLAIN
    },
    Layer {
        heads: 4,
        kv_heads: 2,
        head_dim: 96,
        rope_dims: 0,
        ..PLAIN
    },
    Layer {
        heads: 6,
        kv_heads: 2,
        head_dim: 20,
        neox: true,
        rope_dims: 12,
        has_norm: true,
        norm_last: true,
        ..PLAIN
    },
    Layer {
        heads: 4,
        kv_heads: 2,
        head_dim: 576,
        neox: true,
        rope_dims: 512,
        has_norm: true,
        norms_values: true,
        ..PLAIN
    },
    Layer {
        heads: 6,
        kv_heads: 2,
        head_dim: 32,
        neox: true,
        rope_dims: 32,
        window: Some(Window::Sliding(33)),
        has_norm: true,
        norms_values: true,
        only_queries: true,
        ..PLAIN
    },
    Layer {
        heads: 6,
        kv_heads: 2,
        head_dim: 32,
        rope_dims: 32,
        window: Some(Window::Chunk(131)),
        temperature: Some(Temperature {
            tokens: 50,
            offset: 1,
            growth: 0.4,
        }),
        ..PLAIN
    },
];

impl Layer {
    fn q_dim(self) -> usize {
        self.heads * self.head_dim
    }

    fn kv_dim(self) -> usize {
        self.kv_heads * self.head_dim
    }

    fn stride(self) -> usize {
        self.q_dim() + 2 * self.kv_dim()
    }

    fn q_scale(self) -> f32 {
        0.7 / (self.head_dim as f32).sqrt()
    }

    fn shape(self) -> AttentionShape {
        AttentionShape {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            window: self.window,
            soft_cap: self.soft_cap,
        }
    }

    fn rope(self, only_queries: bool) -> RopeShape {
        RopeShape {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            neox: self.neox,
            by_parts: false,
            norm_last: self.norm_last,
            norms_values: self.norms_values,
            only_queries,
            rope_dims: self.rope_dims,
            magnitude: 1.0,
            q_scale: self.q_scale(),
            temperature: self.temperature,
            at: [0, self.q_dim(), self.q_dim() + self.kv_dim()],
            stride: [self.stride(); 3],
        }
    }

    /// A score of each query head, some of which outweigh all others.
    fn sinks(self) -> Vec<f32> {
        (0..self.heads).map(|head| head as f32 - 2.5).collect()
    }

    /// Radians per position. A layer without rope has some that are not read.
    fn radians(self) -> Vec<f64> {
        let pairs = (self.rope_dims / 2).max(1);
        let exponent = |i: usize| -2.0 * i as f64 / self.rope_dims.max(1) as f64;
        (0..pairs).map(|i| 10_000f64.powf(exponent(i))).collect()
    }

    /// A head of a query (`which` is 0) or of a key (1), normalized and rotated.
    fn rotated(self, head: &[f32], norm: &[f32], which: usize, position: usize) -> Vec<f64> {
        let mut head: Vec<f64> = head.iter().map(|v| f64::from(*v)).collect();
        if self.has_norm {
            let square: f64 = head.iter().map(|v| v * v).sum();
            let rms = (square / self.head_dim as f64 + f64::from(NORM_EPS)).sqrt();
            for (i, v) in head.iter_mut().enumerate() {
                let weight = f64::from(norm[which * self.head_dim + i]);
                *v *= if self.norm_last { 1.0 } else { weight } / rms;
            }
        }
        let mut rotated = head.clone();
        for (i, radians) in self
            .radians()
            .into_iter()
            .take(self.rope_dims / 2)
            .enumerate()
        {
            let (a, b) = match self.neox {
                true => (i, i + self.rope_dims / 2),
                false => (2 * i, 2 * i + 1),
            };
            let angle = position as f64 * radians;
            rotated[a] = head[a] * angle.cos() - head[b] * angle.sin();
            rotated[b] = head[b] * angle.cos() + head[a] * angle.sin();
        }
        if self.norm_last {
            for (i, v) in rotated.iter_mut().enumerate() {
                *v *= f64::from(norm[which * self.head_dim + i]);
            }
        }
        rotated
    }

    /// The outputs of the tokens of a sequence, starting with `first`, from the rows of its projections. Tokens of
    /// `image` see all of it.
    fn naive(
        self,
        rows: &[f32],
        norm: &[f32],
        first: usize,
        image: &Range<usize>,
    ) -> Vec<Vec<f32>> {
        let rows: Vec<&[f32]> = rows.chunks_exact(self.stride()).collect();
        let head = |row: usize, at: usize| &rows[row][at * self.head_dim..][..self.head_dim];
        let keys = |past: usize| {
            let of = |i| self.rotated(head(past, self.heads + i), norm, 1, past);
            (0..self.kv_heads).map(of).collect::<Vec<_>>()
        };
        let keys: Vec<Vec<Vec<f64>>> = (0..rows.len()).map(keys).collect();
        let attended = |position: usize, h: usize| {
            let kv_head = h * self.kv_heads / self.heads;
            let query = self.rotated(head(position, h), norm, 0, position);
            let sees = |past: &usize| match self.window {
                None => true,
                Some(Window::Sliding(tokens)) => *past + tokens > position,
                Some(Window::Chunk(tokens)) => past / tokens >= position / tokens,
            };
            let temperature = self.temperature.map_or(1.0, |it| {
                let steps = ((position + it.offset) / it.tokens) as f64;
                1.0 + f64::from(it.growth) * (1.0 + steps).ln()
            });
            let end = match image.contains(&position) {
                true => image.end,
                false => position + 1,
            };
            let seen: Vec<usize> = (0..end).filter(sees).collect();
            let weights = seen.iter().map(|&past| {
                let products = query.iter().zip(&keys[past][kv_head]).map(|(a, b)| a * b);
                let score = products.sum::<f64>() * f64::from(self.q_scale()) * temperature;
                let cap = self.soft_cap.map(f64::from);
                cap.map_or(score, |cap| cap * (score / cap).tanh()).exp()
            });
            let weights: Vec<f64> = weights.collect();
            let sink = match self.has_sinks {
                true => f64::from(self.sinks()[h]).exp(),
                false => 0.0,
            };
            let total = weights.iter().sum::<f64>() + sink;
            let values = seen.iter().map(|&past| {
                let value = head(past, self.heads + self.kv_heads + kv_head);
                let square: f64 = value.iter().map(|v| f64::from(*v).powi(2)).sum();
                let rms = (square / self.head_dim as f64 + f64::from(NORM_EPS)).sqrt();
                (value, if self.norms_values { rms } else { 1.0 })
            });
            let values: Vec<_> = values.collect();
            let element = |i: usize| {
                let value = |(value, rms): &(&[f32], f64)| f64::from(value[i]) / rms;
                let terms = values.iter().zip(&weights);
                let sum: f64 = terms.map(|(v, w)| w * value(v)).sum();
                (sum / total) as f32
            };
            (0..self.head_dim).map(element).collect::<Vec<f32>>()
        };
        let of = |position| {
            (0..self.heads)
                .flat_map(|h| attended(position, h))
                .collect()
        };
        (first..rows.len()).map(of).collect()
    }
}

/// The sequences to feed, each with its pages.
struct Sequences {
    layer: Layer,
    format: KvFormat,
    /// Rows of projections of each sequence.
    rows: Vec<Vec<f32>>,
    norm: Vec<f32>,
    /// Tokens of each sequence whose keys and values are in memory from the start.
    known: usize,
    /// Tokens of the first sequence that see each other, fed in one step.
    image: Range<usize>,
}

/// A step: pairs of a sequence and its number of tokens, and the number of rows.
type Fed<'a> = (&'a [(usize, usize)], usize);

impl Sequences {
    fn new(layer: Layer, format: KvFormat, tokens: &[usize], noise: &mut Noise) -> Self {
        let rows = tokens.iter().map(|n| noise.floats(n * layer.stride()));
        Self {
            layer,
            format,
            rows: rows.collect(),
            norm: noise.floats(2 * layer.head_dim),
            known: 0,
            image: 0..0,
        }
    }

    /// Feeds the steps as a model does. Returns the outputs of each sequence.
    fn fed(&self, steps: &[Fed], device: &Device, variant: Variant) -> Vec<Vec<f32>> {
        let (layer, count) = (self.layer, self.rows.len());
        // Pages are out of order, so that block tables matter.
        let longest = self.rows.iter().map(|rows| rows.len() / layer.stride());
        let page_count = longest.max().unwrap_or(0).div_ceil(PAGE_TOKENS);
        let pages =
            |i: usize| (0..page_count).map(move |page| (page * count + count - 1 - i) as u32);
        let pages: Vec<Vec<u32>> = (0..count).map(|i| pages(i).collect()).collect();
        let mut kv = KvMemory::new(count * page_count, layer.kv_dim(), self.format, device)
            .with_context(page_count * PAGE_TOKENS);
        let mut step = Step::new(128, count * page_count, device);
        let turns = turns(&layer.radians(), device);
        let norm = tensor(&self.norm, [self.norm.len()], device);
        let norm = layer.has_norm.then_some((norm, NORM_EPS));
        // The memory past a sequence's end may hold anything.
        let junk = vec![f32::NAN; PAGE_TOKENS * layer.stride()];
        let page_rows = (0..page_count).map(|page| (0, page, PAGE_TOKENS, &junk[..]));
        let known = (0..count).flat_map(|i| {
            let rows = self.rows[i][..self.known * layer.stride()].chunks(junk.len());
            let page_of = move |(page, rows)| (i, page, <[f32]>::len(rows) / layer.stride(), rows);
            rows.enumerate().map(page_of)
        });
        for (i, page, tokens, rows) in page_rows.chain(known) {
            step.set(&[segment(page * PAGE_TOKENS, tokens, &pages[i])]);
            let qkv = tensor(rows, [tokens, layer.stride()], device);
            let qkv = [qkv.clone(), qkv.clone(), qkv];
            rope_kv(
                qkv,
                norm.clone(),
                turns.clone(),
                &mut kv,
                &step,
                layer.rope(false),
                variant,
            );
        }
        let (mut fed, mut outputs) = (vec![self.known; count], vec![Vec::new(); count]);
        for (segments, rows) in steps {
            let mut input = Vec::new();
            let mut placed: Vec<Segment> = Vec::new();
            for &(i, tokens) in *segments {
                input.extend_from_slice(
                    &self.rows[i][fed[i] * layer.stride()..][..tokens * layer.stride()],
                );
                let end = fed[i] + tokens;
                placed.push(Segment {
                    state: 0,
                    is_seen_whole: i == 0 && self.image == (fed[i]..end),
                    ..segment(fed[i], tokens, &pages[i])
                });
                fed[i] += tokens;
            }
            step.set(&placed);
            input.resize(rows * layer.stride(), 0.5);
            let qkv = tensor(&input, [*rows, layer.stride()], device);
            let (qkv, norm) = ([qkv.clone(), qkv.clone(), qkv], norm.clone());
            let only_queries = layer.only_queries;
            if only_queries {
                let (qkv, norm, turns) = (qkv.clone(), norm.clone(), turns.clone());
                rope_kv(qkv, norm, turns, &mut kv, &step, layer.rope(false), variant);
            }
            let (turns, rope, shape) = (turns.clone(), layer.rope(only_queries), layer.shape());
            let sinks = tensor(&layer.sinks(), [layer.heads], device);
            let sinks = layer.has_sinks.then_some(sinks);
            let attended = if attention_split::serves(*rows, layer.head_dim, variant) {
                attention_split(qkv, norm, turns, &mut kv, &step, sinks, rope, shape)
            } else {
                let q = rope_kv(qkv, norm, turns, &mut kv, &step, rope, variant);
                attention(q, &kv, &step, sinks, shape, variant)
            };
            let attended = values(attended);
            let mut attended = attended.chunks_exact(layer.q_dim());
            for &(i, tokens) in *segments {
                let of = attended.by_ref().take(tokens);
                outputs[i].extend(of.flatten());
            }
        }
        outputs
    }

    /// Feeds the steps on every device and compares with the formula. With formats that round keys and
    /// values, compares with the twin, which rounds in the same way.
    fn check(&self, steps: &[Fed]) {
        let expected = self.rows.iter().enumerate().map(|(i, rows)| {
            let image = if i == 0 { &self.image } else { &(0..0) };
            let naive = self.layer.naive(rows, &self.norm, self.known, image);
            naive.concat()
        });
        let mut expected: Vec<Vec<f32>> = expected.collect();
        let on_cpu = self.fed(steps, &Device::flex(), Variant::PORTABLE);
        let gpu = gpu();
        let mut runs = vec![];
        match self.format {
            KvFormat::F32 => runs.push((on_cpu, "reference".into())),
            _ => expected = on_cpu,
        }
        runs.push((self.fed(steps, &Device::flex(), Variant::CPU), "CPU".into()));
        for variant in tilings(&gpu) {
            runs.push((self.fed(steps, gpu.device(), variant), variant.name()));
        }
        for (outputs, device) in runs {
            for (i, (found, expected)) in outputs.iter().zip(&expected).enumerate() {
                let what = format!(
                    "sequence {i} of {:?} on {device}",
                    (self.layer, self.format)
                );
                assert_close(
                    &what,
                    found,
                    &expected[..found.len()],
                    tolerance(self.format),
                );
            }
        }
    }
}

/// One sequence in chunks and single tokens, with padding, across the ends of pages, splits and windows.
#[test]
fn attention_of_every_kind_follows_its_formula() {
    let steps: [Fed; 9] = [
        (&[(0, 100)], 128),
        (&[(0, 26)], 32),
        (&[(0, 1)], 1),
        (&[(0, 1)], 1),
        (&[(0, 5)], 8),
        (&[(0, 120)], 128),
        (&[(0, 8)], 8),
        (&[(0, 1)], 4),
        (&[(0, 30)], 32),
    ];
    let mut noise = Noise(21);
    for layer in LAYERS {
        Sequences::new(layer, KvFormat::F32, &[292], &mut noise).check(&steps);
    }
    for (layer, format) in [
        (LAYERS[1], KvFormat::F16),
        (LAYERS[3], KvFormat::F16),
        (LAYERS[4], KvFormat::Q8_0),
        (LAYERS[5], KvFormat::Q8_0),
        (LAYERS[7], KvFormat::F16),
        (LAYERS[8], KvFormat::Q8_0),
        (LAYERS[9], KvFormat::F16),
    ] {
        Sequences::new(layer, format, &[292], &mut noise).check(&steps);
    }
}

/// A step whose tokens see each other, across the ends of pages and in a sliding window, and the tokens after it.
#[test]
fn tokens_of_an_image_see_each_other() {
    let steps: [Fed; 5] = [
        (&[(0, 50)], 64),
        (&[(0, 69)], 128),
        (&[(0, 1)], 1),
        (&[(0, 20)], 32),
        (&[(0, 3)], 8),
    ];
    let mut noise = Noise(25);
    for (layer, format) in [
        (LAYERS[0], KvFormat::F32),
        (LAYERS[1], KvFormat::F32),
        (LAYERS[2], KvFormat::F32),
        (LAYERS[3], KvFormat::F32),
        (LAYERS[1], KvFormat::F16),
        (LAYERS[5], KvFormat::Q8_0),
    ] {
        let sequences = Sequences::new(layer, format, &[143], &mut noise);
        let image = 50..119;
        Sequences { image, ..sequences }.check(&steps);
    }
}

/// Batches of sequences of different lengths, and a few tokens of several sequences at once.
#[test]
fn batches_of_every_kind_follow_their_formula() {
    let lengths = [1, 5, 126, 127, 128, 129, 200, 256];
    let prompts: Vec<Vec<(usize, usize)>> = lengths
        .iter()
        .enumerate()
        .flat_map(|(i, length)| {
            let chunks = (0..*length).step_by(120);
            chunks.map(move |first| vec![(i, (length - first).min(120))])
        })
        .collect();
    let batch: Vec<(usize, usize)> = (0..lengths.len()).map(|i| (i, 1)).collect();
    let mut steps: Vec<Fed> = prompts.iter().map(|prompt| (&prompt[..], 128)).collect();
    steps.extend([
        (&batch[..], 8),
        (&[(7, 2), (0, 1), (4, 3)], 8),
        (&batch[2..5], 4),
    ]);
    let mut noise = Noise(22);
    for (layer, format) in [
        (LAYERS[1], KvFormat::F32),
        (LAYERS[3], KvFormat::F32),
        (LAYERS[3], KvFormat::F16),
        (LAYERS[1], KvFormat::Q8_0),
        (LAYERS[9], KvFormat::F32),
    ] {
        let tokens = lengths.map(|length| length + 5);
        Sequences::new(layer, format, &tokens, &mut noise).check(&steps);
    }
}

/// Contexts with more blocks than there are splits.
#[test]
fn long_contexts_follow_their_formula() {
    let steps: [Fed; 4] = [
        (&[(0, 1)], 1),
        (&[(0, 7), (1, 1)], 8),
        (&[(1, 8)], 8),
        (&[(0, 1), (1, 1)], 2),
    ];
    let mut noise = Noise(24);
    for window in [None, Some(Window::Sliding(2055)), Some(Window::Chunk(2056))] {
        let layer = Layer {
            heads: 16,
            kv_heads: 16,
            neox: true,
            window,
            ..PLAIN
        };
        let sequences = Sequences::new(layer, KvFormat::F32, &[2183, 2183], &mut noise);
        let known = 2170;
        Sequences { known, ..sequences }.check(&steps);
    }
}

/// The rotation and the sums are as exact at the end of a long context as at its start.
#[test]
fn positions_of_32k_follow_their_formula() {
    let few: [Fed; 2] = [(&[(0, 1)], 1), (&[(0, 3)], 8)];
    let many: [Fed; 3] = [(&[(0, 1)], 1), (&[(0, 20)], 32), (&[(0, 3)], 8)];
    let layer = Layer {
        heads: 2,
        kv_heads: 1,
        head_dim: 16,
        neox: true,
        rope_dims: 16,
        ..PLAIN
    };
    // lavapipe ends the loops of a shader after 65,535 iterations in total, so many tokens attend to fewer keys.
    for (window, tokens, steps) in [
        (None, 32_768, &few[..]),
        (Some(Window::Sliding(4097)), 32_768, &many[..]),
        (None, 5000, &many[..]),
    ] {
        let layer = Layer { window, ..layer };
        let mut noise = Noise(25);
        let sequences = Sequences::new(layer, KvFormat::F32, &[tokens], &mut noise);
        let known = tokens - 24;
        Sequences { known, ..sequences }.check(steps);
    }
}

/// The output of a token does not depend on how many tokens of its sequence a few-token step feeds.
#[test]
fn few_tokens_at_once_equal_single_tokens_bit_for_bit() {
    for (layer, format) in [
        (LAYERS[2], KvFormat::F32),
        (LAYERS[2], KvFormat::F16),
        (LAYERS[5], KvFormat::Q8_0),
        (LAYERS[9], KvFormat::F16),
    ] {
        let sequences = Sequences::new(layer, format, &[133], &mut Noise(23));
        sequences.check_few_tokens();
    }
}

impl Sequences {
    fn check_few_tokens(&self) {
        let gpu = gpu();
        let single: [Fed; 9] = [
            (&[(0, 125)], 128),
            (&[(0, 1)], 1),
            (&[(0, 1)], 1),
            (&[(0, 1)], 2),
            (&[(0, 1)], 8),
            (&[(0, 1)], 1),
            (&[(0, 1)], 1),
            (&[(0, 1)], 1),
            (&[(0, 1)], 1),
        ];
        let at_once: [Fed; 2] = [(&[(0, 125)], 128), (&[(0, 8)], 8)];
        let bits =
            |outputs: Vec<Vec<f32>>| outputs[0].iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        for variant in tilings(&gpu) {
            let single = bits(self.fed(&single, gpu.device(), variant));
            let at_once = bits(self.fed(&at_once, gpu.device(), variant));
            assert!(single == at_once, "{:?} {}", self.format, variant.name());
        }
    }
}
