//! Rotary frequencies (Su et al. 2021, <https://arxiv.org/abs/2104.09864>) and their scalings to
//! longer contexts. Knows nothing of where they are applied.

use std::f64::consts::TAU;

use super::Keys;
use crate::{Result, model::config::keys::missing};

/// How queries and keys are rotated.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub base: f32,
    /// Base of those layers that are rotated by frequencies of their own, without scaling.
    pub local_base: Option<f32>,
    /// Rotated pairs are half of `dims` apart, not neighbours.
    pub neox: bool,
    /// They are in the GGUF files of the architecture, whatever this checkpoint has.
    pub gguf_neox: bool,
    /// First elements of each head that are rotated; even.
    pub dims: usize,
    /// Scaling to contexts longer than that of the training.
    pub scaling: Scaling,
}

/// A scaling of the frequencies. That of Llama 3 comes as factors in a tensor of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    /// None.
    None,
    /// Positions are divided by `factor` (Chen et al. 2023, <https://arxiv.org/abs/2306.15595>).
    Linear {
        /// At least 1 in real models.
        factor: f32,
    },
    /// Slow waves are stretched, quick ones stay (Peng et al. 2023,
    /// <https://arxiv.org/abs/2309.00071>).
    Yarn {
        /// How many times the context is as long.
        factor: f32,
        /// Context of the training, in tokens.
        original_tokens: usize,
        /// Turns in the original context above which a wave stays as it is.
        beta_fast: f32,
        /// Turns below which it is stretched by the whole factor.
        beta_slow: f32,
        /// What rotated elements are multiplied by; `0.1 ln(factor) + 1` in the paper.
        magnitude: f32,
    },
    /// A factor for each pair, one set of them for contexts up to `original_tokens` and one for
    /// longer ones (Ding et al. 2024, <https://arxiv.org/abs/2402.13753>), in tensors of the file.
    Long {
        /// Context of the training, in tokens.
        original_tokens: usize,
        /// What rotated elements are multiplied by, whatever the context.
        magnitude: f32,
    },
}

/// Radians per position of each pair, and what rotated elements are multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    /// `[dims / 2]`
    pub radians: Vec<f64>,
    /// 1 without scaling.
    pub magnitude: f32,
}

impl Rope {
    /// The rotation that the keys of most architectures describe.
    pub(super) fn read(keys: &Keys, head_dim: usize) -> Result<Rope> {
        Ok(Rope {
            base: keys.positive_or("rope.freq_base", 10_000.0)?,
            local_base: keys.positive("rope.freq_base_swa")?,
            neox: true,
            gguf_neox: true,
            dims: keys.size_or("rope.dimension_count", head_dim)?,
            scaling: Scaling::read(keys)?,
        })
    }

    /// The model's frequencies. `factors` divide them, one per pair.
    pub fn frequencies(&self, factors: Option<&[f32]>) -> Frequencies {
        let factor = |pair: usize| factors.map_or(1.0, |factors| f64::from(factors[pair]));
        let pairs = 0..self.dims / 2;
        let radians = pairs.map(|pair| {
            let plain = self.radians(self.base, pair) / factor(pair);
            self.scaling.apply(plain, pair, self)
        });
        Frequencies {
            radians: radians.collect(),
            magnitude: self.scaling.magnitude(),
        }
    }

    /// Those of local layers, which no scaling changes.
    pub fn local_frequencies(&self, base: f32) -> Frequencies {
        let pairs = 0..self.dims / 2;
        Frequencies {
            radians: pairs.map(|pair| self.radians(base, pair)).collect(),
            magnitude: 1.0,
        }
    }

    /// `base^(-2 pair / dims)`
    fn radians(&self, base: f32, pair: usize) -> f64 {
        f64::from(base).powf(-2.0 * pair as f64 / self.dims as f64)
    }
}

