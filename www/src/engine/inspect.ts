//! `inspectModel`: reports from the headers of a model's files what the model is, how much GPU memory it needs
//! and whether it runs. Needs no GPU and no engine. The headers are parsed in Rust.

import { codeOf, messageOf } from "../exchange/error_response.js";
import type { InspectionOptions, ModelInspection } from "../generated/types.js";
import type { LoadOptions } from "../options/engine_options.js";
import type { HubOptions } from "../options/hub.js";
import { withFiles } from "../options/catalog_name.js";
import { InpageError, throwingInpageErrors } from "../api/inpage_error.js";
import { type ModelOption, resolveModel } from "../options/model.js";
import { openHeads } from "../model_source/head_files.js";
import { platform } from "../platform.js";

/** The options of the load and of reading the files. All are optional. */
export interface InspectOptions extends Omit<InspectionOptions, "load"> {
  /** The options of the load, as for `createEngine`. */
  load?: LoadOptions;
  /** The maximum number of bytes of memory that the model may need: with less than it needs, `refusal` says what would fit. */
  memoryBudgetBytes?: number;
  signal?: AbortSignal;
  /** The wasm module, where a bundler cannot find it by itself. */
  wasmUrl?: string | URL;
  /** The hub where `hf:` names are looked up, and the token for it. */
  hub?: HubOptions;
}

let started: Promise<typeof import("../wasm/inpage.js")> | undefined;

/** Starts the module in the page; the engine has its own in a worker. */
async function start(wasmUrl: string | URL | undefined) {
  const wasm = await import("../wasm/inpage.js");
  const module = (await platform().readWasm?.(wasmUrl)) ?? wasmUrl;
  await wasm.default(module === undefined ? undefined : { module_or_path: module });
  return wasm;
}

/**
 * Reads only the headers of the model's files, and the JSON files of a folder: a few MB, regardless of the model's size.
 *
 * @throws InpageError `invalid_option` if `model` or `hub` cannot be used, another one if the files cannot be read. Files that
 * are no model, or one that cannot run, are reported by `refusal` instead
 */
export async function inspectModel(
  model: ModelOption,
  options: InspectOptions = {},
): Promise<ModelInspection> {
  const { signal = new AbortController().signal, wasmUrl, hub, ...given } = options;
  const { memoryBudgetBytes, ...inspection } = given;
  const load = { ...given.load, ...(memoryBudgetBytes !== undefined && { memoryBudgetBytes }) };
  signal.throwIfAborted();
  const { location } = await throwingInpageErrors(async () =>
    resolveModel((await withFiles(model)).model, hub),
  );
  started ??= start(wasmUrl);
  try {
    const wasm = await started.catch((error: unknown) => {
      started = undefined;
      throw error;
    });
    const files = await openHeads(location, signal);
    try {
      return await wasm.inspectModel(files, { ...inspection, load });
    } finally {
      await files.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw InpageError.local(codeOf(error, "model_not_readable"), messageOf(error));
  }
}
