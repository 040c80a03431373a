//! The sampler chain of `crate::sample` on the device, for every row of a step. The sampled tokens feed
//! the next step, so several steps run before the host reads an id. The twin is the chain itself.
//!
//! Sampling does not sort (`shaders/sample_*.wgsl`). Weights are added to bins in fixed point, which does not depend on
//! the order of lanes. Cut-offs and the draw find their bin, then finer bins, then compare the few tokens that are
//! left.

mod layout;
mod memory;
mod result;
mod self_test;

use super::{
    argmax::INVALID_TOKEN,
    in_place::InPlace,
    op::*,
    step::{self, Step},
};
use crate::kernel::{Kernel, wgsl};
pub use layout::{MAX_BIASES, NO_SLOT, RING, RowChoice, SamplerShape, TOP, accepts};
use layout::{RESULT_WORDS, TILE};
pub use memory::SamplerMemory;
use result::write;
pub use result::{DEAD_END, parse};
pub use self_test::{SamplerVerdict, samples};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) logits: FloatTensor<B>,
    pub(super) params: IntTensor<B>,
    pub(super) accounts: IntTensor<B>,
    pub(super) results: IntTensor<B>,
    pub(super) ids: IntTensor<B>,
    pub(super) step: IntTensor<B>,
    pub(super) shape: SamplerShape,
}

op! {
    fn sample(Arguments) -> (IntTensor<Self>, IntTensor<Self>, IntTensor<Self>, IntTensor<Self>)
}

const ADJUST_WORKGROUP: usize = 64;
const DRY_WORKGROUP: usize = 64;
const DRY_WORKGROUPS: u32 = 4;
const WEIGH_WORKGROUP: usize = 256;
/// Logits per workgroup of the kernel that weighs.
const WEIGH_PART: usize = 4096;
/// Largest number of tokens of a bin that are compared pair by pair.
const GATHER: usize = 256;
/// Bins of weights: enough for distances up to 12 temperatures, and one for the rest; a multiple of 8.
const BINS: usize = 312;
const TILE_WORDS: usize = 4;

/// Samples a token for each row of `logits` `[rows, vocab]` whose [`RowChoice`] in `memory` names a slot,
/// records it in the slot's account, writes a result, and makes the row feed it next: `ids` `[rows]` and
/// the positions of `step` change in place, as `memory` does.
pub fn sample(logits: Tensor<2>, memory: &mut SamplerMemory, ids: &mut InPlace, step: &mut Step) {
    let (accounts, results) = memory.take();
    let (new_accounts, new_results, new_ids, new_step) = Dispatch::sample(Arguments {
        logits: logits.into_dispatch(),
        params: memory.params().into_dispatch(),
        accounts: accounts.into_dispatch(),
        results: results.into_dispatch(),
        ids: ids.take().into_dispatch(),
        step: step.take().into_dispatch(),
        shape: memory.shape(),
    });
    memory.put(
        Tensor::from_dispatch(new_accounts),
        Tensor::from_dispatch(new_results),
    );
    ids.put(Tensor::from_dispatch(new_ids));
    step.put(Tensor::from_dispatch(new_step));
}

fn tiles(vocab: usize) -> usize {
    vocab.div_ceil(TILE)
}

fn scratch_words(vocab: usize) -> usize {
    tiles(vocab) * TILE_WORDS + 3 * BINS
}

/// Small vocabularies take small workgroups, whose barriers cost less on software adapters.
fn choose_workgroup(vocab: usize) -> usize {
    if vocab <= 8192 { 64 } else { 256 }
}

