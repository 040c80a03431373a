//! Pixels.

/// An image of 8 bits per channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels of a row, at least one.
    pub width: usize,
    /// Rows, at least one.
    pub height: usize,
    /// Red, green and blue of each pixel, row by row.
    pub rgb: Vec<u8>,
}

impl Image {
    /// An image of red, green, blue and opacity, put on white.
    pub fn on_white(width: usize, height: usize, rgba: &[u8]) -> Image {
        let pixels = rgba.chunks_exact(4).flat_map(|pixel| {
            let opacity = u32::from(pixel[3]);
            let blend = move |channel: u8| {
                let sum = u32::from(channel) * opacity + 255 * (255 - opacity);
                ((sum + 127) / 255) as u8
            };
            [blend(pixel[0]), blend(pixel[1]), blend(pixel[2])]
        });
        Image {
            width,
            height,
            rgb: pixels.collect(),
        }
    }

    /// The part of `width` by `height` pixels from `left` and `top` on.
    pub(super) fn crop(&self, left: usize, top: usize, width: usize, height: usize) -> Image {
        let rows = self.rgb.chunks_exact(3 * self.width).skip(top).take(height);
        let rows = rows.flat_map(|row| &row[3 * left..3 * (left + width)]);
        Image {
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
