//! Loads the kernel module of the CPU device, a small wasm module that computes in the memory of the main module, and
//! starts it. Without it the main module's own kernels are used, which give the same bits.

import type { ComputePart } from "./cpu_division.js";
import { cpuKernels as packagedKernels } from "../wasm_files.js";
import { withSharedMemory } from "./shared_memory.js";

/** The bytes of a kernel module. */
export interface CpuKernels {
  bytes: Uint8Array<ArrayBuffer>;
  /** It has instructions that not every engine has. */
  relaxed: boolean;
}

/**
 * Fetches the kernel module that is best here; `undefined` if there is none. That without relaxed SIMD is of use to
 * `threads` only: the main module has the same kernels. `wasmUrl` is that of the main module, if the app gave one: the
 * kernels are beside it.
 */
export async function fetchCpuKernels(
  wasmUrl: string | undefined,
  threads: boolean,
): Promise<CpuKernels | undefined> {
  const relaxed = hasRelaxedSimd();
  if (!relaxed && !threads) return undefined;
  try {
    const response = await fetch(urlOf(relaxed, wasmUrl));
    if (!response.ok) return undefined;
    return { bytes: new Uint8Array(await response.arrayBuffer()), relaxed };
  } catch {
    return undefined;
  }
}

function urlOf(relaxed: boolean, wasmUrl: string | undefined): URL {
  if (wasmUrl !== undefined) return new URL(`cpu_kernels${relaxed ? "" : "_simd"}.wasm`, wasmUrl);
  return packagedKernels(relaxed);
}

/** Compiles the module for a memory; `undefined` if the engine or the memory does not allow it. */
export async function compileCpuKernels(
  { bytes }: CpuKernels,
  memory: WebAssembly.Memory,
): Promise<WebAssembly.Module | undefined> {
  const isShared = !(memory.buffer instanceof ArrayBuffer);
  const module = isShared ? withSharedMemory(bytes) : bytes;
  return module && WebAssembly.compile(module).catch(() => undefined);
}

/** Whether a module with a function of one relaxed instruction is valid here. */
function hasRelaxedSimd(): boolean {
  const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const type = [1, 5, 1, 0x60, 0, 1, 0x7b];
  const functions = [3, 2, 1, 0];
  // i32.const 0, i8x16.splat, twice; i8x16.relaxed_swizzle, end
  const body = [0, 0x41, 0, 0xfd, 0x0f, 0x41, 0, 0xfd, 0x0f, 0xfd, 0x80, 0x02, 0x0b];
  const code = [10, body.length + 2, 1, body.length, ...body];
  return WebAssembly.validate(Uint8Array.of(...magic, ...type, ...functions, ...code));
}

/**
 * The module's function that computes a part of a product or an attention, described at an address of `memory`; it returns 0 if
 * it is of another version than the caller. `stackTop` is the end of a part of `memory` for the stack of this instance.
 * `undefined` if the module is of another kind.
 */
export function startCpuKernels(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  stackTop: number,
): ComputePart | undefined {
  try {
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    const { compute, __stack_pointer: stackPointer } = exports;
    if (typeof compute !== "function") return undefined;
    if (stackPointer instanceof WebAssembly.Global) stackPointer.value = stackTop;
    return compute as ComputePart;
  } catch {
    return undefined;
  }
}
