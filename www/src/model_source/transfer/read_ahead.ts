//! Combines the many small reads of a file parser into a few large ones, and reads the next one in advance.

import { type ModelSource, checkRange } from "../../byte_source.js";

/** At most two windows are held: the current one and the next. */
export const WINDOW_BYTES = 8 * 1024 * 1024;

interface Window {
  offset: number;
  length: number;
  bytes: Promise<Uint8Array<ArrayBuffer>>;
}

/** `source`, read in windows of 8 MiB. A read longer than a window is passed through. */
export function readAhead(source: ModelSource, windowBytes = WINDOW_BYTES): ModelSource {
  let current: Window | undefined;
  let next: Window | undefined;

  const open = (offset: number): Window => {
    const length = Math.min(windowBytes, source.size - offset);
    const bytes = source.read(offset, length);
    // The failure of a window that is never read is ignored.
    bytes.catch(() => {});
    return { offset, length, bytes };
  };
  const covers = (window: Window | undefined, offset: number): window is Window =>
    window !== undefined && offset >= window.offset && offset < window.offset + window.length;

  /** Makes the window that contains `offset` the current one and, in a sequential read, requests the next. */
  const windowAt = (offset: number): Window => {
    if (!covers(current, offset)) {
      const sequential = covers(next, offset);
      current = covers(next, offset) ? next : open(offset);
      const end = current.offset + current.length;
      // After a jump, reading ahead would be a guess.
      next = sequential && end < source.size ? open(end) : undefined;
    }
    return current as Window;
  };

  const ahead: ModelSource = {
    size: source.size,
    async read(offset, length) {
      checkRange(ahead, offset, length);
      if (length === 0) return new Uint8Array();
      if (length > windowBytes) return source.read(offset, length);
      const first = windowAt(offset);
      const start = offset - first.offset;
      if (start + length <= first.length)
        return (await first.bytes).subarray(start, start + length);

      // The read crosses the end of the window, so it is sequential.
      next ??= open(first.offset + first.length);
      const second = windowAt(first.offset + first.length);
      const joined = new Uint8Array(length);
      const head = (await first.bytes).subarray(start);
      joined.set(head);
      joined.set((await second.bytes).subarray(0, length - head.length), head.length);
      return joined;
    },
  };
  return ahead;
}
