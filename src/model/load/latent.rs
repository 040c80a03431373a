//! Multi-head latent attention: the names and shapes of its tensors, and the modules that are built from them.

use std::ops::Range;

use super::{
    modules::{Loader, linear_of, name},
    tensors::Check,
};
use crate::{
    Result,
    model::{
        config::Latent,
        layers::{
            latent::{HeadMatrices, LatentProjections, QueryLatent},
            linear::Linear,
        },
    },
    ops::head_product::{HeadShape, upload_head_matrices},
    weights::ByteSource,
};

/// The matrices of keys and values, which files have in one tensor or apart.
const JOINED: &str = "attn_kv_b.weight";

impl Check<'_> {
    /// The tensors between the norm of the input and the output matrix.
    pub(super) fn latent(&mut self, layer: usize, latent: Latent) -> Result<()> {
        let (dim, heads) = (self.config.dim, self.config.heads);
        let Latent {
            rank, plain, value, ..
        } = latent;
        let rotated = self.config.head_dim - rank;
        let part = |part: &str| name(layer, part);
        let queries = heads * (rotated + plain);
        match latent.query_rank {
            Some(query_rank) => {
                self.needed(&part("attn_q_a.weight"), &[dim, query_rank])?;
                self.norm(&part("attn_q_a_norm"), query_rank)?;
                self.needed(&part("attn_q_b.weight"), &[query_rank, queries])?;
            }
            None => self.needed(&part("attn_q.weight"), &[dim, queries])?,
        }
        self.needed(&part("attn_kv_a_mqa.weight"), &[dim, rank + rotated])?;
        self.norm(&part("attn_kv_a_norm"), rank)?;
        if self.is_there(&part(JOINED)) {
            return self.needed(&part(JOINED), &[rank, heads * (plain + value)]);
        }
        self.needed(&part("attn_k_b.weight"), &[plain, rank, heads])?;
        self.needed(&part("attn_v_b.weight"), &[rank, value, heads])
    }
}

impl<S: ByteSource> Loader<'_, S> {
    /// The projections, and the matrices of values.
    pub(super) async fn latent(
        &mut self,
        layer: usize,
        latent: Latent,
    ) -> Result<(LatentProjections, HeadMatrices)> {
        let rank = latent.rank;
        let rotated = self.config.head_dim - rank;
        let (query_latent, queries) = match latent.query_rank {
            Some(_) => {
                let down = self.linear(&name(layer, "attn_q_a")).await?;
                let norm = self.norm(&name(layer, "attn_q_a_norm")).await?;
                (Some(QueryLatent { down, norm }), "attn_q_b")
            }
            None => (None, "attn_q"),
        };
        let queries = name(layer, &format!("{queries}.weight"));
        // The rotated elements of a head are its last ones in files.
        let of_heads = |first: usize, len: usize| {
            let firsts = (0..self.config.heads).map(move |head| head * (latent.plain + rotated));
            let rows = firsts.map(move |start| start + first..start + first + len);
            rows.collect::<Vec<Range<usize>>>()
        };
        let (plain, turned) = (of_heads(0, latent.plain), of_heads(latent.plain, rotated));
        let kv_a = [rank..rank + rotated, 0..rank];
        let [keys, values] = self.head_matrices(layer, latent).await?;
        let projections = LatentProjections {
            query_latent,
            q_rotated: self.some_rows(&queries, &turned).await?,
            q_plain: self.some_rows(&queries, &plain).await?,
            keys,
            kv_a: self
                .some_rows(&name(layer, "attn_kv_a_mqa.weight"), &kv_a)
                .await?,
            kv_norm: {
                let norm = self.floats(&name(layer, "attn_kv_a_norm.weight")).await?;
                self.tensors.vector(norm)
            },
            eps: self.config.norm_eps,
        };
        Ok((projections, values))
    }

    async fn some_rows(&mut self, tensor: &str, rows: &[Range<usize>]) -> Result<Linear> {
        let tensor = self.tensors.tensor(tensor)?;
        let rows: Vec<_> = rows.iter().map(|rows| (tensor, rows.clone())).collect();
        Ok(linear_of(self.tensors.rows(&rows).await?, None))
    }

    /// The matrices of keys and of values.
    async fn head_matrices(&mut self, layer: usize, latent: Latent) -> Result<[HeadMatrices; 2]> {
        let Latent {
            rank, plain, value, ..
        } = latent;
        let heads = self.config.heads;
        let (keys, values) = match self.tensors.find(&name(layer, JOINED)) {
            None => (
                self.elements(&name(layer, "attn_k_b.weight")).await?,
                self.elements(&name(layer, "attn_v_b.weight")).await?,
            ),
            Some(joined) => {
                let joined = self.tensors.elements(joined).await?;
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for of_head in joined.chunks_exact((plain + value) * rank) {
                    let (key, rest) = of_head.split_at(plain * rank);
                    // Queries are multiplied by the transposed matrix.
                    for column in 0..rank {
                        keys.extend(key.iter().skip(column).step_by(rank));
                    }
                    values.extend_from_slice(rest);
                }
                (keys, values)
            }
        };
        let device = self.tensors.device();
        let rotated = self.config.head_dim - rank;
        let keys = HeadMatrices {
            words: upload_head_matrices(&keys, rank, plain, device),
            shape: HeadShape {
                heads,
                rows: rank,
                cols: plain,
                x_len: plain,
                x_at: 0,
                prefix: rotated,
            },
        };
        let values = HeadMatrices {
            words: upload_head_matrices(&values, value, rank, device),
            shape: HeadShape {
                heads,
                rows: value,
                cols: rank,
                x_len: rotated + rank,
                x_at: rotated,
                prefix: 0,
            },
        };
        Ok([keys, values])
    }
}
