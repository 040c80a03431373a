//! Folders and files in the Cache API, for browsers and windows without the origin private file system. Knows nothing of models.
//!
//! A folder is one cache. A file is an index, which states its size, and parts, each a response of its own: a write of a whole
//! part replaces one response, and the others stay as they are. A part is written before the index that includes it, so a
//! file whose tab is killed keeps a size whose bytes are there.
//!
//! The Cache API is a second file system, not a second download (`file_system.ts`). Where OPFS is missing, a folder is
//! a cache and a file is an index and parts, each a response of 4 MiB, so that a chunk is replaced by one `put`. A Web
//! Lock per open file stands for the exclusive handle of OPFS. Everything above (versions, hashes, turns, repairs) is
//! the same code, and runs under the same schedules of faults.
//!
//! Longer than other files: folders, files and their locks share one index.

import { messageOf } from "../../exchange/error_response.js";
import { isStorageFailure } from "./failure.js";
import type { FileAccess, Folder, OpenableFile, Snapshot } from "./file_system.js";

/** The keys of a cache are URLs. These are never fetched, and match no request of the site. */
const BASE = "https://inpage.invalid/";

const indexUrl = (file: string) => BASE + encodeURIComponent(file);
const partUrl = (file: string, part: number) => `${indexUrl(file)}?part=${part}`;

/** The content of the index of a file. */
interface Index {
  sizeBytes: number;
  /** The size of a part; the last one may be shorter. */
  partBytes: number;
}

const failure = (name: string, message: string) => new DOMException(message, name);

/** Failures of the Cache API have different types in different browsers. */
async function stored<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isStorageFailure(error) ? error : failure("UnknownError", messageOf(error));
  }
}

/** A folder of folders: all caches whose names begin with its own. */
export class CacheApiRoot implements Folder {
  readonly kind = "directory";
  #name: string;
  #partBytes: number;

  private constructor(name: string, partBytes: number) {
    this.#name = name;
    this.#partBytes = partBytes;
  }

  /**
   * @param partBytes the size of a part in new files
   * @throws Error where the Cache API is missing or refuses
   */
  static async open(name: string, partBytes: number): Promise<CacheApiRoot> {
    await caches.keys();
    return new CacheApiRoot(name, partBytes);
  }

  async getDirectoryHandle(name: string, { create = false } = {}): Promise<Folder> {
    const cacheName = this.#cacheName(name);
    if (create) await stored(caches.open(cacheName));
    else if (!(await stored(caches.has(cacheName)))) throw failure("NotFoundError", name);
    return new CacheApiFolder(cacheName, this.#partBytes);
  }

  getFileHandle(name: string): Promise<OpenableFile> {
    return Promise.reject(failure("NotFoundError", name));
  }

  /** Removes a folder with its files, if none of them is open. */
  async removeEntry(name: string): Promise<void> {
    const cacheName = this.#cacheName(name);
    const { held = [] } = await navigator.locks.query();
    if (held.some((lock) => lock.name?.startsWith(lockName(cacheName, "")))) {
      throw failure("NoModificationAllowedError", `a file of ${name} is open`);
    }
    if (!(await stored(caches.delete(cacheName)))) throw failure("NotFoundError", name);
  }

  async *keys(): AsyncIterable<string> {
    const prefix = this.#cacheName("");
    for (const cacheName of await stored(caches.keys())) {
      if (cacheName.startsWith(prefix)) yield cacheName.slice(prefix.length);
    }
  }

  async *entries(): AsyncIterable<[string, { readonly kind: "directory" }]> {
    for await (const name of this.keys()) yield [name, { kind: "directory" }];
  }

  #cacheName(folder: string): string {
    return `${this.#name}/${folder}`;
  }
}

/** A folder of files: one cache. */
class CacheApiFolder implements Folder {
  readonly kind = "directory";
  readonly cacheName: string;
  #partBytes: number;

  constructor(cacheName: string, partBytes: number) {
    this.cacheName = cacheName;
    this.#partBytes = partBytes;
  }

  getDirectoryHandle(name: string): Promise<Folder> {
    return Promise.reject(failure("NotFoundError", name));
  }

