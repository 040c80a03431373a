//! Reads the beginning of a file at a URL, in order and no further than requested: by HTTP range requests, or
//! from a whole answer that is cancelled early if the server supports no ranges. Nothing is cached.

import { systemClock } from "../transfer/clock.js";
import { UntrustedRange } from "../store/failure.js";
import { type Answer, type FetchFile, ask, looksLikeWebPage, webPage } from "../transfer/http.js";
import { rangeSource } from "./ranges.js";
import { type ModelSource, checkRange } from "../../byte_source.js";

/** The length of the first read of a header. */
const FIRST_BYTES = 256 * 1024;

/** A source whose reads must follow one another from the start of the file. What was read can be read again, also after its end. */
export interface HeadSource extends ModelSource {
  /** Cancels what the server is still sending. */
  close(): Promise<void>;
}

/** @throws TypeError naming the URL and what the server answered */
export async function openHead(
  url: string,
  fetchFile: FetchFile,
  signal: AbortSignal,
): Promise<HeadSource> {
  const question = { url, fetchFile, range: { startBytes: 0, endBytes: FIRST_BYTES }, signal };
  const answer = await ask(question).catch((error: unknown) => {
    // A server of another origin may hide Content-Range, but not the length of a whole answer.
    if (error instanceof UntrustedRange) return ask({ ...question, range: undefined });
    throw error;
  });
  const head = streamedHead(url, answer);
  if (!answer.isRange) return head;
  const first = await head.read(0, head.size);
  const job = { url, fetchFile, clock: systemClock, signal };
  // A report about a file whose server sends no validators is better than none; no model is loaded from it.
  const rest = rangeSource(job, answer.version, first, true);
  return Object.assign(rest, { close: () => Promise.resolve() });
}

/** Reads from the answer alone. */
function streamedHead(url: string, { endBytes, body }: Answer): HeadSource {
  const reader = body.getReader();
  if (endBytes === undefined) {
    void reader.cancel().catch(() => {});
    throw new TypeError(
      `${url} does not send the size of the file and does not support range requests`,
    );
  }
  let fetchedBytes = 0;
  // All bytes that have arrived: headers, a few MB.
  let pieces: Uint8Array<ArrayBuffer>[] = [];
  let readBytes = 0;
  const source: HeadSource = {
    size: endBytes,
    async read(offset, length) {
      checkRange(source, offset, length);
      if (offset > readBytes) throw new RangeError(`${url} can only be read in order`);
      while (fetchedBytes < offset + length) {
        const { done, value } = await reader.read();
        if (done) {
          throw new TypeError(`${url} ended after ${fetchedBytes} of ${source.size} bytes`);
        }
        if (fetchedBytes === 0 && looksLikeWebPage(value)) throw webPage(url);
        pieces.push(value);
        fetchedBytes += value.length;
        if (fetchedBytes > source.size) {
          throw new TypeError(`${url} sent more than the ${source.size} bytes that it announced`);
        }
      }
      readBytes = Math.max(readBytes, offset + length);
      if (pieces.length > 1) pieces = [new Uint8Array(await new Blob(pieces).arrayBuffer())];
      const [joined = new Uint8Array()] = pieces;
      return joined.slice(offset, offset + length);
    },
    close: () => reader.cancel().catch(() => {}),
  };
  return source;
}
