//! What `createEngine` and `setLora` take as low-rank adapters, made definite: names, scales and where
//! the files are. Whether they fit the model is Rust's business.

import { type ModelWithId, resolveModel } from "./model_option.js";
import type { LoraLocation } from "../exchange/protocol.js";

/**
 * A low-rank adapter, in one of the places of a model: the `url` of a GGUF file, such a `file`, the
 * `folder` URL of what PEFT saves (`adapter_config.json`, `adapter_model.safetensors`), or its `files`.
 */
export interface LoraAdapter extends Omit<ModelWithId, "id"> {
  /** What the adapter's part is multiplied by; 1 if left out. */
  scale?: number;
}

/** @throws TypeError naming the adapter that has no place or no proper scale */
export function resolveLora(adapters: readonly LoraAdapter[]): LoraLocation[] {
  return adapters.map((adapter, index) => {
    const { scale = 1, ...place } = adapter;
    const { url, file, folder, files } = place;
    if (url === undefined && !file && folder === undefined && !files) {
      throw new TypeError(`lora[${index}] needs a url, a file, a folder or files`);
    }
    if (typeof scale !== "number" || !Number.isFinite(scale)) {
      throw new TypeError(`lora[${index}].scale must be a finite number`);
    }
    const { id, location } = resolveModel(place);
    return { name: id, location, scale };
  });
}
