//! Rotary embedding (Su et al. 2021, <https://arxiv.org/abs/2104.09864>): frequencies and their
//! scalings to longer contexts.

use std::f64::consts::TAU;

use super::keys::{Keys, missing};
use crate::{Error, Result};

/// Metadata key, after the architecture: whether pairs are [`RopePairs::Halves`]. Written only for
/// checkpoints that are read as they are, without a converter to GGUF.
pub const ROPE_HALVES: &str = "rope.neox";

/// Metadata key, after the architecture: whether the ends of YaRN's ramp are whole pairs. GGUF files have no key for it, and
/// llama.cpp rounds them; checkpoints may say that they are not.
pub const YARN_ROUNDS: &str = "rope.scaling.yarn_rounds";

/// Base of the frequencies where files do not state it.
pub const DEFAULT_BASE: f32 = 10_000.0;

/// The two elements of a head that are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// Elements 2i and 2i + 1.
    Adjacent,
    /// Elements i and i + dims / 2 (GPT-NeoX).
    Halves,
    /// Elements i and i + dims / 4 of each half, of which the first turns by column and the second by row. The loader puts
    /// rows in the order of [`Halves`](RopePairs::Halves).
    Quarters,
}

/// Rotary embedding of queries and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub base: f32,
    /// Base of layers with frequencies of their own, which are never scaled.
    pub local_base: Option<f32>,
    /// Number of rotated elements in those layers.
    pub local_dims: usize,
    /// Pairing of elements in this model's rows of queries and keys.
    pub pairs: RopePairs,
    /// Number of rotated elements, the first ones of each head; even.
    pub dims: usize,
    /// Scaling to contexts longer than the one of the training.
    pub scaling: Scaling,
    /// The part of a rotary position that each pair turns by; `None` if positions are the indices of tokens.
    pub parts: Option<RopeParts>,
}

/// Rotary positions of three parts, time, row and column (Wang et al. 2024, <https://arxiv.org/abs/2409.12191>). They
/// are equal for text; an image's rows have those of their place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopeParts {
    /// The first pairs turn by time, the next by row, the others by column: so many each.
    Sections([usize; 3]),
    /// The parts take turns: pair 3i + 1 turns by row and 3i + 2 by column until there are so many each; the others turn
    /// by time.
    Interleaved([usize; 3]),
    /// The first half of the pairs turns by row, the second by column, with the same frequencies: vision towers.
    Grid,
}

impl RopeParts {
    /// The part of each of `pairs` pairs.
    pub fn of_pairs(self, pairs: usize) -> Vec<u32> {
        let part = |pair: usize| match self {
            RopeParts::Sections([time, _, _]) if pair < time => 0,
            RopeParts::Sections([time, row, _]) if pair < time + row => 1,
            RopeParts::Sections(_) => 2,
            RopeParts::Interleaved([_, rows, columns]) => match pair % 3 {
                1 if pair < 3 * rows => 1,
                2 if pair < 3 * columns => 2,
                _ => 0,
            },
            RopeParts::Grid => 1 + u32::from(pair >= pairs / 2),
        };
        (0..pairs).map(part).collect()
    }

    /// The numbers of pairs in the metadata of a file.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if there are not as many as `pairs`.
    pub fn read_sections(keys: &Keys, pairs: usize) -> Result<[usize; 3]> {
        let name = keys.name("rope.dimension_sections");
        let sections = keys
            .metadata()
            .sizes(&name)?
            .ok_or_else(|| missing(&name))?;
        match sections[..] {
            [time, row, column] | [time, row, column, 0]
                if [time, row, column].iter().all(|it| *it <= pairs)
                    && time + row + column == pairs =>
            {
                Ok([time, row, column])
            }
            _ => Err(Error::InvalidModelFile(format!(
                "{name} is {sections:?} for {pairs} pairs"
            ))),
        }
    }
}

/// A scaling of the frequencies. Llama 3's scaling is none of these: files hold it as a tensor of
/// factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    /// Frequencies are those of the training.
    None,
    /// Positions are divided by `factor` (Chen et al. 2023, <https://arxiv.org/abs/2306.15595>).
    Linear {
        /// New context length over the original one; at least 1 in real models.
        factor: f32,
    },
    /// YaRN: low frequencies are divided by `factor`, high ones kept (Peng et al. 2023,
    /// <https://arxiv.org/abs/2309.00071>).
    Yarn {
        /// New context length over the original one.
        factor: f32,
        /// Context of the training, in tokens.
        original_tokens: usize,
        /// Pairs that turn more often than this in the original context keep their frequency.
        beta_fast: f32,
        /// Pairs that turn less often than this are divided by the whole `factor`.
        beta_slow: f32,
        /// Whether the ends of the ramp between these are rounded to whole pairs.
        rounds: bool,
        /// Factor of the rotated elements; `0.1 ln(factor) + 1` in the paper.
        magnitude: f32,
    },
    /// LongRoPE: a factor per pair, in tensors of the file, one for contexts up to `original_tokens`
    /// and one for longer ones (Ding et al. 2024, <https://arxiv.org/abs/2402.13753>).
    Long {
        /// Context of the training, in tokens.
        original_tokens: usize,
        /// Factor of the rotated elements in both.
        magnitude: f32,
    },
}

