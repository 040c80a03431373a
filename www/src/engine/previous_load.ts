//! `previousLoadCrashed`: whether earlier loads of a model ended with their tab. `models/load_marks.ts` remembers them.

import { throwingInpageErrors } from "../api/inpage_error.js";
import { type CrashedLoad, crashedLoad } from "../models/load_marks.js";
import { withFiles } from "../options/catalog_name.js";
import type { EngineOptions } from "../options/engine_options.js";

export type { CrashedLoad };

/**
 * The loads of this model on this device that ended with their tab in the last week; undefined if none did, or a later one
 * succeeded. The system probably ended the tab for its memory: offer a smaller model, a shorter context or `device: "cpu"`. Ask before
 * `createEngine`, which loads the model with less memory in that case, or the next of `fallbackModels`.
 *
 * @param options those of the load; `model`, `hub` and `device` count
 * @throws InpageError `invalid_option` for an option that cannot be used
 */
export function previousLoadCrashed(
  options: Pick<EngineOptions, "model" | "hub" | "device">,
): Promise<CrashedLoad | undefined> {
  return throwingInpageErrors(async () => {
    const { model = "embedded" } = options;
    const crash = await crashedLoad({ ...options, model: (await withFiles(model)).model });
    return crash && !crash.loadedSince ? { loads: crash.loads, atMs: crash.atMs } : undefined;
  });
}
