//! A file as its reader sees it: readable while it arrives, also when another tab takes over the download in the meantime.

import { GrowingSource } from "./growing.js";
import { sameBytes } from "../store/hash.js";
import type { Intake } from "../transfer/intake.js";
import type { ModelSource } from "../../byte_source.js";
import { changed } from "../transfer/transfer.js";
import type { Context } from "../transfer/url_file.js";

export class Arrival {
  #context: Context;
  #onSource: (source: ModelSource) => void;
  #growing: GrowingSource | undefined;
  /** The data that was read so far. */
  #intake: Intake | undefined;

  /** @param onSource called once, as soon as the file can be read */
  constructor(context: Context, onSource: (source: ModelSource) => void) {
    this.#context = context;
    this.#onSource = onSource;
  }

  /** More bytes have arrived. Only the first intake can be read: later ones may be of another version. */
  grow(intake: Intake): void {
    const sizeBytes = intake.version?.sizeBytes;
    if (this.#context.verifiesFirst) return;
    // A file of unknown size can be read only when it is complete.
    if (sizeBytes === undefined || (this.#intake ?? intake) !== intake) return;
    if (this.#growing === undefined) {
      this.#intake = intake;
      intake.expose();
      this.#growing = new GrowingSource(sizeBytes, (offset, length) => intake.read(offset, length));
      this.#onSource(this.#growing);
    }
    // A model must not be complete before its hash is verified, and not ready before it is stored: a tab that is closed as
    // soon as the model is ready would lose its last chunk, and the next visit would need the network. So the last byte waits.
    this.#growing.grow(Math.max(0, Math.min(sizeBytes - 1, intake.readableBytes)));
  }

  /** The file is complete; `intake` is where it came from, if this tab has downloaded it. */
  finish(source: ModelSource, intake?: Intake): void {
    if (this.#growing === undefined) {
      this.#onSource(source);
    } else {
      const isSame = intake !== undefined && intake === this.#intake;
      this.#growing.settle(isSame ? Promise.resolve(source) : this.#compared(source));
    }
  }

  fail(error: unknown): void {
    this.#growing?.settle(Promise.reject(error));
  }

  /** `source`, if it begins with the bytes that were already read. */
  async #compared(source: ModelSource): Promise<ModelSource> {
    const { file, chunkBytes } = this.#context;
    const intake = this.#intake;
    if (source.size !== this.#growing?.size) throw changed(file.url);
    const readableBytes = intake?.readableBytes ?? 0;
    for (let offset = 0; offset < readableBytes; offset += chunkBytes) {
      const length = Math.min(chunkBytes, readableBytes - offset);
      const [before, now] = [await intake?.read(offset, length), await source.read(offset, length)];
      if (before === undefined || !sameBytes(before, now)) throw changed(file.url);
    }
    return source;
  }
}
