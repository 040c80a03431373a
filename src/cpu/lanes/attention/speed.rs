//! Measures attention and its parts on one thread, and the floor: the same multiply-adds on registers. `scripts/bench/attention.mjs` runs it natively and as WebAssembly; exists only with the feature `measure`.

use std::hint::black_box;

use super::{
    AttentionParts, AttentionShape, attention,
    load::{PageHead, decode},
    scores::{Queries, scores},
    softmax::Running,
    values::values,
};
use crate::half::f16_to_f32;
use crate::lanes::{
    f32x8::{F32x8, Kernel, LANES, Strip, run},
    kv::{KvFormat, PAGE_TOKENS, Row, f16::Format as F16, f32::Format as F32},
};

/// What the program around it supplies.
pub trait Host {
    /// Milliseconds of a clock that does not go back.
    fn now_ms(&self) -> f64;
    /// Prints a line.
    fn print(&self, line: &str);
}

/// The name of a shape, with query heads, KV heads and elements of a head.
const SHAPES: [(&str, [usize; 3]); 2] =
    [("smollm2-135m", [9, 3, 64]), ("qwen3-0.6b", [16, 8, 128])];
/// Rows of a step of a prompt.
const PROMPT_ROWS: usize = 128;
/// Layers whose caches a row of decode reads in turn.
const LAYERS: usize = 24;

/// Prints a line of JSON for each shape, context and kind of step, in the cache of one layer in f16, and one for each format
/// where a row of decode reads the caches of many layers. Times are microseconds per row of one layer. Parts are measured alone, one KV head at a time, so their sum is not exactly the time of the whole.
pub fn report(host: &dyn Host) {
    run(DecodesF16);
    let macs = multiply_adds_per_us(host);
    for (name, [heads, kv_heads, head_dim]) in SHAPES {
        let shape = AttentionShape {
            heads,
            kv_heads,
            head_dim,
            window: None,
            soft_cap: None,
        };
        for tokens in [128, 3840] {
            if tokens > 128 {
                for format in KvFormat::ALL {
                    let us = decode_of_layers(host, shape, tokens, format);
                    let name_of_format = format.name();
                    host.print(&format!(
                        "{{\"shape\":\"{name}\",\"context\":{tokens},\"layers\":{LAYERS},\
                         \"format\":\"{name_of_format}\",\"us\":{us:.2}}}"
                    ));
                }
            }
            for rows in [1, PROMPT_ROWS] {
                let cache = Cache::new(shape, tokens, KvFormat::F16);
                let whole = cache.whole(host, rows);
                let seen: usize = (tokens - rows + 1..=tokens).sum();
                let floor = (2 * seen * shape.q_dim()) as f64 / macs / rows as f64;
                let parts = cache.parts(host, rows);
                let [convert, dots, softmax, weighted] = parts.map(|us| us / rows as f64);
                host.print(&format!(
                    "{{\"shape\":\"{name}\",\"context\":{tokens},\"rows\":{rows},\"us\":{:.2},\
                     \"floor_us\":{floor:.2},\"share_of_floor\":{:.2},\
                     \"convert_us\":{convert:.2},\"dots_us\":{dots:.2},\
                     \"softmax_us\":{softmax:.2},\"values_us\":{weighted:.2}}}",
                    whole / rows as f64,
                    floor * rows as f64 / whole,
                ));
            }
        }
    }
}

/// Microseconds per layer of a row of decode that reads the caches of several layers in turn, as a model does: they are larger
/// than the caches of the processor.
fn decode_of_layers(
    host: &dyn Host,
    shape: AttentionShape,
    tokens: usize,
    format: KvFormat,
) -> f64 {
    let cache = || Cache::new(shape, tokens, format);
    let layers: Vec<Cache> = std::iter::repeat_with(cache).take(LAYERS).collect();
    let rows = [Row::new(tokens - 1, &layers[0].pages)];
    let mut out = vec![0.0; shape.q_dim()];
    let us = least(host, || {
        for Cache { q, words, .. } in &layers {
            let q = &q[..shape.q_dim()];
            attention(q, words, &rows, shape, format, &mut out);
        }
        black_box(&out);
    });
    us / LAYERS as f64
}

