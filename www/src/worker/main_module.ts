//! Starts the main wasm module, in shared memory if threads are to compute in it.

import init from "../wasm/inpage.js";
import { mainModule } from "../wasm_files.js";
import { withSharedMemory } from "./shared_memory.js";

/**
 * Starts the module and returns its memory, which is shared if `shared` is true and the browser can reserve so much.
 * `wasmUrl` is where the app says the module is.
 */
export async function startMainModule(
  wasmUrl: string | undefined,
  shared: boolean,
): Promise<WebAssembly.Memory> {
  const url = wasmUrl ?? mainModule();
  const module = shared ? await sharedModule(url) : undefined;
  if (module) {
    try {
      return (await init({ module_or_path: module })).memory;
    } catch (error) {
      // The address space for the largest memory is reserved at once.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return (await init({ module_or_path: url })).memory;
}

/** The module's bytes; `undefined` if they cannot be fetched, which the other way to start it reports. */
async function sharedModule(url: string | URL): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    const response = await fetch(url);
    if (!response.ok) return undefined;
    return withSharedMemory(new Uint8Array(await response.arrayBuffer()));
  } catch {
    return undefined;
  }
}
