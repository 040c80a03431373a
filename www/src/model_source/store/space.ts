//! The space that the browser has for this site.

import { platform } from "../../platform.js";

/** Below this, the size of a file is requested before the file. */
const PLENTY_BYTES = 4 * 1024 ** 3;
/** Notes, hashes and what the browser itself needs. */
const MARGIN_BYTES = 1024 * 1024;

/** Undefined if the browser does not say it. */
export const freeBytes = () => platform().freeBytes();

export const isPlenty = (free: number | undefined) => free === undefined || free >= PLENTY_BYTES;

/** The reason why `neededBytes` cannot be stored; undefined if they can. */
export function shortage(free: number | undefined, neededBytes: number): string | undefined {
  if (free === undefined || free >= neededBytes + MARGIN_BYTES) return undefined;
  const missing = megabytes(neededBytes + MARGIN_BYTES - free);
  return `the file needs ${megabytes(neededBytes)} of storage and the browser has ${megabytes(free)} left for this site: ${missing} are missing`;
}

export const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
