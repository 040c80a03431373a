//! exp, tanh, sine and cosine of eight lanes, by polynomials: the functions of a platform's library differ in their
//! last bits. The coefficients interpolate at Chebyshev nodes.

use super::f32x8::{F32x8, splat_bits};

/// `sum(coefficients[i] * x^i)`.
#[inline(always)]
fn polynomial<L: F32x8, const N: usize>(x: L, coefficients: [f32; N]) -> L {
    let mut sum = L::splat(coefficients[N - 1]);
    for i in (0..N - 1).rev() {
        sum = sum.mul(x).add(L::splat(coefficients[i]));
    }
    sum
}

/// `2^n` for bits `n` between -126 and 127.
#[inline(always)]
fn power_of_two<L: F32x8>(n: L) -> L {
    n.add_bits(splat_bits(127)).shift_left::<23>()
}

/// `e^x`, within 2 units in the last place; 0 and infinity beyond the range of f32. NaN stays NaN.
#[inline(always)]
pub(crate) fn exp<L: F32x8>(x: L) -> L {
    // At these bounds the result is 0 or infinity.
    let x = L::splat(89.0).min(L::splat(-104.0).max(x));
    // The sum with 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    let round = 12_582_912.0f32;
    let rounded = x
        .mul(L::splat(std::f32::consts::LOG2_E))
        .add(L::splat(round));
    let n = rounded.sub(L::splat(round));
    // ln 2 in two parts. The first has few bits, so its product with n is exact.
    let r = x.sub(n.mul(L::splat(0.693_359_4)));
    let r = r.sub(n.mul(L::splat(-2.121_944_4e-4)));
    let coefficients = [
        0.5,
        0.166_665_76,
        0.041_666_556,
        0.008_363_178,
        0.001_392_618_2,
    ];
    let power = polynomial(r, coefficients).mul(r.mul(r)).add(r);
    let power = power.add(L::splat(1.0));
    // In two factors: 2^n may be subnormal or infinite while the result is not.
    let n = rounded.sub_bits(splat_bits(round.to_bits()));
    let half = n.shift_right::<1>();
    let rest = n.sub_bits(half);
    power.mul(power_of_two(half)).mul(power_of_two(rest))
}

/// `e^x` of one value, with the bits of [`exp`].
#[inline(always)]
pub(crate) fn exp_one<L: F32x8>(x: f32) -> f32 {
    exp(L::splat(x)).to_array()[0]
}

/// `log(1 + x)` for `x` between 0 and 1, within 3 units in the last place.
#[inline(always)]
pub(crate) fn log_1p_one<L: F32x8>(x: f32) -> f32 {
    // 2 artanh(x / (2 + x)), whose argument is at most 1/3: the series up to z^15.
    let z = x / (2.0 + x);
    let series = [
        1.0,
        1.0 / 3.0,
        0.2,
        1.0 / 7.0,
        1.0 / 9.0,
        1.0 / 11.0,
        1.0 / 13.0,
        1.0 / 15.0,
    ];
    let sum = polynomial(L::splat(z * z), series).to_array()[0];
    2.0 * z * sum
}

/// The hyperbolic tangent, within 2 units in the last place.
#[inline(always)]
pub(crate) fn tanh<L: F32x8>(x: L) -> L {
    let sign = x.and(splat_bits(0x8000_0000));
    let size = x.xor(sign);
    let square = x.mul(x);
    let coefficients = [
        -0.333_333_28,
        0.133_327_68,
        -0.053_850_61,
        0.020_995_755,
        -0.006_094_641_5,
    ];
    let near = polynomial(square, coefficients)
        .mul(square)
        .mul(size)
        .add(size);
    let one = L::splat(1.0);
    let far = one.sub(L::splat(2.0).div(exp(size.add(size)).add(one)));
    L::select(size.less(L::splat(0.625)), near, far).xor(sign)
}

