//! The types of an encoder's tokens: those of the second of two texts have the second type (BERT, Devlin et al. 2018,
//! <https://arxiv.org/abs/1810.04805>).

use burn::tensor::{Int, Tensor};

use crate::ops::add_token_type::add_token_type;

/// A vector per type, which is added to the embeddings of the tokens of this type.
#[derive(Debug, Clone)]
pub struct TokenTypes {
    /// `token_types`, `[types, dim]`
    pub table: Tensor<2>,
    /// The types of the next step's tokens, `[tokens]`.
    pub of_tokens: Tensor<1, Int>,
}

impl TokenTypes {
    /// Number of types.
    pub fn count(&self) -> usize {
        self.table.dims()[0]
    }

    /// `x` `[tokens, dim]` plus the vectors of the tokens' types.
    pub fn add_to(&self, x: Tensor<2>) -> Tensor<2> {
        add_token_type(x, self.of_tokens.clone(), self.table.clone())
    }
}
