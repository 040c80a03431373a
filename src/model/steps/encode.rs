//! Steps of an encoder: whole inputs, op by op, without captured graphs.

use burn::tensor::{Device, Tensor};

use super::{Steps, sizes::encoder_rows, upload};
use crate::{
    Error, Result, device,
    ops::{matvec, rows::rows, step::Segment},
};

/// Pooled vectors that are multiplied together; always this many rows, so that the same kernels run.
const DENSE_ROWS: usize = 2 * matvec::MAX_TOKENS;

impl Steps {
    /// The vectors of the tokens of whole inputs, `[tokens, dim]`, from their ids and their types.
    pub async fn encode(
        &mut self,
        segments: &[Segment<'_>],
        mut ids: Vec<u32>,
        mut types: Vec<u32>,
    ) -> Result<Vec<f32>> {
        let tokens = ids.len();
        self.device.give_turn().await;
        // Rows of the CPU are not padded further: there are no buffers to share.
        let count = match self.device.recorder() {
            Some(_) => encoder_rows(tokens),
            None => tokens.max(DENSE_ROWS),
        };
        ids.resize(count, 0);
        types.resize(count, 0);
        self.set_step(segments);
        if let Some(of_types) = &mut self.decoder.token_types {
            // Models of one text at a time have one type.
            let last = of_types.count() as u32 - 1;
            types.iter_mut().for_each(|ty| *ty = last.min(*ty));
            of_types.of_tokens = upload(&types, self.device.tensors());
        }
        let ids = upload(&ids, self.device.tensors());
        let x = self
            .decoder
            .forward(ids, None, &mut self.memory, &self.step);
        let x = self.decoder.normed(rows(x, 0, tokens));
        self.floats(x).await
    }

    /// The products of the model's dense layers with pooled vectors.
    pub async fn densed(&self, pooled: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>> {
        if self.decoder.dense.is_empty() {
            return Ok(pooled);
        }
        let mut vectors = Vec::with_capacity(pooled.len());
        for pooled in pooled.chunks(DENSE_ROWS) {
            let x = upload_rows(pooled, self.device.tensors())?;
            let x = self.decoder.densed(x);
            let [_, width] = x.dims();
            let values = self.floats(rows(x, 0, pooled.len())).await?;
            vectors.extend(values.chunks_exact(width).map(<[f32]>::to_vec));
        }
        Ok(vectors)
    }
}

/// Rows, padded with zeros to [`DENSE_ROWS`].
fn upload_rows(vectors: &[Vec<f32>], device: &Device) -> Result<Tensor<2>> {
    let none = || Error::Internal("no vectors".into());
    let width = vectors.first().ok_or_else(none)?.len();
    let mut values = vectors.concat();
    values.resize(DENSE_ROWS * width, 0.0);
    Ok(device::upload(values, [DENSE_ROWS, width], device))
}
