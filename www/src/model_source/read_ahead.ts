//! Turns the many small reads of a file parser into few large ones, and fetches the next piece
//! while the last one is being worked on. Knows nothing of where the bytes come from.

import { type ModelSource, checkRange } from "./source.js";

/** Two windows at most are held: the one being read and the next. */
const WINDOW_BYTES = 8 * 1024 * 1024;

interface Window {
  offset: number;
  length: number;
  bytes: Promise<Uint8Array<ArrayBuffer>>;
}

/** `source`, read in windows of 8 MiB. A read longer than a window goes through as it is. */
export function readAhead(source: ModelSource, windowBytes = WINDOW_BYTES): ModelSource {
  let current: Window | undefined;
  let next: Window | undefined;

  const open = (offset: number): Window => {
    const length = Math.min(windowBytes, source.size - offset);
    const bytes = source.read(offset, length);
    // A window that nobody comes to read may fail without a word.
    bytes.catch(() => {});
    return { offset, length, bytes };
  };
  const covers = (window: Window | undefined, offset: number): window is Window =>
    window !== undefined && offset >= window.offset && offset < window.offset + window.length;

  /** Makes the window that holds `offset` the current one; afterwards the next one is under way. */
  const windowAt = (offset: number): Window => {
    if (!covers(current, offset)) {
      const sequential = covers(next, offset);
      current = covers(next, offset) ? next : open(offset);
      const end = current.offset + current.length;
      // After a jump the direction is not known yet: reading ahead would be a guess.
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

      // Across the end of a window: reading on is sequential, so the next one is worth having.
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
