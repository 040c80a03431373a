//! Runs a vision tower: from the pixels of a tile to rows of the text model.

use burn::tensor::{Device, Tensor};

use super::{
    config::{
        Merger,
        vision::{Projector, VisionConfig},
    },
    layers::merger_tower::PatchSteps,
    load::{AnyTower, TowerPlan},
    patch_grid::PatchGrid,
};
use crate::{
    Error, Result,
    device::{self, ComputeDevice, read},
    ops::{
        Variant,
        kv_memory::KvMemory,
        step::{PAGE_TOKENS, PARTS, Rotary, Segment, Step},
    },
    pictures::Picture,
};

/// A vision tower with its buffers, ready to run.
pub struct Vision {
    device: ComputeDevice,
    tower: AnyTower,
    config: VisionConfig,
    /// K and V of one layer at a time.
    kv: KvMemory,
    steps: PatchSteps,
    pages: Vec<u32>,
}

impl Vision {
    /// Reserves the buffers.
    pub(crate) fn new(
        device: ComputeDevice,
        variant: Variant,
        mut tower: AnyTower,
        plan: &TowerPlan,
    ) -> Vision {
        match &mut tower {
            AnyTower::Squares(tower) => tower.set_variant(variant),
            AnyTower::Merger(tower) => tower.set_variant(variant),
        }
        let reservation = plan.plan.reservation;
        let tensors = device.tensors();
        Vision {
            kv: reservation.memory(tensors),
            steps: PatchSteps {
                whole: Step::new(plan.config.patches(), reservation.pages, tensors),
                windows: window_step(&plan.config, tensors),
            },
            pages: (0..reservation.pages as u32).collect(),
            config: plan.config.clone(),
            tower,
            device,
        }
    }

    /// The hyperparameters.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Rows of the text model for pixels of the size that [`VisionConfig::format`] asks for, `[rows, dim]`; each with the
    /// values for its first layers if there are such, `[rows, (1 + layers) * dim]`.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] and the like; [`Error::Internal`] for another size.
    pub async fn encode(&mut self, pixels: &Picture) -> Result<Vec<f32>> {
        let tower = match &self.tower {
            AnyTower::Squares(tower) => tower,
            AnyTower::Merger(_) => return self.encode_grid(pixels).await,
        };
        let size = self.config.image_size;
        if (pixels.width, pixels.height) != (size, size) {
            return Err(Error::Internal("pixels of another size".into()));
        }
        let pixels = pixels.normalized(self.config.mean, self.config.std);
        self.device.give_turn().await;
        let count = self.config.patches();
        self.steps.whole.set(&[Segment {
            position: 0,
            tokens: count,
            pages: &self.pages,
            is_seen_whole: false,
            rotary: Default::default(),
        }]);
        let patches = patches(&pixels, size, self.config.patch_size);
        let patches = upload(&self.device, patches, self.config.patch_values());
        let rows = tower.forward(patches, &mut self.kv, &self.steps.whole);
        let rows = self.floats(rows).await?;
        let edge = size / self.config.patch_size;
        let squares = match self.config.projector {
            Projector::PixelShuffle { side, .. } => squares(&rows, edge, side),
            Projector::AveragePool { side } => {
                let dim = self.config.layers.dim;
                means(&squares(&rows, edge, side), side.pow(2), dim)
            }
            Projector::Merger(_) => {
                return Err(Error::Internal("a projector of another kind".into()));
            }
        };
        let squares = upload(&self.device, squares, self.config.projector_shape()[0]);
        self.floats(tower.project(squares)).await
    }