  async getFileHandle(name: string, { create = false } = {}): Promise<OpenableFile> {
    if ((await this.index(name)) === undefined) {
      if (!create) throw failure("NotFoundError", name);
      await this.putIndex(name, { sizeBytes: 0, partBytes: this.#partBytes });
    }
    return new CacheApiFile(this, name);
  }

  async removeEntry(name: string): Promise<void> {
    const release = await lockNow(lockName(this.cacheName, name));
    if (release === undefined) throw failure("NoModificationAllowedError", `${name} is open`);
    try {
      // The index and all parts at once.
      const isRemoved = await this.#delete(indexUrl(name), { ignoreSearch: true });
      if (!isRemoved) throw failure("NotFoundError", name);
    } finally {
      await release();
    }
  }

  async *keys(): AsyncIterable<string> {
    // Opening a cache would create it.
    if (!(await stored(caches.has(this.cacheName)))) return;
    const cache = await stored(caches.open(this.cacheName));
    for (const { url } of await stored(cache.keys())) {
      const { pathname, search } = new URL(url);
      if (search === "") yield decodeURIComponent(pathname.slice(1));
    }
  }

  async *entries(): AsyncIterable<[string, { readonly kind: "file" }]> {
    for await (const name of this.keys()) yield [name, { kind: "file" }];
  }

  /** Undefined if there is no such file, or its index is damaged. */
  async index(name: string): Promise<Index | undefined> {
    const response = await this.#match(indexUrl(name));
    const bytes = response && (await stored(response.arrayBuffer()));
    return bytes && parsedIndex(new TextDecoder().decode(bytes));
  }

  async putIndex(name: string, index: Index): Promise<void> {
    await this.#put(indexUrl(name), JSON.stringify(index));
  }

  /** Undefined if the storage has lost the part. */
  async part(name: string, part: number): Promise<ArrayBuffer | undefined> {
    const response = await this.#match(partUrl(name, part));
    return response && stored(response.arrayBuffer());
  }

  async putPart(name: string, part: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#put(partUrl(name, part), bytes);
  }

  /** False if there is no such part. */
  deletePart(name: string, part: number): Promise<boolean> {
    return this.#delete(partUrl(name, part));
  }

  #match(url: string): Promise<Response | undefined> {
    return stored(caches.match(url, { cacheName: this.cacheName }));
  }

  async #put(url: string, content: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const cache = await stored(caches.open(this.cacheName));
    await stored(cache.put(url, new Response(content)));
  }

  async #delete(url: string, options: CacheQueryOptions = {}): Promise<boolean> {
    const cache = await stored(caches.open(this.cacheName));
    return stored(cache.delete(url, options));
  }
}

function parsedIndex(text: string): Index | undefined {
  try {
    const index = JSON.parse(text) as Index;
    const isGood = Number.isInteger(index.partBytes) && index.partBytes > 0 && index.sizeBytes >= 0;
    return isGood && Number.isInteger(index.sizeBytes) ? index : undefined;
  } catch {
    return undefined;
  }
}

class CacheApiFile implements OpenableFile {
  readonly kind = "file";
  #folder: CacheApiFolder;
  #name: string;

