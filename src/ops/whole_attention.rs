//! Grouped-query attention without a causal mask (Vaswani et al. 2017; Devlin et al. 2018,
//! <https://arxiv.org/abs/1810.04805>): the tokens of a sequence attend to each other. For encoders.
//!
//! An encoder is a decoder without a mask (`ModelConfig::is_causal`). Its step holds whole texts, the kernels and the
//! loader are the same, and K and V of one layer at a time are kept in pages of f32. Steps are not captured: texts have
//! any length, and there is one step per batch. They are padded to at least 16 rows, so that a short text runs the same
//! kernels alone and beside others; a token adds the others in the order of their positions, whatever tile or page they
//! are on.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    attention::{Arguments, AttentionShape, attended, attended_on_cpu, sight},
    kv_memory::{KvFormat, KvMemory},
    op::{Maybe, op, output},
    step::{self, Step},
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

op! {
    cpu if (|it| it.variant.cpu);
    fn whole_attention(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;
/// Vectors of the keys, and of the values, that a workgroup shares: half of the 16 KiB that every device has.
const TILE_VECTORS: usize = 512;

/// Attends with rotated, scaled queries `[tokens, heads * head_dim]` to all tokens of each query's segment, or,
/// with a window of n, to those less than n away on either side. The segments of the step are whole sequences, which may
/// begin within a page.
/// Returns the same shape; padding rows are undefined.
pub fn whole_attention(
    q: Tensor<2>,
    kv: &KvMemory,
    step: &Step,
    shape: AttentionShape,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::whole_attention(Arguments {
        q: q.into_dispatch(),
        kv: kv.words().into_dispatch(),
        step: step.words().into_dispatch(),
        sinks: Maybe::None,
        shape,
        format: kv.format(),
        variant,
    }))
}

/// The composed kernel.
pub fn kernel(shape: AttentionShape, format: KvFormat) -> Kernel {
    let vectors = shape.head_dim / 4;
    let kernel = Kernel::new(format!("whole_attention_{}", format.name()))
        .binding("q")
        .binding("kv")
        .binding("out")
        .binding("step")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("VECTORS", vectors)
        .constant("Q_DIM", shape.q_dim())
        .constant("KV_DIM", shape.kv_dim())
        .constant("WORKGROUP", WORKGROUP)
        .constant("TILE", (TILE_VECTORS / vectors).clamp(1, 32));
    step::layout(sight(kernel, shape))
        .module(wgsl!("shared/step"))
        .module(format.load_wgsl())
        .module(wgsl!("shared/soft_cap"))
        .module(wgsl!("whole_attention"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, dim] = args.q.shape().dims();
    let out = output(&args.q, [tokens, dim]);
    let grid = [
        args.shape.heads as u32,
        tokens.div_ceil(WORKGROUP) as u32,
        1,
    ];
    kernel(args.shape, args.format).launch(&[&args.q, &args.kv, &out, &args.step], grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let window = args.shape.window.unwrap_or(usize::MAX);
    attended(args, |words, row| {
        let position = step::row_position(words, row);
        let first = step::row_first(words, row).max((position + 1).saturating_sub(window));
        first..step::row_length(words, row).min(position.saturating_add(window))
    })
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    attended_on_cpu(args, |words, token, row| {
        let first = step::row_first(words, token);
        row.seeing(step::row_length(words, token)).since(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::heads;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid(
            heads()
                .into_iter()
                .map(|(_, shape, _, format)| kernel(shape, format)),
        );
    }
}
