//! The engine of a provider, which is started with the first call of a model, and reports of its load.

import type { Engine } from "../engine/engine.js";
import type { getEngine } from "../engine/get_engine.js";
import type { LoadProgress } from "../exchange/protocol.js";
import type { EngineOptions } from "../options/engine_options.js";

/** An engine, or the options of one that the provider's models share. */
export type ProviderOptions = { engine: Engine } | EngineOptions;

/** Gives the engine, once its model is loaded. */
export type EngineFor = (signal: AbortSignal | undefined) => Promise<Engine>;

/** Engines from `get`. */
export function engineFor(get: typeof getEngine, options: ProviderOptions): EngineFor {
  return async (signal) =>
    "engine" in options ? options.engine : get({ ...options, ...(signal && { signal }) });
}

/** Calls `report` with the progress of the load until `signal` aborts. Starts the load. */
export async function whileLoading(
  get: typeof getEngine,
  options: ProviderOptions,
  report: (progress: LoadProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  if ("engine" in options) {
    const { engine } = options;
    engine.addEventListener("progress", ({ progress }) => report(progress), { signal });
    return engine.ready;
  }
  const { onProgress } = options;
  const both = (progress: LoadProgress) => {
    onProgress?.(progress);
    report(progress);
  };
  await get({ ...options, onProgress: both, signal });
}
