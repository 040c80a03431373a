//! A file at a URL: from the cache or the network. `cached.ts` decides what is stored and when.

import { platform } from "../../platform.js";
import { Arrival } from "./arrival.js";
import { CHUNK_BYTES, entryLock } from "../store/cache_layout.js";
import { cachedSource } from "./cached.js";
import { systemClock } from "../transfer/clock.js";
import { crossOriginSource } from "./cross_origin_storage.js";
import { isStorageFailure } from "../store/failure.js";
import { CacheEntry } from "../store/entry.js";
import { WINDOW_BYTES } from "../transfer/read_ahead.js";
import { Uncachable } from "../transfer/revalidation.js";
import type { ModelSource } from "../../byte_source.js";
import { inTurn } from "../transfer/turn.js";
import { uncachedSource } from "./uncached.js";
import type { Context, SourceOptions, UrlFile } from "../transfer/url_file.js";

/**
 * Resolves as soon as the file can be read, perhaps while it is downloaded; a failure after that rejects its reads.
 *
 * @throws NoSuchFile if the server has no such file, or is offline and had none at the last request
 */
export function urlSource(file: UrlFile, options: SourceOptions): Promise<ModelSource> {
  const context = contextOf(file, options);
  return new Promise((resolve, reject) => {
    const arrival = new Arrival(context, resolve);
    open(context, options.cache, arrival).catch((error: unknown) => {
      const reason = isStorageFailure(error) ? storageFailure(file.url, error) : error;
      arrival.fail(reason);
      reject(reason);
    });
  });
}

/** Resolves when the file is stored, or can be read without being stored. */
async function open(context: Context, isCached: boolean, arrival: Arrival): Promise<void> {
  const uncached = async (reason: string | undefined) => {
    if (await crossOriginSource(context, arrival)) return;
    await uncachedSource(context, arrival, reason);
  };
  if (!isCached) return uncached(undefined);
  const store = await CacheEntry.open(context.file.key, context.chunkBytes);
  if (store === undefined) {
    const isBrowser = platform().cacheKind === "opfs";
    return uncached(
      isBrowser
        ? "the browser gives this page no storage"
        : "the storage for the cache cannot be written",
    );
  }
  try {
    const { clock, signal, onWaiting } = context;
    await inTurn(entryLock(store.name), { clock, signal, onWaiting }, (turn) =>
      cachedSource(context, store, turn, arrival),
    );
  } catch (error) {
    if (!(error instanceof Uncachable)) throw error;
    await uncachedSource(context, arrival, error.message);
  }
}

/** An error of the storage says neither which file it is about nor what to do. */
function storageFailure(url: string, { message }: DOMException): TypeError {
  return new TypeError(
    `the browser's storage failed while ${url} was stored or read (${message}): load the model again`,
  );
}

function contextOf(file: UrlFile, options: SourceOptions): Context {
  const { signal, onBytes, onWaiting, onStorage, onWarning, createHasher } = options;
  const warn = onWarning ?? ((message: string) => console.warn(`inpage: ${message}`));
  return {
    ...{ file, signal, createHasher, onBytes, warn },
    crossOrigin: options.crossOrigin,
    reading: options.reading,
    verifiesFirst: options.verifiesFirst ?? false,
    hasMirror: options.hasMirror ?? false,
    clock: options.clock ?? systemClock,
    chunkBytes: options.chunkBytes ?? CHUNK_BYTES,
    windowBytes: options.windowBytes ?? WINDOW_BYTES,
    onWaiting: onWaiting ?? (() => {}),
    report(storage, reason) {
      onStorage?.({ url: file.url, storage, reason });
      if (reason !== undefined) warn(`${file.url} is not kept for the next visit: ${reason}`);
    },
  };
}
