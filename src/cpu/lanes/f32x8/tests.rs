//! Every kind of lanes against the array of scalars.

use super::{super::test_values::bits, *};
use crate::lanes::test_values::wave;

/// The results of all operations, as bits.
struct All<'a>(&'a [f32], &'a [f32]);

impl Kernel for All<'_> {
    type Output = Vec<u32>;

    fn run<L: F32x8>(self) -> Vec<u32> {
        let mut out = Vec::new();
        let (whole, others) = (self.0.as_chunks::<8>().0, self.1.as_chunks::<8>().0);
        for (a, b) in whole.iter().zip(others) {
            let (a, b) = (L::from_array(*a), L::from_array(*b));
            let numbers = [a.add(b), a.sub(b), a.mul(b), a.div(b)];
            let moved = [
                a.max(b),
                a.min(b),
                a.less(b),
                L::select(a.less(b), b, a),
                a.and(b),
                a.xor(b),
                a.add_bits(b),
                a.sub_bits(b),
                a.shift_left::<3>(),
                a.shift_right::<7>(),
                a.bits_to_f32(),
                a.swap_pairs(),
            ];
            for lanes in numbers {
                // Which NaN arithmetic makes is not defined.
                let lanes = lanes
                    .to_array()
                    .map(|v| if v.is_nan() { f32::NAN } else { v });
                out.extend(bits(&lanes));
            }
            for lanes in moved {
                out.extend(bits(&lanes.to_array()));
            }
            out.push(a.any_negative().into());
            let each = [a, b, a.mul(b), a.sub(b)];
            for (sum, of) in sum_each(each).into_iter().zip(each) {
                if !sum.is_nan() {
                    assert_eq!(sum.to_bits(), of.sum().to_bits());
                    out.push(sum.to_bits());
                }
            }
            out.push(a.peak().to_bits());
        }
        out
    }
}

/// The sum of each vector, by those of their strips.
fn sum_each<L: F32x8>(vectors: [L; 4]) -> [f32; 4] {
    let lanes = vectors.map(L::to_array);
    let mut sums = [0.0; 4];
    for at in (0..LANES).step_by(L::Strip::LANES) {
        // SAFETY: the lanes are there.
        let strips = lanes
            .each_ref()
            .map(|lanes| unsafe { L::Strip::load(lanes.as_ptr().add(at)) });
        let more = L::Strip::sum_each(strips);
        sums = if at == 0 {
            more
        } else {
            std::array::from_fn(|i| sums[i] + more[i])
        };
    }
    sums
}

/// # Safety
/// There are four words.
unsafe fn load_f16<L: F32x8>(words: *const u32) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    for at in (0..LANES).step_by(L::Strip::LANES) {
        // SAFETY: the caller's.
        unsafe { L::Strip::load_f16(words.add(at / 2)).store(lanes.as_mut_ptr().add(at)) };
    }
    lanes
}

/// # Safety
/// There are two words.
unsafe fn load_i8<L: F32x8>(words: *const u32) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    for at in (0..LANES).step_by(L::Strip::LANES) {
        // SAFETY: the caller's.
        unsafe { L::Strip::load_i8(words.add(at / 4)).store(lanes.as_mut_ptr().add(at)) };
    }
    lanes
}

/// Every f16 and every i8 in every lane.
struct Decoded;

impl Kernel for Decoded {
    type Output = Vec<u32>;

    fn run<L: F32x8>(self) -> Vec<u32> {
        let mut out = Vec::new();
        for half in 0..=u16::MAX {
            let signalling = half & 0x7c00 == 0x7c00 && half & 0x3ff != 0 && half & 0x200 == 0;
            if signalling {
                continue;
            }
            let pair = |add: u16| u32::from(half) | u32::from((half & 0xfc00) + add) << 16;
            let words = [pair(0), pair(0x1ff), pair(0x200), pair(0x3ff)];
            if half & 0x7c00 != 0x7c00 {
                // SAFETY: there are four words.
                out.extend(bits(&unsafe { load_f16::<L>(words.as_ptr()) }));
            }
            let words = [u32::from(half), u32::from(half) << 8];
            // SAFETY: there are two words.
            out.extend(bits(&unsafe { load_i8::<L>(words.as_ptr()) }));
            let words = [u32::from(half); 4];
            // SAFETY: there are four words.
            out.extend(bits(&unsafe { load_f16::<L>(words.as_ptr()) }));
        }
        out
    }
}

fn same(results: Vec<Vec<u32>>) {
    assert!(results[0].len() > 100);
    assert!(results.iter().all(|bits| *bits == results[0]));
}

#[test]
fn operations_have_the_same_bits_on_all_lanes() {
    let mut a = wave(4096, 1);
    let mut b = wave(4096, 2);
    let special = [
        0.0,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-42,
        f32::MAX,
        1.0,
    ];
    for (i, x) in special.iter().enumerate() {
        for (j, y) in special.iter().enumerate() {
            (a[i * 8 + j], b[i * 8 + j]) = (*x, *y);
        }
    }
    same(
        backends()
            .into_iter()
            .map(|backend| run_on(backend, All(&a, &b)))
            .collect(),
    );
}

#[test]
fn decoded_values_have_the_same_bits_on_all_lanes() {
    same(
        backends()
            .into_iter()
            .map(|backend| run_on(backend, Decoded))
            .collect(),
    );
}

#[test]
fn halves_have_their_values() {
    for (half, value) in [
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x0001, 5.9604645e-8),
        (0x7bff, 65504.0),
        (0x7c00, f32::INFINITY),
    ] {
        assert_eq!(f16_to_f32(half), value);
    }
    assert!(f16_to_f32(0x7e00).is_nan());
    assert_eq!(f16_to_f32(0x8000).to_bits(), 0x8000_0000);
}

#[test]
fn sums_have_the_documented_order() {
    let v = wave(8, 9);
    let array: [f32; 8] = std::array::from_fn(|i| v[i] * 1e7f32.powi(i as i32 % 3));
    let pairs = [
        array[0] + array[1],
        array[2] + array[3],
        array[4] + array[5],
        array[6] + array[7],
    ];
    assert_eq!(sum(array), (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]));
}
