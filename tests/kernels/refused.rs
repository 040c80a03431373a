//! The operations of burn that the device refuses, because a compiler would have to make their kernels.

use burn::tensor::Tensor;
use inpage::device::read;
use pollster::block_on;

use crate::{
    fixture::{tensor, values},
    shared_gpus::new_gpu,
};

/// The sum of two tensors, which is a kernel of burn.
fn sum_by_burn(x: &Tensor<1>) -> Result<Vec<f32>, String> {
    let sum = x.clone() + x.clone();
    block_on(read(sum.into_dispatch()))
}

#[test]
fn kernels_of_burn_are_refused_by_name() {
    // A device of its own, because errors may concern later work, too.
    let gpu = new_gpu();
    let x = tensor(&[1.0, -2.0, 3.5], [3], gpu.device());
    assert_eq!(values(x.clone()), [1.0, -2.0, 3.5]);
    let error = sum_by_burn(&x).expect_err("a kernel that is not WGSL");
    println!("{error}");
    assert!(error.contains("is not WGSL"), "{error}");
}
