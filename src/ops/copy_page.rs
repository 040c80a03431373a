//! Copy of a KV page, for a sequence that diverges from another in the middle of a page.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, tensor::IntTensor},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{kv_memory::KvMemory, op::op};
use crate::kernel::{Kernel, grid, wgsl};

op! {
    fn copy_page(kv: IntTensor<Self>, pages: IntTensor<Self>, words: usize) -> IntTensor<Self>
}

const WORKGROUP: usize = 64;

/// Copies the page `pages[0]` of a layer to `pages[1]` in place.
pub fn copy_page(kv: &mut KvMemory, pages: Tensor<1, Int>) {
    let page_words = kv.page_words();
    let copied = Dispatch::copy_page(kv.take().into_dispatch(), pages.into_dispatch(), page_words);
    kv.put(Tensor::from_dispatch(copied));
}

/// The composed kernel. A page has `words` words, a multiple of 4.
pub fn kernel(words: usize) -> Kernel {
    Kernel::new("copy_page")
        .binding("pages")
        .binding("kv")
        .constant("PAGE_VECTORS", words / 4)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("copy_page"))
}

pub(super) fn launch(kv: CubeTensor, pages: CubeTensor, words: usize) -> CubeTensor {
    let workgroups = (words / 4).div_ceil(WORKGROUP);
    kernel(words).launch(&[&pages, &kv], grid(workgroups));
    kv
}

pub(super) fn twin(mut kv: FlexTensor, pages: FlexTensor, words: usize) -> FlexTensor {
    let [from, to] = [0, 1].map(|i| pages.storage::<u32>()[i] as usize * words);
    kv.storage_mut::<u32>().copy_within(from..from + words, to);
    kv
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(128 * 8)]);
    }
}
