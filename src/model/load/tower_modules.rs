//! Checks and builds the modules of a vision tower, whose tensors have the names that `tower` gives them.

use super::{modules::Loader, tensors::Check};
use crate::{
    Result,
    model::{
        config::NormKind,
        layers::tower::{Projector, Tower},
        vision::VisionConfig,
    },
    weights::ByteSource,
};

/// The matrix of a frame's patches.
fn patch_embd(frame: usize) -> String {
    match frame {
        0 => "patch_embd".to_owned(),
        frame => format!("patch_embd_{frame}"),
    }
}

/// A part of the projector of a layer's output.
fn deep(layer: usize, part: &str) -> String {
    format!("v.deepstack.{layer}.{part}")
}

impl Check<'_> {
    /// The tensors outside of the layers.
    pub(super) fn tower(&mut self, vision: &VisionConfig) -> Result<()> {
        let (tower, dim) = (vision.tower, vision.layers.dim);
        for frame in 0..tower.frames {
            let name = patch_embd(frame);
            self.needed(&format!("{name}.weight"), &[vision.patch_values(), dim])?;
            if tower.has_patch_bias && frame == 0 {
                self.needed(&format!("{name}.bias"), &[dim])?;
            }
        }
        if tower.learns_positions {
            let positions = vision.position_side().pow(2);
            self.needed("position_embd.weight", &[dim, positions])?;
        }
        self.norm("output_norm", dim)?;
        self.projector(vision)?;
        let wide = dim * vision.square();
        for &layer in &vision.deepstack {
            self.norm(&deep(layer, "norm"), wide)?;
            self.linear(&deep(layer, "fc1"), [wide, wide])?;
            self.linear(&deep(layer, "fc2"), [wide, vision.projection_dim])?;
        }
        Ok(())
    }

    fn projector(&mut self, vision: &VisionConfig) -> Result<()> {
        let (kind, wide) = (&vision.tower.projector, vision.joined_dim());
        if let Some(norm) = kind.norm {
            self.needed(&format!("{norm}.weight"), &[wide])?;
        }
        for (at, name) in kind.linears.iter().enumerate() {
            let rows = match at + 1 == kind.linears.len() {
                true => vision.projection_dim,
                false => wide,
            };
            match kind.is_transposed {
                true => self.needed(&format!("{name}.weight"), &[rows, wide])?,
                false => self.linear(name, [wide, rows])?,
            }
        }
        Ok(())
    }
}

impl<S: ByteSource> Loader<'_, S> {
    /// The whole tower.
    pub(super) async fn tower(&mut self, vision: &VisionConfig) -> Result<Tower> {
        let kind = &vision.tower.projector;
        let mut frames = Vec::new();
        for frame in 0..vision.tower.frames {
            frames.push(self.linear(&patch_embd(frame)).await?);
        }
        let mut linears = Vec::new();
        for name in kind.linears {
            linears.push(match kind.is_transposed {
                true => self.transposed(name).await?,
                false => self.linear(name).await?,
            });
        }
        let mut deepstack = Vec::new();
        for &layer in &vision.deepstack {
            let mut linears = Vec::new();
            for part in ["fc1", "fc2"] {
                linears.push(self.linear(&deep(layer, part)).await?);
            }
            let norm = Some(self.norm(&deep(layer, "norm")).await?);
            deepstack.push((layer, Projector { norm, linears }));
        }
        Ok(Tower {
            patch_embd: frames,
            position_embd: match vision.tower.learns_positions {
                true => Some(self.floats("position_embd.weight").await?),
                false => None,
            },
            blocks: self.blocks().await?,
            post_norm: self.norm("output_norm").await?,
            projector: Projector {
                norm: match kind.norm {
                    Some(norm) => Some(self.norm_of(NormKind::Rms, norm).await?),
                    None => None,
                },
                linears,
            },
            deepstack,
            square: vision.square(),
            windows: vision.windows,
        })
    }
}
