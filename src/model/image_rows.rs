//! Runs a vision tower: from the pixels of an image, or of a part of one, to rows of the text model.

use burn::tensor::{Device, Tensor};

use super::{
    layers::{
        mixer::LayerMemory,
        tower::{PatchSteps, Tower},
    },
    load::TowerPlan,
    patch_grid::PatchGrid,
    vision::{Join, LearnedPositions, VisionConfig},
};
use crate::{
    Error, Result,
    device::{self, ComputeDevice, read},
    images::Image,
    ops::{
        Variant,
        step::{PAGE_TOKENS, PARTS, Rotary, Segment, Step},
    },
};

/// A vision tower with its buffers, ready to run.
pub struct Vision {
    device: ComputeDevice,
    tower: Tower,
    config: VisionConfig,
    /// K and V of one layer at a time.
    kv: LayerMemory,
    steps: PatchSteps,
    pages: Vec<u32>,
    /// The learned positions of the last pixels' patches, on the device. The tiles of an image have the same.
    positions: Option<(PatchGrid, Tensor<2>)>,
}

impl Vision {
    /// Reserves the buffers.
    pub(crate) fn new(
        device: ComputeDevice,
        variant: Variant,
        mut tower: Tower,
        plan: &TowerPlan,
    ) -> Vision {
        tower.set_variant(variant);
        let reservation = &plan.plan.reservation;
        let tensors = device.tensors();
        let patches = plan.config.squares.max_patches;
        Vision {
            kv: reservation.memories(tensors).remove(0),
            steps: PatchSteps {
                whole: Step::new(patches, reservation.pages, tensors),
                windows: window_step(&plan.config, tensors),
            },
            pages: (0..reservation.pages as u32).collect(),
            positions: None,
            config: plan.config.clone(),
            tower,
            device,
        }
    }

    /// The hyperparameters.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Rows of the text model for pixels of the size that `VisionConfig::format` asks for, `[rows, dim]`; each with the
    /// values for its first layers if there are such, `[rows, (1 + layers) * dim]`.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] and the like; [`Error::Internal`] for another size.
    pub async fn encode(&mut self, pixels: &Image) -> Result<Vec<f32>> {
        let grid = self.grid(pixels)?;
        let pixels = pixels.normalized(self.config.mean, self.config.std);
        self.device.give_turn().await;
        self.set_steps(grid);
        let positions = self.positions(grid);
        let patches = grid.patches(&pixels, self.config.patch_size);
        let patches = upload(&self.device, patches, self.config.patch_values());
        let (x, deep) = self
            .tower
            .forward(patches, positions, &mut self.kv, &self.steps);
        let joined = match self.config.tower.projector.join {
            Join::Concatenate => self.tower.joined(x),
            join => {
                let dim = self.config.layers.dim;
                let mut means = means(&self.floats(x).await?, self.config.square(), dim);
                if join == Join::LargeMean {
                    let root = (dim as f32).sqrt();
                    means.iter_mut().for_each(|mean| *mean *= root);
                }
                upload(&self.device, means, dim)
            }
        };
        let mut values = vec![self.floats(self.tower.projector.forward(joined)).await?];
        for part in deep {
            values.push(self.floats(part).await?);
        }
        let dim = self.config.projection_dim;
        let rows = grid.square_places().into_iter().flat_map(|row| {
            values
                .iter()
                .flat_map(move |part| &part[row * dim..][..dim])
        });
        Ok(rows.copied().collect())
    }

    /// The patches of pixels.
    fn grid(&self, pixels: &Image) -> Result<PatchGrid> {
        let (patch, merge) = (self.config.patch_size, self.config.squares.side);
        let grid = PatchGrid {
            rows: pixels.height / patch,
            columns: pixels.width / patch,
            merge,
            window: self.config.windows.map(|it| it.side),
        };
        let side = merge * patch;
        let is_whole = pixels.width.is_multiple_of(side) && pixels.height.is_multiple_of(side);
        let patches = 1..=self.config.squares.max_patches;
        match is_whole && patches.contains(&grid.count()) {
            true => Ok(grid),
            false => Err(Error::Internal("pixels of another size".into())),
        }
    }

