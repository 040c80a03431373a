//! Resampling as Pillow does it, to the last bit: the preprocessors of models were written with it. Both passes, first
//! along the rows, then along the columns, compute in integers with 22 bits behind the point and round to bytes. Pillow 13
//! begins with the columns where that is cheaper; models were trained before.

use super::Picture;

/// Bits behind the point of a weight.
const PRECISION_BITS: u32 = 32 - 8 - 2;

/// The shape of the weights around a point. When a picture shrinks, they are stretched, which prevents aliasing.
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
    /// Of the pixels from there on.
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

/// The weighted sum of bytes, rounded.
fn blend(bytes: impl Iterator<Item = u8>, weights: &[i32]) -> u8 {
    let half = 1 << (PRECISION_BITS - 1);
    let products = bytes
        .zip(weights)
        .map(|(byte, weight)| i32::from(byte) * weight);
    let sum = products.fold(half, |sum: i32, product| sum.wrapping_add(product));
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}

impl Picture {
    /// The same picture in another size; both are at least 1.
    pub fn resized(&self, width: usize, height: usize, filter: Filter) -> Picture {
        let mut picture = self.clone();
        if width != picture.width {
            let weights = weights(picture.width, width, filter);
            let mut rgb = Vec::with_capacity(3 * width * picture.height);
            for row in picture.rgb.chunks_exact(3 * picture.width) {
                for Weights { first, weights } in &weights {
                    for channel in 0..3 {
                        let bytes = row[3 * first..].iter().skip(channel).step_by(3);
                        rgb.push(blend(bytes.copied(), weights));
                    }
                }
            }
            picture = Picture {
                width,
                rgb,
                ..picture
            };
        }
        if height != picture.height {
            let weights = weights(picture.height, height, filter);
            let row_bytes = 3 * width;
            let mut rgb = Vec::with_capacity(row_bytes * height);
            for Weights { first, weights } in &weights {
                let rows = &picture.rgb[first * row_bytes..];
                for column in 0..row_bytes {
                    let bytes = rows.iter().skip(column).step_by(row_bytes);
                    rgb.push(blend(bytes.copied(), weights));
                }
            }
            picture = Picture {
                height,
                rgb,
                ..picture
            };
        }
        picture
    }
}
