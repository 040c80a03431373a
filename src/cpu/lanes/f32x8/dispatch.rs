//! Runs kernels that are generic over lanes on the vectors that the machine has.

use super::F32x8;
#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
use super::scalar::Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::simd128::Simd128;

/// A function that is compiled for each kind of lanes.
pub(crate) trait Kernel {
    /// The result.
    type Output;
    /// Implementations are `#[inline(always)]`.
    fn run<L: F32x8>(self) -> Self::Output;
}

/// Runs `kernel` on the fastest lanes.
#[inline]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: there is AVX2 and F16C.
        return unsafe { run_avx2(kernel) };
    }
    run_portable(kernel)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

fn run_portable<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    return kernel.run::<Simd128>();
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    kernel.run::<Scalar>()
}

/// A kind of lanes.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Backend {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

/// The kinds that this machine has.
#[cfg(test)]
pub(crate) fn backends() -> Vec<Backend> {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        return vec![Backend::Portable, Backend::Avx2];
    }
    vec![Backend::Portable]
}

/// Runs `kernel` on one of [`backends`].
#[cfg(test)]
pub(crate) fn run_on<K: Kernel>(backend: Backend, kernel: K) -> K::Output {
    match backend {
        Backend::Portable => run_portable(kernel),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => {
            assert!(has_avx2());
            // SAFETY: there is AVX2 and F16C.
            unsafe { run_avx2(kernel) }
        }
    }
}
