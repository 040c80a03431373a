//! Writes one version of a file in the cache, chunk by chunk. A chunk counts as stored only after it is flushed.

import { shownUrl } from "./cache_key.js";
import { type CacheNote, HASH_BYTES } from "./cache_layout.js";
import type { ChunkStore } from "./chunk_store.js";
import type { FileAccess, Snapshot } from "./file_system.js";
import type { FileVersion } from "./version.js";

/** A note is padded with spaces to a multiple of this: a note that replaces another is never shorter, and is written at once. */
const NOTE_BYTES = 2048;

/** The entry that the version belongs to. */
interface Entry {
  readonly key: string;
  readonly chunkBytes: number;
  data(version: number): Promise<Snapshot>;
  has(version: number): Promise<boolean>;
}

/** Appends chunks to a version and reads them back. */
export class VersionWriter implements ChunkStore {
  readonly number: number;
  #files: Record<"data" | "hashes" | "note", FileAccess>;
  #entry: Entry;
  #url: string;
  #nowMs: number;
  #isOpen = true;

  constructor(
    files: Record<"data" | "hashes" | "note", FileAccess>,
    entry: Entry,
    number: number,
    url: string,
    nowMs: number,
  ) {
    this.#files = files;
    this.#entry = entry;
    this.number = number;
    this.#url = url;
    this.#nowMs = nowMs;
  }

  async describe(version: FileVersion): Promise<void> {
    const note = { isHashVerified: false, complete: false, storedAtMs: this.#nowMs, aliases: [] };
    await this.#writeNote(version, note);
  }

  async put(
    index: number,
    bytes: Uint8Array<ArrayBuffer>,
    hash: Uint8Array<ArrayBuffer>,
  ): Promise<void> {
    const { data, hashes } = this.#files;
    const at = index * this.#entry.chunkBytes;
    try {
      await writeAll(data, bytes, at);
      await data.flush();
      await writeAll(hashes, hash, index * HASH_BYTES);
      await hashes.flush();
    } catch (error) {
      await this.#checkCleared();
      // The part that was written takes space that may be needed.
      await data.truncate(at);
      throw error;
    }
  }

  async read(index: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const at = index * this.#entry.chunkBytes;
    if (!this.#isOpen) {
      const file = await this.#entry.data(this.number);
      return new Uint8Array(await file.slice(at + start, at + end).arrayBuffer());
    }
    const bytes = new Uint8Array(end - start);
    if ((await this.#files.data.read(bytes, { at: at + start })) !== bytes.length) {
      await this.#checkCleared();
      throw new DOMException(
        "the browser's storage lost data that was written",
        "InvalidStateError",
      );
    }
    return bytes;
  }

  async truncate(chunks: number): Promise<void> {
    const { data, hashes } = this.#files;
    await hashes.truncate(Math.min(await hashes.getSize(), chunks * HASH_BYTES));
    await hashes.flush();
    await data.truncate(Math.min(await data.getSize(), chunks * this.#entry.chunkBytes));
  }

  /** The version is whole and verified: from this write on, it is the current one. */
  async complete(
    version: FileVersion,
    note: Pick<CacheNote, "isHashVerified" | "storedAtMs" | "aliases">,
  ): Promise<void> {
    await this.#writeNote(version, { ...note, complete: true });
  }

  /** `read` can still be called. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const handle of Object.values(this.#files)) await handle.close();
  }

  async #writeNote(
    version: FileVersion,
    more: Pick<CacheNote, "isHashVerified" | "storedAtMs" | "aliases" | "complete">,
  ): Promise<void> {
    const { etag, lastModified, sizeBytes, sha256 } = version;
    const { key, chunkBytes } = this.#entry;
    const note: CacheNote = {
      ...{ key, url: shownUrl(this.#url), etag, lastModified, sizeBytes, sha256 },
      ...{ chunkBytes, ...more },
    };
    const bytes = noteBytes(note);
    try {
      await writeAll(this.#files.note, bytes, 0);
      await this.#files.note.truncate(bytes.length);
      await this.#files.note.flush();
    } catch (error) {
      await this.#checkCleared();
      throw error;
    }
  }

  /** Files that were removed while they are open take no bytes, as those of a full storage. */
  async #checkCleared(): Promise<void> {
    if (await this.#entry.has(this.number)) return;
    throw new DOMException(
      "the browser's storage for this site was cleared in the meantime",
      "NotFoundError",
    );
  }
}

export function noteBytes(note: CacheNote): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(JSON.stringify(note));
  const padded = new Uint8Array(Math.ceil(bytes.length / NOTE_BYTES) * NOTE_BYTES).fill(0x20);
  padded.set(bytes);
  return padded;
}

/** @throws DOMException named `QuotaExceededError` when the storage is full */
export async function writeAll(
  handle: FileAccess,
  bytes: Uint8Array<ArrayBuffer>,
  at: number,
): Promise<void> {
  if ((await handle.write(bytes, { at })) !== bytes.length) {
    throw new DOMException("the browser's storage for this site is full", "QuotaExceededError");
  }
}
