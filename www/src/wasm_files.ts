//! The addresses of the wasm modules. This file is at the root of the package's scripts, because `worker.js`, which contains it
//! after the build, is there, too: an address must name the same file in both.

// Bundlers recognise these expressions.

/** The main module. */
export const mainModule = () => new URL("./wasm/inpage_bg.wasm", import.meta.url);

/** The kernels of the CPU device, with relaxed SIMD or without. */
export const cpuKernels = (relaxed: boolean) =>
  relaxed
    ? new URL("./wasm/cpu_kernels.wasm", import.meta.url)
    : new URL("./wasm/cpu_kernels_simd.wasm", import.meta.url);
