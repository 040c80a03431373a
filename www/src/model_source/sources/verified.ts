//! A stored file whose chunks are compared with their hashes when they are first read. A chunk that is damaged is fetched again, alone.

import { messageOf } from "../../exchange/error_response.js";
import type { StoredVersion } from "../store/cache_layout.js";
import { NoRanges, isStorageFailure } from "../store/failure.js";
import { sameBytes, sha256 } from "../store/hash.js";
import type { Snapshot } from "../store/file_system.js";
import type { CacheEntry } from "../store/entry.js";
import { PartSink } from "./ranges.js";
import { type ModelSource, checkRange } from "../../byte_source.js";
import { type Transfer, transfer } from "../transfer/transfer.js";

export interface Stored {
  store: CacheEntry;
  version: StoredVersion;
  hashes: Uint8Array<ArrayBuffer>[];
  /** The way to the server for a repair. */
  job: Transfer;
  /** Called after a repair. */
  onRepair: (message: string) => void;
}

export class VerifiedSource implements ModelSource {
  readonly size: number;
  #stored: Stored;
  #file: Promise<Snapshot>;
  /** Chunks that were found good. */
  #good = new Set<number>();
  /** Chunks that are being checked. */
  #checks = new Map<number, Promise<Uint8Array<ArrayBuffer>>>();

  /** @param isFresh the chunks were hashed a moment ago */
  constructor(stored: Stored, isFresh = false) {
    this.#stored = stored;
    this.size = stored.version.note.sizeBytes ?? 0;
    this.#file = this.#open();
    if (isFresh) this.#good = new Set(stored.hashes.keys());
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRange(this, offset, length);
    const { chunkBytes } = this.#stored.version.note;
    const bytes = new Uint8Array(length);
    const end = offset + length;
    for (let at = offset; at < end; ) {
      const index = Math.floor(at / chunkBytes);
      const start = index * chunkBytes;
      const stop = Math.min(start + chunkBytes, end);
      const isGood = this.#good.has(index);
      const piece = isGood
        ? await this.#raw(at, stop)
        : (await this.#check(index)).subarray(at - start, stop - start);
      bytes.set(piece, at - offset);
      at = stop;
    }
    return bytes;
  }

  #open(): Promise<Snapshot> {
    const { store, version } = this.#stored;
    const file = store.data(version.number);
    file.catch(() => {});
    return file;
  }

  /**
   * The stored bytes; the file is opened again if another tab has repaired it in the meantime.
   *
   * @param mayBeShort bytes that the storage has lost are left out
   */
  async #raw(start: number, end: number, mayBeShort = false): Promise<Uint8Array<ArrayBuffer>> {
    const slice = async (isEnough: boolean) => {
      const bytes = await (await this.#file).slice(start, end).arrayBuffer();
      if (isEnough || bytes.byteLength === end - start) return new Uint8Array(bytes);
      throw new DOMException("the file is shorter than it was", "NotReadableError");
    };
    try {
      return await slice(false).catch((error: unknown) => {
        if (!isStorageFailure(error)) throw error;
        this.#file = this.#open();
        return slice(mayBeShort);
      });
    } catch (error) {
      const { url } = this.#stored.job;
      throw new TypeError(
        `the stored copy of ${url} cannot be read any more (${messageOf(error)}): load the model again`,
      );
    }
  }

  /** A whole chunk whose hash is right. */
  #check(index: number): Promise<Uint8Array<ArrayBuffer>> {
    let check = this.#checks.get(index);
    if (check === undefined) {
      check = this.#checked(index).finally(() => this.#checks.delete(index));
      this.#checks.set(index, check);
    }
    return check;
  }

  async #checked(index: number): Promise<Uint8Array<ArrayBuffer>> {
    const { chunkBytes } = this.#stored.version.note;
    const start = index * chunkBytes;
    let bytes = await this.#raw(start, Math.min(start + chunkBytes, this.size), true);
    const hash = this.#stored.hashes[index] ?? new Uint8Array();
    if (!sameBytes(await sha256(bytes), hash)) bytes = await this.#repair(index, bytes, hash);
    this.#good.add(index);
    return bytes;
  }

  async #repair(
    index: number,
    damaged: Uint8Array<ArrayBuffer>,
    hash: Uint8Array<ArrayBuffer>,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { store, version, job, onRepair } = this.#stored;
    const start = index * version.note.chunkBytes;
    const end = Math.min(start + version.note.chunkBytes, this.size);
    const where = `the stored copy of ${job.url} is damaged (bytes ${start} to ${end - 1})`;
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = await fetchPart(job, start, end);
    } catch (error) {
      job.signal.throwIfAborted();
      throw new TypeError(`${where} and could not be repaired: ${messageOf(error)}`);
    }
    const fetchedHash = await sha256(bytes);
    // If the server has the same bytes as the storage, the stored hash was damaged.
    if (!sameBytes(fetchedHash, hash) && !sameBytes(bytes, damaged)) {
      await store.remove(version.number);
      throw new TypeError(
        `${where}, and the server has another version now: load the model again to download it`,
      );
    }
    // The bytes are good in any case: if they cannot be stored, the next load repairs again.
    await store.mend(version, index, bytes, fetchedHash).catch(() => {});
    this.#file = this.#open();
    onRepair(`${where}; it was fetched again`);
    return bytes;
  }
}

/** Bytes of a file whose hash is known: the caller checks them, so that any version will do. */
async function fetchPart(
  job: Transfer,
  startBytes: number,
  endBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const sink = new PartSink(startBytes, endBytes);
  try {
    await transfer({ ...job, endBytes }, sink);
  } catch (error) {
    if (!(error instanceof NoRanges)) throw error;
    const part = new PartSink(startBytes, endBytes);
    part.position = 0;
    await transfer(job, part);
    if (part.position < endBytes) throw new TypeError(`${job.url} has become shorter`);
    return part.bytes;
  }
  return sink.bytes;
}
