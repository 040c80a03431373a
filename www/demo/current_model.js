//! The one engine of the page: loads a model, replaces it by another, gives a load up. Tells what
//! happens; shows nothing.

import { createEngine } from "../dist/index.js";

/** @import { Engine, EngineInfo, LoadProgress, ModelOption } from "../dist/index.js" */

/**
 * @typedef {{ name: string, option: ModelOption }} Choice
 *
 * @typedef {{ kind: "loading", name: string, progress: LoadProgress | undefined }
 *   | { kind: "ready", name: string, info: EngineInfo, engine: Engine }
 *   | { kind: "failed", name: string, error: unknown, remains: string | undefined }
 *   | { kind: "none" }} State
 */

/** A model up to this size stays until the next one is there; a larger one gives its memory first. */
const STAYS_BYTES = 256e6;

export class CurrentModel {
  /** What answers; `undefined` while nothing does. @type {Engine | undefined} */
  engine;

  #name = "";
  /** @type {EngineInfo} */
  #info = {};
  /** @type {AbortController | undefined} */
  #loading;
  /** @type {(state: State) => void} */
  #tell;

  /** @param {(state: State) => void} tell called with every change */
  constructor(tell) {
    this.#tell = tell;
  }

  /**
   * Loads what was chosen; a load that still runs is given up. The old model answers until then.
   *
   * @param {Choice} choice
   */
  async load({ name, option }) {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    const isLarge = Number(this.#info.fileBytes ?? 0) > STAYS_BYTES;
    const gone = isLarge ? this.#letGo() : undefined;
    this.#tell({ kind: "loading", name, progress: undefined });
    await gone;
    /** @type {Engine | undefined} */
    let engine;
    try {
      engine = await createEngine({
        model: option,
        workerUrl: new URL("./engine_worker.js", import.meta.url),
        signal: loading.signal,
        onProgress: (progress) => {
          if (this.#loading === loading) this.#tell({ kind: "loading", name, progress });
          else if (engine && engine === this.engine) this.#reloading(progress);
        },
      });
      const info = await engine.info();
      if (loading.signal.aborted) {
        await engine.dispose();
        loading.signal.throwIfAborted();
      }
      this.#loading = undefined;
      await this.#letGo();
      this.engine = engine;
      this.#name = name;
      this.#info = info;
      this.#tell({ kind: "ready", name, info, engine });
    } catch (error) {
      // Another load took over.
      if (this.#loading !== loading) return;
      this.#loading = undefined;
      if (loading.signal.aborted) this.#tellWhatRemains();
      else this.#tell({ kind: "failed", name, error, remains: this.engine && this.#name });
    }
  }

  /** Gives up the load that runs. */
  cancel() {
    this.#loading?.abort();
  }

  /**
   * After the GPU was lost the engine loads its model again, without being told to.
   *
   * @param {LoadProgress} progress
   */
  #reloading(progress) {
    if (progress.phase === "ready") this.#tellWhatRemains();
    else this.#tell({ kind: "loading", name: this.#name, progress });
  }

  #tellWhatRemains() {
    if (this.engine === undefined) this.#tell({ kind: "none" });
    else this.#tell({ kind: "ready", name: this.#name, info: this.#info, engine: this.engine });
  }

  async #letGo() {
    const engine = this.engine;
    this.engine = undefined;
    this.#info = {};
    await engine?.dispose();
  }
}
