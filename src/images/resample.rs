//! Resampling as Pillow does it, to the last bit: the preprocessors of models were written with it. Both passes, first
//! along the rows, then along the columns, compute in integers with 22 bits behind the point and round to bytes. Pillow 13
//! begins with the columns where that is cheaper, which changes bytes; models were trained before. The passes are interleaved,
//! so that memory and work stay small where the first one enlarges and the second one shrinks.

use std::collections::VecDeque;

use super::Image;

/// Bits behind the point of a weight.
const PRECISION_BITS: u32 = 32 - 8 - 2;

/// The shape of the weights around a point. When an image shrinks, they are stretched, which prevents aliasing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// A triangle.
    Bilinear,
    /// Cubic convolution (Keys 1981) with a = -0.5.
    Bicubic,
    /// A sinc windowed by a sinc of three times the width.
    Lanczos,
}

impl Filter {
    /// Beyond this distance the weight is zero.
    fn support(self) -> f64 {
        match self {
            Filter::Bilinear => 1.0,
            Filter::Bicubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        const A: f64 = -0.5;
        let distance = x.abs();
        match self {
            Filter::Bilinear => (1.0 - distance).max(0.0),
            Filter::Bicubic if distance < 1.0 => {
                ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
            }
            Filter::Bicubic if distance < 2.0 => {
                (((distance - 5.0) * distance + 8.0) * distance - 4.0) * A
            }
            Filter::Bicubic => 0.0,
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * std::f64::consts::PI;
    x.sin() / x
}

/// The weights of one output pixel.
struct Weights {
    /// The first input pixel.
    first: usize,
    /// The weights of the pixels from there on.
    weights: Vec<i32>,
}

/// The weights for `to` pixels made of `from`.
fn weights(from: usize, to: usize, filter: Filter) -> Vec<Weights> {
    let scale = from as f64 / to as f64;
    let stretch = scale.max(1.0);
    let support = filter.support() * stretch;
    let of_pixel = |pixel: usize| {
        let center = (pixel as f64 + 0.5) * scale;
        let first = (center - support + 0.5).max(0.0) as usize;
        let end = ((center + support + 0.5) as usize).min(from);
        let positions = (first..end).map(|at| (at as f64 - center + 0.5) / stretch);
        let exact: Vec<f64> = positions.map(|x| filter.weight(x)).collect();
        let sum: f64 = exact.iter().sum();
        let fixed = |weight: f64| {
            let scaled = weight / sum * f64::from(1 << PRECISION_BITS);
            (scaled + 0.5_f64.copysign(scaled)) as i32
        };
        Weights {
            first,
            weights: exact.into_iter().map(fixed).collect(),
        }
    };
    (0..to).map(of_pixel).collect()
}

/// Half of the last place, which sums begin with so that they are rounded.
const HALF: i32 = 1 << (PRECISION_BITS - 1);

/// The byte of a weighted sum.
fn byte(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}

/// A row with as many pixels as there are `columns`; without them, the row itself.
fn resized_row(row: &[u8], columns: Option<&[Weights]>) -> Vec<u8> {
    let Some(columns) = columns else {
        return row.to_vec();
    };
    let mut resized = Vec::with_capacity(3 * columns.len());
    for Weights { first, weights } in columns {
        let mut sums = [HALF; 3];
        for (pixel, weight) in row[3 * first..].chunks_exact(3).zip(weights) {
            for (sum, channel) in sums.iter_mut().zip(pixel) {
                *sum = sum.wrapping_add(i32::from(*channel) * weight);
            }
        }
        resized.extend(sums.map(byte));
    }
    resized
}

impl Image {
    /// The same image in another size; both are at least 1. Besides the result it holds the rows that one row of the result
    /// is made of.
    pub fn resized(&self, width: usize, height: usize, filter: Filter) -> Image {
        let columns = (width != self.width).then(|| weights(self.width, width, filter));
        let mut rows = self.rgb.chunks_exact(3 * self.width);
        let mut next_row = || resized_row(rows.next().unwrap_or_default(), columns.as_deref());
        let mut rgb = Vec::with_capacity(3 * width * height);
        if height == self.height {
            (0..height).for_each(|_| rgb.extend(next_row()));
            return Image { width, height, rgb };
        }
        // Rows in the new width, from `begin` on. A row of the result needs some of those that the row before it needed.
        let mut band = VecDeque::new();
        let mut begin = 0;
        for Weights { first, weights } in weights(self.height, height, filter) {
            band.drain(..first - begin);
            begin = first;
            while band.len() < weights.len() {
                band.push_back(next_row());
            }
            let mut sums = vec![HALF; 3 * width];
            for (row, weight) in band.iter().zip(&weights) {
                for (sum, channel) in sums.iter_mut().zip(row) {
                    *sum = sum.wrapping_add(i32::from(*channel) * weight);
                }
            }
            rgb.extend(sums.into_iter().map(byte));
        }
        Image { width, height, rgb }
    }
}
