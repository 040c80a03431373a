//! Builds the parts that give each layer a vector per token, from their tensors.

use std::{f32::consts::FRAC_1_SQRT_2, sync::Arc};

use burn::tensor::Tensor;

use super::{
    modules::{Loader, name},
    tensors::LAYER_TOKENS,
};
use crate::{
    Result,
    device::{reserve_words, upload_words},
    model::layers::{
        layer_input::{LayerInput, LayerInputs, MAX_ROWS},
        linear::Join,
    },
    ops::InPlace,
    weights::ByteSource,
};

impl<S: ByteSource> Loader<'_, S> {
    /// `layer_output_scale`
    pub(super) async fn layer_scale(&mut self, layer: usize) -> Result<Option<Tensor<1>>> {
        if !self.config.has_layer_scale {
            return Ok(None);
        }
        let scale = self
            .floats(&name(layer, "layer_output_scale.weight"))
            .await?;
        Ok(Some(self.tensors.vector(scale)))
    }

    pub(super) async fn layer_input(&mut self, layer: usize) -> Result<Option<Box<LayerInput>>> {
        let width = self.config.layer_input_dim;
        if width == 0 {
            return Ok(None);
        }
        let norm = self.norm(&name(layer, "post_norm")).await?;
        Ok(Some(Box::new(LayerInput {
            inp_gate: self.linear(&name(layer, "inp_gate")).await?,
            proj: self.linear(&name(layer, "proj")).await?,
            join: Join {
                norm: Some(norm),
                sum_norm: None,
                scale: 1.0,
                out_scale: self.layer_scale(layer).await?,
            },
            first_column: upload_words(vec![(layer * width) as u32], [1], self.tensors.device()),
            activation: self.config.feed_forward.activation(),
        })))
    }

    pub(super) async fn layer_inputs(&mut self) -> Result<Option<LayerInputs>> {
        let (width, dim) = (self.config.layer_input_dim as f32, self.config.dim as f32);
        if width == 0.0 {
            return Ok(None);
        }
        let table = self.tensors.token_table(LAYER_TOKENS).await?;
        let mut norm = self.norm("per_layer_proj_norm").await?;
        let weights = self.floats("per_layer_proj_norm.weight").await?;
        let weights = weights.iter().map(|weight| weight * FRAC_1_SQRT_2);
        norm.weight = self.tensors.vector(weights.collect());
        Ok(Some(LayerInputs {
            token_rows: InPlace::new(reserve_words(MAX_ROWS * table.cols, self.tensors.device())),
            token_embd: Arc::new(table),
            token_scale: width.sqrt() * FRAC_1_SQRT_2,
            model_proj: self.linear("per_layer_model_proj").await?,
            model_scale: dim.sqrt().recip(),
            norm,
        }))
    }
}
