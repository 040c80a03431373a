//! Pauses and resumes downloads: while paused, no request is sent, none is in flight, and no time-out runs. The download
//! itself resumes a broken answer.

import { type Deferred, deferred, orAborted } from "../../exchange/abort.js";
import type { Clock } from "./clock.js";
import type { FetchFile } from "./http.js";

export class DownloadPause {
  /** Settles when the pause ends; undefined unless paused. */
  #end: Deferred<void> | undefined;
  /** Aborts the requests in flight. */
  #begin = new AbortController();

  pause(): void {
    if (this.#end !== undefined) return;
    this.#end = deferred<void>();
    this.#begin.abort(new TypeError("the download was paused"));
  }

  resume(): void {
    this.#begin = new AbortController();
    this.#end?.resolve();
    this.#end = undefined;
  }

  /** Sends requests unless paused. A pause breaks answers off, which the download resumes with a further request. */
  gate(fetchFile: FetchFile): FetchFile {
    return async (url, init) => {
      for (;;) {
        await this.#whenRunning(init.signal);
        const paused = this.#begin.signal;
        const signals = init.signal ? [init.signal, paused] : [paused];
        try {
          return await fetchFile(url, { ...init, signal: AbortSignal.any(signals) });
        } catch (error) {
          // A pause before the answer is no failure of the request: it is sent again.
          if (!paused.aborted || init.signal?.aborted) throw error;
        }
      }
    };
  }

  /** A clock whose waits start again at each end of a pause. */
  clocked(clock: Clock): Clock {
    return {
      nowMs: () => clock.nowMs(),
      random: () => clock.random(),
      sleep: async (ms, signal) => {
        for (;;) {
          await this.#whenRunning(signal);
          const paused = this.#begin.signal;
          try {
            await clock.sleep(ms, AbortSignal.any([signal, paused]));
            return;
          } catch (error) {
            if (!paused.aborted || signal.aborted) throw error;
          }
        }
      },
    };
  }

  /** @throws the signal's reason when it aborts */
  async #whenRunning(signal: AbortSignal | null | undefined): Promise<void> {
    signal?.throwIfAborted();
    while (this.#end !== undefined) await orAborted(this.#end.promise, signal ?? undefined);
  }
}
