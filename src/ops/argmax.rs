//! The greedy choice, made on the device and fed to its next step, so that several steps run
//! before the host reads an id.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    backend::Ops,
    kernel::Kernel,
    shader,
    step::{self, Step},
};

const WORKGROUP: usize = 256;

/// Chosen instead of a token when the logits hold NaN or +inf, or nothing finite.
pub const INVALID_TOKEN: u32 = u32::MAX;

/// Chooses the largest of `logits` `[1, vocab]` (lowest id on ties): writes it to `ids[0]`, appends
/// it to `chosen` (a ring) and moves `step` on to the next, single token. All three change in place.
pub fn argmax(
    logits: Tensor<2>,
    ids: &mut Option<Tensor<1, Int>>,
    step: &mut Step,
    chosen: &mut Option<Tensor<1, Int>>,
) {
    let (new_ids, new_step, new_chosen) = Dispatch::argmax(
        logits.into_dispatch(),
        take(ids).into_dispatch(),
        step.take().into_dispatch(),
        take(chosen).into_dispatch(),
    );
    *ids = Some(Tensor::from_dispatch(new_ids));
    step.put(Tensor::from_dispatch(new_step));
    *chosen = Some(Tensor::from_dispatch(new_chosen));
}

fn take(tensor: &mut Option<Tensor<1, Int>>) -> Tensor<1, Int> {
    tensor.take().expect("put back by every op that takes it")
}

/// The composed kernel.
pub fn kernel(vocab: usize, chosen: usize) -> Kernel {
    let kernel = Kernel::new("argmax")
        .binding("logits")
        .binding("ids")
        .binding("step")
        .binding("chosen")
        .constant("VOCAB", vocab)
        .constant("CHOSEN", chosen)
        .constant("INVALID_TOKEN", INVALID_TOKEN as usize)
        .constant("WORKGROUP", WORKGROUP);
    step::layout(kernel).module(shader::kernel::ARGMAX)
}

pub(super) fn launch(
    logits: CubeTensor,
    ids: CubeTensor,
    step: CubeTensor,
    chosen: CubeTensor,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let [_, vocab] = logits.shape().dims();
    kernel(vocab, chosen.shape().num_elements())
        .launch(&[&logits, &ids, &step, &chosen], [1, 1, 1]);
    (ids, step, chosen)
}

pub(super) fn twin(
    logits: FlexTensor,
    mut ids: FlexTensor,
    mut step: FlexTensor,
    mut chosen: FlexTensor,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    let id = largest(logits.storage()).unwrap_or(INVALID_TOKEN);
    ids.storage_mut::<u32>()[0] = id;
    let words = step.storage_mut::<u32>();
    step::advance(words);
    let count = words[step::CHOSEN] as usize;
    words[step::CHOSEN] += 1;
    let ring = chosen.storage_mut::<u32>();
    let len = ring.len();
    ring[count % len] = id;
    (ids, step, chosen)
}

/// The first largest logit; `None` if the row is invalid.
fn largest(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    for (id, &value) in logits.iter().enumerate() {
        if value.is_nan() || value == f32::INFINITY {
            return None;
        }
        if value.is_finite() && best.is_none_or(|(_, peak)| value > peak) {
            best = Some((id as u32, value));
        }
    }
    best.map(|(id, _)| id)
}
