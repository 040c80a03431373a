//! `useRun`: one answer at a time in a component, with its state. What is asked is the concern of the hooks that use it.

import { useCallback, useEffect, useRef, useState } from "react";
import { asError } from "./as_error.js";

/** The state of answers. */
export interface Run {
  /** True from the call of `run` until its work is done, stopped or failed. */
  isLoading: boolean;
  /** The error of the last work. */
  error: Error | undefined;
  /** Does `work` in place of what runs. Resolves with undefined if it is stopped or fails. */
  run<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result | undefined>;
  /** Stops what runs. A component that is unmounted does so, too. */
  stop(): void;
}

export function useRun(): Run {
  const [isLoading, setIsLoading] = useState(false);
  const [error, setError] = useState<Error | undefined>(undefined);
  const running = useRef<AbortController | undefined>(undefined);

  const stop = useCallback(() => {
    running.current?.abort();
    running.current = undefined;
    setIsLoading(false);
  }, []);

  const run = useCallback<Run["run"]>(async (work) => {
    running.current?.abort();
    const controller = new AbortController();
    const { signal } = controller;
    running.current = controller;
    setError(undefined);
    setIsLoading(true);
    try {
      const result = await work(signal);
      return signal.aborted ? undefined : result;
    } catch (reason) {
      if (!signal.aborted) setError(asError(reason));
      return undefined;
    } finally {
      if (running.current === controller) {
        running.current = undefined;
        setIsLoading(false);
      }
    }
  }, []);

  useEffect(() => () => running.current?.abort(), []);
  return { isLoading, error, run, stop };
}
