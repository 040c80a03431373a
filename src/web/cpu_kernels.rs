//! Connects the kernel module of the CPU device, which JavaScript instantiates on this module's memory, once for each
//! thread.

use inpage_cpu::module::{STACK_BYTES, use_module};
use js_sys::Function;
use wasm_bindgen::prelude::*;

/// The end of a part of the memory that is the stack of the kernels, allocated for good.
#[wasm_bindgen(js_name = cpuKernelStackTop)]
pub fn cpu_kernel_stack_top() -> usize {
    let stack = vec![0u128; STACK_BYTES / size_of::<u128>()].leak();
    stack.as_ptr_range().end as usize
}

/// Computes products and attentions with `compute` from now on. It takes the address of one and the number of parts that
/// it is divided into, and returns 0 if it does not compute it. It computes the parts on `threads` threads, with relaxed SIMD
/// if `relaxed` is true.
#[wasm_bindgen(js_name = useCpuKernels)]
pub fn use_cpu_kernels(compute: Function, threads: usize, relaxed: bool) {
    use_module(threads, relaxed, move |address, parts| {
        let computed = compute.call2(&JsValue::UNDEFINED, &address.into(), &parts.into());
        computed.is_ok_and(|computed| computed.as_f64() == Some(1.0))
    });
}
