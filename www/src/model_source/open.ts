//! Opens the files of the model that the page named, to load it. The rest of the worker sees `ModelFiles`
//! only.

import type { LoadProgress, ModelLocation } from "../exchange/protocol.js";
import { blobSource } from "./blob_source.js";
import { FOLDER_CONFIG, locatedFiles } from "./named_files.js";
import { readAhead } from "./read_ahead.js";
import type { ModelFiles, OnBytes } from "./source.js";
import { urlSource } from "./url_source.js";

/**
 * The first file is open: a GGUF file, the first of its parts, or a folder's `config`.
 *
 * @throws TypeError if that one cannot be had
 */
export async function openModel(
  location: ModelLocation,
  onProgress: (progress: LoadProgress) => void,
  signal: AbortSignal,
  config = FOLDER_CONFIG,
): Promise<ModelFiles> {
  signal.throwIfAborted();
  const onBytesOf = total(onProgress);
  const cache = location.kind === "url" && location.cache;
  const openers = {
    url: (url: string, name: string) => urlSource(url, cache, onBytesOf(name), signal),
    blob: (blob: Blob) => readAhead(blobSource(blob)),
  };
  return locatedFiles(location, openers, config);
}

type OnBytesOf = (name: string) => OnBytes;

/** The progress of all downloads together; their total is unknown as long as that of one is. */
function total(onProgress: (progress: LoadProgress) => void): OnBytesOf {
  const downloads = new Map<string, [loaded: number, total: number | undefined]>();
  return (name) => (loaded, total) => {
    downloads.set(name, [loaded, total]);
    let loadedBytes = 0;
    let totalBytes: number | undefined = 0;
    for (const [loaded, total] of downloads.values()) {
      loadedBytes += loaded;
      totalBytes = total === undefined || totalBytes === undefined ? undefined : totalBytes + total;
    }
    onProgress({ phase: "download", loadedBytes, totalBytes });
  };
}
