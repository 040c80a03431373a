//! Multi-head latent attention (DeepSeek-AI 2024, <https://arxiv.org/abs/2405.04434>). A token has one key for all heads: elements
//! that are rotated, and a latent. It is the value, too. Matrices per head take queries to the latent's space, and results from
//! it, so that only latents are kept.

use burn::tensor::{Int, Tensor};

use super::linear::{Linear, Norm};
use crate::ops::{
    Finish, Variant,
    head_product::{HeadShape, head_product},
    latent_row::latent_row,
};

/// The projections to queries, `[tokens, heads * (rotated + rank)]`, and to keys, `[tokens, rotated + rank]`.
#[derive(Debug, Clone)]
pub struct LatentProjections {
    /// `attn_q_a` and `attn_q_a_norm`: what queries are projected from in place of the input.
    pub query_latent: Option<QueryLatent>,
    /// The rows of `attn_q` or `attn_q_b` whose results are rotated, and the others.
    pub q_rotated: Linear,
    pub q_plain: Linear,
    /// `attn_k_b`
    pub keys: HeadMatrices,
    /// `attn_kv_a_mqa`, the rows of the rotated elements first.
    pub kv_a: Linear,
    /// `attn_kv_a_norm`
    pub kv_norm: Tensor<1>,
    pub eps: f32,
}

/// A product and its norm.
#[derive(Debug, Clone)]
pub struct QueryLatent {
    pub down: Linear,
    pub norm: Norm,
}

/// A matrix for each head.
#[derive(Debug, Clone)]
pub struct HeadMatrices {
    /// See [`crate::ops::head_product::upload_head_matrices`].
    pub words: Tensor<1, Int>,
    pub shape: HeadShape,
}

impl HeadMatrices {
    /// The products with the heads of `x`, each behind its part of `prefix`.
    pub fn apply(&self, x: Tensor<2>, prefix: Option<Tensor<2>>) -> Tensor<2> {
        head_product(x, self.words.clone(), prefix, self.shape)
    }
}

impl LatentProjections {
    /// Queries, keys and values of `norm(x)`, `x` `[tokens, dim]`.
    pub fn project(&self, x: Tensor<2>, norm: Option<&Norm>) -> [Tensor<2>; 3] {
        let (x, norm) = Norm::input(norm, x);
        let (q_input, q_norm) = match &self.query_latent {
            Some(latent) => {
                let down = &latent.down;
                let q = down.product(x.clone(), norm.clone(), Finish::Plain, None);
                Norm::input(Some(&latent.norm), q)
            }
            None => (x.clone(), norm.clone()),
        };
        let of_query =
            |rows: &Linear| rows.product(q_input.clone(), q_norm.clone(), Finish::Plain, None);
        let plain = of_query(&self.q_plain);
        let q = self.keys.apply(plain, Some(of_query(&self.q_rotated)));
        let row = self.kv_a.product(x, norm, Finish::Plain, None);
        let row = latent_row(row, self.kv_norm.clone(), self.eps);
        [q, row.clone(), row]
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for linear in [&mut self.q_rotated, &mut self.q_plain, &mut self.kv_a] {
            linear.variant = variant;
        }
        if let Some(latent) = &mut self.query_latent {
            latent.down.variant = variant;
            latent.norm.variant = variant;
        }
    }
}