/// The composed kernels, in the order of their launches.
pub fn kernels(shape: SamplerShape) -> [Kernel; 4] {
    let common = |name: &str, bindings: &[&str], workgroup: usize| {
        let kernel = bindings
            .iter()
            .fold(Kernel::new(name), |kernel, binding| kernel.binding(binding));
        let kernel = layout::constants(step::layout(kernel), shape)
            .constant("TILE", TILE)
            .constant("TILES", tiles(shape.vocab))
            .constant("TILE_WORDS", TILE_WORDS)
            .constant("SCRATCH_BINS", tiles(shape.vocab) * TILE_WORDS)
            .constant("SCRATCH_WORDS", scratch_words(shape.vocab))
            .constant("BINS", BINS)
            .constant("WORKGROUP", workgroup);
        kernel.module(wgsl!("shared/sample/slot"))
    };
    let dry = common("sample_dry", &["params", "accounts"], DRY_WORKGROUP);
    let adjust = common(
        "sample_adjust",
        &["params", "logits", "accounts", "adjusted", "scratch"],
        ADJUST_WORKGROUP,
    );
    let weigh = common(
        "sample_weigh",
        &["params", "adjusted", "scratch"],
        WEIGH_WORKGROUP,
    );
    let choose = common(
        "sample_choose",
        &[
            "params", "logits", "adjusted", "scratch", "accounts", "ids", "step", "results",
        ],
        choose_workgroup(shape.vocab),
    );
    [
        dry.module(wgsl!("sample_dry")),
        adjust
            .module(wgsl!("shared/sample/order"))
            .module(wgsl!("sample_adjust")),
        weigh
            .constant("PART", WEIGH_PART)
            .module(wgsl!("shared/sample/order"))
            .module(wgsl!("shared/sample/weight"))
            .module(wgsl!("shared/sample/wide"))
            .module(wgsl!("sample_weigh")),
        choose
            .constant("CHUNKS", BINS / 8)
            .constant("GATHER", GATHER)
            .constant("RESULT_WORDS", RESULT_WORDS)
            .constant("RING", RING)
            .constant("TOP", TOP)
            .constant("INVALID_TOKEN", INVALID_TOKEN as usize)
            .constant("DEAD_END", DEAD_END as usize)
            .module(wgsl!("shared/sample/order"))
            .module(wgsl!("shared/sample/weight"))
            .module(wgsl!("shared/sample/wide"))
            .module(wgsl!("shared/sample/philox"))
            .module(wgsl!("shared/sample/locate"))
            .module(wgsl!("sample_choose")),
    ]
}

pub(super) fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor, CubeTensor, CubeTensor) {
    let [rows, vocab] = args.logits.shape().dims();
    let adjusted = output_words(&args.logits, [rows, vocab]);
    let scratch = output_words(&args.logits, [rows, scratch_words(vocab)]);
    let (y, parts) = (rows as u32, vocab.div_ceil(WEIGH_PART) as u32);
    let [dry, adjust, weigh, choose] = kernels(args.shape);
    dry.launch(&[&args.params, &args.accounts], [DRY_WORKGROUPS, y, 1]);
    let buffers = [
        &args.params,
        &args.logits,
        &args.accounts,
        &adjusted,
        &scratch,
    ];
    adjust.launch(&buffers, [tiles(vocab) as u32, y, 1]);
    weigh.launch(&[&args.params, &adjusted, &scratch], [parts, y, 1]);
    let buffers = [
        &args.params,
        &args.logits,
        &adjusted,
        &scratch,
        &args.accounts,
        &args.ids,
        &args.step,
        &args.results,
    ];
    choose.launch(&buffers, [y, 1, 1]);
    (args.accounts, args.results, args.ids, args.step)
}

pub(super) fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor, FlexTensor, FlexTensor) {
    let Arguments {
        logits,
        mut accounts,
        mut results,
        mut ids,
        mut step,
        ..
    } = args;
    let [_, vocab] = logits.shape().dims();
    let params_words = args.params.storage::<u32>();
    for (row, logits) in logits.storage::<f32>().chunks_exact(vocab).enumerate() {
        let Some(choice) = layout::read_row(params_words, row) else {
            continue;
        };
        let account = layout::account_mut(accounts.storage_mut::<u32>(), choice.slot, args.shape);
        let mut sampler = layout::read_sampler(params_words, account, choice.slot, args.shape);
        let mask = choice
            .is_masked
            .then(|| layout::read_mask(params_words, choice.slot, args.shape));
        let position = sampler.position();
        let sampled = sampler.sample(&mut logits.to_vec(), mask.as_ref(), choice.score);
        if !layout::has_failed(account) {
            write(
                results.storage_mut(),
                choice.slot,
                position,
                &sampled,
                &sampler,
            );
            layout::take_in(
                account,
                sampled.as_ref().ok().map(|it| it.id),
                &sampler,
                args.shape,
            );
        }
        ids.storage_mut::<u32>()[row] = sampled.map_or(0, |sampled| sampled.id);
        step::advance_row(step.storage_mut(), row);
    }
    (accounts, results, ids, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::sample::SamplingParams;

    #[test]
    fn the_host_samples_what_the_kernels_lack() {
        let with = |typical_p| SamplingParams {
            typical_p,
            ..SamplingParams::default()
        };
        assert!(accepts(&with(1.0), None, 1000));
        assert!(!accepts(&with(0.9), None, 1000));
    }

    #[test]
    fn kernels_are_valid_wgsl() {
        for vocab in [33, 152_064] {
            assert_valid(kernels(SamplerShape {
                slots: 8,
                vocab,
                history_tokens: 4096,
            }));
        }
    }
}