/// The least time of several runs, in microseconds.
fn least(host: &dyn Host, mut run: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    let start = host.now_ms();
    while host.now_ms() - start < 300.0 {
        let start = host.now_ms();
        let mut runs = 0.0;
        let mut end = start;
        // Clocks of pages are coarse.
        while end - start < 3.0 {
            run();
            runs += 1.0;
            end = host.now_ms();
        }
        least = least.min((end - start) / runs);
    }
    least * 1e3
}

/// Asserts that every f16 is decoded to the bits of its definition: no test runs the vectors of WebAssembly.
struct DecodesF16;

impl Kernel for DecodesF16 {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        for first in (0..=u16::MAX).step_by(LANES) {
            let halves: [u16; LANES] = std::array::from_fn(|i| first + i as u16);
            let words: [u32; LANES / 2] = std::array::from_fn(|i| {
                u32::from(halves[2 * i]) | u32::from(halves[2 * i + 1]) << 16
            });
            let (mut decoded, mut loaded) = ([0.0; LANES], [0.0; LANES]);
            // SAFETY: these are eight elements.
            unsafe {
                L::decode_f16(words.as_ptr(), 1, decoded.as_mut_ptr());
                for at in (0..LANES).step_by(L::Strip::LANES) {
                    let strip = L::Strip::load_f16(words.as_ptr().add(at / 2));
                    strip.store(loaded.as_mut_ptr().add(at));
                }
            }
            // The eight are all finite, or none is.
            if !L::loads_f16(first) {
                loaded = decoded;
            }
            for i in 0..LANES {
                let exact = f16_to_f32(halves[i]);
                for value in [decoded[i], loaded[i]] {
                    let equal = value.to_bits() == exact.to_bits();
                    assert!(equal || value.is_nan() && exact.is_nan(), "{first} {i}");
                }
            }
        }
    }
}

/// Multiplications and additions of registers.
struct MultiplyAdds(usize);

impl Kernel for MultiplyAdds {
    type Output = f32;

    #[inline(always)]
    fn run<L: F32x8>(self) -> f32 {
        // Six independent chains fill the vector units, and leave two registers.
        let mut sums = [L::splat(2.0); 6];
        let x = L::splat(black_box(0.5));
        for _ in 0..self.0 {
            for i in 0..sums.len() {
                sums[i] = sums[i].mul(x).add(x);
            }
        }
        let mut total = L::splat(0.0);
        for i in 0..sums.len() {
            total = total.add(sums[i]);
        }
        total.sum()
    }
}

fn multiply_adds_per_us(host: &dyn Host) -> f64 {
    let rounds = 20_000;
    let us = least(host, || {
        black_box(run(MultiplyAdds(rounds)));
    });
    (rounds * 6 * LANES) as f64 / us
}

/// Values between -1 and 1.
fn values_of(len: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(next).collect()
}

/// A cache with a sequence.
struct Cache {
    shape: AttentionShape,
    tokens: usize,
    pages: Vec<u32>,
    words: Vec<u32>,
    q: Vec<f32>,
}

impl Cache {
    fn new(shape: AttentionShape, tokens: usize, format: KvFormat) -> Cache {
        let pages: Vec<u32> = (0..tokens.div_ceil(PAGE_TOKENS) as u32).collect();
        let len = pages.len() * format.page_words(shape.kv_dim());
        let mut words = vec![0; len];
        let elements = 2 * pages.len() * PAGE_TOKENS * shape.kv_dim();
        format.store(&mut words, &values_of(elements));
        let scale = 3.0 / (shape.head_dim as f32).sqrt();
        let q = values_of(PROMPT_ROWS * shape.q_dim());
        Cache {
            shape,
            tokens,
            pages,
            words,
            q: q.iter().map(|q| q * scale).collect(),
        }
    }

    /// Microseconds of the last `rows` rows of the sequence.
    fn whole(&self, host: &dyn Host, rows: usize) -> f64 {
        let positions = self.tokens - rows..self.tokens;
        let rows: Vec<Row> = positions.map(|at| Row::new(at, &self.pages)).collect();
        let mut out = vec![0.0; self.q.len()];
        least(host, || {
            let (shape, format) = (self.shape, KvFormat::F16);
            attention(&self.q, &self.words, &rows, shape, format, &mut out);
            black_box(&out);
        })
    }

