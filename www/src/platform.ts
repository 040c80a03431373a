//! The services of the program around the package, which browsers provide in their own way: a folder for the cache, locks,
//! files on disk, threads. A program that is no browser supplies them (`node/platform.ts`), on each of its threads.

import type { ModelSource } from "./byte_source.js";

/** The engine's thread, as its owner sees it. */
export type EngineThread = Pick<Worker, "onmessage" | "onerror" | "postMessage" | "terminate">;

/** A thread for products, as the engine's thread sees it. It runs the same script, under a name of its own. */
export type CpuThread = Pick<Worker, "onmessage" | "onerror" | "postMessage">;

/** A file or a folder that this program can read, or could if it existed. */
export interface PlaceOnDisk {
  /** The URL of the place; the URL of a folder ends with a slash. */
  url: URL;
  isFolder: boolean;
  exists: boolean;
}

/** Pixels of 8 bits per channel, row by row: of 4 channels, the last one is the opacity. */
export interface DecodedImage {
  width: number;
  height: number;
  channels: 3 | 4;
  data: Uint8Array;
}

export interface Platform {
  /** The name of the storage of the cache in `engine.info()`. */
  readonly cacheKind: "opfs" | "disk";
  /** Locks between all threads and programs that use the cache; undefined where there are none. */
  readonly locks: Pick<LockManager, "request"> | undefined;
  /** The folder of all cached files; created if it is missing. Undefined where there is no file system; rejects if it is refused. */
  cacheFolder(): Promise<FileSystemDirectoryHandle | undefined>;
  /** The bytes that the storage can still take; undefined if that is unknown. */
  freeBytes(): Promise<number | undefined>;
  /** Opens the file at a `file:` URL; undefined if there is no such file. Pages cannot. */
  openFile?(url: string): Promise<ModelSource | undefined>;
  /** The place that a path or a `file:` URL means; undefined for another URL. */
  locate?(place: string): PlaceOnDisk | undefined;
  /** Starts the engine's thread. In a page it is a worker with a script of its own. */
  startThread?(): EngineThread;
  /** Starts a thread for products of the CPU device, which ends with the engine's. */
  startCpuThread(name: string): CpuThread;
  /** Whether threads can share memory. */
  readonly sharesMemory: boolean;
  /** Resolves once the events that wait now were handled, where the queue of a port cannot tell. */
  nextTurn?(): Promise<void>;
  /** Decodes the file of an image, where there is no `createImageBitmap`; rejects with a `code` if that is not possible here. */
  decodeImage?(file: Uint8Array): Promise<DecodedImage>;
  /** The wasm module, where `fetch` cannot read it: the package's, or the one at the given URL. */
  readWasm?(url: string | URL | undefined): Promise<BufferSource>;
}

/** The folder of the cache in the origin's file system; the beginning of the names of caches in the Cache API. */
export const CACHE_FOLDER = "inpage-models";

const BROWSER: Platform = {
  cacheKind: "opfs",
  get locks() {
    return globalThis.navigator?.locks;
  },
  async cacheFolder() {
    const root = await originFolder();
    return root?.getDirectoryHandle(CACHE_FOLDER, { create: true });
  },
  startCpuThread: (name) => new Worker(location.href, { type: "module", name }),
  get sharesMemory() {
    // WebKitGTK has isolated pages, but no shared memory.
    return globalThis.crossOriginIsolated && typeof SharedArrayBuffer !== "undefined";
  },
  async freeBytes() {
    try {
      const { usage, quota } = await navigator.storage.estimate();
      return usage === undefined || quota === undefined ? undefined : Math.max(0, quota - usage);
    } catch {
      return undefined;
    }
  },
};

/** The root of the origin's file system, if there is one. */
async function originFolder(): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    return await navigator.storage.getDirectory();
  } catch {
    return undefined;
  }
}

let current = BROWSER;

/** The browser, unless a program has supplied something else on this thread. */
export const platform = (): Platform => current;

/** Called once, before anything else of the package is used. */
export function usePlatform(supplied: Platform): void {
  current = supplied;
}

/** The locks. Code that needs them runs only where they are. */
export function locks(): Pick<LockManager, "request"> {
  const { locks } = current;
  if (locks === undefined) throw new TypeError("there are no Web Locks here");
  return locks;
}
