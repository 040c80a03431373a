//! A vision tower: patches of an image attend to each other, or to those of their window; squares of them become rows of the
//! text model, after the last layer and, in some families, after others.

use burn::tensor::Tensor;

use super::{
    decoder::Block,
    linear::{Linear, Norm},
    mixer::LayerMemory,
};
use crate::{
    model::vision::Windows,
    ops::{Activation, Finish, Variant, reshape::reshape, step::Step},
};

/// The whole tower and its projectors.
#[derive(Debug)]
pub struct Tower {
    /// `v.patch_embd.weight`, `v.patch_embd.weight.1`, `[dim, 3 * patch height * patch width]` each: a convolution whose
    /// stride is its size, of each frame of a video that becomes a patch.
    pub patch_embd: Vec<Linear>,
    /// `v.position_embd`, `[side * side, dim]`, on the host, which interpolates it; `None` if no positions are learned.
    pub position_embd: Option<Vec<f32>>,
    /// `v.blk.N`
    pub blocks: Vec<Block>,
    /// `v.post_ln`
    pub post_norm: Option<Norm>,
    /// `mm`
    pub projector: Projector,
    /// `v.deepstack.N`, and N: the layer whose output it takes.
    pub deepstack: Vec<(usize, Projector)>,
    /// Patches that become a row.
    pub square: usize,
    /// The layers that attend within windows; `None`: none.
    pub windows: Option<Windows>,
}

/// The patches of an image, as layers attend to them.
#[derive(Debug)]
pub struct PatchSteps {
    /// All patches are one sequence.
    pub whole: Step,
    /// Each window is a sequence.
    pub windows: Step,
}

/// Makes rows of the text model of joined patches.
#[derive(Debug)]
pub struct Projector {
    /// Norm of the input.
    pub norm: Option<Norm>,
    /// The matrices, at least one. Between them is a GELU.
    pub linears: Vec<Linear>,
}

impl Tower {
    /// The rows of the patches `[patches, values]` after the last layer, `[patches, dim]`, and the values for the first
    /// layers of the text model, `[squares, projection_dim]` each. `positions` are the learned ones, `[patches, dim]`;
    /// `kv` is of one layer at a time.
    pub fn forward(
        &self,
        patches: Tensor<2>,
        positions: Option<Tensor<2>>,
        kv: &mut LayerMemory,
        steps: &PatchSteps,
    ) -> (Tensor<2>, Vec<Tensor<2>>) {
        let mut x = positions;
        for frame in &self.patch_embd {
            x = Some(match x {
                Some(x) => frame.plus(patches.clone(), x),
                None => frame.normed(patches.clone(), None, Finish::Plain),
            });
        }
        let mut x = x.unwrap_or(patches);
        let mut deep = Vec::new();
        for (layer, block) in self.blocks.iter().enumerate() {
            let is_whole = self.windows.is_none_or(|it| it.is_whole(layer));
            let step = if is_whole {
                &steps.whole
            } else {
                &steps.windows
            };
            x = block.mixer.forward(x, std::slice::from_mut(kv), step);
            x = block.feed_forward.forward(x);
            let projectors = self.deepstack.iter().filter(|(of, _)| *of == layer);
            deep.extend(projectors.map(|(_, it)| it.forward(self.joined(x.clone()))));
        }
        let x = match &self.post_norm {
            Some(norm) => norm.apply(x),
            None => x,
        };
        (x, deep)
    }

    /// The patches of each square as one row: `[patches, dim]` to `[squares, square * dim]`.
    pub fn joined(&self, x: Tensor<2>) -> Tensor<2> {
        let [patches, dim] = x.dims();
        reshape(x, [patches / self.square, dim * self.square])
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for block in &mut self.blocks {
            block.mixer.set_variant(variant);
            block.feed_forward.set_variant(variant);
        }
        let norm = self.post_norm.iter_mut();
        norm.for_each(|norm| norm.variant = variant);
        let frames = self.patch_embd.iter_mut();
        frames.for_each(|linear| linear.variant = variant);
        self.projector.set_variant(variant);
        let projectors = self.deepstack.iter_mut();
        projectors.for_each(|(_, it)| it.set_variant(variant));
    }
}

impl Projector {
    /// Joined patches, `[squares, cols]`, as rows of the text model.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let mut norm = self.norm.as_ref();
        let last = self.linears.len() - 1;
        self.linears.iter().enumerate().fold(x, |x, (at, linear)| {
            let finish = match at == last {
                true => Finish::Plain,
                false => Finish::Activation(Activation::Gelu),
            };
            linear.normed(x, norm.take(), finish)
        })
    }

    fn set_variant(&mut self, variant: Variant) {
        let norm = self.norm.iter_mut();
        norm.for_each(|norm| norm.variant = variant);
        let linears = self.linears.iter_mut();
        linears.for_each(|linear| linear.variant = variant);
    }
}