    /// [`encode`](Self::encode) for a tower that takes pictures of any size.
    async fn encode_grid(&mut self, pixels: &Picture) -> Result<Vec<f32>> {
        let (AnyTower::Merger(tower), Projector::Merger(merger)) =
            (&self.tower, self.config.projector)
        else {
            return Err(Error::Internal("a tower of another kind".into()));
        };
        let (patch, side) = (self.config.patch_size, merger.side * self.config.patch_size);
        let grid = PatchGrid {
            rows: pixels.height / patch,
            columns: pixels.width / patch,
            merge: merger.side,
            window: merger.windows.map(|it| it.side),
        };
        let is_whole = pixels.width.is_multiple_of(side) && pixels.height.is_multiple_of(side);
        if !is_whole || !(1..=self.config.patches()).contains(&grid.count()) {
            return Err(Error::Internal("pixels of another size".into()));
        }
        let pixels = pixels.normalized(self.config.mean, self.config.std);
        self.device.give_turn().await;
        let rotary = grid.rotary();
        let whole = window(0, grid.count(), &self.pages, &rotary);
        self.steps.whole.set(&[whole]);
        if merger.windows.is_some() {
            let mut begin = 0;
            let windows = grid.windows().map(|patches| {
                begin += patches;
                window(begin - patches, begin, &self.pages, &rotary)
            });
            self.steps.windows.set(&windows.collect::<Vec<_>>());
        }
        let positions = tower.position_embd.as_ref().map(|table| {
            let positions = grid.positions(table, self.config.image_size / patch);
            upload(&self.device, positions, self.config.layers.dim)
        });
        let patches = grid.patches(&pixels, patch);
        let patches = upload(&self.device, patches, self.config.patch_values());
        let parts = tower.forward(patches, positions, &mut self.kv, &self.steps);
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
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

    async fn floats(&self, tensor: Tensor<2>) -> Result<Vec<f32>> {
        let values = read(tensor.into_dispatch()).await;
        values.map_err(|e| self.device.failure(e))
    }
}

/// The patches `begin..end` of a picture, whose keys and values are on the pages that the whole picture has.
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
        is_seen_whole: false,
        rotary: Rotary {
            offset: 0,
            rows: &rotary[begin..end],
        },
    }
}

/// The step state of the windows of any picture.
fn window_step(config: &VisionConfig, device: &Device) -> Step {
    let Projector::Merger(Merger {
        windows: Some(windows),
        ..
    }) = config.projector
    else {
        return Step::new(0, 0, device);
    };
    // A picture has the most windows if it is one square high.
    let count = config.rows().div_ceil(windows.side);
    // Beside the pages that it fills, a window may have parts of two.
    let pages = config.patches() / PAGE_TOKENS + 2 * count;
    Step::new(config.patches(), pages, device)
}

fn upload(device: &ComputeDevice, values: Vec<f32>, cols: usize) -> Tensor<2> {
    let rows = values.len() / cols;
    device::upload(values, [rows, cols], device.tensors())
}

/// The patches of `pixels` `[3, size, size]`, in rows from the top left: `[patches, 3 * patch * patch]`.
fn patches(pixels: &[f32], size: usize, patch: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(pixels.len());
    for top in (0..size).step_by(patch) {
        for left in (0..size).step_by(patch) {
            for channel in pixels.chunks_exact(size * size) {
                for row in channel.chunks_exact(size).skip(top).take(patch) {
                    values.extend_from_slice(&row[left..left + patch]);
                }
            }
        }
    }
    values
}

/// Puts the rows of each square of `side` by `side` patches one after another: `[edge, edge, dim]` to
/// `[(edge / side)^2, side * side * dim]`.
fn squares(rows: &[f32], edge: usize, side: usize) -> Vec<f32> {
    let dim = rows.len() / (edge * edge);
    let mut values = Vec::with_capacity(rows.len());
    for top in (0..edge).step_by(side) {
        for left in (0..edge).step_by(side) {
            for y in top..top + side {
                let start = (y * edge + left) * dim;
                values.extend_from_slice(&rows[start..start + side * dim]);
            }
        }
    }
    values
}

/// The mean of the rows of each square, `[squares, count * dim]` to `[squares, dim]`.
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
    fn patches_are_cut_in_rows() {
        // Two channels would do as well: the function does not count them.
        let pixels: Vec<f32> = (0..32).map(|x| x as f32).collect();
        let cut = patches(&pixels, 4, 2);
        assert_eq!(cut[..8], [0.0, 1.0, 4.0, 5.0, 16.0, 17.0, 20.0, 21.0]);
        assert_eq!(cut[8..12], [2.0, 3.0, 6.0, 7.0]);
        assert_eq!(cut[24..28], [10.0, 11.0, 14.0, 15.0]);
    }

    #[test]
    fn the_mean_of_a_square_is_that_of_its_rows() {
        let square = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 6.0, 60.0];
        let other = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 4.0, 1.0];
        let means = means(&[square, other].concat(), 4, 2);
        assert_eq!(means, [3.0, 30.0, 1.0, 1.0]);
    }

    #[test]
    fn the_patches_of_a_square_are_one_row() {
        let rows: Vec<f32> = (0..32).map(|x| x as f32).collect();
        let squares = squares(&rows, 4, 2);
        assert_eq!(squares[..8], [0.0, 1.0, 2.0, 3.0, 8.0, 9.0, 10.0, 11.0]);
        assert_eq!(
            squares[24..],
            [20.0, 21.0, 22.0, 23.0, 28.0, 29.0, 30.0, 31.0]
        );
    }
}
