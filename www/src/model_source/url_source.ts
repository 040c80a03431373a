//! A model behind a URL: from the cache if it is there and still valid (or the network is not),
//! else downloaded into the cache, going on where an interrupted download stopped. Without a cache:
//! by HTTP ranges, or whole into a Blob that the browser keeps outside of wasm memory.

import { blobSource } from "./blob_source.js";
import { type Download, type FileVersion, download, rangeSource, sameVersion } from "./http.js";
import { CacheEntry, type CacheNote } from "./model_cache.js";
import type { ModelSource, OnBytes } from "./source.js";

/** Between two notes on how far a download is; at most this much is fetched again. */
const COMMIT_BYTES = 4 * 1024 * 1024;

/** A complete file is not kept waiting longer than this for a network that does not answer. */
const REVALIDATE_TIMEOUT_MS = 5000;

/** Pieces of a download without cache; each becomes a Blob of its own. */
const BLOB_PIECE_BYTES = 16 * 1024 * 1024;

export async function urlSource(
  url: string,
  useCache: boolean,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<ModelSource> {
  const entry = useCache ? await CacheEntry.open(url) : undefined;
  if (entry === undefined) return uncachedSource(url, onBytes, signal);
  // One tab downloads; another that wants the same file waits and then finds it stored.
  return navigator.locks.request(`inpage-model ${url}`, { signal }, () =>
    cachedSource(url, entry, onBytes, signal),
  );
}

async function cachedSource(
  url: string,
  entry: CacheEntry,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<ModelSource> {
  const note = await entry.note();
  if (note?.complete && (await isCurrent(url, note, signal))) return blobSource(await entry.file());

  const resumable = note !== undefined && !note.complete && isVerifiable(note) ? note : undefined;
  let answer = await download(url, resumable?.storedBytes ?? 0, resumable, signal);
  if (answer.startBytes > 0 && !(resumable && sameVersion(resumable, answer))) {
    // The rest belongs to another version, or may: from the start.
    await answer.body.cancel();
    answer = await download(url, 0, undefined, signal);
  }
  try {
    await storeDownload(url, entry, answer, onBytes);
    return blobSource(await entry.file());
  } catch (error) {
    if (signal.aborted || !isStorageFailure(error)) throw error;
    await entry.remove();
    return uncachedSource(url, onBytes, signal);
  }
}

/** True if the server still has this version, or cannot be asked: then it is as good as ever. */
async function isCurrent(url: string, note: CacheNote, signal: AbortSignal): Promise<boolean> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(REVALIDATE_TIMEOUT_MS)]);
  try {
    const answer = await download(url, 0, undefined, patience);
    // Only the head was of interest.
    await answer.body.cancel();
    return sameVersion(note, answer);
  } catch {
    signal.throwIfAborted();
    return true;
  }
}

/** The size alone does not show that two halves fit together. */
function isVerifiable(note: CacheNote): boolean {
  return note.etag !== null || note.lastModified !== null;
}

async function storeDownload(
  url: string,
  entry: CacheEntry,
  answer: Download,
  onBytes: OnBytes,
): Promise<void> {
  const writer = await entry.writer(answer.startBytes);
  const version: FileVersion = answer;
  try {
    let committedBytes = writer.writtenBytes;
    onBytes(writer.writtenBytes, version.sizeBytes);
    for await (const bytes of piecesOf(answer.body)) {
      writer.append(bytes);
      if (writer.writtenBytes - committedBytes >= COMMIT_BYTES) {
        writer.commit(url, version, false);
        committedBytes = writer.writtenBytes;
      }
      onBytes(writer.writtenBytes, version.sizeBytes);
    }
    const complete = version.sizeBytes === undefined || version.sizeBytes === writer.writtenBytes;
    if (!complete) {
      throw new TypeError(
        `${url} ended after ${writer.writtenBytes} of ${version.sizeBytes} bytes`,
      );
    }
    writer.commit(url, { ...version, sizeBytes: writer.writtenBytes }, true);
  } catch (error) {
    if (!isStorageFailure(error)) writer.commit(url, version, false);
    throw error;
  } finally {
    writer.close();
  }
}

async function uncachedSource(
  url: string,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<ModelSource> {
  const answer = await download(url, 0, undefined, signal);
  if (answer.ranges && answer.sizeBytes !== undefined) {
    await answer.body.cancel();
    return rangeSource(url, answer, signal);
  }
  const blobs: Blob[] = [];
  let piece: Uint8Array<ArrayBuffer>[] = [];
  let pieceBytes = 0;
  let loadedBytes = 0;
  for await (const bytes of piecesOf(answer.body)) {
    piece.push(bytes);
    pieceBytes += bytes.length;
    loadedBytes += bytes.length;
    if (pieceBytes >= BLOB_PIECE_BYTES) {
      blobs.push(new Blob(piece));
      piece = [];
      pieceBytes = 0;
    }
    onBytes(loadedBytes, answer.sizeBytes);
  }
  return blobSource(new Blob([...blobs, ...piece]));
}

/** What a body delivers; Safari's streams are not async iterable. */
async function* piecesOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The storage failed, not the network. */
function isStorageFailure(error: unknown): boolean {
  return (
    error instanceof DOMException &&
    [
      "QuotaExceededError",
      "NoModificationAllowedError",
      "InvalidStateError",
      "NotFoundError",
    ].includes(error.name)
  );
}
