//! Opens the files of a model or adapter to load it: by URL through the cache, or from local files.

import type { LoadProgress, ModelLocation } from "../exchange/protocol.js";
import { blobSource } from "./blob_source.js";
import { FOLDER_CONFIG, locatedFiles } from "./named_files.js";
import { readAhead } from "./read_ahead.js";
import type { ModelFiles, OnBytes } from "./source.js";
import { urlSource } from "./url_source.js";

/**
 * Opens the first file: a GGUF file, the first of its parts, or a folder's `config`.
 *
 * @throws TypeError if it cannot be opened
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
    url: (url: string, name: string) =>
      urlSource(
        { url, key: url, sha256: undefined, fetchFile: (at, init) => fetch(at, init) },
        { cache, signal, onBytes: onBytesOf(name) },
      ),
    blob: (blob: Blob) => readAhead(blobSource(blob)),
  };
  return locatedFiles(location, openers, config);
}

type OnBytesOf = (name: string) => OnBytes;

/** Adds up the progress of all downloads; the total is unknown while that of any download is. */
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
