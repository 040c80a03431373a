//! The parts of a load: the plan, the outline, the weights. `runtime::start` puts them in order.

mod attention;
mod feed_forward;
mod latent;
mod layer_input;
mod layout;
mod modules;
mod mtp_head;
mod plan;
mod reader;
mod recurrent;
mod tensors;
mod tower;
mod tower_modules;

pub(super) use self::layout::{DeviceBytes, RowRepacker};
use self::modules::Loader;
pub(crate) use self::plan::{Plan, plan};
pub(super) use self::tensors::LAYER_TOKENS;
pub(crate) use self::tower::TowerPlan;
use super::layers::decoder::Decoder;
use crate::{
    Result,
    device::ComputeDevice,
    tensor_types::TensorType,
    weights::{ByteSource, BytesSource, Gguf},
};

/// Streams the weights to a device, for kernels of the portable form.
pub(crate) async fn load_weights<S: ByteSource>(
    device: &ComputeDevice,
    gguf: &Gguf,
    source: &S,
    plan: &Plan,
    mut progress: impl FnMut(u64, u64),
) -> Result<Decoder> {
    let total_bytes = gguf.tensors.iter().map(|tensor| tensor.size_bytes).sum();
    let mut progress = |bytes| progress(bytes, total_bytes);
    Loader::new(gguf, Some(source), device, plan, &mut progress)
        .decoder()
        .await
}

/// A model without its weights: enough to collect the kernels that it launches.
pub(crate) async fn outline(device: &ComputeDevice, gguf: &Gguf, plan: &Plan) -> Result<Decoder> {
    let no_source = None::<&BytesSource<Vec<u8>>>;
    Loader::new(gguf, no_source, device, plan, &mut |_| ())
        .decoder()
        .await
}

/// The tensor types of a file's matrices, the most frequent first.
pub fn matrix_types(gguf: &Gguf) -> Vec<TensorType> {
    let matrices = gguf.tensors.iter().filter(|tensor| tensor.shape.len() > 1);
    let of_matrices: Vec<TensorType> = matrices.map(|tensor| tensor.ty).collect();
    let count = |ty: &TensorType| of_matrices.iter().filter(|of| *of == ty).count();
    let mut types = TensorType::ALL.to_vec();
    types.retain(|ty| count(ty) > 0);
    types.sort_by_key(|ty| std::cmp::Reverse(count(ty)));
    types
}
