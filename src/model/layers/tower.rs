//! A vision tower: patches of a picture become rows, which attend to each other.

use burn::{module::Module, tensor::Tensor};

use super::{
    decoder::Block,
    linear::{Linear, Norm},
};
use crate::ops::{
    Finish, Variant, add_positions::add_positions, kv_memory::KvMemory, matrix::Matrix, step::Step,
};

/// The whole tower and its projector.
#[derive(Module, Debug)]
pub struct Tower {
    /// `v.patch_embd`, `[dim, 3 * patch height * patch width]`: a convolution whose stride is its size.
    pub patch_embd: Linear,
    /// `v.position_embd`, `[patches, dim]`
    pub position_embd: Matrix,
    /// `v.blk.N`
    pub blocks: Vec<Block>,
    /// `v.post_ln`
    pub post_norm: Norm,
    /// `mm.soft_emb_norm`, before the projector.
    pub projector_norm: Option<Norm>,
    /// `mm.model.fc`, `mm.input_projection`
    pub projector: Linear,
}

impl Tower {
    /// The rows of the patches, `[patches, values]` to `[patches, dim]`. `kv` is of one layer at a time.
    pub fn forward(&self, patches: Tensor<2>, kv: &mut KvMemory, step: &Step) -> Tensor<2> {
        let x = self.patch_embd.normed(patches, None, Finish::Plain);
        let mut x = add_positions(x, &self.position_embd, step);
        for block in &self.blocks {
            x = block.attention.forward(x, kv, step);
            x = block.feed_forward.forward(x);
        }
        self.post_norm.apply(x)
    }

    /// The rows of the text model.
    pub fn project(&self, rows: Tensor<2>) -> Tensor<2> {
        self.projector
            .normed(rows, self.projector_norm.as_ref(), Finish::Plain)
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for block in &mut self.blocks {
            block.attention.set_variant(variant);
            block.feed_forward.set_variant(variant);
        }
        let norms = [&mut self.post_norm].into_iter();
        norms
            .chain(&mut self.projector_norm)
            .for_each(|norm| norm.variant = variant);
        self.patch_embd.variant = variant;
        self.projector.variant = variant;
    }
}
