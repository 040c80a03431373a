//! Starts the main wasm module, in shared memory if threads are to compute in it.

import init from "../wasm/inpage.js";
import { withSharedMemory } from "./shared_memory.js";

/**
 * Starts the module and returns its memory, which is shared if `shared` is true and the browser can reserve so much.
 * `wasmUrl` is where the app says the module is.
 */
export async function startMainModule(
  wasmUrl: string | undefined,
  shared: boolean,
): Promise<WebAssembly.Memory> {
  const module = shared ? await sharedModule(wasmUrl) : undefined;
  if (module) {
    try {
      return (await init({ module_or_path: module })).memory;
    } catch (error) {
      // The address space for the largest memory is reserved at once.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return (await init(wasmUrl === undefined ? undefined : { module_or_path: wasmUrl })).memory;
}

/** The module's bytes; `undefined` if they cannot be fetched, which the other way to start it reports. */
async function sharedModule(
  wasmUrl: string | undefined,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  // Bundlers recognise this expression.
  const url = wasmUrl ?? new URL("../wasm/inpage_bg.wasm", import.meta.url);
  try {
    const response = await fetch(url);
    if (!response.ok) return undefined;
    return withSharedMemory(new Uint8Array(await response.arrayBuffer()));
  } catch {
    return undefined;
  }
}
