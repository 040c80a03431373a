//! Marks files of the cache as being read, so that no tab deletes them meanwhile.

import { platform } from "../../platform.js";
import { entryName } from "./cache_layout.js";

/** Held as shared by each tab that reads the entry, exclusively by one that deletes it. */
export const readingLock = (name: string) => `inpage-model-reading ${name}`;

/** Marks the file with this cache key until `end` aborts. */
export async function markReading(key: string, end: AbortSignal): Promise<void> {
  // A platform without locks has no cache.
  const { locks } = platform();
  if (locks === undefined || end.aborted) return;
  const ended = new Promise<void>((resolve) => {
    end.addEventListener("abort", () => resolve(), { once: true });
  });
  const lock = readingLock(await entryName(key));
  await new Promise<void>((resolve, reject) => {
    const hold = () => {
      resolve();
      return ended;
    };
    locks.request(lock, { mode: "shared", signal: end }, hold).catch(reject);
  });
}
