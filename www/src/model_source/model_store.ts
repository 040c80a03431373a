//! Writes the cache: versions of files, in the layout of `cache_layout.ts`. Makes no requests. All writes happen in a worker, in the tab that
//! holds the entry's lock.

import type { SyncAccessFile, SyncAccessHandle } from "../worker_scopes.js";
import {
  ABSENT_FILE,
  type CacheNote,
  CHUNK_BYTES,
  HASH_BYTES,
  type StoredVersion,
  USED_FILE,
  cacheFolder,
  dataFile,
  entryName,
  fileOf,
  hashesFile,
  noteFile,
  readJson,
  readVersions,
} from "./cache_layout.js";
import { type ChunkStore, splitHashes } from "./intake.js";
import type { FileVersion } from "./version.js";

/** A note is padded with spaces to a multiple of this: a note that replaces another is never shorter, and is written at once. */
const NOTE_BYTES = 2048;

/** The flat files of earlier releases. */
const OLD_FILE = /^[0-9a-f]{32}\.(json|gguf)$/;

/** The cache entry of one file. */
export class ModelStore {
  readonly name: string;
  readonly key: string;
  readonly chunkBytes: number;
  #folder: FileSystemDirectoryHandle;

  private constructor(
    name: string,
    key: string,
    folder: FileSystemDirectoryHandle,
    chunkBytes: number,
  ) {
    this.name = name;
    this.key = key;
    this.#folder = folder;
    this.chunkBytes = chunkBytes;
  }

  /** Undefined where OPFS is not available (private windows, old browsers). */
  static async open(key: string, chunkBytes = CHUNK_BYTES): Promise<ModelStore | undefined> {
    try {
      const all = await cacheFolder();
      if (all === undefined) return undefined;
      for await (const name of all.keys()) {
        if (OLD_FILE.test(name)) await all.removeEntry(name).catch(() => {});
      }
      const name = await entryName(key);
      const folder = await all.getDirectoryHandle(name, { create: true });
      return new ModelStore(name, key, folder, chunkBytes);
    } catch {
      return undefined;
    }
  }

