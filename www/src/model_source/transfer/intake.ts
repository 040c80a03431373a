//! Takes the bytes of a file as they arrive, in chunks: hashes each chunk, stores it, and lets it be read at once. Bytes
//! that arrive a second time, because a server cannot resume, are compared with the earlier ones, so that two versions
//! are never joined.

import type { ChunkStore } from "../store/chunk_store.js";
import { isStorageFailure } from "../store/failure.js";
import { type CreateHasher, type Hasher, sameBytes, sha256 } from "../store/hash.js";
import { type Sink, changed } from "./transfer.js";
import type { FileVersion } from "../store/version.js";

export interface IntakeOptions {
  url: string;
  chunkBytes: number;
  store: ChunkStore;
  /** Keeps what `store` has no space for. */
  spare?: ChunkStore;
  /** Called when `spare` is used for the first time. */
  onSpare?: (failure: DOMException) => void;
  /** Creates the hash of the whole file, if one is expected. */
  createHasher?: (() => Promise<Hasher | undefined>) | undefined;
  /** Called when an answer begins and when bytes have arrived. */
  onArrived: () => void;
}

export class Intake implements Sink {
  #options: IntakeOptions;
  #version: FileVersion | undefined;
  /** The hashes of the stored chunks. */
  #hashes: Uint8Array<ArrayBuffer>[] = [];
  /** The chunk that is being filled. */
  #buffer: Uint8Array<ArrayBuffer>;
  #position = 0;
  /** The part of the next chunk that had arrived before the bytes came a second time. */
  #held: Uint8Array<ArrayBuffer> | undefined;
  /** Chunks from here on are in the spare store. */
  #spareFrom = Number.POSITIVE_INFINITY;
  #readableBytes = 0;
  #isExposed = false;
  #isReleased = false;
  /** Bytes up to here were read. */
  #readBytes = 0;
  /** The hash of the first `#hasherChunks` chunks. */
  #hasher: Hasher | undefined;
  #hasherChunks = 0;
  /** The version that the store knows. */
  #described: FileVersion | undefined;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#buffer = new Uint8Array(options.chunkBytes);
  }

  get position(): number {
    return this.#position;
  }

  /** Other tabs may write what is stored after this call. */
  release(): void {
    this.#isReleased = true;
  }

  /** The file must keep its size after this call. */
  expose(): void {
    this.#isExposed = true;
  }

  /** Bytes from the start that can be read. */
  get readableBytes(): number {
    return this.#readableBytes;
  }

  get version(): FileVersion | undefined {
    return this.#version;
  }

  get hashes(): readonly Uint8Array<ArrayBuffer>[] {
    return this.#hashes;
  }

  /** True if some chunks are in the spare store. */
  get usesSpare(): boolean {
    return this.#spareFrom < this.#hashes.length;
  }

  /** Continues with chunks that are in the store already. */
  async resume(
    hashes: readonly Uint8Array<ArrayBuffer>[],
    version: FileVersion,
    signal: AbortSignal,
  ): Promise<void> {
    const { chunkBytes, store } = this.#options;
    this.#version = version;
    for (const [index, hash] of hashes.entries()) {
      signal.throwIfAborted();
      const bytes = await store.read(index, 0, chunkBytes);
      if (!sameBytes(await sha256(bytes), hash)) break;
      this.#hashes.push(hash);
      await this.#addToWhole(index, bytes);
    }
    await store.truncate(this.#hashes.length);
    this.#position = this.#hashes.length * chunkBytes;
    this.#described = version;
  }

  begin(startBytes: number, version: FileVersion): void {
    const before = this.#version;
    const { url } = this.#options;
    if (before !== undefined && startBytes === 0 && this.#position > 0) {
      const sizeBytes = version.sizeBytes ?? before.sizeBytes;
      if (sizeBytes !== before.sizeBytes && this.#isExposed) throw changed(url);
      if (this.#chunk >= this.#hashes.length) this.#held ??= this.#buffer.slice(0, this.#fill);
      this.#position = 0;
    }
    // A server that continues without repeating the size has not changed it.
    const keepsSize = startBytes > 0 || this.#isExposed;
    const sizeBytes = version.sizeBytes ?? (keepsSize ? before?.sizeBytes : undefined);
    this.#version = { ...version, sizeBytes };
    this.#arrived();
  }

  async accept(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const { chunkBytes } = this.#options;
    for (let offset = 0; offset < bytes.length; ) {
      const start = this.#fill;
      const piece = bytes.subarray(offset, offset + chunkBytes - start);
      this.#buffer.set(piece, start);
      offset += piece.length;
      if (start + piece.length === chunkBytes) await this.#complete(this.#buffer);
      // The position advances only now: while a chunk is hashed, it is read from the buffer's old position.
      this.#position += piece.length;
      this.#arrived();
    }
  }

  /** Stores the last chunk. */
  async finish(): Promise<void> {
    const isShort = this.#fill > 0;
    if (isShort) await this.#complete(this.#buffer.subarray(0, this.#fill));
    const { url, chunkBytes } = this.#options;
    const sizeBytes = this.#version?.sizeBytes ?? this.#position;
    if (this.#position !== sizeBytes) throw changed(url);
    const chunks = Math.ceil(this.#position / chunkBytes);
    if (chunks < this.#hashes.length || this.#held !== undefined) await this.#diverge(chunks);
    this.#arrived();
  }

  /** Bytes that have arrived. */
  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    this.#readBytes = Math.max(this.#readBytes, offset + length);
    const { chunkBytes } = this.#options;
    const bytes = new Uint8Array(length);
    for (let at = offset; at < offset + length; ) {
      const index = Math.floor(at / chunkBytes);
      const start = at - index * chunkBytes;
      const end = Math.min(chunkBytes, offset + length - index * chunkBytes);
      bytes.set(await this.#readChunk(index, start, end), at - offset);
      at += end - start;
    }
    return bytes;
  }

  /** The hash of the whole file, once it has arrived. */
  async wholeHash(createHasher: CreateHasher): Promise<string> {
    if (this.#hasher !== undefined && this.#hasherChunks === this.#hashes.length) {
      return this.#hasher.finish();
    }
    const { chunkBytes } = this.#options;
    const hasher = await createHasher();
    for (let offset = 0; offset < this.#position; offset += chunkBytes) {
      hasher.update(await this.read(offset, Math.min(chunkBytes, this.#position - offset)));
    }
    return hasher.finish();
  }

  /** Index of the chunk that is being filled. */
  get #chunk(): number {
    return Math.floor(this.#position / this.#options.chunkBytes);
  }

  get #fill(): number {
    return this.#position % this.#options.chunkBytes;
  }

  #arrived(): void {
    // While bytes arrive a second time, nothing after them is readable until they are known to be the same.
    if (this.#held === undefined) {
      this.#readableBytes = Math.max(this.#readableBytes, this.#position);
    }
    this.#options.onArrived();
  }

  /** The chunk that is being filled is whole: stores it, or compares it with the stored one. */
  async #complete(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const index = this.#chunk;
    const hash = await sha256(bytes);
    const stored = this.#hashes[index];
    if (stored !== undefined) {
      if (sameBytes(stored, hash)) return;
      await this.#diverge(index);
    } else if (this.#held !== undefined) {
      const { length } = this.#held;
      if (!sameBytes(this.#held, bytes.subarray(0, length))) await this.#diverge(index);
    }
    this.#held = undefined;
    await this.#put(index, bytes, hash);
    this.#hashes.push(hash);
    await this.#addToWhole(index, bytes);
  }

  /** The bytes that came a second time differ from this chunk on. */
  async #diverge(index: number): Promise<void> {
    const { url, chunkBytes, store, spare, onArrived } = this.#options;
    if (this.#readBytes > index * chunkBytes) throw changed(url);
    // Nothing of the other version may be read from now on, also while it is being dropped.
    this.#hashes.length = index;
    this.#held = undefined;
    this.#readableBytes = Math.min(this.#readableBytes, index * chunkBytes);
    onArrived();
    // A hash cannot go back: the file is read again at its end.
    if (this.#hasherChunks > index) this.#hasher = undefined;
    await store.truncate(Math.min(index, this.#spareFrom));
    await spare?.truncate(index);
  }

  async #addToWhole(index: number, bytes: Uint8Array): Promise<void> {
    if (index === 0) {
      this.#hasher = await this.#options.createHasher?.();
      this.#hasherChunks = 0;
    }
    if (this.#hasher === undefined || this.#hasherChunks !== index) return;
    this.#hasher.update(bytes);
    this.#hasherChunks += 1;
  }

  async #put(
    index: number,
    bytes: Uint8Array<ArrayBuffer>,
    hash: Uint8Array<ArrayBuffer>,
  ): Promise<void> {
    const { store, spare, onSpare } = this.#options;
    const version = this.#version;
    if (index < this.#spareFrom) {
      try {
        if (version !== undefined && version !== this.#described) await store.describe?.(version);
        this.#described = version;
        await store.put(index, bytes, hash);
        return;
      } catch (error) {
        if (spare === undefined || !isStorageFailure(error)) throw error;
        this.#spareFrom = index;
        onSpare?.(error);
      }
    }
    await spare?.put(index, bytes, hash);
  }

  async #readChunk(index: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const { store, spare, url } = this.#options;
    if (index < this.#hashes.length) {
      if (index >= this.#spareFrom && spare !== undefined) return spare.read(index, start, end);
      if (this.#isReleased) return this.#readReleased(index, start, end);
      return store.read(index, start, end).catch((error: unknown) => {
        if (!isStorageFailure(error)) throw error;
        throw new TypeError(
          `the stored part of ${url} cannot be read any more (${error.message}): load the model again`,
        );
      });
    }
    const isHeld = this.#held !== undefined && end <= this.#held.length;
    const bytes = isHeld ? (this.#held as Uint8Array<ArrayBuffer>) : this.#buffer;
    return bytes.slice(start, end);
  }

  /** Another tab may have changed or removed what this one has stored. */
  async #readReleased(index: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const { store, url, chunkBytes } = this.#options;
    const length = Math.min(chunkBytes, this.#position - index * chunkBytes);
    const bytes = await store.read(index, 0, length).catch((error: unknown) => {
      if (isStorageFailure(error)) return new Uint8Array();
      throw error;
    });
    if (sameBytes(await sha256(bytes), this.#hashes[index] ?? bytes))
      return bytes.slice(start, end);
    throw new TypeError(`the stored part of ${url} is gone: load the model again`);
  }
}
