//! The places of the cache's files in the origin private file system (OPFS) or, where that is missing, in the Cache API, and how to read
//! what is there from any thread. Downloads and repairs write them in `entry.ts`.
//!
//! Each cached file has a folder `inpage-models/NAME`, where NAME is made of the SHA-256 of its cache key:
//!
//! | file          | content |
//! |---------------|---------|
//! | `N.json`      | the note of version N (the time at which its download began): where it came from, and whether it is complete |
//! | `N.data`      | the bytes of version N |
//! | `N.hashes`    | the SHA-256 of each chunk of `N.data`, 32 bytes each, appended when the chunk is stored |
//! | `absent.json` | the server had no such file at the last request |
//! | `pinned`      | exists if the user wants to keep the entry |
//! | `used`        | when the entry was last read, in milliseconds since 1970 |
//! | `kernels`     | what the self-test of the GPU's kernels found: see `kernel_note.ts` |
//!
//! The complete version with the highest number is the current one. A download is a version with a higher number, written
//! beside it. It becomes the current one with a single write: its note then says `complete`. So a tab that is killed at any
//! point leaves the current version as it was, and no file has to be renamed.
//!
//! An update is not read while it arrives. A first download is, because there is nothing else to read. A new version is
//! read when it is complete and verified: if it breaks off, the old one is still there, and the loader has not seen
//! bytes of both.

import { CACHE_FOLDER, platform } from "../../platform.js";
import { CacheApiRoot } from "./cache_api_files.js";
import { cacheKey } from "./cache_key.js";
import type { Folder, Snapshot } from "./file_system.js";
import type { FileVersion } from "./version.js";

/** A download is hashed, and can be resumed, in chunks of this size. */
export const CHUNK_BYTES = 4 * 1024 * 1024;

/** SHA-256. */
export const HASH_BYTES = 32;

export const ABSENT_FILE = "absent.json";
export const PINNED_FILE = "pinned";
export const USED_FILE = "used";
export const KERNELS_FILE = "kernels";

/** The validators that a server sends for a version: replicas may say different things of the same bytes. */
export type Validators = Pick<FileVersion, "etag" | "lastModified">;

/** The note of one version of a file. */
export interface CacheNote extends FileVersion {
  /** The cache key: see `entryName`. */
  key: string;
  /** The URL without query and fragment, which may contain secrets. */
  url: string;
  /** True if the bytes were found to have the hash `sha256`; otherwise it is only what the server states. */
  isHashVerified: boolean;
  /** The size of a chunk; the last one may be shorter. */
  chunkBytes: number;
  /** True once the file is complete and verified. */
  complete: boolean;
  /** Other validators with which the server has sent the same bytes. */
  aliases?: readonly Validators[];
  /** The time when the download began or, if it is complete, ended; milliseconds since 1970. */
  storedAtMs: number;
}

/** One version of a file in its entry. */
export interface StoredVersion {
  number: number;
  note: CacheNote;
  /** Bytes from the start whose hashes are stored; after a kill, the data file may be longer. */
  storedBytes: number;
}

/** The stored state of one file. */
export interface StoredEntry {
  /** The name of the entry's folder. */
  name: string;
  key: string;
  url: string;
  /** The current version. */
  current: StoredVersion | undefined;
  /** The newest version that is not complete: a download in progress, or one that broke off. */
  next: StoredVersion | undefined;
  /** The space that all versions take, in bytes. */
  occupiedBytes: number;
  pinned: boolean;
  /** Undefined if the entry was never read. */
  usedAtMs: number | undefined;
}

export const noteFile = (version: number) => `${version}.json`;
export const dataFile = (version: number) => `${version}.data`;
export const hashesFile = (version: number) => `${version}.hashes`;

/** The name of the folder of the file with this cache key: 32 hexadecimal digits of its SHA-256. */
export async function entryName(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  return hexOf(new Uint8Array(digest, 0, 16));
}

/** The Web Lock that a tab holds while it checks, downloads or repairs the entry. */
export const entryLock = (name: string) => `inpage-model ${name}`;

export const hexOf = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The storage that has the cache. */
export interface CacheStore {
  kind: "opfs" | "disk" | "cache";
  /** The folder of all entries. */
  folder: Folder;
}

/**
 * The platform's file system or, in browsers where it is missing or refuses (private windows, old browsers, web views), the
 * Cache API; undefined where both do.
 *
 * @param chunkBytes the size of the chunks that are written
 */
