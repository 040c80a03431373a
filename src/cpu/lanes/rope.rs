//! Rotary position embedding of Q and K (Su et al. 2021, <https://arxiv.org/abs/2104.09864>) and the write of K and V
//! to the KV cache. Models may first normalize each head of Q and K (Henry et al. 2020,
//! <https://arxiv.org/abs/2010.04245>).

use super::{
    f32x8::{F32x8, Kernel, LANES, run},
    functions::sin_cos,
    kv::{KvFormat, PAGE_TOKENS, Row},
    norm::{lanes, rms_scale, scale, write},
};

/// Sizes of the rotation, and the positions of q, k and v in the rows of their tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RopeShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head; a multiple of 4.
    pub head_dim: usize,
    /// The elements of a pair are `rope_dims / 2` apart (GPT-NeoX) instead of neighbours.
    pub neox: bool,
    /// Pairs turn by a part of the rotary position of a row each, instead of by the index of its token.
    pub by_parts: bool,
    /// Values are normalized, too, without weights.
    pub norms_values: bool,
    /// Keys and values are those that another layer has written: only queries are rotated.
    pub only_queries: bool,
    /// Heads are multiplied by the weights of their norm after the rotation, not before it.
    pub norm_last: bool,
    /// The first elements of a head that are rotated: a multiple of 4, or 0 for none.
    pub rope_dims: usize,
    /// Factor of rotated elements, which some scalings to longer contexts use.
    pub magnitude: f32,
    /// Factor of queries after the rotation; `1 / sqrt(head_dim)` in most models.
    pub q_scale: f32,
    /// A further factor of queries, if there is one.
    pub temperature: Option<Temperature>,
    /// First columns of q, k and v in their rows.
    pub at: [usize; 3],
    /// Row lengths of the tensors that hold q, k and v.
    pub stride: [usize; 3],
}

/// A factor of queries that grows with the context (Nakanishi 2025, <https://arxiv.org/abs/2501.19399>):
/// `1 + growth * ln(1 + floor((position + offset) / tokens))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperature {
    /// Positions with the same factor; at least 1.
    pub tokens: usize,
    /// The addend of positions.
    pub offset: usize,
    /// The rate of the growth.
    pub growth: f32,
}

impl Temperature {
    /// The factor of a query at `position`.
    #[inline]
    pub fn factor(self, position: usize) -> f32 {
        let steps = (position + self.offset) / self.tokens;
        1.0 + self.growth * ((1 + steps) as f32).ln()
    }
}

impl RopeShape {
    /// The factor of a query at `position` after the rotation.
    #[inline]
    pub fn query_factor(self, position: usize) -> f32 {
        let temperature = self.temperature.map_or(1.0, |it| it.factor(position));
        self.q_scale * temperature
    }

    /// Elements of all query heads.
    pub fn q_dim(self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of all key heads.
    pub fn kv_dim(self) -> usize {
        self.kv_heads * self.head_dim
    }
}

/// Rotates the queries of `rows` by position into `q_out` `[rows, heads * head_dim]`, scaled, and writes rotated keys
/// and the values to `kv`, the words of a layer's cache. `turns` `[rope_dims / 2]` are angles per position in units of
/// 2^-32 turns; they are not read if nothing is rotated. If the shape is by parts, the part of each pair follows. `norm` is the norm of heads: its weights `[2 * head_dim]`, for
/// queries and then for keys, and its epsilon. Rows of the tensors beyond `rows` are padding and neither read nor
/// written.
#[expect(clippy::too_many_arguments, reason = "one pass over five tensors")]
pub fn rope_kv(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    norm: Option<(&[f32], f32)>,
    turns: &[u32],
    kv: &mut [u32],
    rows: &[Row],
    shape: RopeShape,
    format: KvFormat,
    q_out: &mut [f32],
) {
    let input = Input {
        qkv: [q, k, v],
        norm,
        turns,
        rows,
    };
    run(Rope {
        input,
        kv,
        shape,
        format,
        q_out,
    });
}

#[derive(Clone, Copy)]
struct Input<'a> {
    qkv: [&'a [f32]; 3],
    norm: Option<(&'a [f32], f32)>,
    turns: &'a [u32],
    rows: &'a [Row<'a>],
}

struct Rope<'a> {
    input: Input<'a>,
    kv: &'a mut [u32],
    shape: RopeShape,
    format: KvFormat,
    q_out: &'a mut [f32],
}

impl Kernel for Rope<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let Rope {
            input,
            kv,
            shape,
            format,
            q_out,
        } = self;
        let (q_dim, kv_dim) = (shape.q_dim(), shape.kv_dim());
        let mut rotation = Rotation::new(shape);
        let mut keys = vec![0.0; kv_dim];
        for (i, row) in input.rows.iter().enumerate() {
            rotation.turn_to::<L>(*row, input.turns);
            let q = part(input.qkv[0], shape, i, 0, q_dim);
            let out = &mut q_out[i * q_dim..][..q_dim];
            let factor = shape.query_factor(row.position());
            rotation.rotate::<L>(q, input.norm, 0, factor, out);
            if shape.only_queries {
                continue;
            }
            let k = part(input.qkv[1], shape, i, 1, kv_dim);
            rotation.rotate::<L>(k, input.norm, 1, 1.0, &mut keys);
            let page = row.pages()[row.position() / PAGE_TOKENS];
            let place = (page, row.position() % PAGE_TOKENS);
            format.store_heads(kv, place, 0, &keys, shape.head_dim);
            let mut v = part(input.qkv[2], shape, i, 2, kv_dim);
            if let Some((_, eps)) = input.norm.filter(|_| shape.norms_values) {
                let heads = v.chunks_exact(shape.head_dim);
                // The keys are stored.
                for (head, out) in heads.zip(keys.chunks_exact_mut(shape.head_dim)) {
                    scale::<L>(head, rms_scale::<L>(head, eps), &rotation.ones, out);
                }
                v = &keys;
            }
            format.store_heads(kv, place, 1, v, shape.head_dim);
        }
    }
}

