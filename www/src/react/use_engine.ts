//! `useEngine`: the engine of a page in a component.

import { useEffect, useRef, useState } from "react";
import type { LoadProgress } from "../exchange/protocol.js";
import type { Engine } from "../engine/engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { getEngine } from "../engine/get_engine.js";
import { optionsKey } from "../options/options_key.js";
import { asError } from "./as_error.js";

/** The state of the engine of `useEngine`. */
export interface EngineState {
  /** The engine; undefined until its model is loaded. */
  engine: Engine | undefined;
  /** The last report of the load. */
  progress: LoadProgress | undefined;
  /** The error with which the start of the engine failed. */
  error: Error | undefined;
}

const NOTHING: EngineState = { engine: undefined, progress: undefined, error: undefined };

/** `useEngine` with engines from `get`. */
export function engineHook(get: typeof getEngine): (options?: EngineOptions) => EngineState {
  return function useEngine(options = {}) {
    const [state, setState] = useState(NOTHING);
    // Components write options anew with every rendering.
    const key = optionsKey(options);
    const latest = useRef(options);
    latest.current = options;
    useEffect(() => {
      const mounted = new AbortController();
      const { signal } = mounted;
      const change = (part: Partial<EngineState>) => {
        if (!signal.aborted) setState((previous) => ({ ...previous, ...part }));
      };
      change(NOTHING);
      const onProgress = (progress: LoadProgress) => {
        change({ progress });
        latest.current.onProgress?.(progress);
      };
      // An unmounted component ends its wait, not the load: in StrictMode it is mounted again at once.
      get({ ...latest.current, onProgress, signal }).then(
        (engine) => change({ engine, error: undefined }),
        (error) => change({ error: asError(error) }),
      );
      return () => mounted.abort();
    }, [key]);
    return state;
  };
}
