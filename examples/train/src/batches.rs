//! Packs documents into windows of equal length for training and measuring.
//! Every window begins with a separator and the start of a document. Its last document is truncated.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::bpe::{Bpe, SEPARATOR_ID};
use super::corpus::random::Random;
use super::corpus::{Part, document};

/// One batch: `ids[i]` predicts `targets[i]`; both `[rows * tokens]`, row-major.
pub struct Batch {
    pub ids: Tensor<1, Int>,
    pub targets: Tensor<1, Int>,
}

/// Draws `rows` windows of `tokens` positions.
pub fn draw(
    random: &mut Random,
    bpe: &Bpe,
    part: Part,
    [rows, tokens]: [usize; 2],
    device: &Device,
) -> Batch {
    let (mut ids, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let mut window = vec![SEPARATOR_ID as i32];
        while window.len() <= tokens {
            let text = document(random, part);
            window.extend(bpe.encode(&text).into_iter().map(|id| id as i32));
            window.push(SEPARATOR_ID as i32);
        }
        ids.extend_from_slice(&window[..tokens]);
        targets.extend_from_slice(&window[1..=tokens]);
    }
    let tensor =
        |values: Vec<i32>| Tensor::from_data(TensorData::new(values, [rows * tokens]), device);
    Batch {
        ids: tensor(ids),
        targets: tensor(targets),
    }
}