/// Row `row` of q, k or v (`which`).
#[inline(always)]
fn part(tensor: &[f32], shape: RopeShape, row: usize, which: usize, len: usize) -> &[f32] {
    &tensor[row * shape.stride[which] + shape.at[which]..][..len]
}

/// The rotation at one position.
struct Rotation {
    shape: RopeShape,
    /// Cosines of the pairs, or of the elements if pairs are neighbours.
    cos: Vec<f32>,
    /// Sines as the cosines; negative for the first element of neighbours.
    sin: Vec<f32>,
    /// A normalized head.
    head: Vec<f32>,
    /// Weights of a norm whose own come last.
    ones: Vec<f32>,
}

impl Rotation {
    fn new(shape: RopeShape) -> Self {
        let angles = match shape.neox {
            true => shape.rope_dims / 2,
            false => shape.rope_dims,
        };
        Self {
            shape,
            cos: vec![0.0; angles],
            sin: vec![0.0; angles],
            head: vec![0.0; shape.head_dim],
            ones: vec![1.0; shape.head_dim],
        }
    }

    /// Computes the sines and cosines of the position of `row`. Whole turns overflow, so the angles are exact everywhere in a
    /// long context.
    #[inline(always)]
    fn turn_to<L: F32x8>(&mut self, row: Row, turns: &[u32]) {
        let (position, rotary) = (row.position() as u32, row.rotary());
        let half = self.shape.rope_dims / 2;
        let sign = if self.shape.neox { 1.0 } else { -1.0 };
        let mut signs = [1.0; LANES];
        for i in 0..LANES / 2 {
            signs[2 * i] = sign;
        }
        for at in (0..self.cos.len()).step_by(LANES) {
            let mut angles = [0.0; LANES];
            let count = LANES.min(self.cos.len() - at);
            for i in 0..count {
                let pair = if self.shape.neox {
                    at + i
                } else {
                    (at + i) / 2
                };
                let position = match self.shape.by_parts {
                    true => rotary[turns[half + pair] as usize],
                    false => position,
                };
                angles[i] = f32::from_bits(position.wrapping_mul(turns[pair]));
            }
            let (sin, cos) = sin_cos(L::from_array(angles));
            write(&mut self.cos, at, cos);
            write(&mut self.sin, at, sin.mul(L::from_array(signs)));
        }
    }

    /// Rotates the heads of a row. `which` selects the weights of the norm.
    #[inline(always)]
    fn rotate<L: F32x8>(
        &mut self,
        row: &[f32],
        norm: Option<(&[f32], f32)>,
        which: usize,
        factor: f32,
        out: &mut [f32],
    ) {
        let (dim, rope_dims) = (self.shape.head_dim, self.shape.rope_dims);
        let whole = L::splat(factor);
        let rotated = L::splat(factor * self.shape.magnitude);
        let heads = row.chunks_exact(dim);
        for (head, out) in heads.zip(out.chunks_exact_mut(dim)) {
            let mut head = head;
            if let Some((weights, eps)) = norm {
                let weights = match self.shape.norm_last {
                    true => &self.ones,
                    false => &weights[which * dim..][..dim],
                };
                scale::<L>(head, rms_scale::<L>(head, eps), weights, &mut self.head);
                head = &self.head;
            }
            // The vectors of the rest may begin within the rotated part, which is written after them.
            for at in (rope_dims / LANES * LANES..dim).step_by(LANES) {
                write(out, at, lanes::<L>(head, at).mul(whole));
            }
            if self.shape.neox {
                let half = rope_dims / 2;
                let (a, b) = head[..rope_dims].split_at(half);
                let (out_a, out_b) = out[..rope_dims].split_at_mut(half);
                for at in (0..half).step_by(LANES) {
                    let (a, b) = (lanes::<L>(a, at), lanes::<L>(b, at));
                    let (sin, cos) = (lanes::<L>(&self.sin, at), lanes::<L>(&self.cos, at));
                    write(out_a, at, a.mul(cos).sub(b.mul(sin)).mul(rotated));
                    write(out_b, at, a.mul(sin).add(b.mul(cos)).mul(rotated));
                }
            } else {
                for at in (0..rope_dims).step_by(LANES) {
                    let x = lanes::<L>(&head[..rope_dims], at);
                    let (sin, cos) = (lanes::<L>(&self.sin, at), lanes::<L>(&self.cos, at));
                    let turned = x.mul(cos).add(x.swap_pairs().mul(sin));
                    write(&mut out[..rope_dims], at, turned.mul(rotated));
                }
            }
            if let Some((weights, _)) = norm.filter(|_| self.shape.norm_last) {
                scale::<L>(out, 1.0, &weights[which * dim..][..dim], &mut self.head);
                out.copy_from_slice(&self.head);
            }
        }
    }
}

#[cfg(test)]
#[path = "rope_tests.rs"]
mod tests;
