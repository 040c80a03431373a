//! Writes the cache: versions of files, in the layout of `cache_layout.ts`. Makes no requests. All writes happen in a worker, in the tab that
//! holds the entry's lock.

import {
  ABSENT_FILE,
  type CacheNote,
  type CacheStore,
  CHUNK_BYTES,
  HASH_BYTES,
  type StoredVersion,
  USED_FILE,
  cacheStore,
  dataFile,
  entryName,
  fileOf,
  hashesFile,
  noteFile,
  readJson,
  readVersions,
} from "./cache_layout.js";
import { type FileAccess, type Folder, type Snapshot, openForWriting } from "./file_system.js";
import { splitHashes } from "./hash.js";
import { VersionWriter, noteBytes, writeAll } from "./version_writer.js";

/** The flat files of earlier releases. */
const OLD_FILE = /^[0-9a-f]{32}\.(json|gguf)$/;

/** The cache entry of one file. */
export class CacheEntry {
  readonly name: string;
  readonly key: string;
  readonly chunkBytes: number;
  /** The browser's storage that keeps the entry. */
  readonly kind: CacheStore["kind"];
  #folder: Folder;

  private constructor(name: string, key: string, { kind, folder }: CacheStore, chunkBytes: number) {
    this.name = name;
    this.key = key;
    this.kind = kind;
    this.#folder = folder;
    this.chunkBytes = chunkBytes;
  }

  /** Undefined where the browser gives no storage. */
  static async open(key: string, chunkBytes = CHUNK_BYTES): Promise<CacheEntry | undefined> {
    try {
      const store = await cacheStore(chunkBytes);
      if (store === undefined) return undefined;
      const { kind, folder: all } = store;
      for await (const name of all.keys()) {
        if (OLD_FILE.test(name)) await all.removeEntry(name).catch(() => {});
      }
      const name = await entryName(key);
      const folder = await all.getDirectoryHandle(name, { create: true });
      return new CacheEntry(name, key, { kind, folder }, chunkBytes);
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
  data(version: number): Promise<Snapshot> {
    return fileOf(this.#folder, dataFile(version));
  }

  /** False if the version's bytes were removed. */
  has(version: number): Promise<boolean> {
    return this.data(version).then(
      () => true,
      (error: unknown) => (error as Error).name !== "NotFoundError",
    );
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
        await hashes.close();
        throw error;
      }
    } catch (error) {
      await data.close();
      throw error;
    }
  }

  /** Writes a chunk of a stored version again. */
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

  /** Removes all versions but one, and the note that the file was absent. Files that another tab still writes stay. */
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

  async #handle(name: string): Promise<FileAccess> {
    return openForWriting(await this.#folder.getFileHandle(name, { create: true }));
  }

  async #write(name: string, text: string): Promise<void> {
    await this.#patch(name, new TextEncoder().encode(text), 0);
  }

  async #patch(name: string, bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void> {
    const handle = await this.#handle(name);
    try {
      await writeAll(handle, bytes, at);
      await handle.flush();
    } finally {
      await handle.close();
    }
  }
}
