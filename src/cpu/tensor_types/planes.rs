//! The order of the quants of a run of 32 columns in a panel. Vector `i` stands for columns `4 * i..4 * i + 4` of 8 rows.
//! Its bits are spread over planes, which have a vector of 32 bytes for each:
//!
//! - nibbles: 2 vectors; vector `i` is in the low or, if odd, the high nibbles of plane vector `i / 2`;
//! - pairs of bits: 4 vectors, the first lowest;
//! - bits: 8 vectors, the first lowest.
//!
//! Quants of 8 bits are as they are; those of 4, 5 and 6 bits are nibbles, then bits or pairs; those of 2 and 3 bits
//! are pairs, then bits; those of 1 bit are bits.

use crate::simd::Simd;

/// The places of planes in a run, and of the bits of a quant in them.
struct Plane {
    /// The first byte.
    at: usize,
    /// Bits of the plane.
    bits: usize,
    /// Position of the lowest of these bits in the quant.
    lowest: usize,
}

/// The planes of quants of `bits` bits.
const fn planes(bits: usize) -> &'static [Plane] {
    const fn plane(at: usize, bits: usize, lowest: usize) -> Plane {
        Plane { at, bits, lowest }
    }
    match bits {
        1 => const { &[plane(0, 1, 0)] },
        2 => const { &[plane(0, 2, 0)] },
        3 => const { &[plane(0, 2, 0), plane(64, 1, 2)] },
        4 => const { &[plane(0, 4, 0)] },
        5 => const { &[plane(0, 4, 0), plane(128, 1, 4)] },
        6 => const { &[plane(0, 4, 0), plane(128, 2, 4)] },
        8 => const { &[plane(0, 8, 0)] },
        _ => panic!("no planes"),
    }
}

impl Plane {
    /// The place of the bits of vector `i`: the byte where their plane vector starts, and their shift in it.
    fn place(&self, i: usize) -> (usize, usize) {
        let vectors = 8 / self.bits;
        (self.at + i / vectors * 32, i % vectors * self.bits)
    }

    fn mask(&self) -> u32 {
        0x0101_0101 * ((1 << self.bits) - 1)
    }
}

/// Adds the quants of a row to the planes of a run, which are zero there.
pub(crate) fn pack(bits: usize, quants: [u32; 8], row: usize, run: &mut [u8]) {
    for plane in planes(bits) {
        for (i, quants) in quants.iter().enumerate() {
            let (at, shift) = plane.place(i);
            let bits = (quants >> plane.lowest & plane.mask()) << shift;
            let bytes = &mut run[at + 4 * row..][..4];
            let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) | bits;
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// The quants of a row.
pub(crate) fn unpack(bits: usize, run: &[u8], row: usize) -> [u8; 32] {
    let mut quants = [0; 32];
    for plane in planes(bits) {
        for (column, quant) in quants.iter_mut().enumerate() {
            let (at, shift) = plane.place(column / 4);
            let byte = run[at + 4 * row + column % 4];
            *quant |= (byte >> shift & plane.mask() as u8) << plane.lowest;
        }
    }
    quants
}

/// Vector `i` of a run.
///
/// # Safety
/// The same conditions as for [`Simd`].
#[inline(always)]
pub(crate) unsafe fn vector<S: Simd>(bits: usize, run: *const u8, i: usize) -> S::Bytes {
    unsafe {
        match bits {
            1 => bit::<S>(run, i, 0),
            2 => pairs::<S>(run, i, 0),
            3 => S::or(pairs::<S>(run, i, 0), bit::<S>(run.add(64), i, 2)),
            4 => nibble::<S>(run, i),
            5 => S::or(nibble::<S>(run, i), bit::<S>(run.add(128), i, 4)),
            6 => S::or(nibble::<S>(run, i), pairs::<S>(run.add(128), i, 4)),
            _ => S::load(run.add(32 * i)),
        }
    }
}

/// Nibbles of vector `i`.
#[inline(always)]
unsafe fn nibble<S: Simd>(plane: *const u8, i: usize) -> S::Bytes {
    unsafe {
        let nibbles = S::shr(S::load(plane.add(i / 2 * 32)), i as u32 % 2 * 4);
        S::and(nibbles, S::splat(0x0f))
    }
}

/// Pairs of bits of vector `i`, from bit `lowest` on.
#[inline(always)]
unsafe fn pairs<S: Simd>(plane: *const u8, i: usize, lowest: u32) -> S::Bytes {
    unsafe {
        let pairs = S::load(plane.add(i / 4 * 32));
        S::and(
            moved::<S>(pairs, i as u32 % 4 * 2, lowest),
            S::splat(3 << lowest),
        )
    }
}

/// Bits of vector `i`, at bit `lowest`.
///
/// # Safety
/// The same conditions as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn bit<S: Simd>(plane: *const u8, i: usize, lowest: u32) -> S::Bytes {
    unsafe {
        let bits = S::load(plane);
        S::and(moved::<S>(bits, i as u32, lowest), S::splat(1 << lowest))
    }
}

/// Shifts bit `from` of each byte to bit `to`. Other bits may come from the byte beside it.
#[inline(always)]
unsafe fn moved<S: Simd>(bytes: S::Bytes, from: u32, to: u32) -> S::Bytes {
    unsafe {
        if from > to {
            S::shr(bytes, from - to)
        } else {
            S::shl(bytes, to - from)
        }
    }
}