export async function cacheStore(chunkBytes = CHUNK_BYTES): Promise<CacheStore | undefined> {
  const { cacheKind: kind } = platform();
  try {
    const folder = await platform().cacheFolder();
    if (folder) return { kind, folder };
    if (kind !== "opfs") return undefined;
    return { kind: "cache", folder: await CacheApiRoot.open(CACHE_FOLDER, chunkBytes) };
  } catch {
    return undefined;
  }
}

/** The folder of all entries; created if it is missing. Undefined where there is no storage. */
export async function cacheFolder(): Promise<Folder | undefined> {
  return (await cacheStore())?.folder;
}

/** All entries with at least one version; only reads. */
export async function listEntries(): Promise<StoredEntry[]> {
  const folder = await cacheFolder();
  const entries: StoredEntry[] = [];
  if (folder === undefined) return entries;
  for await (const [name, handle] of folder.entries()) {
    if (handle.kind !== "directory") continue;
    try {
      const entry = await readEntry(await folder.getDirectoryHandle(name), name);
      if (entry !== undefined) entries.push(entry);
    } catch (error) {
      // The entry was removed in the meantime.
      if ((error as Error).name !== "NotFoundError") throw error;
    }
  }
  return entries;
}

/** The entry of one cache key; undefined if nothing is stored. */
export async function findEntry(key: string): Promise<StoredEntry | undefined> {
  const folder = await cacheFolder();
  const name = await entryName(key);
  try {
    return folder && (await readEntry(await folder.getDirectoryHandle(name), name));
  } catch {
    return undefined;
  }
}

/** The versions in the folder of an entry, oldest first; files that belong to no readable note are left out. */
export async function readVersions(folder: Folder): Promise<StoredVersion[]> {
  const versions: StoredVersion[] = [];
  for await (const name of folder.keys()) {
    const number = /^(\d+)\.json$/.exec(name)?.[1];
    if (number === undefined) continue;
    const version = await readVersion(folder, Number(number));
    if (version !== undefined) versions.push(version);
  }
  return versions.sort((a, b) => a.number - b.number);
}

/** One version; undefined if its note was not written to its end or a file is missing. */
async function readVersion(folder: Folder, number: number): Promise<StoredVersion | undefined> {
  try {
    const note = (await readJson(folder, noteFile(number))) as CacheNote;
    if (!isNote(note)) return undefined;
    const { size } = await fileOf(folder, dataFile(number));
    const chunks = Math.floor((await fileOf(folder, hashesFile(number))).size / HASH_BYTES);
    const hashedBytes = chunks * note.chunkBytes;
    // Only the last chunk of a complete file is shorter than the others.
    const wholeBytes = Math.floor(size / note.chunkBytes) * note.chunkBytes;
    const storedBytes = Math.min(hashedBytes, size === note.sizeBytes ? size : wholeBytes);
    if (note.complete && storedBytes !== note.sizeBytes) return undefined;
    return { number, note, storedBytes };
  } catch {
    return undefined;
  }
}

/** The storage may be damaged. */
function isNote({ key, url, chunkBytes, complete }: CacheNote): boolean {
  return (
    typeof key === "string" &&
    URL.canParse(url) &&
    Number.isInteger(chunkBytes) &&
    chunkBytes > 0 &&
    typeof complete === "boolean"
  );
}

async function readEntry(folder: Folder, name: string): Promise<StoredEntry | undefined> {
  const versions = await readVersions(folder);
  const current = versions.findLast(({ note }) => note.complete);
  const next = versions.findLast(
    ({ number, note }) => !note.complete && number > (current?.number ?? -1),
  );
  const shown = current ?? next;
  if (shown === undefined) return undefined;
  let occupiedBytes = 0;
  let pinned = false;
  let usedAtMs: number | undefined;
  for await (const [file, handle] of folder.entries()) {
    if (handle.kind !== "file") continue;
    if (file === PINNED_FILE) pinned = true;
    try {
      occupiedBytes += (await fileOf(folder, file)).size;
      if (file === USED_FILE)
        usedAtMs = Number(await (await fileOf(folder, file)).text()) || undefined;
    } catch {
      // The file was removed in the meantime.
    }
  }
  const { key, url } = shown.note;
  // The key of an earlier release may contain a secret: see `remove_entry.ts`.
  return {
    name,
    key: URL.canParse(key) ? cacheKey(key) : key,
    url,
    current,
    next,
    occupiedBytes,
    pinned,
    usedAtMs,
  };
}

/** A snapshot of a file; works on every thread, also while another tab writes. */
export async function fileOf(folder: Folder, name: string): Promise<Snapshot> {
  return (await folder.getFileHandle(name)).getFile();
}

/** @throws SyntaxError if the file was not written to its end */
export async function readJson(folder: Folder, name: string): Promise<unknown> {
  return JSON.parse(await (await fileOf(folder, name)).text());
}
