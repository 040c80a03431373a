//! The checks before a download: whether the stored version is still the server's, and whether there is space for another
//! one.

import type { StoredVersion } from "../store/cache_layout.js";
import { NoSuchFile, TransientFailure } from "../store/failure.js";
import { askVersion } from "./http.js";
import type { CacheEntry } from "../store/entry.js";
import { freeBytes, isPlenty, shortage } from "../store/space.js";
import type { Context } from "./url_file.js";
import { type FileVersion, isCurrent } from "../store/version.js";

/** If the network does not answer within this time, the cached file is used without revalidation. */
const REVALIDATE_TIMEOUT_MS = 5000;

/** The file cannot be cached. */
export class Uncachable extends Error {}

/** Whether the stored version is the server's. If the server does not answer with the file, the stored version is still good. */
export async function stateOf(
  context: Context,
  { note }: StoredVersion,
): Promise<"current" | "outdated" | "unknown"> {
  const { file, warn } = context;
  // It has the hash that is expected, and cannot be outdated.
  if (file.sha256 !== undefined) return "current";
  const now = await versionNow(context);
  if (now instanceof Error) {
    const isOffline = now instanceof TransientFailure && now.isUnreached;
    if (!isOffline) warn(`${now.message}. The stored copy is used.`);
    return "unknown";
  }
  // Servers choose their own ETags and dates, so those of a mirror cannot be compared.
  const isMirror = new URL(note.url).origin !== new URL(file.url).origin;
  const comparable = isMirror ? { ...now, etag: null, lastModified: null } : now;
  const stated = [note, ...(note.aliases ?? []).map((alias) => ({ ...note, ...alias }))];
  return stated.some((known) => isCurrent(known, comparable)) ? "current" : "outdated";
}

/** The version on the server, or the error of the request. */
export async function versionNow({ file, clock, signal }: Context): Promise<FileVersion | Error> {
  const attempt = new AbortController();
  const settled = new AbortController();
  clock.sleep(REVALIDATE_TIMEOUT_MS, settled.signal).then(
    () => attempt.abort(new TransientFailure(`no answer from ${file.url}`, { isUnreached: true })),
    () => {},
  );
  try {
    const either = AbortSignal.any([signal, attempt.signal]);
    return await askVersion(file.url, file.fetchFile, either);
  } catch (error) {
    signal.throwIfAborted();
    return error as Error;
  } finally {
    settled.abort();
  }
}

/** Throws if the server had no such file, and still has none or cannot be reached. */
export async function checkAbsence(context: Context, store: CacheEntry): Promise<void> {
  if (!(await store.isAbsent())) return;
  const now = await versionNow(context);
  if (now instanceof NoSuchFile) throw now;
  if (now instanceof TransientFailure) {
    throw new NoSuchFile(
      `${context.file.url} was not on the server at the last request, and the server cannot be reached now`,
    );
  }
}

/** Throws `Uncachable` if there is not enough space. If there may be too little, the server is asked for the size first. */
export async function checkSpace(
  context: Context,
  store: CacheEntry,
  next: StoredVersion | undefined,
): Promise<void> {
  if (isPlenty(await freeBytes())) return;
  const now = await versionNow(context);
  if (now instanceof Error || now.sizeBytes === undefined) return;
  const isUsable = next !== undefined && isCurrent(next.note, now);
  if (next !== undefined && !isUsable) await store.remove(next.number);
  const storedBytes = isUsable ? next.storedBytes : 0;
  const reason = shortage(await freeBytes(), now.sizeBytes - storedBytes);
  if (reason === undefined) return;
  // A part of a file that does not fit only takes space.
  if (isUsable) await store.remove(next.number);
  throw new Uncachable(reason);
}
