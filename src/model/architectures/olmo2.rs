//! OLMo 2 (OLMo Team 2024, <https://arxiv.org/abs/2501.00656>): norms after attention and feed-forward,
//! none before; norms of all query heads and all key heads at once.

use super::{Keys, ModelConfig};
use crate::{
    Result,
    model::config::{NormPlaces, QkNorm},
};

pub(super) fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm_places = NormPlaces {
        before: false,
        after: true,
    };
    config.qk_norm = QkNorm::Rows;
    Ok(())
}
