//! Loads one file in tabs of an in-memory browser, in the way of the engine's worker.

import { createHash } from "node:crypto";
import { urlSource } from "../../www/dist/model_source/sources/url.js";

export const URL_OF_MODEL = "https://models.example/dir/model.gguf";

/** The size of chunks in these tests. The package's chunks have 4 MiB. */
export const CHUNK = 8 * 1024;

/** The bytes that arrive from the network at once. */
export const PIECE = 3000;

export const hexOf = (bytes) => createHash("sha256").update(bytes).digest("hex");

const createHasher = async () => {
  const hash = createHash("sha256");
  return { update: (bytes) => hash.update(bytes), finish: () => hash.digest("hex") };
};

/** Small reads, like those of a header parser, then larger ones. */
async function readAll(source, random, mostBytes, onRead) {
  const bytes = new Uint8Array(source.size);
  let offset = 0;
  for (let step = 10; offset < source.size; step = Math.min(step * 3, mostBytes)) {
    const length = Math.min(1 + random.below(step), source.size - offset);
    bytes.set(await source.read(offset, length), offset);
    offset += length;
    await onRead?.(offset);
  }
  return Buffer.from(bytes);
}

/**
 * One load in a tab, which calls `onRead` with the number of bytes that the engine has read: `{ bytes }`, `{ error }` or `{ killed: true }`, with everything that was reported meanwhile. It advances only
 * within `browser.run`.
 */
export function load(tab, server, options = {}) {
  const { random } = tab.browser;
  const {
    cache = true,
    sha256,
    url = URL_OF_MODEL,
    pieceBytes = PIECE,
    mostBytes = CHUNK,
    signal,
    onRead,
  } = options;
  const report = { progress: [], waiting: [], warnings: [], storage: [] };
  const loading = tab.run(async () => {
    try {
      const file = { url, key: url, sha256, fetchFile: tab.fetchFile(server, pieceBytes) };
      const source = await urlSource(file, {
        cache,
        signal: signal ?? new AbortController().signal,
        onBytes: (loaded, total) => report.progress.push([loaded, total]),
        onWaiting: (loaded, total) => report.waiting.push([loaded, total]),
        onWarning: (message) => report.warnings.push(message),
        onStorage: (storage) => report.storage.push(storage),
        createHasher,
        clock: tab.clock,
        chunkBytes: CHUNK,
        windowBytes: 2 * CHUNK,
        ...options.source,
      });
      return { bytes: await readAll(source, random, mostBytes, onRead), ...report };
    } catch (error) {
      return { error, ...report };
    }
  });
  return Promise.race([loading, tab.killed.then(() => ({ killed: true, ...report }))]);
}
