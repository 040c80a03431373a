//! Resolves the `draftModel` option to the location of its files. Whether its tokens are those of the model is checked in
//! Rust.

import type { ModelLocation } from "../exchange/protocol.js";
import type { HubOptions } from "./hub.js";
import { type ModelPlace, type ModelWithId, resolveModel } from "./model.js";

/** A smaller model: its URL, `hf:OWNER/NAME`, a `File` or a `Blob`, or an object with one of them. */
export type DraftModelOption = ModelPlace | Omit<ModelWithId, "id">;

/** @throws TypeError that says which part of the option cannot be used */
export function resolveDraftModel(
  option: DraftModelOption | undefined,
  hub: HubOptions = {},
): ModelLocation | undefined {
  if (option === undefined) return undefined;
  const isPlace = typeof option === "string" || option instanceof URL || option instanceof Blob;
  if (!isPlace) {
    // Without a place, the model in the package would be meant.
    const { url, file, files, folder } = Object(option) as Partial<ModelWithId>;
    if (!(url ?? file ?? files ?? folder)) {
      throw new TypeError("draftModel needs a url, a folder or a file");
    }
  }
  try {
    return resolveModel(option, hub).location;
  } catch (error) {
    throw new TypeError(`draftModel: ${(error as Error).message}`);
  }
}
