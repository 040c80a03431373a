//! The Llama network as a burn module for training, with all positions of a batch in one GEMM.
//! It sees token ids, never text or the exported file.

use burn::module::{Module, Param};
use burn::tensor::activation::silu;
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};

/// Sizes of the network. All matrix dimensions are multiples of 256, except the key/value width,
/// which is `kv_heads * head_dim` = 128.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// Width of the residual stream.
    pub dim: usize,
    /// Width of the gated feed-forward layer.
    pub ffn: usize,
    /// Transformer blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads, each shared by `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Base of the rotary angles.
    pub rope_theta: f32,
    /// The number that RMS norm adds to the mean square.
    pub norm_eps: f32,
}

/// One transformer block. Matrices are stored `[in, out]` and applied as `x · W`.
#[derive(Module, Debug)]
pub struct Block {
    pub attn_norm: Param<Tensor<1>>,
    pub wq: Param<Tensor<2>>,
    pub wk: Param<Tensor<2>>,
    pub wv: Param<Tensor<2>>,
    pub wo: Param<Tensor<2>>,
    pub ffn_norm: Param<Tensor<1>>,
    pub gate: Param<Tensor<2>>,
    pub up: Param<Tensor<2>>,
    pub down: Param<Tensor<2>>,
}

/// The network; the embedding table `[vocab, dim]` also serves as output matrix.
#[derive(Module, Debug)]
pub struct Llama {
    pub embedding: Param<Tensor<2>>,
    pub blocks: Vec<Block>,
    pub output_norm: Param<Tensor<1>>,
}

/// Constants of one window length: rotary tables and the causal mask.
pub struct Positions {
    cos: Tensor<4>,
    sin: Tensor<4>,
    rotation: Tensor<2>,
    mask: Tensor<4>,
    tokens: usize,
}

impl Positions {
    /// Tables for windows of `tokens` positions starting at 0.
    ///
    /// The rotation turns neighbouring pairs `(2i, 2i+1)` by the angle
    /// `position * theta^(-2i/head_dim)` (RoFormer, arXiv:2104.09864, eq. 34). This is the order of
    /// llama.cpp's "llama" architecture, so nothing is permuted on export.
    pub fn new(shape: &Shape, tokens: usize, device: &Device) -> Self {
        let width = shape.head_dim;
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for position in 0..tokens {
            for i in 0..width {
                let exponent = (i / 2 * 2) as f64 / width as f64;
                let angle = position as f64 * f64::from(shape.rope_theta).powf(-exponent);
                cos.push(angle.cos() as f32);
                sin.push(angle.sin() as f32);
            }
        }
        // x · rotation maps (a, b) to (-b, a) in each pair. One small GEMM replaces strided
        // slices, which autodiff would scatter back one by one.
        let mut rotation = vec![0.0f32; width * width];
        for i in (0..width).step_by(2) {
            rotation[(i + 1) * width + i] = -1.0;
            rotation[i * width + i + 1] = 1.0;
        }
        // Query rows of the heads that share a key head are stacked: row r is position r % tokens.
        let shared = shape.heads / shape.kv_heads;
        let mut mask = vec![0.0f32; shared * tokens * tokens];
        for row in 0..shared * tokens {
            for key in row % tokens + 1..tokens {
                mask[row * tokens + key] = -1e9;
            }
        }
        Self {
            cos: Tensor::from_data(TensorData::new(cos, [1, tokens, 1, width]), device),
            sin: Tensor::from_data(TensorData::new(sin, [1, tokens, 1, width]), device),
            rotation: Tensor::from_data(TensorData::new(rotation, [width, width]), device),
            mask: Tensor::from_data(
                TensorData::new(mask, [1, 1, shared * tokens, tokens]),
                device,
            ),
            tokens,
        }
    }

