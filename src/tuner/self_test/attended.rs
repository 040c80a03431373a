//! Attention for the validation: by the kernels for few tokens and for many, and that of encoders.

use burn::tensor::{Device, Tensor};

use super::inputs::{rows, wave};
use crate::ops::{
    Variant,
    attention::{AttentionShape, Window, attention, whole_attention},
    attention_split::{self, attention_split},
    kv_memory::{KvFormat, KvMemory},
    matvec::MAX_TOKENS,
    rope_kv::{RopeShape, turns},
    step::{PAGE_TOKENS, Segment, Step},
};

/// An attention to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attended {
    /// Attention of this many queries in the middle of a sequence, by the kernels for that number of tokens. Of many, the second
    /// half follow few others and see each other, as the rows of some images do.
    Causal { tokens: usize },
    /// Attention of all tokens of a sequence to each other, with or without a window.
    Whole { window: Option<usize> },
}

/// Tokens of the sequences whose tokens attend to each other. They fill neither workgroups nor pages, and the second
/// one begins within a workgroup.
const SEQUENCES: [usize; 2] = [PAGE_TOKENS + 7, 5];

impl Attended {
    /// The causal attention of a variant.
    pub(super) fn causal(variant: Variant) -> &'static [Attended] {
        const FEW: Attended = Attended::Causal { tokens: 3 };
        const MANY: Attended = Attended::Causal {
            tokens: 2 * MAX_TOKENS,
        };
        // Without barriers few tokens and many use the same shader module.
        match variant.barrier_free {
            true => &[MANY],
            false => &[FEW, MANY],
        }
    }

    /// The attention of encoders.
    pub(super) fn whole() -> &'static [Attended] {
        &[
            Attended::Whole { window: None },
            Attended::Whole { window: Some(9) },
        ]
    }

    /// The name of the case in messages.
    pub(super) fn name(self) -> String {
        match self {
            Attended::Causal { tokens } => format!("attention of {tokens} tokens"),
            Attended::Whole { window: None } => "attention of whole sequences".into(),
            Attended::Whole { window: Some(n) } => {
                format!("attention of sequences in windows of {n}")
            }
        }
    }

    pub(super) fn compute(self, device: &Device, format: KvFormat, variant: Variant) -> Tensor<2> {
        match self {
            Attended::Causal { tokens } => causal(device, tokens, format, variant),
            Attended::Whole { window } => {
                let (q, kv, step, shape) = sequences(device, format, window);
                whole_attention(q, &kv, &step, shape, variant)
            }
        }
    }
}

fn shape(format: KvFormat, window: Option<usize>) -> AttentionShape {
    AttentionShape {
        heads: 4,
        kv_heads: 2,
        head_dim: 40usize.next_multiple_of(format.head_multiple()),
        window: window.map(Window::Sliding),
        soft_cap: None,
    }
}

/// The queries, keys and values of [`SEQUENCES`].
fn sequences(
    device: &Device,
    format: KvFormat,
    window: Option<usize>,
) -> (Tensor<2>, KvMemory, Step, AttentionShape) {
    let shape = shape(format, window);
    let pages: [&[u32]; 2] = [&[2, 0], &[1]];
    let page_count = pages.iter().map(|pages| pages.len()).sum();
    let kv_dim = shape.kv_dim();
    let kv_elements = wave(page_count * 2 * PAGE_TOKENS * kv_dim, 0.7);
    let kv = KvMemory::of(&kv_elements, kv_dim, format, device);
    let tokens = SEQUENCES.iter().sum();
    let mut step = Step::new(tokens, page_count, device);
    let segments = [0, 1].map(|i| Segment {
        position: 0,
        tokens: SEQUENCES[i],
        pages: pages[i],
        state: 0,
        is_seen_whole: false,
        rotary: Default::default(),
    });
    step.set(&segments);
    (rows(tokens, shape.q_dim(), 0.3, device), kv, step, shape)
}

fn causal(device: &Device, tokens: usize, format: KvFormat, variant: Variant) -> Tensor<2> {
    let has_images = tokens > MAX_TOKENS;
    causal_and_seen_whole(device, tokens, has_images, format, variant)
}

