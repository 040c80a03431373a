//! The counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011). u32 arithmetic only, so WGSL computes the same bits.
//!
//! The draw is Philox4x32-10, keyed by (seed, candidate) and indexed by position, because a shader can reproduce it.

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The block of four random words at `counter` under `key`.
pub fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let (high0, low0) = multiply(MULTIPLIERS[0], counter[0]);
        let (high1, low1) = multiply(MULTIPLIERS[1], counter[2]);
        counter = [
            high1 ^ counter[1] ^ key[0],
            low1,
            high0 ^ counter[3] ^ key[1],
            low0,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The uniform number in [0, 1) for one token: the key is the seed (low word first); the counter is
/// `[position low, position high, candidate, 0]`; the first word's upper 24 bits times 2^-24.
///
/// `position` counts the tokens generated before this one.
pub fn uniform(seed: i64, candidate: u32, position: u64) -> f32 {
    let key = [seed as u32, (seed >> 32) as u32];
    let counter = [position as u32, (position >> 32) as u32, candidate, 0];
    (philox4x32_10(counter, key)[0] >> 8) as f32 / 16_777_216.0
}

/// High and low word of a product. WGSL has no u64 and must build this from 16-bit halves.
fn multiply(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors published with Random123 (`kat_vectors`).
    #[test]
    fn known_answers() {
        let answers = [
            (
                [0; 4],
                [0; 2],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in answers {
            assert_eq!(philox4x32_10(counter, key), expected);
        }
    }

    #[test]
    fn uniform_uses_every_part_of_its_key() {
        let base = uniform(42, 0, 0);
        for other in [
            uniform(43, 0, 0),
            uniform(42 | 1 << 40, 0, 0),
            uniform(-1, 0, 0),
            uniform(42, 1, 0),
            uniform(42, 0, 1),
            uniform(42, 0, 1 << 40),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn uniform_is_uniform() {
        let n = 100_000;
        let (mut sum, mut tenths) = (0.0, [0; 10]);
        for position in 0..n {
            let u = uniform(7, 3, position);
            assert!((0.0..1.0).contains(&u));
            sum += f64::from(u);
            tenths[(u * 10.0) as usize] += 1;
        }
        assert!((sum / n as f64 - 0.5).abs() < 0.005);
        // Five standard deviations of a binomial count.
        assert!(
            tenths
                .iter()
                .all(|&count: &i32| (count - 10_000).abs() < 475),
            "{tenths:?}"
        );
    }
}
