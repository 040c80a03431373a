//! What a model is, what it takes of a GPU and whether it runs, told from the headers of its files. Needs
//! no GPU and no engine. What a header means is Rust's business.

import { messageOf } from "../exchange/error_response.js";
import { InpageError } from "./inpage_error.js";
import type { LoadOptions } from "./load_options.js";
import type { ModelInspection } from "./model_inspection.js";
import { type ModelOption, resolveModel } from "./model_option.js";
import { openHeads } from "../model_source/head_files.js";

/** How the model would be loaded; all optional. */
export interface InspectOptions {
  /** As for `createEngine`. */
  load?: LoadOptions;
  /** Keys and values for so many sequences of the whole context, instead of `load.kvPoolTokens`. */
  sequences?: number;
  /**
   * `adapter.limits.maxStorageBufferBindingSize` of the device in question. If left out, the least
   * and the usual are tried, and the usual decides.
   */
  maxBindingBytes?: number;
  signal?: AbortSignal;
  /** The wasm module, where a bundler cannot find it by itself. */
  wasmUrl?: string | URL;
}

let started: Promise<typeof import("../wasm/inpage.js")> | undefined;

/** The module in the page; the engine has its own in a worker. */
async function start(wasmUrl: string | URL | undefined) {
  const wasm = await import("../wasm/inpage.js");
  await wasm.default(wasmUrl === undefined ? undefined : { module_or_path: wasmUrl });
  return wasm;
}

/**
 * Reads no more of the model than its headers, and of a folder the JSON files: a few MB, whatever its size.
 *
 * @throws InpageError if its bytes cannot be had; files that are none or cannot run are told by `refusal`
 */
export async function inspectModel(
  model: ModelOption,
  options: InspectOptions = {},
): Promise<ModelInspection> {
  const { signal = new AbortController().signal, wasmUrl, ...loading } = options;
  signal.throwIfAborted();
  started ??= start(wasmUrl);
  try {
    const wasm = await started.catch((error: unknown) => {
      started = undefined;
      throw error;
    });
    const { location } = resolveModel(model);
    const files = await openHeads(location, signal);
    try {
      return await wasm.inspectModel(files, JSON.stringify(loading));
    } finally {
      await files.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    const { code } = (error ?? {}) as { code?: unknown };
    const known = typeof code === "string" ? code : "model_not_readable";
    throw InpageError.local(known, messageOf(error));
  }
}
