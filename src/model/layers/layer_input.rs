//! A vector per token for each layer, which is gated by the stream and added to it at the end of the layer (Gemma 3n,
//! Gemma Team 2025, <https://ai.google.dev/gemma/docs/gemma-3n>).

use std::sync::Arc;

use burn::tensor::{Int, Tensor};

use super::linear::{Join, Linear, Norm};
use crate::{
    ops::{
        Activation, Finish, InPlace, Variant, gate_columns::gate_columns, reshape::reshape,
        word_rows::word_rows,
    },
    tensor_types::TensorType,
};

/// Rows of the longest step.
pub const MAX_ROWS: usize = 256;

/// A table of a vector per token in the memory of the host: it may be larger than everything that is on the device, of
/// which a step needs a few rows.
#[derive(Debug)]
pub struct TokenTable {
    /// The rows as in the file; none in an outline.
    pub bytes: Vec<u8>,
    pub ty: TensorType,
    pub rows: usize,
    pub cols: usize,
}

impl TokenTable {
    /// The rows of tokens, times `scale`, as words. Ids beyond the table, which are those of images, have the first row, that
    /// of padding.
    fn words(&self, ids: &[u32], scale: f32) -> Vec<u32> {
        let row_bytes = self.bytes.len() / self.rows;
        let mut row = vec![0.0; self.cols];
        let mut words = Vec::with_capacity(ids.len() * self.cols);
        for id in ids {
            let row_of = Some(*id as usize).filter(|id| *id < self.rows);
            let at = row_of.unwrap_or(0) * row_bytes;
            self.ty
                .dequantize(&self.bytes[at..at + row_bytes], &mut row);
            words.extend(row.iter().map(|value| (value * scale).to_bits()));
        }
        words
    }
}

/// The vectors of all layers: `norm(model_scale * model_proj * x) + token_scale * token_embd[id]`, where the norm is of
/// each layer's vector, and its weights hold the factor of the mean of both.
#[derive(Debug, Clone)]
pub struct LayerInputs {
    /// `per_layer_token_embd`, `[vocab, layers * width]`
    pub token_embd: Arc<TokenTable>,
    /// Its rows for the tokens of a step, scaled, as words.
    pub token_rows: InPlace,
    pub token_scale: f32,
    /// `per_layer_model_proj`, `[layers * width, dim]`
    pub model_proj: Linear,
    pub model_scale: f32,
    /// `per_layer_proj_norm`, `[width]`
    pub norm: Norm,
}

impl LayerInputs {
    /// Sets the tokens of the next step.
    pub fn give(&mut self, ids: &[u32]) {
        let words = self.token_embd.words(ids, self.token_scale);
        self.token_rows.write(0, words);
    }

    /// `[tokens, layers * width]`, of the scaled embeddings `x` `[tokens, dim]` of the tokens that were given.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let finish = Finish::Scale(self.model_scale);
        let projected = self.model_proj.product(x, None, finish, None);
        let [tokens, cols] = projected.dims();
        let of_tokens = word_rows(&self.token_rows, [tokens, cols]);
        let width = self.norm.weight.dims()[0];
        let rows = [tokens * cols / width, width];
        let sum = self
            .norm
            .plus(reshape(projected, rows), Some(reshape(of_tokens, rows)));
        reshape(sum, [tokens, cols])
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        self.model_proj.variant = variant;
        self.norm.variant = variant;
    }
}

/// `(x + norm(proj * (act(inp_gate * x) * input))) * out_scale`
#[derive(Debug, Clone)]
pub struct LayerInput {
    /// `inp_gate`, `[width, dim]`
    pub inp_gate: Linear,
    /// `proj`, `[dim, width]`
    pub proj: Linear,
    /// The sum with the residual stream, after `post_norm`.
    pub join: Join,
    /// The first column of the layer's vector in those of all layers, `[1]`.
    pub first_column: Tensor<1, Int>,
    pub activation: Activation,
}

impl LayerInput {
    /// `x` `[tokens, dim]`, `inputs` `[tokens, layers * width]`.
    pub fn forward(&self, x: Tensor<2>, inputs: Tensor<2>) -> Tensor<2> {
        let finish = Finish::Activation(self.activation);
        let gate = self.inp_gate.product(x.clone(), None, finish, None);
        let gated = gate_columns(gate, inputs, self.first_column.clone());
        self.join.onto(x, &self.proj, gated)
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        self.inp_gate.variant = variant;
        self.proj.variant = variant;
        self.join
            .norm
            .iter_mut()
            .for_each(|norm| norm.variant = variant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tokens_are_scaled_and_ids_beyond_the_table_have_the_first_one() {
        let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let table = TokenTable {
            bytes: values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
            ty: TensorType::F32,
            rows: 3,
            cols: 2,
        };
        let words = table.words(&[2, 0, 9], 0.5);
        let floats: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        assert_eq!(floats, [2.5, 3.0, 0.5, 1.0, 0.5, 1.0]);
    }
}