    /// Microseconds of the parts for these rows: conversion, dot products, softmax, weighted sums of values.
    fn parts(&self, host: &dyn Host, rows: usize) -> [f64; 4] {
        let row = [Row::new(self.tokens - 1, &self.pages)];
        let mut out = vec![0.0; self.q.len()];
        let shape = self.shape;
        let format = KvFormat::F16;
        let attention = AttentionParts::new(&self.q, &self.words, &row, shape, format, &mut out);
        let group = shape.heads / shape.kv_heads;
        // The queries that share a page, and the number of times that a page is shared.
        let queries = if rows == 1 { group } else { 32 / group * group };
        let times = (rows * group) as f64 / queries as f64 * shape.kv_heads as f64;
        let stride = shape.head_dim.next_multiple_of(LANES);
        let mut scratch = Scratch {
            decoded: values_of(PAGE_TOKENS * stride),
            scores: vec![0.0; queries * PAGE_TOKENS],
            sums: vec![0.0; queries * stride],
            running: vec![
                Running {
                    peak: 9.0,
                    sums: [0.0; LANES]
                };
                queries
            ],
            ranges: vec![[0, PAGE_TOKENS as u32]; queries],
        };
        [What::Convert, What::Dots, What::Softmax, What::Values].map(|what| {
            let us = least(host, || {
                run(Part {
                    what,
                    cache: self,
                    attention: &attention,
                    queries,
                    scratch: &mut scratch,
                });
            });
            us * times
        })
    }
}

/// The memory of the parts.
struct Scratch {
    decoded: Vec<f32>,
    scores: Vec<f32>,
    sums: Vec<f32>,
    running: Vec<Running>,
    ranges: Vec<[u32; 2]>,
}

#[derive(Clone, Copy)]
enum What {
    Convert,
    Dots,
    Softmax,
    Values,
}

/// A part of the attention of one KV head, for all pages.
struct Part<'a> {
    what: What,
    cache: &'a Cache,
    attention: &'a AttentionParts<'a>,
    queries: usize,
    scratch: &'a mut Scratch,
}

impl Kernel for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let dim = self.cache.shape.head_dim;
        let vectors = dim.div_ceil(LANES);
        let all = [0, PAGE_TOKENS];
        let memory = self.scratch;
        let head = PageHead {
            head: memory.decoded.as_ptr().cast(),
            stride: vectors * LANES,
        };
        let (weights, queries) = (memory.scores.as_mut_ptr(), self.queries);
        for &page in &self.cache.pages {
            // SAFETY: the memory has the sizes.
            unsafe {
                match self.what {
                    What::Convert => {
                        for value in 0..2 {
                            let head = self.attention.page_head(page, value, 0);
                            decode::<F16, L>(head, all, dim, memory.decoded.as_mut_ptr());
                        }
                    }
                    What::Dots => {
                        let q = Queries {
                            first: self.cache.q.as_ptr().cast_mut(),
                            count: queries,
                            vectors,
                        };
                        scores::<F32, L>(q, head, all, [0, queries], weights);
                    }
                    What::Softmax => {
                        for query in 0..queries {
                            let scores = &mut *weights.add(query * PAGE_TOKENS).cast();
                            let range = memory.ranges[query].into();
                            memory.running[query].weigh::<L>(scores, range, 0.0);
                        }
                    }
                    What::Values => {
                        let ranges = memory.ranges.as_ptr();
                        let sums = memory.sums.as_mut_ptr();
                        values::<F32, L>(weights, vectors, head, ranges, queries, sums);
                    }
                }
            }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
#[cfg(test)]
mod tests {
    use std::time::Instant;

    struct Native(Instant);

    impl super::Host for Native {
        fn now_ms(&self) -> f64 {
            self.0.elapsed().as_secs_f64() * 1e3
        }

        fn print(&self, line: &str) {
            println!("{line}");
        }
    }

    #[test]
    #[ignore = "a measurement"]
    fn attention_speed() {
        super::report(&Native(Instant::now()));
    }
}

/// The program in WebAssembly.
#[cfg(all(target_arch = "wasm32", feature = "measure"))]
mod wasm {
    struct Page;

    #[link(wasm_import_module = "host")]
    unsafe extern "C" {
        safe fn now_ms() -> f64;
        fn print(text: *const u8, len: usize);
    }

    impl super::Host for Page {
        fn now_ms(&self) -> f64 {
            now_ms()
        }

        fn print(&self, line: &str) {
            // SAFETY: the host reads these bytes.
            unsafe { print(line.as_ptr(), line.len()) }
        }
    }

    /// Prints the report.
    #[unsafe(no_mangle)]
    pub extern "C" fn attention_speed() {
        super::report(&Page);
    }
}
