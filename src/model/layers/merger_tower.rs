//! The vision towers of Qwen2-VL and its successors: patches of a picture of any size attend to each other, or to those of
//! their window; squares of them become rows of the text model, after the last layer and after some others.

use burn::tensor::Tensor;

use super::{
    decoder::Block,
    linear::{Linear, Norm},
};
use crate::{
    model::config::Windows,
    ops::{Activation, Finish, Variant, kv_memory::KvMemory, reshape::reshape, step::Step},
};

/// The whole tower and its projectors.
#[derive(Debug)]
pub struct MergerTower {
    /// `v.patch_embd.weight` and `v.patch_embd.weight.1`, `[dim, 3 * patch height * patch width]` each: of the two frames
    /// of a video that become a patch. A picture is both frames.
    pub patch_embd: [Linear; 2],
    /// `v.position_embd`, `[side * side, dim]`, on the host, which interpolates it; `None` if no positions are learned.
    pub position_embd: Option<Vec<f32>>,
    /// `v.blk.N`
    pub blocks: Vec<Block>,
    /// `v.post_ln`
    pub post_norm: Norm,
    /// `mm.0` and `mm.2`
    pub merger: [Linear; 2],
    /// `v.deepstack.N`, and N: the layer whose output it takes.
    pub deepstack: Vec<(usize, DeepMerger)>,
    /// Patches that become a row.
    pub square: usize,
    /// Which layers attend within windows.
    pub windows: Option<Windows>,
}

/// The patches of a picture, as layers attend to them.
#[derive(Debug)]
pub struct PatchSteps {
    /// All patches are one sequence.
    pub whole: Step,
    /// Each window is a sequence.
    pub windows: Step,
}

/// Makes rows of the output of a layer.
#[derive(Debug)]
pub struct DeepMerger {
    /// `norm`, of the patches of a square together.
    pub norm: Norm,
    /// `fc1` and `fc2`
    pub linears: [Linear; 2],
}

impl MergerTower {
    /// The rows of the text model and the values for its first layers, `[squares, projection_dim]` each, of patches
    /// `[patches, values]` and their learned positions `[patches, dim]`. `kv` is of one layer at a time.
    pub fn forward(
        &self,
        patches: Tensor<2>,
        positions: Option<Tensor<2>>,
        kv: &mut KvMemory,
        steps: &PatchSteps,
    ) -> Vec<Tensor<2>> {
        let [first, second] = &self.patch_embd;
        let x = match positions {
            Some(positions) => first.plus(patches.clone(), positions),
            None => first.normed(patches.clone(), None, Finish::Plain),
        };
        let mut x = second.plus(patches, x);
        let mut deep = Vec::new();
        for (layer, block) in self.blocks.iter().enumerate() {
            let is_whole = self.windows.is_none_or(|it| it.is_whole(layer));
            let step = if is_whole {
                &steps.whole
            } else {
                &steps.windows
            };
            x = block.attention.forward(x, kv, step);
            x = block.feed_forward.forward(x);
            let mergers = self.deepstack.iter().filter(|(of, _)| *of == layer);
            for (_, merger) in mergers {
                let merged = merger.norm.apply(self.merged(x.clone()));
                deep.push(projected(&merger.linears, merged));
            }
        }
        let merged = self.merged(self.post_norm.apply(x));
        let mut rows = vec![projected(&self.merger, merged)];
        rows.append(&mut deep);
        rows
    }

    /// The patches of each square as one row.
    fn merged(&self, x: Tensor<2>) -> Tensor<2> {
        let [patches, dim] = x.dims();
        reshape(x, [patches / self.square, dim * self.square])
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for block in &mut self.blocks {
            block.attention.set_variant(variant);
            block.feed_forward.set_variant(variant);
        }
        self.post_norm.variant = variant;
        let linears = self.patch_embd.iter_mut().chain(&mut self.merger);
        linears.for_each(|linear| linear.variant = variant);
        for (_, merger) in &mut self.deepstack {
            merger.norm.variant = variant;
            merger
                .linears
                .iter_mut()
                .for_each(|it| it.variant = variant);
        }
    }
}

/// A feed-forward without norm and residual.
fn projected([up, down]: &[Linear; 2], x: Tensor<2>) -> Tensor<2> {
    let hidden = up.normed(x, None, Finish::Activation(Activation::Gelu));
    down.normed(hidden, None, Finish::Plain)
}
