//! Removes whole entries of the cache, and those whose keys are of an earlier release. Which entries the app wants to delete is
//! decided in `cache/cache.ts`.

import { locks } from "../../platform.js";
import { cacheKey } from "./cache_key.js";
import { ABSENT_FILE, cacheFolder, entryLock, readJson } from "./cache_layout.js";
import type { Folder } from "./file_system.js";
import { readingLock } from "./reading.js";

/** False if a tab downloads the entry or reads it. */
export async function removeEntry(name: string): Promise<boolean> {
  const ifAvailable = true;
  const isRemoved = await locks().request(entryLock(name), { ifAvailable }, (lock) =>
    lock === null
      ? false
      : locks().request(readingLock(name), { ifAvailable }, (lock) =>
          lock === null ? false : removeUnlocked(name),
        ),
  );
  return isRemoved;
}

/**
 * Removes the entries whose keys contain what a key leaves out now: earlier releases stored some credentials. Nothing finds
 * these entries any more. Failures are ignored, and what is in use stays until the next visit.
 */
export async function removeOldEntries(): Promise<void> {
  try {
    const all = await cacheFolder();
    if (all === undefined) return;
    const names: string[] = [];
    for await (const [name, { kind }] of all.entries()) if (kind === "directory") names.push(name);
    for (const name of names) {
      const folder = await all.getDirectoryHandle(name).catch(() => undefined);
      if (folder && (await storedKeys(folder)).some(isOld)) await removeEntry(name);
    }
  } catch {
    // Another tab may be changing the cache.
  }
}

/** The keys in the notes of an entry. */
async function storedKeys(folder: Folder): Promise<string[]> {
  const files: string[] = [];
  for await (const file of folder.keys()) files.push(file);
  const notes = files.filter((file) => /^\d+\.json$/.test(file) || file === ABSENT_FILE);
  const keys = notes.map(async (file) => {
    const note = (await readJson(folder, file).catch(() => undefined)) as { key?: unknown } | null;
    return note?.key;
  });
  return (await Promise.all(keys)).filter((key) => typeof key === "string");
}

const isOld = (key: string) => URL.canParse(key) && cacheKey(key) !== key;

async function removeUnlocked(name: string): Promise<boolean> {
  const folder = await cacheFolder();
  try {
    await folder?.removeEntry(name, { recursive: true });
    return true;
  } catch (error) {
    const { name: failure } = error as Error;
    // Another tab has deleted it.
    if (failure === "NotFoundError") return true;
    if (failure === "NoModificationAllowedError") return false;
    throw error;
  }
}
