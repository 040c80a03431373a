//! A file at a URL: read from the cache if it is there and still valid (or there is no network), else downloaded
//! into the cache, resuming an interrupted download, and read while it arrives. Without a cache: read by HTTP
//! range requests, or downloaded into a Blob, which the browser keeps outside of wasm memory.

import { blobSource } from "./blob_source.js";
import { GrowingSource } from "./growing_source.js";
import {
  type Download,
  type FileVersion,
  NoSuchFile,
  download,
  rangeSource,
  sameVersion,
} from "./http.js";
import { CacheEntry, type CacheNote, type CacheWriter } from "./model_cache.js";
import { readAhead } from "./read_ahead.js";
import type { FileAt } from "./requests.js";
import type { ModelSource, OnBytes } from "./source.js";

/** A download is committed this often; at most this much is fetched again after an interruption. */
const COMMIT_BYTES = 4 * 1024 * 1024;

/** If the network does not answer within this time, the cached file is used without revalidation. */
const REVALIDATE_TIMEOUT_MS = 5000;

/** A download without cache is split into Blobs of this size. */
const BLOB_PIECE_BYTES = 16 * 1024 * 1024;

/** @throws NoSuchFile if the server has no such file, or is offline and had none at the last request */
export async function urlSource(
  { url, key }: FileAt,
  useCache: boolean,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<ModelSource> {
  const entry = useCache ? await CacheEntry.open(key) : undefined;
  if (entry === undefined) return uncachedSource(url, undefined, onBytes, signal);
  // Only one tab downloads; others that want the same file wait and then find it in the cache.
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(`inpage-model ${key}`, { signal }, () =>
        cachedSource(url, entry, { onBytes, onSource: resolve }, signal),
      )
      // After `onSource`, failures are reported by the source's reads.
      .catch(reject);
  });
}

/** Calls `onSource` as soon as the file can be read (perhaps twice); resolves when it is stored. */
async function cachedSource(
  url: string,
  entry: CacheEntry,
  { onBytes, onSource }: { onBytes: OnBytes; onSource: (source: ModelSource) => void },
  signal: AbortSignal,
): Promise<void> {
  const stored = async () => readAhead(blobSource(await entry.file()));
  const note = await entry.note();
  if (note?.complete) {
    const now = await versionNow(url, signal);
    // If the server has deleted the file or cannot be reached, the cached one is still valid.
    if (now instanceof Error || sameVersion(note, now)) {
      onSource(await stored());
      return;
    }
  }
  if (await entry.isAbsent()) {
    const now = await versionNow(url, signal);
    if (now instanceof NoSuchFile) throw now;
    if (now instanceof Error) {
      throw new NoSuchFile(
        `${url} was not on the server at the last request, and the server cannot be reached now`,
      );
    }
  }
  const resumable = note !== undefined && !note.complete && isVerifiable(note) ? note : undefined;
  let answer = await download(url, resumable?.storedBytes ?? 0, resumable, signal).catch(
    async (error: unknown) => {
      if (error instanceof NoSuchFile && note === undefined) await entry.noteAbsence();
      throw error;
    },
  );
  if (answer.startBytes > 0 && !(resumable && sameVersion(resumable, answer))) {
    // The rest may belong to another version: start again.
    await answer.body.cancel();
    answer = await download(url, 0, undefined, signal);
  }
  let growing: GrowingSource | undefined;
  const onWritten = (writer: CacheWriter) => {
    onBytes(writer.writtenBytes, answer.sizeBytes);
    // A file of unknown size can be read only when it is complete.
    if (growing === undefined && answer.sizeBytes !== undefined) {
      const readArrived = (offset: number, length: number) => writer.read(offset, length);
      growing = new GrowingSource(answer.sizeBytes, readArrived);
      onSource(growing);
    }
    growing?.grow(writer.writtenBytes);
  };
  const onClose = () => growing?.settle(source);
  const source = storeDownload(url, entry, answer, { onWritten, onClose }).then(
    stored,
    async (error: unknown) => {
      if (signal.aborted || !isStorageFailure(error)) throw error;
      await entry.remove();
      return uncachedSource(url, growing && answer, onBytes, signal);
    },
  );
  onSource(await source);
}

/** The version on the server, or the error of the request. */
async function versionNow(url: string, signal: AbortSignal): Promise<FileVersion | Error> {
  const withTimeout = AbortSignal.any([signal, AbortSignal.timeout(REVALIDATE_TIMEOUT_MS)]);
  try {
    const answer = await download(url, 0, undefined, withTimeout);
    // Only the headers are needed.
    await answer.body.cancel();
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    return error as Error;
  }
}

/** The size alone does not prove that two halves belong to the same version. */
function isVerifiable(note: CacheNote): boolean {
  return note.etag !== null || note.lastModified !== null;
}

async function storeDownload(
  url: string,
  entry: CacheEntry,
  answer: Download,
  { onWritten, onClose }: { onWritten: (writer: CacheWriter) => void; onClose: () => void },
): Promise<void> {
  const writer = await entry.writer(answer.startBytes);
  const version: FileVersion = answer;
  try {
    let committedBytes = writer.writtenBytes;
    onWritten(writer);
    for await (const bytes of piecesOf(answer.body)) {
      writer.append(bytes);
      if (writer.writtenBytes - committedBytes >= COMMIT_BYTES) {
        writer.commit(url, version, false);
        committedBytes = writer.writtenBytes;
      }
      onWritten(writer);
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
    onClose();
    writer.close();
  }
}

/** `begun` is the version from which bytes were already read. */
async function uncachedSource(
  url: string,
  begun: FileVersion | undefined,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<ModelSource> {
  const answer = await download(url, 0, undefined, signal);
  if (begun && !sameVersion(begun, answer)) {
    await answer.body.cancel();
    throw new TypeError(`${url} changed while it was being read`);
  }
  if (answer.ranges && answer.sizeBytes !== undefined) {
    await answer.body.cancel();
    return readAhead(rangeSource(url, answer, signal));
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
  return readAhead(blobSource(new Blob([...blobs, ...piece])));
}

/** The chunks of a body; Safari's streams are not async iterable. */
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

/** True if the storage failed, not the network. */
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
