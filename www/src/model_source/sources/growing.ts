//! A model file that is still being downloaded: a read waits until its bytes have arrived.

import { type ModelSource, checkRange } from "../../byte_source.js";

/** Reads bytes that have arrived. */
export type ReadArrived = (offset: number, length: number) => Promise<Uint8Array<ArrayBuffer>>;

export class GrowingSource implements ModelSource {
  readonly size: number;
  #readArrived: ReadArrived;
  #arrivedBytes = 0;
  #waiting: { endBytes: number; arrived: () => void }[] = [];
  /** The source of all reads after the download; rejects if the download failed. */
  #settled: Promise<ModelSource> | undefined;

  constructor(size: number, readArrived: ReadArrived) {
    this.size = size;
    this.#readArrived = readArrived;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRange(this, offset, length);
    if (this.#settled === undefined) await this.#arrival(offset + length);
    // `settle` may have been called while this read waited.
    if (this.#settled === undefined) return this.#readArrived(offset, length);
    return (await this.#settled).read(offset, length);
  }

  /** The first `arrivedBytes` bytes can be read now. */
  grow(arrivedBytes: number): void {
    this.#arrivedBytes = arrivedBytes;
    this.#wake((endBytes) => endBytes <= arrivedBytes);
  }

  /** From now on `source` serves all reads, also the waiting ones. `ReadArrived` is not called again. */
  settle(source: Promise<ModelSource>): void {
    this.#settled = source;
    // A failure while nobody reads must not be reported as an unhandled rejection.
    source.catch(() => {});
    this.#wake(() => true);
  }

  #arrival(endBytes: number): Promise<void> {
    if (endBytes <= this.#arrivedBytes) return Promise.resolve();
    return new Promise((arrived) => this.#waiting.push({ endBytes, arrived }));
  }

  #wake(isReady: (endBytes: number) => boolean): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ endBytes }) => !isReady(endBytes));
    for (const { endBytes, arrived } of waiting) if (isReady(endBytes)) arrived();
  }
}