    /// `x`: `[batch * tokens, heads * head_dim]`; returns `[batch, tokens, heads, head_dim]`.
    fn rotate(&self, x: Tensor<2>, heads: usize) -> Tensor<4> {
        let [rows, width] = x.dims();
        let head_dim = width / heads;
        let turned = x
            .clone()
            .reshape([rows * heads, head_dim])
            .matmul(self.rotation.clone());
        let shape = [rows / self.tokens, self.tokens, heads, head_dim];
        x.reshape(shape) * self.cos.clone() + turned.reshape(shape) * self.sin.clone()
    }
}

fn rms_norm(x: Tensor<2>, weight: &Param<Tensor<1>>, eps: f32) -> Tensor<2> {
    let scale = (x.clone().square().mean_dim(1) + eps).sqrt().recip();
    x * scale * weight.val().unsqueeze()
}

impl Block {
    fn new(shape: &Shape, device: &Device) -> Self {
        let normal = |rows: usize, columns: usize, deviation: f64| {
            Param::from_tensor(Tensor::random(
                [rows, columns],
                Distribution::Normal(0.0, deviation),
                device,
            ))
        };
        let ones = || Param::from_tensor(Tensor::ones([shape.dim], device));
        // The standard deviation is 1/sqrt(in). Matrices whose output is added to the residual
        // stream are scaled by 1/sqrt(number of additions), as in the GPT-2 paper.
        let inward = (shape.dim as f64).powf(-0.5);
        let residual = (2.0 * shape.layers as f64).powf(-0.5);
        let kv = shape.kv_heads * shape.head_dim;
        let q = shape.heads * shape.head_dim;
        Self {
            attn_norm: ones(),
            wq: normal(shape.dim, q, inward),
            wk: normal(shape.dim, kv, inward),
            wv: normal(shape.dim, kv, inward),
            wo: normal(q, shape.dim, (q as f64).powf(-0.5) * residual),
            ffn_norm: ones(),
            gate: normal(shape.dim, shape.ffn, inward),
            up: normal(shape.dim, shape.ffn, inward),
            down: normal(
                shape.ffn,
                shape.dim,
                (shape.ffn as f64).powf(-0.5) * residual,
            ),
        }
    }

    fn attention(&self, x: Tensor<2>, shape: &Shape, at: &Positions) -> Tensor<2> {
        let [rows, _] = x.dims();
        let (tokens, batch) = (at.tokens, rows / at.tokens);
        let (kv, width) = (shape.kv_heads, shape.head_dim);
        let shared = shape.heads / kv;
        let q = at.rotate(x.clone().matmul(self.wq.val()), shape.heads);
        let k = at.rotate(x.clone().matmul(self.wk.val()), kv);
        let v = x.matmul(self.wv.val()).reshape([batch, tokens, kv, width]);
        // Query head h reads key head h / shared; its heads become rows of one matrix.
        let q = (q * (width as f32).powf(-0.5))
            .reshape([batch, tokens, kv, shared * width])
            .swap_dims(1, 2)
            .reshape([batch, kv, tokens, shared, width].map(|n| n as i64));
        let q: Tensor<5> = q;
        let q = q
            .swap_dims(2, 3)
            .reshape([batch, kv, shared * tokens, width]);
        let scores = q.matmul(k.permute([0, 2, 3, 1])) + at.mask.clone();
        let highest = scores.clone().detach().max_dim(3);
        let weights = (scores - highest).exp();
        // Normalized after the product, which divides `width` columns instead of `tokens` columns.
        let total = weights.clone().sum_dim(3);
        let mixed = weights.matmul(v.swap_dims(1, 2)) / total;
        let mixed: Tensor<5> = mixed.reshape([batch, kv, shared, tokens, width]);
        mixed
            .permute([0, 3, 1, 2, 4])
            .reshape([rows, kv * shared * width])
            .matmul(self.wo.val())
    }

