//! Checks and builds the modules of a vision tower, whose tensors have the names that `tower` gives them.

use super::{
    modules::{LIMITS, Loader, name},
    tensors::Check,
};
use crate::{
    Error, Result,
    model::{
        layers::{
            linear::Norm,
            tower::{Projector, Tower},
        },
        vision::{LearnedPositions, ProjectorNorm, VisionConfig},
    },
    ops::Variant,
    weights::ByteSource,
};

/// The matrices of a layer whose values may have limits.
const LIMITED: [&str; 7] = [
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
];

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
        match tower.positions {
            LearnedPositions::None => {}
            LearnedPositions::PerAxis => self.positions_per_axis(vision)?,
            LearnedPositions::Corners | LearnedPositions::Resized => {
                let positions = vision.position_side().pow(2);
                self.needed("position_embd.weight", &[dim, positions])?;
            }
        }
        if vision.layers.has_output_norm {
            self.norm("output_norm", dim)?;
        }
        if tower.has_limits {
            for layer in 0..vision.layers.layers.len() {
                for (matrix, limit) in LIMITED.iter().flat_map(|it| LIMITS.map(|to| (it, to))) {
                    self.possible(&name(layer, &format!("{matrix}.{limit}")), &[1])?;
                }
            }
        }
        self.projector(vision)?;
        let wide = dim * vision.square();
        for &layer in &vision.deepstack {
            self.norm(&deep(layer, "norm"), wide)?;
            self.linear(&deep(layer, "fc1"), [wide, wide])?;
            self.linear(&deep(layer, "fc2"), [wide, vision.projection_dim])?;
        }
        Ok(())
    }

    /// Two tables as long as the longest side of an image, at least.
    fn positions_per_axis(&mut self, vision: &VisionConfig) -> Result<()> {
        let name = "position_embd.weight";
        let dim = vision.layers.dim as u64;
        let entries = match self.gguf.tensor(name).map(|it| &it.shape[..]) {
            Some([cols, entries, 2]) if *cols == dim => *entries as usize,
            _ => vision.longest_side(),
        };
        if entries < vision.longest_side() {
            return Err(Error::UnsupportedModel(format!(
                "a vision tower with positions of {entries} patches for images of {}",
                vision.longest_side()
            )));
        }
        self.needed(name, &[vision.layers.dim, entries, 2])
    }

    fn projector(&mut self, vision: &VisionConfig) -> Result<()> {
        let (kind, mut cols) = (&vision.tower.projector, vision.joined_dim());
        let norm = kind.norm.filter(|norm| self.has(norm));
        if let Some((norm, name)) = norm.and_then(|norm| Some((norm, norm.name?))) {
            self.needed(&format!("{name}.weight"), &[cols])?;
            if norm.kind.has_bias() {
                self.needed(&format!("{name}.bias"), &[cols])?;
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
        let is_there = |name: &str| self.gguf.tensor(&format!("{name}.weight")).is_some();
        !norm.is_optional || norm.name.is_some_and(is_there)
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
                kind => {
                    let table = self.floats("position_embd.weight").await?;
                    Some(match kind {
                        LearnedPositions::PerAxis => shortened(table, vision),
                        _ => table,
                    })
                }
            },
            blocks: self.blocks().await?,
            post_norm: match vision.layers.has_output_norm {
                true => Some(self.norm("output_norm").await?),
                false => None,
            },
            projector: Projector {
                norm: match kind.norm {
                    Some(norm) => self.projector_norm(norm, vision.joined_dim()).await?,
                    None => None,
                },
                linears,
            },
            deepstack,
            square: vision.square(),
            windows: vision.windows,
        })
    }

    async fn projector_norm(&mut self, norm: ProjectorNorm, cols: usize) -> Result<Option<Norm>> {
        let Some(name) = norm.name else {
            return Ok(Some(Norm {
                weight: self.tensors.vector(vec![1.0; cols]),
                bias: None,
                kind: norm.kind,
                eps: norm.eps.unwrap_or(self.config.norm_eps),
                variant: Variant::PORTABLE,
            }));
        };
        if self.tensors.find(&format!("{name}.weight")).is_none() {
            return Ok(None);
        }
        let found = self.norm_of(norm.kind, name).await?;
        let eps = norm.eps.unwrap_or(found.eps);
        Ok(Some(Norm { eps, ..found }))
    }
}

/// The entries of both axes that images need: tables are much longer.
fn shortened(table: Vec<f32>, vision: &VisionConfig) -> Vec<f32> {
    let needed = vision.longest_side() * vision.layers.dim;
    let axes = table.chunks_exact((table.len() / 2).max(1));
    axes.flat_map(|axis| &axis[..needed.min(axis.len())])
        .copied()
        .collect()
}
