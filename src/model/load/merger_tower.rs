//! Checks and builds the vision towers of Qwen2-VL and its successors, whose tensors have the names that `tower` gives them.

use super::{modules::Loader, tensors::Check};
use crate::{
    Result,
    model::{
        config::{Merger, MergerFamily, vision::VisionConfig},
        layers::merger_tower::{DeepMerger, MergerTower},
    },
    weights::ByteSource,
};

impl Check<'_> {
    /// The parts of such a tower outside of its layers.
    pub(super) fn merger_tower(
        &mut self,
        vision: &VisionConfig,
        family: MergerFamily,
    ) -> Result<()> {
        let dim = vision.layers.dim;
        let wide = dim * vision.square();
        self.needed("patch_embd.weight", &[vision.patch_values(), dim])?;
        self.needed("patch_embd_1.weight", &[vision.patch_values(), dim])?;
        if family.learns_positions() {
            self.needed("patch_embd.bias", &[dim])?;
            let side = vision.image_size / vision.patch_size;
            self.needed("position_embd.weight", &[dim, side * side])?;
        }
        self.norm("output_norm", dim)?;
        self.linear("mm.0", [wide, wide])?;
        self.linear("mm.2", [wide, vision.projection_dim])?;
        for layer in &vision.deepstack {
            let name = |part: &str| format!("v.deepstack.{layer}.{part}");
            self.norm(&name("norm"), wide)?;
            self.linear(&name("fc1"), [wide, wide])?;
            self.linear(&name("fc2"), [wide, vision.projection_dim])?;
        }
        Ok(())
    }
}

impl<S: ByteSource> Loader<'_, S> {
    /// The whole tower.
    pub(super) async fn merger_tower(
        &mut self,
        vision: &VisionConfig,
        merger: Merger,
    ) -> Result<MergerTower> {
        let blocks = self.blocks().await?;
        let mut deepstack = Vec::new();
        for &layer in &vision.deepstack {
            let name = |part: &str| format!("v.deepstack.{layer}.{part}");
            let merger = DeepMerger {
                norm: self.norm(&name("norm")).await?,
                linears: [
                    self.linear(&name("fc1")).await?,
                    self.linear(&name("fc2")).await?,
                ],
            };
            deepstack.push((layer, merger));
        }
        Ok(MergerTower {
            patch_embd: [
                self.linear("patch_embd").await?,
                self.linear("patch_embd_1").await?,
            ],
            position_embd: match merger.family.learns_positions() {
                true => Some(self.floats("position_embd.weight").await?),
                false => None,
            },
            blocks,
            post_norm: self.norm("output_norm").await?,
            merger: [self.linear("mm.0").await?, self.linear("mm.2").await?],
            deepstack,
            square: vision.square(),
            windows: merger.windows,
        })
    }
}
