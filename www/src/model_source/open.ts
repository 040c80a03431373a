//! Opens the files of a model or adapter to load it: by URL through the cache, or from local files.

import type { LoadProgress, ModelLocation } from "../exchange/protocol.js";
import { blobSource } from "./sources/blob.js";
import { type Clock, systemClock } from "./transfer/clock.js";
import type { CreateHasher } from "./store/hash.js";
import { openMirrored } from "./sources/mirrors.js";
import { openLocalFile } from "./sources/local_file.js";
import { FOLDER_CONFIG, type RemoteFile, locatedFiles } from "./sources/named_files.js";
import { DownloadPause } from "./transfer/pause.js";
import { DownloadProgress } from "./transfer/progress.js";
import { readAhead } from "./transfer/read_ahead.js";
import { markReading } from "./store/reading.js";
import { Redaction } from "./transfer/redact.js";
import { removeOldEntries } from "./store/remove_entry.js";
import { NO_OPTIONS, fetchWith } from "./transfer/requests.js";
import type { ModelFiles } from "../byte_source.js";
import type { StorageReport } from "./transfer/url_file.js";
import { urlSource } from "./sources/url.js";

export interface OpenOptions {
  onProgress?: (progress: LoadProgress) => void;
  /** Takes the progress instead, with that of other models; `onProgress` is not called. */
  progress?: DownloadProgress;
  signal: AbortSignal;
  pause?: DownloadPause;
  /** Aborts when the files are no longer read: until then, they are not deleted from the cache. */
  reading?: AbortSignal | undefined;
  /** The store of the files. */
  onStorage?: ((report: StorageReport) => void) | undefined;
  /** Creates the hash of a whole file, where one is expected. */
  createHasher?: CreateHasher | undefined;
  /** The first file of a folder. */
  config?: string;
  /** The clock; tests give their own. */
  clock?: Clock;
}

/** Whether this worker has done so. */
let hasRemovedOldEntries = false;

const LOCAL = { cache: false, requests: NO_OPTIONS, crossOrigin: undefined };

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
    clock: time = systemClock,
  }: OpenOptions,
): Promise<ModelFiles> {
  signal.throwIfAborted();
  const { cache, requests, crossOrigin } = location.kind === "url" ? location : LOCAL;
  if (cache && !hasRemovedOldEntries) {
    hasRemovedOldEntries = true;
    void removeOldEntries();
  }
  const fetchFile = pause.gate(fetchWith(requests));
  const clock = pause.clocked(time);
  const openers = {
    url: async ({ urls, key, sha256 }: RemoteFile) => {
      const local = await openLocalFile(urls);
      if (local !== undefined) return readAhead(local);
      if (cache && reading) await markReading(key, reading);
      const onBytes = progress.of(key);
      const options = {
        ...{ cache, signal, reading, clock, onBytes, onStorage, createHasher, crossOrigin },
        onWaiting: (loadedBytes: number, totalBytes: number | undefined) =>
          onBytes(loadedBytes, totalBytes, true),
      };
      const open = async (url: string) => {
        const redaction = new Redaction(url);
        const file = { url, key, sha256, fetchFile };
        const onWarning = (message: string) => console.warn(`inpage: ${redaction.text(message)}`);
        // Bytes that were read cannot be taken back, so wrong bytes must be found before they are read.
        const hasMirror = url !== urls.at(-1);
        const verifiesFirst = sha256 !== undefined && hasMirror;
        const source = urlSource(file, { ...options, onWarning, verifiesFirst, hasMirror });
        return redaction.source(await redaction.failure(source));
      };
      return openMirrored(urls, open, signal);
    },
    blob: (blob: Blob) => readAhead(blobSource(blob)),
  };
  return locatedFiles(location, openers, config);
}
