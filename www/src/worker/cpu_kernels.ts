//! Loads the kernels with relaxed SIMD: a small wasm module that computes in the memory of the main module. Without them
//! the main module's own kernels are used, which give the same bits.

/**
 * Compiles the module; `undefined` if this browser has no relaxed SIMD or the file is not there. `wasmUrl` is that of the
 * main module, if the app gave one: the kernels are beside it.
 */
export async function compileCpuKernels(
  wasmUrl: string | undefined,
): Promise<WebAssembly.Module | undefined> {
  const url =
    wasmUrl === undefined
      ? // Bundlers recognise this expression.
        new URL("../wasm/cpu_kernels.wasm", import.meta.url)
      : new URL("cpu_kernels.wasm", wasmUrl);
  try {
    const response = await fetch(url);
    if (!response.ok) return undefined;
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch {
    return undefined;
  }
}

/**
 * The function of the module that computes a product, described at an address of `memory`; it returns 0 if it is of
 * another version than the caller. `stackTop` is the end of a part of `memory` for the module's stack. `undefined` if
 * the module is of another kind.
 */
export function startCpuKernels(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  stackTop: number,
): ((address: number) => number) | undefined {
  try {
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    const { product, __stack_pointer: stackPointer } = exports;
    if (typeof product !== "function") return undefined;
    if (stackPointer instanceof WebAssembly.Global) stackPointer.value = stackTop;
    return product as (address: number) => number;
  } catch {
    return undefined;
  }
}