/// Sine and cosine of angles in units of 2^-32 turns, in the bits, within 2^-23 and exact at quarter turns.
#[inline(always)]
pub(crate) fn sin_cos<L: F32x8>(angle: L) -> (L, L) {
    /// 2^-32 turns in radians.
    const RADIANS: f32 = (std::f64::consts::TAU / 4_294_967_296.0) as f32;
    // The nearest quarter turn, and the angle from there: at most an eighth of a turn.
    let quarter = angle.add_bits(splat_bits(1 << 29)).shift_right::<30>();
    let rest = angle.sub_bits(quarter.shift_left::<30>());
    let r = rest.bits_to_f32().mul(L::splat(RADIANS));
    let square = r.mul(r);
    let sin = polynomial(square, [-0.166_666_64, 0.008_332_748, -0.000_195_878_7]);
    let sin = sin.mul(square).mul(r).add(r);
    let cos = polynomial(square, [0.041_666_664, -0.001_388_830_2, 2.454_792_2e-5]);
    let cos = cos.mul(square).sub(L::splat(0.5)).mul(square);
    let cos = cos.add(L::splat(1.0));
    let odd = quarter.shift_left::<31>().shift_right::<31>();
    let sign = splat_bits(0x8000_0000);
    let sin_sign = quarter.shift_left::<30>().and(sign);
    let next = quarter.add_bits(splat_bits(1));
    let cos_sign = next.shift_left::<30>().and(sign);
    (
        L::select(odd, cos, sin).xor(sin_sign),
        L::select(odd, sin, cos).xor(cos_sign),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{
        f32x8::{Backend, Kernel, backends, run_on},
        test_values::bits,
    };

    #[derive(Clone, Copy)]
    enum Function {
        Exp,
        Tanh,
        Sin,
        Cos,
    }

    struct Apply<'a>(Function, &'a [f32]);

    impl Kernel for Apply<'_> {
        type Output = Vec<f32>;

        #[inline(always)]
        fn run<L: F32x8>(self) -> Vec<f32> {
            let mut out = Vec::with_capacity(self.1.len());
            for x in self.1.as_chunks::<8>().0 {
                let x = L::from_array(*x);
                let y = match self.0 {
                    Function::Exp => exp(x),
                    Function::Tanh => tanh(x),
                    Function::Sin => sin_cos(x).0,
                    Function::Cos => sin_cos(x).1,
                };
                out.extend(y.to_array());
            }
            out
        }
    }

    /// The results, which are the same on all lanes.
    fn results(function: Function, x: &[f32]) -> Vec<f32> {
        assert_eq!(x.len() % 8, 0);
        let portable = run_on(Backend::Portable, Apply(function, x));
        for backend in backends() {
            assert_eq!(bits(&run_on(backend, Apply(function, x))), bits(&portable));
        }
        portable
    }

    /// The largest error in units in the last place of normal results.
    fn largest_error(x: &[f32], y: &[f32], exact: impl Fn(f64) -> f64) -> f64 {
        let mut largest = 0f64;
        for (x, y) in x.iter().zip(y) {
            let exact = exact(f64::from(*x));
            let near = (exact as f32).abs();
            let unit = f64::from(near.next_up()) - f64::from(near);
            largest = largest.max((f64::from(*y) - exact).abs() / unit);
        }
        largest
    }

    fn sweep(from: f32, to: f32) -> Vec<f32> {
        let count = 1 << 17;
        let step = (f64::from(to) - f64::from(from)) / f64::from(count);
        (0..count)
            .map(|i| (f64::from(from) + f64::from(i) * step) as f32)
            .collect()
    }

    #[test]
    fn exp_is_exact_to_two_units() {
        for (from, to) in [(-87.0, 88.7), (-1.0, 1.0), (-1e-3, 1e-3), (-103.9, -87.0)] {
            let x = sweep(from, to);
            let error = largest_error(&x, &results(Function::Exp, &x), f64::exp);
            assert!(error < 2.0, "{error} from {from}");
        }
        let x = [
            0.0,
            -0.0,
            f32::NEG_INFINITY,
            f32::INFINITY,
            -104.5,
            -1e30,
            89.0,
            f32::NAN,
        ];
        let y = results(Function::Exp, &x);
        assert_eq!(
            y[..7],
            [1.0, 1.0, 0.0, f32::INFINITY, 0.0, 0.0, f32::INFINITY]
        );
        assert!(y[7].is_nan());
    }

    #[test]
    fn the_logarithm_is_exact_to_three_units() {
        let x: Vec<f32> = sweep(0.0, 1.0)
            .into_iter()
            .chain([1.0, 1e-30, 1e-7])
            .collect();
        let one = |x: &f32| log_1p_one::<crate::lanes::f32x8::Scalar>(*x);
        let y: Vec<f32> = x.iter().map(one).collect();
        assert!(largest_error(&x[1..], &y[1..], f64::ln_1p) < 3.0);
        assert_eq!(y[0], 0.0);
    }

    #[test]
    fn tanh_is_exact_to_two_units() {
        for (from, to) in [(-12.0, 12.0), (-0.7, 0.7), (0.6, 0.65), (-1e-4, 1e-4)] {
            let x = sweep(from, to);
            let error = largest_error(&x, &results(Function::Tanh, &x), f64::tanh);
            assert!(error < 2.0, "{error} from {from}");
        }
        let x = [
            0.0,
            -0.0,
            f32::NEG_INFINITY,
            f32::INFINITY,
            -1e30,
            1e30,
            50.0,
            f32::NAN,
        ];
        let y = results(Function::Tanh, &x);
        assert_eq!(bits(&y[..7]), bits(&[0.0, -0.0, -1.0, 1.0, -1.0, 1.0, 1.0]));
        assert!(y[7].is_nan());
    }

    #[test]
    fn sine_and_cosine_are_exact_to_single_precision() {
        let turns: Vec<u32> = (0..1u32 << 17)
            .map(|i| i.wrapping_mul(4099 * 12345 + 2))
            .collect();
        let x: Vec<f32> = turns.iter().map(|turns| f32::from_bits(*turns)).collect();
        let (sin, cos) = (results(Function::Sin, &x), results(Function::Cos, &x));
        for (i, turns) in turns.iter().enumerate() {
            let angle = f64::from(*turns) / 4_294_967_296.0 * std::f64::consts::TAU;
            assert!((f64::from(sin[i]) - angle.sin()).abs() < 1.2e-7, "{turns}");
            assert!((f64::from(cos[i]) - angle.cos()).abs() < 1.2e-7, "{turns}");
        }
        // Small angles have relative precision.
        let x: Vec<f32> = (1..=64).map(f32::from_bits).collect();
        for (i, sin) in results(Function::Sin, &x).iter().enumerate() {
            let angle = (i + 1) as f64 / 4_294_967_296.0 * std::f64::consts::TAU;
            assert!((f64::from(*sin) / angle.sin() - 1.0).abs() < 2e-7);
        }
        let x = [0, 1 << 30, 1 << 31, 3 << 30, 0, 0, 0, 0].map(f32::from_bits);
        assert_eq!(results(Function::Sin, &x)[..4], [0.0, 1.0, 0.0, -1.0]);
        assert_eq!(results(Function::Cos, &x)[..4], [1.0, 0.0, -1.0, 0.0]);
    }
}
