//! Resolves the LoRA adapters given to `createEngine` and `setLora` to names, scales and locations of files.
//! Whether they fit the model is checked in Rust.

import type { HubOptions } from "./hub.js";
import { type ModelWithId, resolveModel } from "./model.js";
import type { LoraLocation } from "../exchange/protocol.js";

/**
 * A LoRA adapter: the `url` of a GGUF file, such a `file`, the URL of a `folder` as PEFT saves it
 * (`adapter_config.json`, `adapter_model.safetensors`), or its `files`.
 */
export interface LoraAdapter extends Omit<ModelWithId, "id"> {
  /** The factor of the adapter's contribution; 1 if omitted. */
  scale?: number;
}

/** @throws TypeError naming the adapter that has no location or whose scale is not a finite number */
export function resolveLora(
  adapters: readonly LoraAdapter[],
  hub: HubOptions = {},
): LoraLocation[] {
  return adapters.map((adapter, index) => {
    const { scale = 1, ...place } = adapter;
    const { url, file, folder, files } = place;
    if (url === undefined && !file && folder === undefined && !files) {
      throw new TypeError(`lora[${index}] needs a url, a file, a folder or files`);
    }
    if (typeof scale !== "number" || !Number.isFinite(scale)) {
      throw new TypeError(`lora[${index}].scale must be a finite number`);
    }
    const { id, location } = resolveModel(place, hub);
    return { name: id, location, scale };
  });
}
