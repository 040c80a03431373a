//! The product that all adapters of a matrix add to its own, as two small matrices.

use burn::tensor::Tensor;

use crate::ops::{
    Addends, Arithmetic, Finish, Variant,
    matrix::Matrix,
    matvec::MAX_TOKENS,
    product::{matmul, matvec},
};

/// `up * (down * x)`: the A matrices of all adapters stacked, their B matrices side by side. B includes the
/// scales, and has zeros in the rows that an adapter does not change.
#[derive(Debug, Clone)]
pub struct LowRank {
    /// `[rank, cols]`, with the sum of the adapters' ranks
    pub down: Matrix,
    /// `[rows, rank]`
    pub up: Matrix,
}

impl LowRank {
    /// `up * (down * norm(x))`, `x` `[tokens, cols]`. An RMS norm is only supported for few tokens.
    pub fn delta(
        &self,
        x: Tensor<2>,
        norm: Option<(Tensor<1>, f32)>,
        variant: Variant,
    ) -> Tensor<2> {
        // The matrices are too small to gain from another arithmetic, which is not validated for their
        // formats either.
        let variant = Variant {
            matvec: Arithmetic::F32,
            matmul: Arithmetic::F32,
            ..variant
        };
        let none = Addends::default;
        if x.dims()[0] <= MAX_TOKENS {
            let inner = matvec(x, norm, &self.down, none(), Finish::Plain, variant);
            return matvec(inner, None, &self.up, none(), Finish::Plain, variant);
        }
        let inner = matmul(x, &self.down, none(), Finish::Plain, variant);
        matmul(inner, &self.up, none(), Finish::Plain, variant)
    }
}
