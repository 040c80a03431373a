//! The part of a file system that the cache needs. The origin private file system (OPFS) provides it; `cache_api_files.ts` provides it on
//! top of the Cache API. Knows nothing of models.

import type { SyncAccessFile } from "../../worker_scopes.js";

type MaybePromise<T> = T | Promise<T>;

/** The bytes of a file at one time. Reading fails, or gives fewer bytes, if they are gone. */
export interface Snapshot {
  readonly size: number;
  slice(start: number, end: number): Snapshot;
  arrayBuffer(): Promise<ArrayBuffer>;
  text(): Promise<string>;
}

/** A file that can be read on every thread, also while another tab writes it. */
export interface StoredFile {
  readonly kind: "file";
  getFile(): Promise<Snapshot>;
}

/** Failures are DOMExceptions with the names that OPFS uses. */
export interface Folder {
  readonly kind: "directory";
  getDirectoryHandle(name: string, options?: { create?: boolean }): Promise<Folder>;
  getFileHandle(name: string, options?: { create?: boolean }): Promise<StoredFile>;
  removeEntry(name: string, options?: { recursive?: boolean }): Promise<void>;
  keys(): AsyncIterable<string>;
  entries(): AsyncIterable<[string, { readonly kind: "file" | "directory" }]>;
}

/** Writes one file. No other tab can open the file for writing until `close`. OPFS answers at once, the Cache API later. */
export interface FileAccess {
  /** The number of bytes that were written; fewer than given if the storage is full. */
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): MaybePromise<number>;
  read(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): MaybePromise<number>;
  truncate(sizeBytes: number): MaybePromise<void>;
  getSize(): MaybePromise<number>;
  flush(): MaybePromise<void>;
  close(): MaybePromise<void>;
}

/** A file that is opened for writing without a handle of OPFS. */
export interface OpenableFile extends StoredFile {
  open(): Promise<FileAccess>;
}

/**
 * Opens a file for writing; only in workers.
 *
 * @throws DOMException named `NoModificationAllowedError` if it is open already, in this or another tab
 */
export function openForWriting(file: StoredFile): Promise<FileAccess> {
  if ("open" in file) return (file as OpenableFile).open();
  return (file as StoredFile & SyncAccessFile).createSyncAccessHandle();
}