    /// The learned positions of patches, `[patches, dim]`.
    fn positions(&mut self, grid: PatchGrid) -> Option<Tensor<2>> {
        let table = self.tower.position_embd.as_ref()?;
        let (_, positions) = match self.positions.take().filter(|(of, _)| *of == grid) {
            Some(kept) => self.positions.insert(kept),
            None => {
                let kind = self.config.tower.positions;
                let side = match kind {
                    LearnedPositions::PerAxis => self.config.longest_side(),
                    _ => self.config.position_side(),
                };
                let positions = grid.positions(table, side, kind);
                let positions = upload(&self.device, positions, self.config.layers.dim);
                self.positions.insert((grid, positions))
            }
        };
        Some(positions.clone())
    }

    /// Sets the states of the steps of the patches and, if there are such, of their windows.
    fn set_steps(&mut self, grid: PatchGrid) {
        let rotary = match self.config.layers.rope() {
            Some(_) => grid.rotary(),
            None => Vec::new(),
        };
        let whole = window(0, grid.count(), &self.pages, &rotary);
        self.steps.whole.set(&[whole]);
        if self.config.windows.is_some() {
            let mut begin = 0;
            let windows = grid.windows().map(|patches| {
                begin += patches;
                window(begin - patches, begin, &self.pages, &rotary)
            });
            self.steps.windows.set(&windows.collect::<Vec<_>>());
        }
    }

    async fn floats(&self, tensor: Tensor<2>) -> Result<Vec<f32>> {
        let values = read(tensor.into_dispatch()).await;
        values.map_err(|e| self.device.failure(e))
    }
}

/// The patches `begin..end` of an image, whose keys and values are on the pages that the whole image has. `rotary` is empty
/// if they have no rotary positions.
fn window<'a>(
    begin: usize,
    end: usize,
    pages: &'a [u32],
    rotary: &'a [[u32; PARTS]],
) -> Segment<'a> {
    Segment {
        position: begin % PAGE_TOKENS,
        tokens: end - begin,
        pages: &pages[begin / PAGE_TOKENS..end.div_ceil(PAGE_TOKENS)],
        state: 0,
        is_seen_whole: false,
        rotary: Rotary {
            offset: 0,
            rows: rotary.get(begin..end).unwrap_or_default(),
        },
    }
}

/// The step state of the windows of any image.
fn window_step(config: &VisionConfig, device: &Device) -> Step {
    let Some(windows) = config.windows else {
        return Step::new(0, 0, device);
    };
    // An image has the most windows if it is one square high.
    let count = config.rows().div_ceil(windows.side);
    let patches = config.squares.max_patches;
    // Beside the pages that it fills, a window may have parts of two.
    Step::new(patches, patches / PAGE_TOKENS + 2 * count, device)
}

fn upload(device: &ComputeDevice, values: Vec<f32>, cols: usize) -> Tensor<2> {
    let rows = values.len() / cols;
    device::upload(values, [rows, cols], device.tensors())
}

/// The means of every `count` rows, `[squares * count, dim]` to `[squares, dim]`.
fn means(squares: &[f32], count: usize, dim: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(squares.len() / count);
    for square in squares.chunks_exact(count * dim) {
        let column = |column: usize| square.iter().skip(column).step_by(dim).sum::<f32>();
        values.extend((0..dim).map(|at| column(at) / count as f32));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_square_is_that_of_its_rows() {
        let square = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 6.0, 60.0];
        let other = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 4.0, 1.0];
        let means = means(&[square, other].concat(), 4, 2);
        assert_eq!(means, [3.0, 30.0, 1.0, 1.0]);
    }
}
