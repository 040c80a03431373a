//! Vectors as the client gets them: shortened, and as base64.

/// Keeps the first `dimensions` elements (no more than there are), with length one. A vector of zeros stays.
pub(super) fn shorten(vector: &mut Vec<f32>, dimensions: usize) {
    vector.truncate(dimensions);
    let squares = vector.iter().map(|x| f64::from(*x) * f64::from(*x));
    let length = squares.sum::<f64>().sqrt();
    if length > 0.0 {
        for x in vector {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}

/// The bytes of little-endian floats in base64 with padding (RFC 4648).
pub(super) fn base64(vector: &[f32]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            // Three bytes have four digits, two have three, one has two.
            match i <= three.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, shorten};

    #[test]
    fn shortened_vectors_have_length_one() {
        let mut vector = vec![0.36, 0.48, 0.8];
        shorten(&mut vector, 2);
        assert_eq!(vector.len(), 2);
        let near = |x: f32, y: f32| (x - y).abs() < 1e-6;
        assert!(near(vector[0], 0.6) && near(vector[1], 0.8), "{vector:?}");
        let mut zeros = vec![0.0, 0.0, 1.0];
        shorten(&mut zeros, 2);
        assert_eq!(zeros, [0.0, 0.0]);
        let mut whole = vec![3.0, 4.0];
        shorten(&mut whole, 2);
        assert_eq!(whole, [0.6, 0.8]);
    }

    /// Compared with Python: `base64.b64encode(struct.pack("<3f", ...))`.
    #[test]
    fn base64_of_every_remainder() {
        assert_eq!(base64(&[]), "");
        assert_eq!(base64(&[1.0]), "AACAPw==");
        assert_eq!(base64(&[1.0, -2.5]), "AACAPwAAIMA=");
        assert_eq!(base64(&[1.0, -2.5, 3.25]), "AACAPwAAIMAAAFBA");
    }
}
