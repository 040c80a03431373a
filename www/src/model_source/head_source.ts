//! Reads the beginning of a file at a URL, in order and no further than requested: by HTTP range requests, or
//! from a whole answer that is cancelled early if the server supports no ranges. Nothing is cached.

import { type FileVersion, rangeSource, refused } from "./http.js";
import { type ModelSource, checkRange } from "./source.js";

/** The length of the first read of a header. */
const FIRST_BYTES = 256 * 1024;

/** A source whose reads must follow one another from the start of the file. */
export interface HeadSource extends ModelSource {
  /** Cancels what the server is still sending. */
  close(): Promise<void>;
}

/** @throws TypeError naming the URL and what the server answered */
export async function openHead(url: string, signal: AbortSignal): Promise<HeadSource> {
  const headers = { range: `bytes=0-${FIRST_BYTES - 1}` };
  const response = await fetch(url, { headers, signal, cache: "no-store" });
  if (response.status !== 206) return streamedHead(url, response);
  const range = /^bytes 0-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  if (range === null) {
    // A server of another origin may hide Content-Range, but not the length of a whole answer.
    await response.body?.cancel();
    return streamedHead(url, await fetch(url, { signal, cache: "no-store" }));
  }
  const version: FileVersion = {
    etag: response.headers.get("etag"),
    lastModified: response.headers.get("last-modified"),
    sizeBytes: Number(range[1]),
  };
  const first = new Uint8Array(await response.arrayBuffer());
  const rest = rangeSource(url, version, signal);
  return {
    size: rest.size,
    async read(offset, length) {
      if (offset + length <= first.length) return first.subarray(offset, offset + length);
      return rest.read(offset, length);
    },
    close: () => Promise.resolve(),
  };
}

/** Reads from an answer with the whole file. */
async function streamedHead(url: string, response: Response): Promise<HeadSource> {
  if (!response.ok || response.body === null) throw await refused(url, response);
  const length = response.headers.get("content-length");
  if (length === null || (response.headers.get("content-encoding") ?? "identity") !== "identity") {
    await response.body.cancel();
    throw new TypeError(
      `${url} does not send the size of the file and does not support range requests`,
    );
  }
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  let fetchedBytes = 0;
  // Bytes that have arrived and were not read yet.
  let pieces: Uint8Array<ArrayBuffer>[] = [];
  let readBytes = 0;
  const source: HeadSource = {
    size: Number(length),
    async read(offset, length) {
      checkRange(source, offset, length);
      if (offset !== readBytes) throw new RangeError(`${url} can only be read in order`);
      while (fetchedBytes < offset + length) {
        const { done, value } = await reader.read();
        if (done) {
          throw new TypeError(`${url} ended after ${fetchedBytes} of ${source.size} bytes`);
        }
        pieces.push(value);
        fetchedBytes += value.length;
      }
      readBytes += length;
      const joined = new Uint8Array(await new Blob(pieces).arrayBuffer());
      pieces = [joined.subarray(length)];
      return joined.subarray(0, length);
    },
    close: () => reader.cancel().catch(() => {}),
  };
  return source;
}
