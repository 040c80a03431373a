//! A file in the cache: the current version if it is still the one on the server, or cannot be replaced; else a download, which becomes the
//! current version when it is complete and verified. Runs while this tab holds the entry's lock.

import { messageOf } from "../../exchange/error_response.js";
import type { Arrival } from "./arrival.js";
import { CacheDownload, storedSource } from "./cache_download.js";
import type { StoredVersion } from "../store/cache_layout.js";
import { crossOriginSource } from "./cross_origin_storage.js";
import { NoSuchFile } from "../store/failure.js";
import type { CacheEntry } from "../store/entry.js";
import { Uncachable, checkAbsence, checkSpace, stateOf } from "../transfer/revalidation.js";
import type { Turn } from "../transfer/turn.js";
import type { Context } from "../transfer/url_file.js";

/**
 * Gives `arrival` the file.
 *
 * @throws Uncachable if the storage does not take it and nothing of it was read; NoSuchFile if the server has no such file, or is
 * offline and had none at the last request
 */
export async function cachedSource(
  context: Context,
  store: CacheEntry,
  turn: Turn,
  arrival: Arrival,
): Promise<void> {
  const { clock, report, warn, file } = context;
  const { current, next, newest } = await store.versions();
  const usable = current && (await hasExpectedHash(context, store, current)) ? current : undefined;
  const use = async (version: StoredVersion) => {
    await store.noteUse(clock.nowMs());
    report(store.kind);
    arrival.finish(await storedSource(context, store, version, false));
  };
  const state = usable && (await stateOf(context, usable));
  // The remains of another download, of an older or a newer version, are not needed any more.
  if (usable && state === "current") await store.removeOthers(usable.number);
  if (usable && state !== "outdated") return use(usable);
  if (usable === undefined) {
    await checkAbsence(context, store);
    if (await crossOriginSource(context, arrival)) return;
  }
  try {
    await checkSpace(context, store, next);
    // While there is a good version, a new one is read only when it is known to be good, too.
    const download = new CacheDownload(context, store, turn, usable ? undefined : arrival);
    await download.run(next, newest, arrival);
  } catch (error) {
    context.signal.throwIfAborted();
    turn.lost.throwIfAborted();
    if (error instanceof Uncachable) throw error;
    if (error instanceof NoSuchFile && usable === undefined) await store.noteAbsence();
    if (usable === undefined) throw error;
    warn(`${messageOf(error)} The stored copy of ${file.url} is used.`);
    await use(usable);
  }
}

/** Whether the stored version is the one that the app wants, if it wants a certain one. */
async function hasExpectedHash(
  { file, createHasher, signal }: Context,
  store: CacheEntry,
  version: StoredVersion,
): Promise<boolean> {
  const { note, number } = version;
  if (file.sha256 === undefined || createHasher === undefined) return true;
  if (note.isHashVerified) return note.sha256 === file.sha256;
  const hasher = await createHasher();
  const data = await store.data(number);
  for (let offset = 0; offset < data.size; offset += note.chunkBytes) {
    signal.throwIfAborted();
    const chunk = data.slice(offset, offset + note.chunkBytes);
    hasher.update(new Uint8Array(await chunk.arrayBuffer()));
  }
  const sha256 = await hasher.finish();
  if (sha256 !== file.sha256) return false;
  await store.amend(version, { sha256, isHashVerified: true }).catch(() => {});
  return true;
}
