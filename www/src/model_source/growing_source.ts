//! A model file that is still being stored: a read waits for its bytes. Knows neither the network nor
//! where the bytes are kept.

import { type ModelSource, checkRange } from "./source.js";

/** Bytes that have arrived, read back at once. */
export type ReadArrived = (offset: number, length: number) => Uint8Array<ArrayBuffer>;

export class GrowingSource implements ModelSource {
  readonly size: number;
  #readArrived: ReadArrived;
  #arrivedBytes = 0;
  #waiting: { endBytes: number; arrived: () => void }[] = [];
  /** What serves all reads once the bytes are where they stay; rejects when they will not come. */
  #settled: Promise<ModelSource> | undefined;

  constructor(size: number, readArrived: ReadArrived) {
    this.size = size;
    this.#readArrived = readArrived;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRange(this, offset, length);
    if (this.#settled === undefined) await this.#arrival(offset + length);
    // It may have been settled while this read waited.
    if (this.#settled === undefined) return this.#readArrived(offset, length);
    return (await this.#settled).read(offset, length);
  }

  /** That many bytes from the start can be read now. */
  grow(arrivedBytes: number): void {
    this.#arrivedBytes = arrivedBytes;
    this.#wake((endBytes) => endBytes <= arrivedBytes);
  }

  /** From now on `source` serves the reads, also those that wait. `ReadArrived` is not called again. */
  settle(source: Promise<ModelSource>): void {
    this.#settled = source;
    // Nobody may be reading when it fails.
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
