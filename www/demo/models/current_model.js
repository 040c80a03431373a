//! The engine of the page: loads a model, replaces it by another, pauses and cancels a load. Reports every change of state.

import { createEngine } from "../../dist/index.js";
import { SERVICE_WORKER } from "../serving.js";

/**
 * @import { Engine, EngineInfo, LoadProgress } from "../../dist/index.js"
 * @import { Choice } from "./choice.js"
 */

/**
 * `missing`: the model of the last visit is a file that the user must choose again. `hasCrashed`: its last load ended with the tab.
 *
 * @typedef {{ kind: "loading", name: string, progress: LoadProgress | undefined }
 *   | { kind: "ready", name: string, info: EngineInfo, engine: Engine }
 *   | { kind: "paused", name: string, choice: Choice, progress: LoadProgress | undefined, remains: string | undefined }
 *   | { kind: "failed", name: string, choice: Choice, error: unknown, remains: string | undefined, hasCrashed?: boolean }
 *   | { kind: "missing", name: string }
 *   | { kind: "none" }} State
 */

/** A model up to this size stays until the next one is loaded; a larger one is released first. */
const STAYS_BYTES = 256e6;

/** The reason of an aborted load that the user may continue later. */
const PAUSE = new Error("paused");

export class CurrentModel {
  /** The current engine, if any. @type {Engine | undefined} */
  engine;

  #name = "";
  /** @type {Choice | undefined} */
  #choice;
  /** @type {EngineInfo} */
  #info = {};
  /** @type {AbortController | undefined} */
  #loading;
  /** @type {LoadProgress | undefined} */
  #progress;
  /** @type {(state: State) => void} */
  #report;

  /** @param {(state: State) => void} report called with every new state */
  constructor(report) {
    this.#report = report;
  }

  /** The choice that the current engine was made of. */
  get choice() {
    return this.engine && this.#choice;
  }

  /** The report of the current engine: `engine.info()`. */
  get info() {
    return this.#info;
  }

  /** The current engine, if it takes images. */
  get engineOfImages() {
    return this.#info.projector ? this.engine : undefined;
  }

  /**
   * Loads the chosen model and ends a load in progress. The old model answers until the new one is ready.
   *
   * @param {Choice} choice
   */
  async load(choice) {
    const { name, option, projector, chatTemplate, device } = choice;
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    this.#progress = undefined;
    const isLarge = Number(this.#info.fileBytes ?? 0) > STAYS_BYTES;
    const gone = isLarge ? this.#letGo() : undefined;
    this.#report({ kind: "loading", name, progress: undefined });
    await gone;
    /** @type {Engine | undefined} */
    let engine;
    try {
      engine = await createEngine({
        model: option,
        ...(projector !== undefined && { projector }),
        ...(chatTemplate !== undefined && { endpoint: { chatTemplate } }),
        ...(device !== undefined && { device }),
        workerUrl: new URL("../engine_worker.js", import.meta.url),
        // Threads on hosts that do not isolate the page.
        isolatedFrame: SERVICE_WORKER,
        signal: loading.signal,
        onProgress: (progress) => {
          if (this.#loading === loading) {
            this.#progress = progress;
            this.#report({ kind: "loading", name, progress });
          } else if (engine && engine === this.engine) this.#reloading(progress);
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
      this.#choice = choice;
      this.#info = info;
      this.#report({ kind: "ready", name, info, engine });
    } catch (error) {
      // Another load has replaced this one.
      if (this.#loading !== loading) return;
      this.#loading = undefined;
      const remains = this.engine && this.#name;
      if (loading.signal.reason === PAUSE) {
        this.#report({ kind: "paused", name, choice, progress: this.#progress, remains });
      } else if (loading.signal.aborted) this.reportCurrent();
      else this.#report({ kind: "failed", name, choice, error, remains });
    }
  }

  /** Ends the load in progress. What was downloaded stays stored, and the next load of the model goes on from there. */
  pause() {
    this.#loading?.abort(PAUSE);
  }

  /** Cancels the load in progress. */
  cancel() {
    this.#loading?.abort();
  }

  /** Reports the model that answers now, if any. */
  reportCurrent() {
    if (this.engine === undefined) this.#report({ kind: "none" });
    else this.#report({ kind: "ready", name: this.#name, info: this.#info, engine: this.engine });
  }

  /**
   * Reports a model that waits for the user: of the last visit, and a file or paused.
   *
   * @param {State} state
   */
  wait(state) {
    this.#report(state);
  }

  /**
   * After the GPU was lost, the engine loads its model again by itself.
   *
   * @param {LoadProgress} progress
   */
  #reloading(progress) {
    if (progress.phase === "ready") this.reportCurrent();
    else this.#report({ kind: "loading", name: this.#name, progress });
  }

  async #letGo() {
    const engine = this.engine;
    this.engine = undefined;
    this.#info = {};
    await engine?.dispose();
  }
}
