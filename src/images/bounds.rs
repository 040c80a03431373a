//! Bounds of images, of files as well as of what models make of them. They are checked before memory for pixels is taken.

/// The maximum number of pixels. Decoders take up to eight bytes for each.
pub const MAX_PIXELS: u64 = 64 << 20;

/// The maximum number of pixels of a side: what the canvases of all browsers hold.
pub const MAX_SIDE: usize = 32_767;

/// Refuses an image of a size that is not decoded or made. The error says why.
pub fn check_size([width, height]: [usize; 2]) -> Result<(), String> {
    let longer = width.max(height);
    if width == 0 || height == 0 {
        Err(format!("it is {width}x{height} pixels"))
    } else if longer > MAX_SIDE {
        Err(format!(
            "a side of {longer} pixels is longer than {MAX_SIDE}"
        ))
    } else if width as u64 * height as u64 > MAX_PIXELS {
        Err(format!(
            "{width}x{height} pixels are more than {MAX_PIXELS}"
        ))
    } else {
        Ok(())
    }
}
