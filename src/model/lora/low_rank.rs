//! What adapters add to a product, whatever their number: two small products.

use burn::{module::Module, tensor::Tensor};

use crate::ops::{
    Addends, Arithmetic, Finish, Variant,
    matmul::matmul,
    matrix::Matrix,
    matvec::{MAX_TOKENS, matvec},
};

/// `up * (down * x)`: the A of all adapters one below the other, their B side by side, with all scales
/// in them and zeros in the rows that they are not for.
#[derive(Module, Debug)]
pub struct LowRank {
    /// `[rank, cols]`, the rank that of all adapters together
    pub down: Matrix,
    /// `[rows, rank]`
    pub up: Matrix,
}

impl LowRank {
    /// `up * (down * norm(x))`, `x` `[tokens, cols]`; a norm, by the root of the mean square, only of a
    /// few tokens.
    pub fn delta(
        &self,
        x: Tensor<2>,
        norm: Option<(Tensor<1>, f32)>,
        variant: Variant,
    ) -> Tensor<2> {
        // Too small to gain by another arithmetic, which was not proven on their formats.
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
