//! Resolves the `projector` option to the location of its file. Whether it is a projector that fits the model is checked in
//! Rust.

import type { ModelLocation } from "../exchange/protocol.js";
import type { HubOptions } from "./hub.js";
import { type ModelPlace, type ModelWithId, resolveModel } from "./model.js";

/** A GGUF file with a vision tower and its projector: its URL, a `File` or a `Blob`, or an object with one of them. */
export type ProjectorOption = ModelPlace | ProjectorFile;

/** Exactly one of `url` and `file`. The other members are those of a model. */
export type ProjectorFile = Omit<ModelWithId, "id" | "folder" | "files">;

/** @throws TypeError that says which part of the option cannot be used */
export function resolveProjector(
  option: ProjectorOption | undefined,
  hub: HubOptions = {},
): ModelLocation | undefined {
  if (option === undefined) return undefined;
  const place: ProjectorFile =
    typeof option === "string" || option instanceof URL
      ? { url: option }
      : option instanceof Blob
        ? { file: option }
        : option;
  if (typeof place !== "object" || place === null || !(place.url ?? place.file)) {
    throw new TypeError("projector needs a url or a file");
  }
  if (place.url && place.file) throw new TypeError("projector: url and file exclude each other");
  if ([place.url].flat()[0] === "embedded") {
    throw new TypeError("projector: the model in the package takes no images");
  }
  let location: ModelLocation;
  try {
    ({ location } = resolveModel(place, hub));
  } catch (error) {
    throw new TypeError(`projector: ${(error as Error).message}`);
  }
  if (location.ggufName === undefined) {
    throw new TypeError("projector: name its GGUF file, not a folder");
  }
  return location;
}
