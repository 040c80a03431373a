//! The places that keep the chunks of a file while it arrives: the cache (`version_writer.ts`) or Blobs.

import type { FileVersion } from "./version.js";

/** A store of chunks, which are put in order. */
export interface ChunkStore {
  /** @throws DOMException if there is no space; then nothing of the chunk is kept */
  put(
    index: number,
    bytes: Uint8Array<ArrayBuffer>,
    hash: Uint8Array<ArrayBuffer>,
  ): void | Promise<void>;
  read(index: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Drops all chunks from this one on. */
  truncate(chunks: number): void | Promise<void>;
  /** The next chunks belong to this version, and so do the stored ones. */
  describe?(version: FileVersion): void | Promise<void>;
}

/** Keeps chunks outside of wasm memory; the browser may move them to its disk. */
export class BlobStore implements ChunkStore {
  #blobs: Blob[] = [];

  put(index: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#blobs[index] = new Blob([bytes]);
  }

  async read(index: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const blob = this.#blobs[index] ?? new Blob();
    return new Uint8Array(await blob.slice(start, end).arrayBuffer());
  }

  truncate(chunks: number): void {
    this.#blobs.length = Math.min(this.#blobs.length, chunks);
  }
}