fn causal_and_seen_whole(
    device: &Device,
    tokens: usize,
    has_images: bool,
    format: KvFormat,
    variant: Variant,
) -> Tensor<2> {
    let shape = shape(format, None);
    let (position, pages) = (2 * PAGE_TOKENS + 5, [1, 2, 0]);
    let kv_dim = shape.kv_dim();
    let kv_elements = wave(pages.len() * 2 * PAGE_TOKENS * kv_dim, 0.7);
    let mut kv = KvMemory::of(&kv_elements, kv_dim, format, device);
    let segment = |position, tokens, is_seen_whole| Segment {
        position,
        tokens,
        pages: &pages,
        state: 0,
        is_seen_whole,
        rotary: Default::default(),
    };
    let segments = match tokens > MAX_TOKENS {
        true => vec![
            segment(position, tokens / 2, false),
            // After few tokens, so that those of the segment have much weight.
            segment(3, tokens.div_ceil(2), has_images),
        ],
        false => vec![segment(position, tokens, false)],
    };
    let mut step = Step::new(tokens, segments.len() * pages.len(), device);
    step.set(&segments);
    if !attention_split::serves(tokens, shape.head_dim, variant) {
        let q = rows(tokens, shape.q_dim(), 0.3, device);
        return attention(q, &kv, &step, None, shape, variant);
    }
    let (q_dim, stride) = (shape.q_dim(), shape.q_dim() + 2 * kv_dim);
    let rope = RopeShape {
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        neox: true,
        by_parts: false,
        norm_last: false,
        norms_values: false,
        only_queries: false,
        rope_dims: shape.head_dim,
        magnitude: 1.0,
        q_scale: 1.0,
        temperature: None,
        at: [0, q_dim, q_dim + kv_dim],
        stride: [stride; 3],
    };
    let qkv = rows(tokens, stride, 0.3, device);
    let qkv = [qkv.clone(), qkv.clone(), qkv];
    let radians: Vec<f64> = (0..shape.head_dim / 2).map(|i| 0.1 * i as f64).collect();
    let turns = turns(&radians, device);
    attention_split(qkv, None, turns, &mut kv, &step, None, rope, shape)
}

#[cfg(test)]
mod tests {
    use pollster::block_on;

    use super::super::{attention_cases, compare, floats};
    use super::*;
    use crate::{
        tensor_types::TensorType,
        tuner::{Needs, Precision},
    };

    fn needs(whole_attention: bool) -> Needs<'static> {
        Needs {
            types: &[TensorType::Q4_0],
            experts: false,
            whole_attention,
            kv_format: KvFormat::F16,
            precision: Precision::F32,
        }
    }

    #[test]
    fn the_attention_of_the_model_is_validated() {
        for variant in [Variant::PORTABLE, Variant::CPU] {
            let whole = attention_cases(needs(true), variant);
            assert!(matches!(whole, [Attended::Whole { .. }, ..]));
            // With a window and without.
            assert_eq!(whole.len(), 2);
            let causal = attention_cases(needs(false), variant);
            assert!(matches!(causal, [Attended::Causal { .. }, ..]));
        }
    }

    #[test]
    fn rows_that_do_not_see_each_other_are_found() {
        let (device, variant) = (Device::flex(), Variant::PORTABLE);
        for format in KvFormat::ALL {
            let [expected, computed] = [true, false].map(|has_images| {
                let tokens = 2 * MAX_TOKENS;
                let rows = causal_and_seen_whole(&device, tokens, has_images, format, variant);
                block_on(floats(rows)).unwrap()
            });
            let tolerance = format.tolerance();
            assert!(
                compare("", &computed, &expected, tolerance).is_err(),
                "{format:?}"
            );
        }
    }

    /// The faults that kernels of encoders could have differ from the twin by more than the validation tolerates.
    #[test]
    fn wrong_attention_of_encoders_is_found() {
        let (device, variant) = (Device::flex(), Variant::PORTABLE);
        for format in KvFormat::ALL {
            for case in Attended::whole() {
                let Attended::Whole { window } = *case else {
                    panic!("{case:?}");
                };
                let floats = |tensor: Tensor<2>| block_on(floats(tensor)).unwrap();
                let expected = floats(case.compute(&device, format, variant));
                let check = |computed: Tensor<2>| {
                    let tolerance = format.tolerance();
                    compare(&case.name(), &floats(computed), &expected, tolerance)
                };
                let with = |change: &dyn Fn(&mut AttentionShape)| {
                    let (q, kv, step, mut shape) = sequences(&device, format, window);
                    change(&mut shape);
                    whole_attention(q, &kv, &step, shape, variant)
                };
                assert!(check(with(&|_| ())).is_ok());
                let (q, kv, step, shape) = sequences(&device, format, window);
                let later_tokens_left_out = attention(q, &kv, &step, None, shape, variant);
                let other_window = with(&|shape| {
                    let tokens = window.map_or(PAGE_TOKENS / 2, |window| window + 1);
                    shape.window = Some(Window::Sliding(tokens));
                });
                let other_cap = with(&|shape| shape.soft_cap = Some(1.0));
                // One sequence whose pages are those of both.
                let (q, kv, mut step, shape) = sequences(&device, format, window);
                step.set(&[Segment {
                    position: 0,
                    tokens: SEQUENCES.iter().sum(),
                    pages: &[2, 0, 1],
                    state: 0,
                    is_seen_whole: false,
                    rotary: Default::default(),
                }]);
                let sequences_joined = whole_attention(q, &kv, &step, shape, variant);
                for (what, computed) in [
                    ("later tokens left out", later_tokens_left_out),
                    ("another window", other_window),
                    ("another cap", other_cap),
                    ("sequences joined", sequences_joined),
                ] {
                    assert!(check(computed).is_err(), "{what}, {case:?}, {format:?}");
                }
            }
        }
    }
}