  /** The current version, and the newest download that is not complete. */
  async versions(): Promise<{ current?: StoredVersion; next?: StoredVersion; newest: number }> {
    const versions = (await readVersions(this.#folder)).filter(({ note }) => note.key === this.key);
    const current = versions.findLast(({ note }) => note.complete);
    const next = versions.findLast(
      ({ note, number }) => !note.complete && number > (current?.number ?? -1),
    );
    let newest = -1;
    for await (const name of this.#folder.keys()) {
      newest = Math.max(newest, Number.parseInt(name, 10) || 0);
    }
    return { ...(current && { current }), ...(next && { next }), newest };
  }

  /** The bytes of a version; a snapshot that any number of tabs can read. */
  data(version: number): Promise<File> {
    return fileOf(this.#folder, dataFile(version));
  }

  async hashes({ number, note, storedBytes }: StoredVersion): Promise<Uint8Array<ArrayBuffer>[]> {
    const file = await fileOf(this.#folder, hashesFile(number));
    const bytes = new Uint8Array(await file.arrayBuffer());
    return splitHashes(bytes, Math.ceil(storedBytes / note.chunkBytes));
  }

  /** True if the server had no such file at the last request. */
  async isAbsent(): Promise<boolean> {
    const note = (await readJson(this.#folder, ABSENT_FILE).catch(() => undefined)) as
      | { key: string }
      | undefined;
    return note?.key === this.key;
  }

  /** Records that the server has no such file; failures of the storage are ignored. */
  async noteAbsence(): Promise<void> {
    // The next visit sends the request again.
    await this.#write(ABSENT_FILE, JSON.stringify({ key: this.key })).catch(() => {});
  }

  async noteUse(nowMs: number): Promise<void> {
    // Another tab may be writing the same.
    await this.#write(USED_FILE, String(Math.round(nowMs)).padEnd(16)).catch(() => {});
  }

  /** Opens a version to write it. */
  async writer(number: number, url: string, nowMs: number): Promise<VersionWriter> {
    const data = await this.#handle(dataFile(number));
    try {
      const hashes = await this.#handle(hashesFile(number));
      try {
        const note = await this.#handle(noteFile(number));
        return new VersionWriter({ data, hashes, note }, this, number, url, nowMs);
      } catch (error) {
        hashes.close();
        throw error;
      }
    } catch (error) {
      data.close();
      throw error;
    }
  }

  /** Writes a chunk of a stored version anew. */
  async mend(
    version: StoredVersion,
    index: number,
    bytes: Uint8Array<ArrayBuffer>,
    hash: Uint8Array<ArrayBuffer>,
  ) {
    const { number, note } = version;
    await this.#patch(dataFile(number), bytes, index * note.chunkBytes);
    await this.#patch(hashesFile(number), hash, index * HASH_BYTES);
  }

  /** Adds what was found out about a stored version. */
  async amend({ number, note }: StoredVersion, change: Partial<CacheNote>): Promise<void> {
    await this.#patch(noteFile(number), noteBytes({ ...note, ...change }), 0);
  }

  /** Removes a version. Its note goes first: without it, the other files mean nothing. */
  async remove(number: number): Promise<void> {
    for (const name of [noteFile(number), dataFile(number), hashesFile(number)]) {
      await this.#folder.removeEntry(name).catch(() => {});
    }
  }

  /** Removes all versions but one, and that the file was absent. What another tab still writes stays. */
  async removeOthers(number: number): Promise<void> {
    const names: string[] = [];
    for await (const name of this.#folder.keys()) names.push(name);
    for (const name of names) {
      const other = /^(\d+)\./.exec(name)?.[1];
      if (name === ABSENT_FILE || (other !== undefined && Number(other) !== number)) {
        await this.#folder.removeEntry(name).catch(() => {});
      }
    }
  }

  async #handle(name: string): Promise<SyncAccessHandle> {
    const file = await this.#folder.getFileHandle(name, { create: true });
    return (file as SyncAccessFile).createSyncAccessHandle();
  }

  async #write(name: string, text: string): Promise<void> {
    await this.#patch(name, new TextEncoder().encode(text), 0);
  }

  async #patch(name: string, bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void> {
    const handle = await this.#handle(name);
    try {
      writeAll(handle, bytes, at);
      handle.flush();
    } finally {
      handle.close();
    }
  }
}

/** Appends chunks to a version and reads them back. Nothing is claimed before it is flushed. */
export class VersionWriter implements ChunkStore {
  readonly number: number;
  #files: Record<"data" | "hashes" | "note", SyncAccessHandle>;
  #store: ModelStore;
  #url: string;
  #nowMs: number;
  #isOpen = true;

  constructor(
    files: Record<"data" | "hashes" | "note", SyncAccessHandle>,
    store: ModelStore,
    number: number,
    url: string,
    nowMs: number,
  ) {
    this.#files = files;
    this.#store = store;
    this.number = number;
    this.#url = url;
    this.#nowMs = nowMs;
  }

  describe(version: FileVersion): void {
    this.#writeNote(version, false, this.#nowMs);
  }

  put(index: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array<ArrayBuffer>): void {
    const { data, hashes } = this.#files;
    const at = index * this.#store.chunkBytes;
    try {
      writeAll(data, bytes, at);
      data.flush();
      writeAll(hashes, hash, index * HASH_BYTES);
      hashes.flush();
    } catch (error) {
      // What was written of it takes space that may be needed.
      data.truncate(at);
      throw error;
    }
  }

  async read(index: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const at = index * this.#store.chunkBytes;
    if (!this.#isOpen) {
      const file = await this.#store.data(this.number);
      return new Uint8Array(await file.slice(at + start, at + end).arrayBuffer());
    }
    const bytes = new Uint8Array(end - start);
    if (this.#files.data.read(bytes, { at: at + start }) !== bytes.length) {
      throw new DOMException("the origin's storage lost what was written", "InvalidStateError");
    }
    return bytes;
  }

  truncate(chunks: number): void {
    const { data, hashes } = this.#files;
    hashes.truncate(Math.min(hashes.getSize(), chunks * HASH_BYTES));
    hashes.flush();
    data.truncate(Math.min(data.getSize(), chunks * this.#store.chunkBytes));
  }

  /** The version is whole and verified: from this write on, it is the current one. */
  complete(version: FileVersion, isHashVerified: boolean, nowMs: number): void {
    this.#writeNote(version, true, nowMs, isHashVerified);
  }

  /** `read` can still be called. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const handle of Object.values(this.#files)) handle.close();
  }

  #writeNote(
    version: FileVersion,
    complete: boolean,
    storedAtMs: number,
    isHashVerified = false,
  ): void {
    const { etag, lastModified, sizeBytes, sha256 } = version;
    const { key, chunkBytes } = this.#store;
    const url = new URL(this.#url);
    url.search = "";
    url.hash = "";
    url.username = "";
    url.password = "";
    const note: CacheNote = {
      ...{ key, url: url.href, etag, lastModified, sizeBytes, sha256 },
      ...{ isHashVerified, chunkBytes, complete, storedAtMs },
    };
    const bytes = noteBytes(note);
    writeAll(this.#files.note, bytes, 0);
    this.#files.note.truncate(bytes.length);
    this.#files.note.flush();
  }
}

function noteBytes(note: CacheNote): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(JSON.stringify(note));
  const padded = new Uint8Array(Math.ceil(bytes.length / NOTE_BYTES) * NOTE_BYTES).fill(0x20);
  padded.set(bytes);
  return padded;
}

/** @throws DOMException named `QuotaExceededError` when the storage is full */
function writeAll(handle: SyncAccessHandle, bytes: Uint8Array<ArrayBuffer>, at: number): void {
  if (handle.write(bytes, { at }) !== bytes.length) {
    throw new DOMException("the browser's storage for this site is full", "QuotaExceededError");
  }
}
