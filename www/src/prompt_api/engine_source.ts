//! The engine behind a `LanguageModel`. It is started with the first session. Before that, its options alone are examined.

import type { Engine } from "../engine/engine.js";
import type { getEngine } from "../engine/get_engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import { mayOptionsSee } from "./may_see.js";

/** An engine, or the options of one that all sessions share. */
export type PromptApiOptions = { engine: Engine } | EngineOptions;

export type Availability = "unavailable" | "downloadable" | "downloading" | "available";

export class EngineSource {
  readonly #get: typeof getEngine;
  readonly #options: PromptApiOptions;
  #engine: Engine | undefined;
  #state: Availability = "downloadable";

  /** Engines of options come from `get`. */
  constructor(get: typeof getEngine, options: PromptApiOptions) {
    this.#get = get;
    this.#options = options;
    if (!("engine" in options)) return;
    this.#engine = options.engine;
    this.#state = "available";
  }

  get state(): Availability {
    return this.#state;
  }

  /** The engine with its model. */
  async load(onProgress: EngineOptions["onProgress"], signal?: AbortSignal): Promise<Engine> {
    const options = this.#options;
    if ("engine" in options) return options.engine;
    if (this.#state !== "available") this.#state = "downloading";
    try {
      const get = this.#get;
      const engine = await get({
        ...options,
        ...(onProgress && { onProgress }),
        ...(signal && { signal }),
      });
      this.#state = "available";
      this.#engine = engine;
      engine.disposed.addEventListener("abort", () => {
        this.#state = "downloadable";
        this.#engine = undefined;
      });
      return engine;
    } catch (error) {
      // If only this caller has left, the load goes on.
      if (!signal?.aborted) this.#state = "downloadable";
      throw error;
    }
  }

  /** Whether the model sees images. Before its load, whether it may. */
  async maySee(): Promise<boolean> {
    if (this.#engine !== undefined) {
      const { projector, models = {} } = await this.#engine.info();
      return [{ projector }, ...Object.values(models)].some((one) => one.projector != null);
    }
    return mayOptionsSee(this.#options as EngineOptions);
  }
}