  constructor(folder: CacheApiFolder, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  async getFile(): Promise<Snapshot> {
    const index = await this.#index();
    const parts = new PartReader(this.#folder, this.#name, index.partBytes);
    return new CacheApiSnapshot(parts, 0, index.sizeBytes);
  }

  async open(): Promise<FileAccess> {
    const release = await lockNow(lockName(this.#folder.cacheName, this.#name));
    if (release === undefined) {
      throw failure("NoModificationAllowedError", `${this.#name} is open`);
    }
    try {
      return new CacheApiAccess(this.#folder, this.#name, await this.#index(), release);
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #index(): Promise<Index> {
    const index = await this.#folder.index(this.#name);
    if (index === undefined) throw failure("NotFoundError", this.#name);
    return index;
  }
}

/** Reads parts of one file. Keeps the last one, because small reads follow one another. */
class PartReader {
  readonly partBytes: number;
  #folder: CacheApiFolder;
  #name: string;
  #last: { part: number; content: Promise<ArrayBuffer | undefined> } | undefined;

  constructor(folder: CacheApiFolder, name: string, partBytes: number) {
    this.#folder = folder;
    this.#name = name;
    this.partBytes = partBytes;
  }

  /** The bytes from `start` to `end`, or to the first one that is missing. */
  async read(start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const { partBytes } = this;
    const bytes = new Uint8Array(Math.max(0, end - start));
    for (let at = start; at < end; ) {
      const part = Math.floor(at / partBytes);
      const first = at - part * partBytes;
      const last = Math.min(partBytes, end - part * partBytes);
      const piece = new Uint8Array((await this.#content(part)) ?? []).subarray(first, last);
      bytes.set(piece, at - start);
      at += piece.length;
      if (piece.length < last - first) return bytes.slice(0, at - start);
    }
    return bytes;
  }

  #content(part: number): Promise<ArrayBuffer | undefined> {
    if (this.#last?.part !== part) {
      this.#last = { part, content: this.#folder.part(this.#name, part) };
    }
    return this.#last.content;
  }
}

class CacheApiSnapshot implements Snapshot {
  #parts: PartReader;
  #start: number;
  #end: number;

  constructor(parts: PartReader, start: number, end: number) {
    this.#parts = parts;
    this.#start = start;
    this.#end = end;
  }

  get size(): number {
    return this.#end - this.#start;
  }

  slice(start: number, end: number): Snapshot {
    const at = (offset: number) => Math.min(this.#end, this.#start + offset);
    return new CacheApiSnapshot(this.#parts, at(start), at(end));
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.#parts.read(this.#start, this.#end)).buffer;
  }

  async text(): Promise<string> {
    return new TextDecoder().decode(await this.arrayBuffer());
  }
}

class CacheApiAccess implements FileAccess {
  #folder: CacheApiFolder;
  #name: string;
  #index: Index;
  #release: () => Promise<void>;
  #isOpen = true;

  constructor(folder: CacheApiFolder, name: string, index: Index, release: () => Promise<void>) {
    this.#folder = folder;
    this.#name = name;
    this.#index = index;
    this.#release = release;
  }

  async write(bytes: Uint8Array<ArrayBuffer>, { at }: { at: number }): Promise<number> {
    this.#check();
    const { partBytes } = this.#index;
    const end = at + bytes.length;
    for (let offset = at; offset < end; ) {
      const part = Math.floor(offset / partBytes);
      const stop = Math.min(end, (part + 1) * partBytes);
      await this.#writePart(part, offset, bytes.subarray(offset - at, stop - at));
      offset = stop;
    }
    if (end > this.#index.sizeBytes) await this.#resize(end);
    return bytes.length;
  }

  async read(bytes: Uint8Array<ArrayBuffer>, { at }: { at: number }): Promise<number> {
    this.#check();
    const { sizeBytes, partBytes } = this.#index;
    const end = Math.min(at + bytes.length, sizeBytes);
    const found = await new PartReader(this.#folder, this.#name, partBytes).read(at, end);
    bytes.set(found);
    return found.length;
  }

  async truncate(sizeBytes: number): Promise<void> {
    this.#check();
    if (sizeBytes < this.#index.sizeBytes) await this.#resize(sizeBytes);
    // Bytes beyond the size within a part are never read; whole parts take space.
    let part = Math.ceil(sizeBytes / this.#index.partBytes);
    while (await this.#folder.deletePart(this.#name, part)) part += 1;
  }

  getSize(): number {
    return this.#index.sizeBytes;
  }

  /** A response is stored when `put` resolves. */
  flush(): void {
    this.#check();
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#release();
  }

  /** Replaces bytes of one part from `at` on; what was there around them stays. */
  async #writePart(part: number, at: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const { sizeBytes, partBytes } = this.#index;
    const start = part * partBytes;
    const keptBytes = Math.min(partBytes, Math.max(0, sizeBytes - start));
    const end = at - start + bytes.length;
    let content = bytes;
    if (at > start || end < keptBytes) {
      content = new Uint8Array(Math.max(keptBytes, end));
      const parts = new PartReader(this.#folder, this.#name, partBytes);
      content.set(await parts.read(start, start + keptBytes));
      content.set(bytes, at - start);
    }
    await this.#folder.putPart(this.#name, part, content);
  }

  async #resize(sizeBytes: number): Promise<void> {
    this.#index = { ...this.#index, sizeBytes };
    await this.#folder.putIndex(this.#name, this.#index);
  }

  #check(): void {
    if (!this.#isOpen) throw failure("InvalidStateError", `${this.#name} is closed`);
  }
}

/** The Web Lock of an open file. A tab that ends releases it, a frozen one does not, as with a handle of OPFS. */
const lockName = (cacheName: string, file: string) => `inpage-file ${cacheName}/${file}`;

/** Takes a lock if it is free. Gives the function that releases it. */
function lockNow(name: string): Promise<(() => Promise<void>) | undefined> {
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) {
        resolve(undefined);
        return undefined;
      }
      return new Promise<void>((end) => {
        resolve(() => {
          end();
          return held.then(() => {});
        });
      });
    });
    held.catch(reject);
  });
}
