//! The sizes that the frames of a WebP file state for themselves. The native decoder allocates what a frame says before it
//! compares that with the file's header.

/// Bytes of the name and the length of a chunk.
const CHUNK_HEAD_BYTES: usize = 8;
/// Bytes of `RIFF`, the length of the file, and `WEBP`.
const FILE_HEAD_BYTES: usize = 12;
/// Bytes of an animation's frame before its chunks.
const FRAME_HEAD_BYTES: usize = 16;
/// Bits of a side in the header of a lossy frame; the others scale.
const SIDE_MASK: u16 = 0x3fff;

/// Says which lossy frame is larger than `[width, height]`.
pub(super) fn check_webp_frames(file: &[u8], [width, height]: [usize; 2]) -> Result<(), String> {
    let mut chunks = file.get(FILE_HEAD_BYTES..).unwrap_or_default();
    while let Some((head, rest)) = chunks.split_first_chunk::<CHUNK_HEAD_BYTES>() {
        let [n0, n1, n2, n3, l0, l1, l2, l3] = *head;
        let len_bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        // A cut file ends with what there is of the chunk.
        let content = &rest[..len_bytes.min(rest.len())];
        match &[n0, n1, n2, n3] {
            b"ANMF" => {
                // The chunks of a frame follow each other like those of the file.
                chunks = rest.get(FRAME_HEAD_BYTES..).unwrap_or_default();
                continue;
            }
            b"VP8 " => {
                // Three bytes of flags, three of a signature, then the sides.
                if let Some(&[w0, w1, h0, h1]) = content.get(6..10) {
                    let side = |low, high| usize::from(u16::from_le_bytes([low, high]) & SIDE_MASK);
                    let (w, h) = (side(w0, w1), side(h0, h1));
                    if w > width || h > height {
                        return Err(format!(
                            "a frame of {w}x{h} is in an image of {width}x{height}"
                        ));
                    }
                }
            }
            _ => {}
        }
        // Chunks have an even length.
        let next = len_bytes.saturating_add(len_bytes % 2);
        chunks = rest.get(next..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let mut chunk = [name, &(content.len() as u32).to_le_bytes()[..], content].concat();
        chunk.resize(chunk.len().next_multiple_of(2), 0);
        chunk
    }

    fn lossy(width: u16, height: u16) -> Vec<u8> {
        let sides = [width.to_le_bytes(), height.to_le_bytes()].concat();
        chunk(
            b"VP8 ",
            &[&[0x10, 0, 0, 0x9d, 1, 0x2a], &sides[..], &[0]].concat(),
        )
    }

    #[test]
    fn frames_larger_than_the_image_are_refused() {
        let still = |frame| {
            [
                b"RIFF____WEBP".to_vec(),
                chunk(b"VP8X", &[0; 10]),
                chunk(b"ALPH", &[1]),
                frame,
            ]
            .concat()
        };
        assert_eq!(check_webp_frames(&still(lossy(5, 3)), [5, 3]), Ok(()));
        // The upper two bits of a side scale it.
        assert_eq!(
            check_webp_frames(&still(lossy(5 | 0x4000, 3)), [5, 3]),
            Ok(())
        );
        for file in [
            still(lossy(16_383, 3)),
            still(lossy(5, 4)),
            still(chunk(b"ANMF", &[vec![0; 16], lossy(6, 3)].concat())),
        ] {
            assert!(check_webp_frames(&file, [5, 3]).is_err());
        }
        // Files that are cut anywhere, or whose lengths lie, end the search.
        let whole = still(lossy(5, 3));
        for end in 0..whole.len() {
            let _ = check_webp_frames(&whole[..end], [5, 3]);
        }
        assert_eq!(
            check_webp_frames(b"RIFF____WEBPVP8X\xff\xff\xff\xff", [5, 3]),
            Ok(())
        );
    }
}