impl Scaling {
    fn read(keys: &Keys) -> Result<Scaling> {
        let original = "rope.scaling.original_context_length";
        let factor = || keys.positive_or("rope.scaling.factor", 1.0);
        match keys.str("rope.scaling.type")?.unwrap_or("none") {
            "none" => Ok(Scaling::None),
            "linear" => Ok(Scaling::Linear { factor: factor()? }),
            "yarn" => {
                let factor = factor()?;
                Ok(Scaling::Yarn {
                    factor,
                    original_tokens: keys.size(original)?,
                    beta_fast: keys.positive_or("rope.scaling.yarn_beta_fast", 32.0)?,
                    beta_slow: keys.positive_or("rope.scaling.yarn_beta_slow", 1.0)?,
                    magnitude: (0.1 * factor.ln() + 1.0)
                        * keys.positive_or("rope.scaling.attn_factor", 1.0)?,
                })
            }
            "longrope" => Ok(Scaling::Long {
                original_tokens: keys
                    .size_if(original)?
                    .ok_or_else(|| missing(&keys.name(original)))?,
                magnitude: keys.positive_or("rope.scaling.attn_factor", 1.0)?,
            }),
            other => Err(keys.unsupported(&format!(
                "rope scaling {other:?}; this build runs none, linear, yarn, longrope and Llama 3's"
            ))),
        }
    }

    fn magnitude(self) -> f32 {
        match self {
            Scaling::None | Scaling::Linear { .. } => 1.0,
            Scaling::Yarn { magnitude, .. } | Scaling::Long { magnitude, .. } => magnitude,
        }
    }

    fn apply(self, radians: f64, pair: usize, rope: &Rope) -> f64 {
        match self {
            Scaling::None | Scaling::Long { .. } => radians,
            Scaling::Linear { factor } => radians / f64::from(factor),
            Scaling::Yarn {
                factor,
                original_tokens,
                beta_fast,
                beta_slow,
                ..
            } => {
                // The pair that turns so many times in the original context.
                let last = rope.dims as f64 - 1.0;
                let pair_of = |turns: f32| {
                    let waves = original_tokens as f64 / (f64::from(turns) * TAU);
                    rope.dims as f64 * waves.ln() / (2.0 * f64::from(rope.base).ln())
                };
                let low = pair_of(beta_fast).floor().max(0.0);
                let high = pair_of(beta_slow).ceil().min(last);
                let stretched = ((pair as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
                radians * (1.0 - stretched) + radians / f64::from(factor) * stretched
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: Scaling) -> Rope {
        Rope {
            base: 10_000.0,
            local_base: None,
            neox: true,
            gguf_neox: true,
            dims: 8,
            scaling,
        }
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn frequencies_are_powers_of_the_base_divided_by_factors() {
        let plain = rope(Scaling::None).frequencies(None);
        assert_close(&plain.radians, &[1.0, 0.1, 0.01, 0.001]);
        let divided = rope(Scaling::None).frequencies(Some(&[1.0, 1.0, 2.0, 4.0]));
        assert_close(&divided.radians, &[1.0, 0.1, 0.005, 0.000_25]);
        let linear = rope(Scaling::Linear { factor: 4.0 });
        assert_eq!(linear.frequencies(None).radians[0], 0.25);
        assert_eq!(linear.local_frequencies(10_000.0).radians, plain.radians);
    }

    /// Waves of 6.28, 62.8, 628 and 6,283 tokens in a context of 2,048 turn 326, 32.6, 3.26 and
    /// 0.326 times: the quick ones stay, the slowest one is stretched, one lies between.
    #[test]
    fn yarn_keeps_quick_waves_and_stretches_slow_ones() {
        let yarn = rope(Scaling::Yarn {
            factor: 4.0,
            original_tokens: 2048,
            beta_fast: 32.0,
            beta_slow: 1.0,
            magnitude: 1.138_629_4,
        });
        let Frequencies { radians, magnitude } = yarn.frequencies(None);
        assert_close(&radians[..2], &[1.0, 0.1]);
        assert_close(&radians[3..], &[0.001 / 4.0]);
        assert!(radians[2] < 0.01 && radians[2] > 0.01 / 4.0, "{radians:?}");
        assert_eq!(magnitude, 1.138_629_4);
    }
}
