//! Rows of multi-head latent attention: the first columns, which will be rotated, stay; the others, the latent, have an RMS
//! norm.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) norm: FloatTensor<B>,
    pub(super) eps: f32,
}

op! {
    fn latent_row(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// Normalizes the last columns of `x` `[tokens, columns]`, as many as `norm` has weights.
pub fn latent_row(x: Tensor<2>, norm: Tensor<1>, eps: f32) -> Tensor<2> {
    assert!(norm.dims()[0] <= x.dims()[1], "a norm of more columns");
    Tensor::from_dispatch(Dispatch::latent_row(Arguments {
        x: x.into_dispatch(),
        norm: norm.into_dispatch(),
        eps,
    }))
}

/// The composed kernel.
fn kernel(columns: usize, len: usize, eps: f32) -> Kernel {
    Kernel::new("latent_row")
        .binding("x")
        .binding("norm")
        .binding("out")
        .constant("KEPT", columns - len)
        .constant("LEN", len)
        .constant_f32("EPS", eps)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("latent_row"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, columns] = args.x.shape().dims();
    let out = output(&args.x, [tokens, columns]);
    let len = args.norm.shape().num_elements();
    kernel(columns, len, args.eps).launch(&[&args.x, &args.norm, &out], [tokens as u32, 1, 1]);
    out
}

/// Also the function of the CPU device.
pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, columns] = args.x.shape().dims();
    let norm = args.norm.storage::<f32>();
    let mut out = args.x.storage::<f32>().to_vec();
    for row in out.chunks_exact_mut(columns) {
        let latent = &mut row[columns - norm.len()..];
        let squares = latent.iter().map(|x| x * x).sum::<f32>();
        let scale = (squares / norm.len() as f32 + args.eps).sqrt().recip();
        for (value, weight) in latent.iter_mut().zip(norm) {
            *value *= scale * weight;
        }
    }
    twin_output(out, [tokens, columns])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(70, 50, 1e-6)]);
    }
}
