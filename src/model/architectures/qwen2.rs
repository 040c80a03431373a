//! Qwen2 and 2.5 (Yang et al. 2024, <https://arxiv.org/abs/2407.10671>): biases of queries, keys and
//! values, which every architecture may have.

use super::{Keys, ModelConfig};
use crate::Result;

pub(super) fn configure(_keys: &Keys, _config: &mut ModelConfig) -> Result<()> {
    Ok(())
}
