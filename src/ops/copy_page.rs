//! A copy of a KV page, for a sequence that goes another way from the middle of a page on.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::Dispatch,
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    backend::Ops,
    kernel::{Kernel, grid},
    shader,
    step::{self, KvMemory},
};

const WORKGROUP: usize = 64;

/// Copies the page `pages[0]` of a layer to `pages[1]` in place. `kv_dim` is that of the memory, a
/// multiple of 4.
pub fn copy_page(kv: &mut KvMemory, pages: Tensor<1, Int>, kv_dim: usize) {
    let copied = Dispatch::copy_page(
        kv.take().into_dispatch(),
        pages.into_dispatch(),
        step::page_elements(kv_dim),
    );
    kv.put(Tensor::from_dispatch(copied));
}

/// The composed kernel; a page has `elements` elements.
pub fn kernel(elements: usize) -> Kernel {
    Kernel::new("copy_page")
        .binding("pages")
        .binding("kv")
        .constant("PAGE_VECTORS", elements / 4)
        .constant("WORKGROUP", WORKGROUP)
        .module(shader::kernel::COPY_PAGE)
}

pub(super) fn launch(kv: CubeTensor, pages: CubeTensor, elements: usize) -> CubeTensor {
    let workgroups = (elements / 4).div_ceil(WORKGROUP);
    kernel(elements).launch(&[&pages, &kv], grid(workgroups));
    kv
}

pub(super) fn twin(mut kv: FlexTensor, pages: FlexTensor, elements: usize) -> FlexTensor {
    let [from, to] = [0, 1].map(|i| pages.storage::<u32>()[i] as usize * elements);
    kv.storage_mut::<f32>()
        .copy_within(from..from + elements, to);
    kv
}
