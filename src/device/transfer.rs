//! Tensors from values and values from tensors. What they mean is not known here.
//!
//! burn's own functions convert elements and make tensors contiguous, with kernels that cubecl compiles, which
//! [`runtime`] cannot. Tensors here are contiguous and need no conversion.

use burn::backend::{
    Backend, BackendTensor, Cube, DispatchDevice, DispatchTensor, DispatchTensorKind, Flex,
    flex::FlexTensor,
};
use burn::cubecl::{bytes::Bytes, server::CopyDescriptor};
use burn::tensor::{DType, Device, Int, Shape, Tensor, TensorData};
use burn_wgpu::CubeTensor;
use bytemuck::AnyBitPattern;

use super::runtime;

/// A tensor of floats with these values.
///
/// # Panics
/// If the shape has another number of elements.
pub fn upload<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    let shape = Shape::from(shape);
    assert_eq!(values.len(), shape.num_elements(), "values of a tensor");
    match device.as_dispatch() {
        DispatchDevice::Cube(_) => Tensor::from_primitive::<Cube>(on_gpu(
            Bytes::from_elems(values),
            shape,
            DType::F32,
            device,
        )),
        _ => Tensor::from_primitive::<Flex>(FlexTensor::from_data(TensorData::new(values, shape))),
    }
}

/// A tensor of words with these values.
///
/// # Panics
/// If the shape has another number of elements.
pub fn upload_words<const D: usize>(
    words: Vec<u32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D, Int> {
    let shape = Shape::from(shape);
    assert_eq!(words.len(), shape.num_elements(), "words of a tensor");
    match device.as_dispatch() {
        DispatchDevice::Cube(_) => Tensor::from_primitive::<Cube>(on_gpu(
            Bytes::from_elems(words),
            shape,
            DType::U32,
            device,
        )),
        _ => Tensor::from_primitive::<Flex>(FlexTensor::from_data(TensorData::new(words, shape))),
    }
}

/// Memory for words, which may hold anything.
pub fn reserve_words(words: usize, device: &Device) -> Tensor<1, Int> {
    let shape = Shape::from([words]);
    match device.as_dispatch() {
        DispatchDevice::Cube(device) => {
            let client = runtime::client(device);
            let handle = client.empty(words * size_of::<u32>());
            let device = device.clone();
            let tensor = CubeTensor::new_contiguous(client, device, shape, handle, DType::U32);
            Tensor::from_primitive::<Cube>(tensor)
        }
        _ => Tensor::from_primitive::<Flex>(FlexTensor::empty(shape, DType::U32)),
    }
}

fn on_gpu(bytes: Bytes, shape: Shape, dtype: DType, device: &Device) -> CubeTensor {
    let DispatchDevice::Cube(device) = device.as_dispatch() else {
        unreachable!("the caller has seen a GPU");
    };
    let client = runtime::client(device);
    let handle = client.create(bytes);
    CubeTensor::new_contiguous(client, device.clone(), shape, handle, dtype)
}

/// Reads a tensor of elements of 32 bits back.
///
/// # Errors
/// The device's, as text.
pub async fn read<T: AnyBitPattern>(tensor: DispatchTensor) -> Result<Vec<T>, String> {
    let mut values = read_all(vec![tensor]).await?;
    values.pop().ok_or_else(|| "nothing was read".into())
}

/// Reads tensors of one device back, with one copy for all. Their elements have 32 bits.
///
/// # Errors
/// The device's, as text.
pub async fn read_all<T: AnyBitPattern>(
    tensors: Vec<DispatchTensor>,
) -> Result<Vec<Vec<T>>, String> {
    let mut copies = Vec::new();
    let mut values = Vec::new();
    let mut client = None;
    for tensor in tensors {
        match tensor.kind {
            DispatchTensorKind::Cube(tensor) => {
                let tensor = primitive(tensor);
                let (shape, strides) = (tensor.meta.shape().clone(), tensor.meta.strides().clone());
                let (handle, bytes) = (tensor.handle.binding(), tensor.dtype.size());
                copies.push(CopyDescriptor::new(handle, shape, strides, bytes));
                client = Some(tensor.client);
            }
            DispatchTensorKind::Flex(tensor) => {
                values.push(elements(primitive(tensor).into_data().as_bytes()));
            }
            #[allow(unreachable_patterns)] // Other backends exist if other packages ask for them.
            _ => return Err("a tensor of another backend".into()),
        }
    }
    if let Some(client) = client {
        let read = client.read_tensor_async(copies).await;
        let read = read.map_err(|error| format!("{error:?}"))?;
        values.extend(read.iter().map(|bytes| elements(bytes)));
    }
    Ok(values)
}

/// The backend's tensor, whatever the kind of its elements.
fn primitive<B, P>(tensor: BackendTensor<B>) -> P
where
    B: Backend<FloatTensorPrimitive = P, IntTensorPrimitive = P>,
{
    match tensor {
        BackendTensor::Int(tensor) => tensor,
        tensor => tensor.float(),
    }
}

/// Copies elements out of bytes, which may not be aligned.
fn elements<T: AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    let sized = bytes.chunks_exact(size_of::<T>());
    sized.map(bytemuck::pod_read_unaligned).collect()
}
