//! Keeps builds for other checkouts of the repository in the folder that INPAGE_CACHE_DIR names. `.ci/run` sets it. Without it,
//! nothing is kept outside of the checkout.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { basename, join, resolve } from "node:path";

/** Number of builds that are kept, all kinds together. A wasm module has about 10 MB. */
const MOST_ENTRIES = 6;

function folder() {
  const named = process.env.INPAGE_CACHE_DIR;
  return named ? join(resolve(named), "builds") : undefined;
}

/** Whether the build with this key is kept. */
export function isKept(key) {
  return folder() !== undefined && existsSync(join(folder(), key));
}

/** Copies the files of the build with this key to `to`; false if it is not kept. */
export function takeFromCache(key, to) {
  const entry = folder() && join(folder(), key);
  if (!entry || !existsSync(entry)) return false;
  cpSync(entry, to, { recursive: true });
  // Marks the entry as the most recently used.
  utimesSync(entry, new Date(), new Date());
  return true;
}

/** Keeps copies of these files under this key, and removes the least recently used entries. */
export function putIntoCache(key, files) {
  const cache = folder();
  if (!cache) return;
  mkdirSync(cache, { recursive: true });
  const entry = join(cache, key);
  const partial = `${entry}.${process.pid}`;
  rmSync(partial, { recursive: true, force: true });
  for (const file of files) cpSync(file, join(partial, basename(file)));
  rmSync(entry, { recursive: true, force: true });
  // A reader sees a complete entry or none.
  renameSync(partial, entry);
  const entries = readdirSync(cache).map((name) => join(cache, name));
  entries.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of entries.slice(MOST_ENTRIES)) rmSync(old, { recursive: true, force: true });
}
