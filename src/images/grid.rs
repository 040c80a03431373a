//! Images of any size for towers that take any: resized to a multiple of a square, between a least and a largest
//! number of pixels, as the image processor of Qwen2-VL does it.

/// The longer side of an image has at most as many times the length of the shorter one.
const MAX_ASPECT_RATIO: usize = 200;

/// Sizes that a tower takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridSizes {
    /// Width and height of the square of pixels that becomes a row of the text model.
    pub side: usize,
    /// Smaller images are enlarged.
    pub min_pixels: usize,
    /// Larger images are shrunk. At least one square.
    pub max_pixels: usize,
}

impl GridSizes {
    /// Rows of the text model that an image of such a size becomes.
    pub fn rows(self, [width, height]: [usize; 2]) -> usize {
        (width / self.side) * (height / self.side)
    }

    /// Refuses images of a shape that the image processor refuses.
    pub(super) fn check_shape(self, [width, height]: [usize; 2]) -> Result<(), String> {
        let longest = width.min(height).saturating_mul(MAX_ASPECT_RATIO);
        match width.max(height) > longest {
            true => Err(format!(
                "a side of {width}x{height} pixels is more than {MAX_ASPECT_RATIO} times as long as the other"
            )),
            false => Ok(()),
        }
    }

    /// The size that an image of this size gets: one that the tower takes, close to its own aspect ratio.
    pub(super) fn size_of(self, width: usize, height: usize) -> [usize; 2] {
        let side = self.side as f64;
        let own = [width, height].map(|pixels| pixels as f64);
        let pixels = own[0] * own[1];
        // Half a square rounds to an even number of them, as in Python.
        let near = own.map(|length| (length / side).round_ties_even() * side);
        let (least, most) = (self.min_pixels as f64, self.max_pixels as f64);
        let fitted = if near[0] * near[1] > most {
            let shrink = (pixels / most).sqrt();
            own.map(|length| (length / shrink / side).floor().max(1.0) * side)
        } else if near[0] * near[1] < least {
            let grow = (least / pixels).sqrt();
            own.map(|length| (length * grow / side).ceil() * side)
        } else {
            near
        };
        self.bounded(fitted.map(|length| (length as usize).max(self.side)))
    }

    /// Cuts the longer side of images so long and narrow that they would have too many pixels.
    fn bounded(self, [width, height]: [usize; 2]) -> [usize; 2] {
        let squares = (self.max_pixels / self.side.pow(2)).max(1);
        let longest = |shorter: usize| (squares / (shorter / self.side)).max(1) * self.side;
        match width > height {
            _ if width / self.side * (height / self.side) <= squares => [width, height],
            true => [width.min(longest(height)), height],
            false => [width, height.min(longest(width))],
        }
    }
}

/// The largest size of whole squares of `side` pixels with about the aspect ratio of an image, in which it has at most so
/// many `rows`, as the image processor of Gemma 4 does it.
pub(super) fn largest(own: [usize; 2], side: usize, rows: usize) -> [usize; 2] {
    let [width, height] = own.map(|length| length as f64);
    let factor = ((rows * side.pow(2)) as f64 / (width * height)).sqrt();
    let squares = |length: f64| (factor * length / side as f64).floor() as usize;
    let ratio = |long: f64, short: f64| ((long / short).floor() as usize).clamp(1, rows);
    let squares = match [squares(width), squares(height)] {
        [_, 0] => [ratio(width, height), 1],
        [0, _] => [1, ratio(height, width)],
        both => both,
    };
    squares.map(|count| count * side)
}

#[cfg(test)]
mod tests {
    use super::GridSizes;

    #[test]
    fn no_image_has_more_pixels_than_allowed() {
        let sizes = GridSizes {
            side: 32,
            min_pixels: 64 * 1024,
            max_pixels: 128 * 1024,
        };
        for width in [1, 3, 31, 32, 48, 100, 1000, 30_000] {
            for height in [1, 2, 33, 500, 40_000] {
                let [w, h] = sizes.size_of(width, height);
                assert!(w > 0 && h > 0 && w % 32 == 0 && h % 32 == 0);
                assert!(w * h <= sizes.max_pixels, "{width}x{height}: {w}x{h}");
            }
        }
    }
}
