//! Pixels.

/// A picture of 8 bits per channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels of a row, at least one.
    pub width: usize,
    /// Rows, at least one.
    pub height: usize,
    /// Red, green and blue of each pixel, row by row.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// The part of `width` by `height` pixels from `left` and `top` on.
    pub(super) fn crop(&self, left: usize, top: usize, width: usize, height: usize) -> Picture {
        let rows = self.rgb.chunks_exact(3 * self.width).skip(top).take(height);
        let rows = rows.flat_map(|row| &row[3 * left..3 * (left + width)]);
        Picture {
            width,
            height,
            rgb: rows.copied().collect(),
        }
    }

    /// The channels one after another, each from 0 to 1, minus `mean`, divided by `std`: `[3, height, width]`.
    pub fn normalized(&self, mean: [f32; 3], std: [f32; 3]) -> Vec<f32> {
        let channel = |channel: usize| {
            let values = self.rgb.iter().skip(channel).step_by(3);
            values.map(move |byte| (f32::from(*byte) / 255.0 - mean[channel]) / std[channel])
        };
        (0..3).flat_map(channel).collect()
    }
}
