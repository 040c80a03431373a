//! Opens the files of a model or adapter to load it: by URL through the cache, or from local files.

import type { LoadProgress, ModelLocation } from "../exchange/protocol.js";
import { blobSource } from "./blob_source.js";
import { cacheKey } from "./cache_key.js";
import { systemClock } from "./clock.js";
import type { Hasher } from "./hash.js";
import { openMirrored } from "./mirrors.js";
import { openLocalFile } from "./local_file.js";
import { FOLDER_CONFIG, type RemoteFile, locatedFiles } from "./named_files.js";
import { DownloadPause } from "./pause.js";
import { DownloadProgress } from "./progress.js";
import { readAhead } from "./read_ahead.js";
import { markReading } from "./reading.js";
import { Redaction } from "./redact.js";
import { NO_OPTIONS, fetchWith } from "./requests.js";
import type { ModelFiles } from "./source.js";
import type { StorageReport } from "./url_file.js";
import { urlSource } from "./url_source.js";

export interface OpenOptions {
  onProgress?: (progress: LoadProgress) => void;
  /** Takes the progress instead, with that of other models; `onProgress` is not called. */
  progress?: DownloadProgress;
  signal: AbortSignal;
  pause?: DownloadPause;
  /** Aborts when the files are no longer read: until then, they are not deleted from the cache. */
  reading?: AbortSignal | undefined;
  /** Where the files are kept. */
  onStorage?: ((report: StorageReport) => void) | undefined;
  /** Creates the hash of a whole file, where one is expected. */
  createHasher?: (() => Hasher) | undefined;
  /** The first file of a folder. */
  config?: string;
}

const LOCAL = { cache: false, requests: NO_OPTIONS, ignoreQuery: [], crossOrigin: undefined };

/**
 * Opens the first file: a GGUF file, the first of its parts, or a folder's `config`.
 *
 * @throws TypeError if it cannot be opened
 */
export async function openModel(
  location: ModelLocation,
  {
    onProgress = () => {},
    progress = new DownloadProgress(onProgress),
    signal,
    pause = new DownloadPause(),
    onStorage,
    reading,
    createHasher,
    config = FOLDER_CONFIG,
  }: OpenOptions,
): Promise<ModelFiles> {
  signal.throwIfAborted();
  const { cache, requests, ignoreQuery, crossOrigin } = location.kind === "url" ? location : LOCAL;
  const fetchFile = pause.gate(fetchWith(requests));
  const clock = pause.clocked(systemClock);
  const openers = {
    url: async ({ urls, key, sha256 }: RemoteFile) => {
      const local = await openLocalFile(urls);
      if (local !== undefined) return readAhead(local);
      if (cache && reading) await markReading(key, reading);
      const onBytes = progress.of(key);
      const options = {
        ...{ cache, signal, clock, onBytes, onStorage, createHasher, crossOrigin },
        onWaiting: (loadedBytes: number, totalBytes: number | undefined) =>
          onBytes(loadedBytes, totalBytes, true),
      };
      const open = async (url: string) => {
        const redaction = new Redaction(url, cacheKey(url, ignoreQuery));
        const file = { url, key, sha256, fetchFile };
        const onWarning = (message: string) => console.warn(`inpage: ${redaction.text(message)}`);
        // Bytes that were read cannot be taken back, so wrong bytes must be found before they are read.
        const verifiesFirst = sha256 !== undefined && url !== urls.at(-1);
        const source = urlSource(file, { ...options, onWarning, verifiesFirst });
        return redaction.source(await redaction.failure(source));
      };
      return openMirrored(urls, open, signal);
    },
    blob: (blob: Blob) => readAhead(blobSource(blob)),
  };
  return locatedFiles(location, openers, config);
}
