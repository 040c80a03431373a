//! `useModels`: the models of an engine and their states in a component.

import { useEffect, useState } from "react";
import type { ModelCard } from "../generated/types.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { EngineState } from "./use_engine.js";

/** A model, as `GET /v1/models` lists it. What it is for may not be known before its first load. */
export type ListedModel = Pick<ModelCard, "id" | "status"> &
  Partial<Pick<ModelCard, "capabilities">>;

const NONE: readonly ListedModel[] = [];

/** `useModels` with engines from `useEngine`. */
export function modelsHook(
  useEngine: (options?: EngineOptions) => EngineState,
): (options?: EngineOptions) => readonly ListedModel[] {
  return function useModels(options = {}) {
    const { engine } = useEngine(options);
    const [models, setModels] = useState(NONE);
    useEffect(() => {
      if (engine === undefined) return undefined;
      const mounted = new AbortController();
      const { signal } = mounted;
      let asked = 0;
      const refresh = async () => {
        asked += 1;
        const turn = asked;
        const answer = await engine.fetch(`${engine.basePaths[0] ?? ""}/models`, { signal });
        const { data } = (await answer.json()) as { data: readonly ListedModel[] };
        // An older list may arrive after a newer one.
        if (!signal.aborted && turn === asked) setModels(data);
      };
      // The list of an engine that has ended stays.
      const change = () => void refresh().catch(() => {});
      engine.addEventListener("statechange", change, { signal });
      change();
      return () => mounted.abort();
    }, [engine]);
    return models;
  };
}
