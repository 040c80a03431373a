//! Opens the model that the page named. The rest of the worker sees a `ModelSource` only.

import type { LoadProgress, ModelLocation } from "../protocol.js";
import { blobSource } from "./blob_source.js";
import { readAhead } from "./read_ahead.js";
import type { ModelSource } from "./source.js";
import { urlSource } from "./url_source.js";

export async function openModel(
  location: ModelLocation,
  onProgress: (progress: LoadProgress) => void,
  signal: AbortSignal,
): Promise<ModelSource> {
  signal.throwIfAborted();
  if (location.kind === "blob") return readAhead(blobSource(location.blob));
  const onBytes = (loadedBytes: number, totalBytes: number | undefined) =>
    onProgress({ phase: "download", loadedBytes, totalBytes });
  return urlSource(location.url, location.cache, onBytes, signal);
}
