//! A folder on disk with the part of the interface of the origin private file system that the cache uses.

import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
  constants,
} from "node:fs";
import { mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SyncAccessHandle } from "../worker_scopes.js";
import { readRange } from "./disk_file.js";

/** The names of the errors that browsers report. */
const FAILURES: Record<string, string> = {
  ENOENT: "NotFoundError",
  ENOSPC: "QuotaExceededError",
  EDQUOT: "QuotaExceededError",
  EACCES: "NoModificationAllowedError",
  EPERM: "NoModificationAllowedError",
  EROFS: "NoModificationAllowedError",
  EBUSY: "NoModificationAllowedError",
};

function asBrowserFailure(error: unknown): DOMException {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return new DOMException(message, FAILURES[code] ?? "UnknownError");
}

const failing = <T>(result: Promise<T>): Promise<T> =>
  result.catch((error: unknown) => {
    throw asBrowserFailure(error);
  });

function failingSync<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw asBrowserFailure(error);
  }
}

interface Create {
  create?: boolean;
}

export class DiskFolder {
  readonly kind = "directory";
  #path: string;

  /** The folder must exist. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The folder as the code of the cache sees it. */
  get handle(): FileSystemDirectoryHandle {
    return this as unknown as FileSystemDirectoryHandle;
  }

  async getDirectoryHandle(name: string, { create = false }: Create = {}): Promise<DiskFolder> {
    const path = join(this.#path, name);
    if (create) await failing(mkdir(path, { recursive: true }));
    else await failing(stat(path));
    return new DiskFolder(path);
  }

  async getFileHandle(name: string, { create = false }: Create = {}): Promise<DiskFile> {
    const path = join(this.#path, name);
    if (create) await failing(open(path, "a").then((file) => file.close()));
    else await failing(stat(path));
    return new DiskFile(path);
  }

  async removeEntry(name: string, { recursive = false }: { recursive?: boolean } = {}) {
    await failing(rm(join(this.#path, name), { recursive }));
  }

  async *keys(): AsyncGenerator<string> {
    for (const name of await failing(readdir(this.#path))) yield name;
  }

  async *entries(): AsyncGenerator<[string, DiskFolder | DiskFile]> {
    const found = await failing(readdir(this.#path, { withFileTypes: true }));
    for (const entry of found) {
      const path = join(this.#path, entry.name);
      yield [entry.name, entry.isDirectory() ? new DiskFolder(path) : new DiskFile(path)];
    }
  }
}

class DiskFile {
  readonly kind = "file";
  #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async getFile(): Promise<DiskBlob> {
    const { size } = await failing(stat(this.#path));
    return new DiskBlob(this.#path, 0, size);
  }

  async createSyncAccessHandle(): Promise<SyncAccessHandle> {
    return new DiskHandle(this.#path);
  }
}

/** A part of a file, read when its bytes are requested. */
class DiskBlob {
  readonly size: number;
  #path: string;
  #start: number;

  constructor(path: string, start: number, end: number) {
    this.#path = path;
    this.#start = start;
    this.size = Math.max(0, end - start);
  }

  slice(start: number, end: number): DiskBlob {
    const from = Math.min(start, this.size);
    return new DiskBlob(this.#path, this.#start + from, this.#start + Math.min(end, this.size));
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await failing(readRange(this.#path, this.#start, this.size));
    return bytes.length === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer;
  }

  async text(): Promise<string> {
    return failing(readFile(this.#path, "utf8"));
  }
}

/** One writer of a file at a time; the locks of the cache see to that. */
class DiskHandle implements SyncAccessHandle {
  #file: number;

  constructor(path: string) {
    this.#file = failingSync(() => openSync(path, constants.O_RDWR | constants.O_CREAT));
  }

  write(bytes: Uint8Array, { at }: { at: number }): number {
    let written = 0;
    try {
      while (written < bytes.length) {
        written += writeSync(this.#file, bytes, written, bytes.length - written, at + written);
      }
    } catch (error) {
      const failure = asBrowserFailure(error);
      // As in a browser, a full storage takes less than it was given.
      if (failure.name !== "QuotaExceededError") throw failure;
    }
    return written;
  }

  read(bytes: Uint8Array, { at }: { at: number }): number {
    return failingSync(() => {
      let filled = 0;
      while (filled < bytes.length) {
        const count = readSync(this.#file, bytes, filled, bytes.length - filled, at + filled);
        if (count === 0) break;
        filled += count;
      }
      return filled;
    });
  }

  truncate(size: number): void {
    failingSync(() => ftruncateSync(this.#file, size));
  }

  getSize(): number {
    return failingSync(() => fstatSync(this.#file).size);
  }

  flush(): void {
    failingSync(() => fdatasyncSync(this.#file));
  }

  close(): void {
    failingSync(() => closeSync(this.#file));
  }
}
