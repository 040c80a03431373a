//! The choice of the GPU's kernels from an earlier visit, over one load: it is read, renewed when the engine has
//! found out something else, and dropped when the load fails. The format is `model_source/store/kernel_note.ts`'s.

import type { StartOptions } from "../exchange/protocol.js";
import { readKernels, removeKernels, writeKernels } from "../model_source/store/kernel_note.js";
import { firstKey } from "../model_source/sources/named_files.js";

export class KeptKernels {
  /** The kept string; undefined if there is none, and for an engine that takes over: the device may be to blame. */
  readonly text: Promise<string | undefined>;
  /** The cache key of the model's first file; undefined if nothing is kept. */
  #key: string | undefined;

  constructor({ model, kernels }: StartOptions) {
    this.#key = model.kind === "url" && model.cache ? firstKey(model) : undefined;
    const isRead = this.#key !== undefined && kernels === undefined;
    this.text = isRead ? readKernels(this.#key as string, Date.now()) : Promise.resolve(undefined);
  }

  /** The model is loaded, and this is what its engine has found out. */
  async keep(found: string | undefined): Promise<void> {
    if (this.#key === undefined || found === undefined || found === (await this.text)) return;
    await writeKernels(this.#key, found, Date.now());
  }

  /** The kernels may be why the load failed. */
  async drop(): Promise<void> {
    if (this.#key !== undefined) await removeKernels(this.#key);
  }
}
