//! `useCompletion`: streamed completions in a component.

import { useCallback, useRef, useState } from "react";
import type { LoadProgress } from "../exchange/protocol.js";
import type { CompletionRequest } from "../api/completions.js";
import type { Engine } from "../engine/engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { getEngine } from "../engine/get_engine.js";
import type { EngineState } from "./use_engine.js";
import { useRun } from "./use_run.js";

/** A request without its prompt, which `complete` takes, and without `stream`: completions are streamed. */
export type CompletionFields = Partial<Omit<CompletionRequest, "prompt" | "stream">>;

/** The options of `useCompletion`. Other options than `engine` may differ with every rendering. */
export interface CompletionHookOptions {
  /** Options of the engine. Equal options share one engine. */
  engine?: EngineOptions;
  /** Fields of every request: `max_tokens`, `temperature`, ... */
  body?: CompletionFields;
  /** Called with the whole text of a completion that was not stopped. */
  onFinish?: (completion: string) => void;
}

/** A completion that grows while it is generated. */
export interface CompletionState {
  /** The text so far. */
  completion: string;
  /** True from the call of `complete` until its text is whole, stopped or failed. The load of the model counts. */
  isLoading: boolean;
  /** The error of the last completion, or of the load of the model. */
  error: Error | undefined;
  /** The last report of the load. */
  progress: LoadProgress | undefined;
  /** The engine; undefined until its model is loaded. */
  engine: Engine | undefined;
  /**
   * Generates a text and replaces the last one, which is stopped if it still grows. Resolves with the whole text, or undefined if
   * it was stopped or has failed. It may be called before the model is loaded.
   */
  complete(
    prompt: CompletionRequest["prompt"],
    body?: CompletionFields,
  ): Promise<string | undefined>;
  /** Stops the generation; its text so far stays. */
  stop(): void;
  /** Replaces the text. */
  setCompletion(text: string): void;
}

/** `useCompletion` with engines from `get`. */
export function completionHook(
  get: typeof getEngine,
  useEngine: (options?: EngineOptions) => EngineState,
): (options?: CompletionHookOptions) => CompletionState {
  return function useCompletion(options = {}) {
    const { engine, progress, error: loadError } = useEngine(options.engine);
    const [completion, setCompletion] = useState("");
    const { isLoading, error, run, stop } = useRun();
    const latest = useRef(options);
    latest.current = options;

    const complete = useCallback<CompletionState["complete"]>(async (prompt, fields) => {
      const { engine: engineOptions, body } = latest.current;
      const text = await run(async (signal) => {
        setCompletion("");
        const engine = await get({ ...engineOptions, signal });
        const request: CompletionRequest = { model: "default", ...body, ...fields, prompt };
        const stream = await engine.completions.create({ ...request, stream: true }, { signal });
        let text = "";
        for await (const { choices } of stream) {
          text += choices[0]?.text ?? "";
          if (!signal.aborted) setCompletion(text);
        }
        return text;
      });
      if (text !== undefined) latest.current.onFinish?.(text);
      return text;
    }, []);

    return {
      ...{ completion, isLoading, error: error ?? loadError, progress, engine },
      ...{ complete, stop, setCompletion },
    };
  };
}