    fn forward(&self, x: Tensor<2>, shape: &Shape, at: &Positions) -> Tensor<2> {
        let normed = rms_norm(x.clone(), &self.attn_norm, shape.norm_eps);
        let x = x + self.attention(normed, shape, at);
        let normed = rms_norm(x.clone(), &self.ffn_norm, shape.norm_eps);
        let gate = silu(normed.clone().matmul(self.gate.val()));
        x + (gate * normed.matmul(self.up.val())).matmul(self.down.val())
    }
}

impl Llama {
    /// Random parameters from the device's seeded generator.
    pub fn new(shape: &Shape, device: &Device) -> Self {
        Self {
            embedding: Param::from_tensor(Tensor::random(
                [shape.vocab, shape.dim],
                Distribution::Normal(0.0, 0.02),
                device,
            )),
            blocks: (0..shape.layers)
                .map(|_| Block::new(shape, device))
                .collect(),
            output_norm: Param::from_tensor(Tensor::ones([shape.dim], device)),
        }
    }

    /// Logits `[batch * tokens, vocab]` of the windows `ids`: `[batch * tokens]`, row-major.
    pub fn forward(&self, ids: Tensor<1, Int>, shape: &Shape, at: &Positions) -> Tensor<2> {
        let mut x = self.embedding.val().select(0, ids);
        for block in &self.blocks {
            x = block.forward(x, shape, at);
        }
        rms_norm(x, &self.output_norm, shape.norm_eps).matmul(self.embedding.val().transpose())
    }
}

/// Mean negative log-likelihood of `targets` in nats; logits `[n, vocab]`, targets `[n]`.
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let highest = logits.clone().detach().max_dim(1);
    let shifted = logits - highest;
    let total = shifted.clone().exp().sum_dim(1).log();
    let picked = shifted.gather(1, targets.unsqueeze_dim(1));
    (total - picked).mean()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Shape = Shape {
        vocab: 32,
        dim: 32,
        ffn: 64,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        rope_theta: 10_000.0,
        norm_eps: 1e-5,
    };

    fn logits(ids: &[i32]) -> Vec<f32> {
        let device = Device::flex();
        device.seed(3);
        let model = Llama::new(&SMALL, &device);
        let input = Tensor::from_data(TensorData::new(ids.to_vec(), [ids.len()]), &device);
        let positions = Positions::new(&SMALL, ids.len(), &device);
        model
            .forward(input, &SMALL, &positions)
            .try_into_vec_as()
            .expect("f32")
    }

    #[test]
    fn a_position_does_not_depend_on_later_ones() {
        let (one, other) = (logits(&[1, 2, 3, 4]), logits(&[1, 2, 9, 8]));
        assert_eq!(one[..2 * SMALL.vocab], other[..2 * SMALL.vocab]);
        assert_ne!(one[2 * SMALL.vocab..], other[2 * SMALL.vocab..]);
    }

    #[test]
    fn rotation_turns_neighbouring_pairs() {
        let device = Device::flex();
        let positions = Positions::new(&SMALL, 3, &device);
        // Position 2, pair 0 turns by 2 radians; pair 1 by 2 * 10000^(-2/8).
        let x = Tensor::<2>::ones([3, 8], &device);
        let turned: Vec<f32> = positions.rotate(x, 1).try_into_vec_as().expect("f32");
        for pair in 0..4 {
            let angle = 2.0 * 10_000f32.powf(-(2.0 * pair as f32) / 8.0);
            let at = 2 * 8 + 2 * pair;
            assert!((turned[at] - (angle.cos() - angle.sin())).abs() < 1e-5);
            assert!((turned[at + 1] - (angle.cos() + angle.sin())).abs() < 1e-5);
        }
    }

    #[test]
    fn the_loss_of_equal_logits_is_the_logarithm_of_the_vocabulary() {
        let device = Device::flex();
        let targets = Tensor::from_data(TensorData::new(vec![0i32, 7], [2]), &device);
        let loss = cross_entropy(Tensor::zeros([2, 16], &device), targets);
        assert!((loss.into_scalar::<f32>() - 16f32.ln()).abs() < 1e-5);
    }
}
