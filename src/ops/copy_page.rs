//! Copy of a KV page, for a sequence that diverges from another in the middle of a page, and of the state of a sequence.

use super::{kv_memory::KvMemory, op::*, state_memory::StateMemory};
use crate::kernel::{Kernel, grid, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) kv: IntTensor<B>,
    pub(super) pages: IntTensor<B>,
    pub(super) words: usize,
}

op! {
    fn copy_page(Arguments) -> IntTensor<Self>
}

const WORKGROUP: usize = 64;

/// Copies the page `pages[0]` of a layer to `pages[1]` in place.
pub fn copy_page(kv: &mut KvMemory, pages: Tensor<1, Int>) {
    let page_words = kv.page_words();
    let copied = Dispatch::copy_page(Arguments {
        kv: kv.take().into_dispatch(),
        pages: pages.into_dispatch(),
        words: page_words,
    });
    kv.put(Tensor::from_dispatch(copied));
}

/// Copies the state in slot `slots[0]` of a layer to slot `slots[1]` in place.
pub fn copy_state(states: &mut StateMemory, slots: Tensor<1, Int>) {
    let words = states.slot_words();
    let copied = Dispatch::copy_page(Arguments {
        kv: states.take().into_dispatch(),
        pages: slots.into_dispatch(),
        words,
    });
    states.put(Tensor::from_dispatch(copied));
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

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let workgroups = (args.words / 4).div_ceil(WORKGROUP);
    kernel(args.words).launch(&[&args.pages, &args.kv], grid(workgroups));
    args.kv
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { mut kv, .. } = args;
    let [from, to] = [0, 1].map(|i| args.pages.storage::<u32>()[i] as usize * args.words);
    kv.storage_mut::<u32>()
        .copy_within(from..from + args.words, to);
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
