//! The parts of every op: its declaration, optional inputs, output tensors, and the names of burn that an op's file uses.

use burn::tensor::{DType, Shape, TensorData};
pub(super) use burn::{
    backend::{
        Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata,
        flex::FlexTensor,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
pub(super) use burn_wgpu::CubeTensor;

use crate::kernel::allocate;

/// Declares the op of a file. The file has a struct `Arguments` of tensors and other values, and the functions `launch`
/// for the GPU and `twin` for the reference, which take it. Generates an extension trait of burn's backends, its
/// implementations for both, and `Dispatch::<name>`, which selects one of them by the tensors' device.
///
/// An op with a kernel for the CPU device has a third function `cpu`, and the declaration starts with `cpu if` and the
/// condition under which it is called instead of `twin`: the reference and the CPU device share burn's backend.
macro_rules! op {
    (cpu if ($is_on_cpu:expr); fn $name:ident(Arguments) -> $($output:tt)+) => {
        op! {
            @first(arguments) {
                let is_on_cpu: fn(&Arguments<burn::backend::Flex>) -> bool = $is_on_cpu;
                if is_on_cpu(&arguments) {
                    return cpu(arguments);
                }
            }
            fn $name -> $($output)+
        }
    };
    (fn $name:ident(Arguments) -> $($output:tt)+) => {
        op! { @first(arguments) {} fn $name -> $($output)+ }
    };
    (@first($arguments:ident) { $($first:tt)* } fn $name:ident -> $($output:tt)+) => {
        #[burn::backend::backend_extension(Cube, Flex)]
        #[allow(clippy::type_complexity)]
        trait Op: burn::backend::Backend {
            fn $name(#[extension_type] arguments: Arguments<Self>) -> $($output)+;
        }

        impl Op for burn::backend::Cube {
            fn $name(arguments: Arguments<Self>) -> $($output)+ {
                launch(arguments)
            }
        }

        impl Op for burn::backend::Flex {
            fn $name($arguments: Arguments<Self>) -> $($output)+ {
                $($first)*
                twin($arguments)
            }
        }
    };
}
pub(super) use op;

/// An optional input of an op.
#[derive(ExtensionType)]
pub(super) enum Maybe<B: Backend> {
    Some(FloatTensor<B>),
    None,
}

impl<B: Backend> Maybe<B> {
    pub(super) fn as_ref(&self) -> Option<&FloatTensor<B>> {
        match self {
            Maybe::Some(tensor) => Some(tensor),
            Maybe::None => None,
        }
    }
}

impl<const D: usize> From<Option<Tensor<D>>> for Maybe<Dispatch> {
    fn from(tensor: Option<Tensor<D>>) -> Self {
        match tensor {
            Some(tensor) => Maybe::Some(tensor.into_dispatch()),
            None => Maybe::None,
        }
    }
}

/// An f32 output tensor on the GPU.
pub(super) fn output(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    reserve(like, shape.into(), DType::F32)
}

/// A u32 output tensor on the GPU.
pub(super) fn output_words(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    reserve(like, shape.into(), DType::U32)
}

fn reserve(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    let handle = allocate(like, shape.num_elements() * 4);
    CubeTensor::new_contiguous(
        like.client.clone(),
        like.device.clone(),
        shape,
        handle,
        dtype,
    )
}

/// An f32 output tensor of a CPU twin.
pub(super) fn twin_output(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

/// A u32 output tensor of a CPU twin.
pub(super) fn twin_output_words(words: Vec<u32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(words, shape.into()))
}

/// Adds element by element: the twin of an addend.
pub(super) fn add(out: &mut [f32], addend: &[f32]) {
    out.iter_mut().zip(addend).for_each(|(o, a)| *o += a);
}
