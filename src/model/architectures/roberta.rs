//! Folders of RoBERTa (Liu et al. 2019, <https://arxiv.org/abs/1907.11692>) and XLM-RoBERTa, the encoder of BGE-M3 and multilingual
//! E5. Their files have the architecture of BERT.

use super::{
    architecture::{Architecture, Form, Parameter},
    bert,
};
use crate::{Result, model::config::ConfigJson};

pub const ARCHITECTURE: Architecture = Architecture {
    model_types: &["roberta", "xlm-roberta"],
    read_json,
    parameters: |_| POSITIONS,
    optional_prefix: "roberta.",
    ..bert::ARCHITECTURE
};

/// The id of padding in all checkpoints.
const PADDING_ID: u32 = 1;
/// Positions are counted from the one after it, so the first rows of the table are not used. Files do not have them.
const FIRST_POSITION: u32 = PADDING_ID + 1;

const POSITIONS: &[Parameter] = &[
    Parameter {
        from: "roberta.embeddings.position_embeddings.weight",
        to: &[(
            "position_embd.weight",
            Form::RowsFrom(FIRST_POSITION as u64),
        )],
    },
    Parameter {
        from: "embeddings.position_embeddings.weight",
        to: &[(
            "position_embd.weight",
            Form::RowsFrom(FIRST_POSITION as u64),
        )],
    },
];

fn read_json(json: &mut ConfigJson) -> Result<()> {
    bert::read_json(json)?;
    let key = "pad_token_id";
    json.require(key, json.size(key)?.is_none_or(|it| it == PADDING_ID))?;
    let key = "max_position_embeddings";
    let positions = json.needed(key)?;
    json.set(key, positions.saturating_sub(FIRST_POSITION));
    Ok(())
}
