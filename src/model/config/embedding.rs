//! The configuration of vectors of text: keys that any architecture's file may have.

use super::keys::Keys;
use crate::{Error, Result};

/// Metadata key of folders: whether vectors get length one. GGUF files do not say; theirs do.
pub const NORMALIZE: &str = "embedding.normalize";
/// The key of the pooling, as in GGUF files.
pub const POOLING_TYPE: &str = "pooling_type";

/// The computation of a text's vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingConfig {
    /// The way from the vectors of tokens to that of the text.
    pub pooling: Pooling,
    /// Whether vectors get length one.
    pub normalizes: bool,
    /// Columns and rows of the matrices that the pooled vector is multiplied with: `dense_2`, `dense_3`.
    pub dense: Vec<[usize; 2]>,
    /// Number of outputs of a reranker's classifier, which follows the pooling of a pair of texts.
    pub classes: Option<usize>,
}

/// Names of those matrices.
pub const DENSE: [&str; 2] = ["dense_2", "dense_3"];
/// Names of a classifier's layers: the hidden one, which some classifiers lack, and the outputs.
pub const CLASSIFIER: [&str; 2] = ["cls", "cls.output"];
/// The key of the list of a classifier's outputs, as in GGUF files.
pub const OUTPUT_LABELS: &str = "classifier.output_labels";
/// The number of a reranker's pooling.
pub const RANK: u32 = 4;

/// The tokens whose vectors become the text's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all.
    Mean,
    /// The vector of the first token.
    First,
    /// The vector of the last token.
    Last,
}

impl Pooling {
    /// The vector of a text whose tokens have these `rows` of `width` values.
    pub fn of(self, rows: &[f32], width: usize) -> Vec<f32> {
        let mut each = rows.chunks_exact(width);
        match self {
            Pooling::First => each.next().unwrap_or_default().to_vec(),
            Pooling::Last => each.next_back().unwrap_or_default().to_vec(),
            Pooling::Mean => {
                let mut sums = vec![0.0f64; width];
                let count = each.len().max(1) as f64;
                for row in each {
                    sums.iter_mut()
                        .zip(row)
                        .for_each(|(sum, x)| *sum += f64::from(*x));
                }
                sums.iter().map(|sum| (sum / count) as f32).collect()
            }
        }
    }
}

impl EmbeddingConfig {
    /// The computation that the file declares; `None` for a model that generates text.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for another pooling, [`Error::UnsupportedModel`] for a classifier that does not score pairs
    /// of texts.
    pub fn read(keys: &Keys) -> Result<Option<EmbeddingConfig>> {
        let pooling = match keys.metadata().u32(&keys.name(POOLING_TYPE))? {
            None | Some(0) => return Ok(None),
            Some(1) => Pooling::Mean,
            Some(2) => Pooling::First,
            Some(3) => Pooling::Last,
            Some(RANK) => return EmbeddingConfig::of_reranker(keys).map(Some),
            Some(other) => {
                let key = keys.name(POOLING_TYPE);
                return Err(Error::InvalidModelFile(format!("{key} is {other}")));
            }
        };
        let mut dense = Vec::new();
        for name in DENSE {
            let size = |end: &str| keys.size_if(&format!("{name}_feat_{end}"));
            if let (Some(cols), Some(rows)) = (size("in")?, size("out")?) {
                dense.push([cols, rows]);
            }
        }
        Ok(Some(EmbeddingConfig {
            pooling,
            dense,
            normalizes: keys.bool(NORMALIZE)?.unwrap_or(true),
            classes: None,
        }))
    }

    /// A reranker reads the last token, or the first one of encoders, which is known later. It has one output, or those of the
    /// answers "yes" and "no".
    fn of_reranker(keys: &Keys) -> Result<EmbeddingConfig> {
        let labels = keys.metadata().strings(&keys.name(OUTPUT_LABELS))?;
        let classes = match labels {
            None => 1,
            Some(labels) if labels.len() == 1 => 1,
            Some([yes, no]) if yes == "yes" && no == "no" => 2,
            Some(labels) => {
                let count = labels.len();
                return Err(keys.unsupported(&format!("a classifier of {count} classes")));
            }
        };
        Ok(EmbeddingConfig {
            pooling: Pooling::Last,
            dense: Vec::new(),
            normalizes: false,
            classes: Some(classes),
        })
    }
}

/// Gives `vector` length one. A vector of zeros stays.
pub fn normalize(vector: &mut [f32]) {
    let squares = vector.iter().map(|x| f64::from(*x) * f64::from(*x));
    let length = squares.sum::<f64>().sqrt();
    if length > 0.0 {
        for x in vector {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Metadata;

    #[test]
    fn pooling_and_normalization_are_read() {
        let read = |pooling: Option<u32>, normalize: Option<bool>| {
            let mut metadata = Metadata::new();
            if let Some(pooling) = pooling {
                metadata.insert("bert.pooling_type", pooling);
            }
            if let Some(normalize) = normalize {
                metadata.insert("bert.embedding.normalize", normalize);
            }
            EmbeddingConfig::read(&Keys::new(&metadata, "bert"))
        };
        for (number, pooling) in [(1, Pooling::Mean), (2, Pooling::First), (3, Pooling::Last)] {
            let config = read(Some(number), None).unwrap().unwrap();
            assert_eq!((config.pooling, config.normalizes), (pooling, true));
        }
        assert!(!read(Some(1), Some(false)).unwrap().unwrap().normalizes);
        assert_eq!(read(None, None).unwrap(), None);
        assert_eq!(read(Some(0), None).unwrap(), None);
        assert!(matches!(
            read(Some(5), None),
            Err(Error::InvalidModelFile(_))
        ));
    }

    #[test]
    fn pooled_rows_and_their_length() {
        let rows = [1.0, 2.0, 3.0, 6.0, 5.0, 7.0];
        assert_eq!(Pooling::Mean.of(&rows, 2), [3.0, 5.0]);
        assert_eq!(Pooling::First.of(&rows, 2), [1.0, 2.0]);
        assert_eq!(Pooling::Last.of(&rows, 2), [5.0, 7.0]);
        let mut vector = [3.0, 4.0];
        normalize(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
        let mut zeros = [0.0, 0.0];
        normalize(&mut zeros);
        assert_eq!(zeros, [0.0, 0.0]);
    }
}