/// The angles of each pair, and the factor of the rotated elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    /// Radians per position, `[dims / 2]`.
    pub radians: Vec<f64>,
    /// Factor of the rotated elements; 1 without scaling.
    pub magnitude: f32,
}

impl Rope {
    /// Reads the keys that architectures share. Pairs are halves until the architecture says otherwise.
    pub(super) fn read(keys: &Keys, head_dim: usize) -> Result<Rope> {
        let dims = keys.size_or("rope.dimension_count", head_dim)?;
        Ok(Rope {
            base: keys.positive_or("rope.freq_base", DEFAULT_BASE)?,
            local_base: keys.positive("rope.freq_base_swa")?,
            local_dims: keys.size_or("rope.dimension_count_swa", dims)?,
            pairs: RopePairs::Halves,
            dims,
            scaling: Scaling::read(keys)?,
            parts: None,
        })
    }

    /// The model's frequencies, each divided by its pair's entry of `factors`.
    pub fn frequencies(&self, factors: Option<&[f32]>) -> Frequencies {
        let factor = |pair: usize| factors.map_or(1.0, |factors| f64::from(factors[pair]));
        let pairs = 0..self.dims / 2;
        let radians = pairs.map(|pair| {
            let plain = self.radians(self.base, pair, self.dims) / factor(pair);
            self.scaling.apply(plain, pair, self)
        });
        Frequencies {
            radians: radians.collect(),
            magnitude: self.scaling.magnitude(),
        }
    }

    /// The frequencies of local layers, which are not scaled.
    pub fn local_frequencies(&self, base: f32) -> Frequencies {
        let (dims, pairs) = (self.local_dims, 0..self.local_dims / 2);
        Frequencies {
            radians: pairs.map(|pair| self.radians(base, pair, dims)).collect(),
            magnitude: 1.0,
        }
    }

    /// `base^(-2 pair / dims)`
    fn radians(&self, base: f32, pair: usize, dims: usize) -> f64 {
        // Both halves of a grid have the frequencies of a head of half the length.
        let (pair, dims) = match self.parts {
            Some(RopeParts::Grid) => (pair % (dims / 4).max(1), dims / 2),
            _ => (pair, dims),
        };
        f64::from(base).powf(-2.0 * pair as f64 / dims as f64)
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
                let grown = |multiplier: f32| 0.1 * multiplier * factor.max(1.0).ln() + 1.0;
                let divisor = keys
                    .positive("rope.scaling.yarn_log_multiplier")?
                    .map_or(1.0, grown);
                Ok(Scaling::Yarn {
                    factor,
                    original_tokens: keys.size(original)?,
                    beta_fast: keys.positive_or("rope.scaling.yarn_beta_fast", 32.0)?,
                    beta_slow: keys.positive_or("rope.scaling.yarn_beta_slow", 1.0)?,
                    rounds: keys.bool(YARN_ROUNDS)?.unwrap_or(true),
                    magnitude: (0.1 * factor.ln() + 1.0) / divisor
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
                rounds,
                ..
            } => {
                // The pair that turns this many times in the original context.
                let last = rope.dims as f64 - 1.0;
                let pair_of = |turns: f32| {
                    let waves = original_tokens as f64 / (f64::from(turns) * TAU);
                    rope.dims as f64 * waves.ln() / (2.0 * f64::from(rope.base).ln())
                };
                let (low, high) = (pair_of(beta_fast), pair_of(beta_slow));
                let (low, high) = match rounds {
                    true => (low.floor(), high.ceil()),
                    false => (low, high),
                };
                let (low, high) = (low.max(0.0), high.min(last));
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
            local_dims: 8,
            pairs: RopePairs::Halves,
            dims: 8,
            scaling,
            parts: None,
        }
    }

    #[test]
    fn pairs_turn_by_their_part() {
        let sections = RopeParts::Sections([2, 1, 3]).of_pairs(6);
        assert_eq!(sections, [0, 0, 1, 2, 2, 2]);
        let interleaved = RopeParts::Interleaved([4, 1, 3]).of_pairs(8);
        assert_eq!(interleaved, [0, 1, 2, 0, 0, 2, 0, 0]);
        assert_eq!(RopeParts::Grid.of_pairs(4), [1, 1, 2, 2]);
        let grid = Rope {
            parts: Some(RopeParts::Grid),
            ..rope(Scaling::None)
        };
        assert_close(&grid.frequencies(None).radians, &[1.0, 0.01, 1.0, 0.01]);
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
    /// 0.326 times: the first two are kept, the last one is divided by the factor, the third is between.
    #[test]
    fn yarn_keeps_high_frequencies_and_divides_low_ones() {
        let yarn = rope(Scaling::Yarn {
            factor: 4.0,
            original_tokens: 2048,
            beta_fast: 32.0,
            beta_slow: 1.0,
            rounds: true,
            magnitude: 1.138_629_4,
        });
        let Frequencies { radians, magnitude } = yarn.frequencies(None);
        assert_close(&radians[..2], &[1.0, 0.1]);
        assert_close(&radians[3..], &[0.001 / 4.0]);
        assert!(radians[2] < 0.01 && radians[2] > 0.01 / 4.0, "{radians:?}");
        assert_eq!(magnitude, 1.138_629_4);
    }
}
