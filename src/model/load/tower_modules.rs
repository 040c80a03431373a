//! Checks and builds the modules of a vision tower, whose tensors have the names that `tower` gives them.

use super::{modules::Loader, tensors::Check};
use crate::{
    Result,
    model::{
        layers::{
            linear::Norm,
            tower::{Projector, Tower},
        },
        vision::{LearnedPositions, ProjectorNorm, VisionConfig},
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
        if tower.positions != LearnedPositions::None {
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
        let (kind, mut cols) = (&vision.tower.projector, vision.joined_dim());
        if let Some(norm) = kind.norm.filter(|norm| self.has(norm)) {
            self.needed(&format!("{}.weight", norm.name), &[cols])?;
            if norm.kind.has_bias() {
                self.needed(&format!("{}.bias", norm.name), &[cols])?;
            }
        }
        for (at, name) in kind.linears.iter().enumerate() {
            let weight = format!("{name}.weight");
            let rows = match (at + 1 == kind.linears.len(), self.gguf.tensor(&weight)) {
                // No key states the width between the matrices.
                (false, Some(tensor)) => tensor.row_count() as usize,
                _ => vision.projection_dim,
            };
            match kind.is_transposed {
                true => self.needed(&weight, &[rows, cols])?,
                false => self.linear(name, [cols, rows])?,
            }
            cols = rows;
        }
        Ok(())
    }

    /// Whether the file has a norm, or must have it.
    fn has(&self, norm: &ProjectorNorm) -> bool {
        let weight = format!("{}.weight", norm.name);
        !norm.is_optional || self.gguf.tensor(&weight).is_some()
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
            position_embd: match vision.tower.positions {
                LearnedPositions::None => None,
                _ => Some(self.floats("position_embd.weight").await?),
            },
            blocks: self.blocks().await?,
            post_norm: self.norm("output_norm").await?,
            projector: Projector {
                norm: match kind.norm {
                    Some(norm) => self.projector_norm(norm).await?,
                    None => None,
                },
                linears,
            },
            deepstack,
            square: vision.square(),
            windows: vision.windows,
        })
    }

    async fn projector_norm(&mut self, norm: ProjectorNorm) -> Result<Option<Norm>> {
        let weight = format!("{}.weight", norm.name);
        if self.tensors.find(&weight).is_none() {
            return Ok(None);
        }
        let found = self.norm_of(norm.kind, norm.name).await?;
        let eps = norm.eps.unwrap_or(found.eps);
        Ok(Some(Norm { eps, ..found }))
    }
}
