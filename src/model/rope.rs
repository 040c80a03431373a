//! Rotary frequencies (Su et al. 2021) with the scalings of the Llama family.

use super::LlamaConfig;

/// Radians per position for each pair of a head, `[head_dim / 2]`:
/// `base^(-2i / head_dim) / scale / factor[i]`. `factors` is the checkpoint's `rope_freqs` (Llama
/// 3's scaling comes that way).
pub fn frequencies(config: &LlamaConfig, factors: Option<&[f32]>) -> Vec<f32> {
    (0..config.head_dim / 2)
        .map(|i| {
            let exponent = -2.0 * i as f64 / config.head_dim as f64;
            let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
            let radians = f64::from(config.rope_base).powf(exponent);
            (radians / f64::from(config.rope_scale) / factor) as f32
        })
        .collect()
}
