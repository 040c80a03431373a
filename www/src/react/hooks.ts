//! Hooks for React over one engine per page. They start nothing while a page is rendered on a server.

import { useCallback, useEffect, useRef, useState } from "react";
import type { LoadProgress } from "../exchange/protocol.js";
import type { CompletionRequest } from "../api/completions.js";
import type { Engine } from "../engine/engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { getEngine } from "../engine/get_engine.js";
import { optionsKey } from "../options/options_key.js";

/** The state of the engine of `useEngine`. */
export interface EngineState {
  /** The engine; undefined until its model is loaded. */
  engine: Engine | undefined;
  /** The last report of the load. */
  progress: LoadProgress | undefined;
  /** Why there is no engine. */
  error: Error | undefined;
}

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
  /** Why the last completion, or the load of the model, failed. */
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

export interface Hooks {
  /**
   * The engine of this page for these options, whose load starts when the component is mounted. Components with equal options share
   * one engine, which outlives them: `engine.dispose()` ends it.
   */
  useEngine(options?: EngineOptions): EngineState;
  /** Streamed completions in a component. A component that is unmounted stops its generation. */
  useCompletion(options?: CompletionHookOptions): CompletionState;
}

const NOTHING: EngineState = { engine: undefined, progress: undefined, error: undefined };

const asError = (reason: unknown) => (reason instanceof Error ? reason : new Error(`${reason}`));

/** Hooks whose engines come from `get`. */
export function hooksWith(get: typeof getEngine): Hooks {
  function useEngine(options: EngineOptions = {}): EngineState {
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
  }

  function useCompletion(options: CompletionHookOptions = {}): CompletionState {
    const { engine, progress, error: loadError } = useEngine(options.engine);
    const [completion, setCompletion] = useState("");
    const [isLoading, setIsLoading] = useState(false);
    const [error, setError] = useState<Error | undefined>(undefined);
    const latest = useRef(options);
    latest.current = options;
    /** Aborts the completion that grows. */
    const running = useRef<AbortController | undefined>(undefined);

    const stop = useCallback(() => {
      running.current?.abort();
      running.current = undefined;
      setIsLoading(false);
    }, []);

    const complete = useCallback<CompletionState["complete"]>(async (prompt, fields) => {
      const { engine: engineOptions, body, onFinish } = latest.current;
      running.current?.abort();
      const controller = new AbortController();
      const { signal } = controller;
      running.current = controller;
      setCompletion("");
      setError(undefined);
      setIsLoading(true);
      let text = "";
      try {
        const engine = await get({ ...engineOptions, signal });
        const request: CompletionRequest = { model: "default", ...body, ...fields, prompt };
        const stream = await engine.completions.create({ ...request, stream: true }, { signal });
        for await (const { choices } of stream) {
          text += choices[0]?.text ?? "";
          if (!signal.aborted) setCompletion(text);
        }
      } catch (reason) {
        if (!signal.aborted) setError(asError(reason));
        return undefined;
      } finally {
        if (running.current === controller) {
          running.current = undefined;
          setIsLoading(false);
        }
      }
      if (signal.aborted) return undefined;
      onFinish?.(text);
      return text;
    }, []);

    useEffect(() => () => running.current?.abort(), []);
    return {
      ...{ completion, isLoading, error: error ?? loadError, progress, engine },
      ...{ complete, stop, setCompletion },
    };
  }

  return { useEngine, useCompletion };
}
