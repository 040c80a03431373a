//! Greedy selection of the next token on the device. The token becomes the input of the next step, so
//! several steps run before the host reads an id.

use super::{
    in_place::InPlace,
    op::*,
    step::{self, Step},
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) logits: FloatTensor<B>,
    pub(super) ids: IntTensor<B>,
    pub(super) step: IntTensor<B>,
    pub(super) chosen: IntTensor<B>,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn argmax(Arguments) -> (IntTensor<Self>, IntTensor<Self>, IntTensor<Self>)
}

const WORKGROUP: usize = 256;

/// Selected instead of a token when the logits contain NaN or +inf, or nothing finite.
pub const INVALID_TOKEN: u32 = u32::MAX;

/// Selects the largest of `logits` `[1, vocab]` (the lowest id on ties), writes it to `ids[0]`, appends it
/// to `chosen` (a ring) and advances `step` to that single token. All three change in place.
pub fn argmax(
    logits: Tensor<2>,
    ids: &mut InPlace,
    step: &mut Step,
    chosen: &mut InPlace,
    variant: Variant,
) {
    let (new_ids, new_step, new_chosen) = Dispatch::argmax(Arguments {
        logits: logits.into_dispatch(),
        ids: ids.take().into_dispatch(),
        step: step.take().into_dispatch(),
        chosen: chosen.take().into_dispatch(),
        variant,
    });
    ids.put(Tensor::from_dispatch(new_ids));
    step.put(Tensor::from_dispatch(new_step));
    chosen.put(Tensor::from_dispatch(new_chosen));
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
    step::layout(kernel).module(wgsl!("argmax"))
}

pub(super) fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor, CubeTensor) {
    let [_, vocab] = args.logits.shape().dims();
    kernel(vocab, args.chosen.shape().num_elements()).launch(
        &[&args.logits, &args.ids, &args.step, &args.chosen],
        [1, 1, 1],
    );
    (args.ids, args.step, args.chosen)
}

pub(super) fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor, FlexTensor) {
    choose(
        largest(args.logits.storage()),
        args.ids,
        args.step,
        args.chosen,
    )
}

fn cpu(args: Arguments<Flex>) -> (FlexTensor, FlexTensor, FlexTensor) {
    let largest = inpage_cpu::lanes::argmax::argmax(args.logits.storage());
    choose(largest, args.ids, args.step, args.chosen)
}

/// Prepares the next step with the chosen token.
fn choose(
    id: Option<u32>,
    mut ids: FlexTensor,
    mut step: FlexTensor,
    mut chosen: FlexTensor,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    let id = id.unwrap_or(INVALID_TOKEN);
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

/// The id of the first largest logit; `None` if the row is invalid.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(512, 64)]);
    }
}
