//! The engine's life in the worker: what waits for its creation, what ends it, and the failure that
//! requests get afterwards.

import { deferred } from "../exchange/abort.js";
import { codeOf, EngineFailure, messageOf, toEngineFailure } from "../exchange/error_response.js";
import type { WorkerScope } from "../worker_scopes.js";
import type { HostedEngine } from "../wasm/hosted_engine.js";

/** An answer may fail a moment before the browser reports the lost device that is the cause. */
const LOSS_REPORT_MS = 250;

export class EngineLife {
  #engine = deferred<HostedEngine>();
  #dead = new AbortController();
  #disposed = new AbortController();
  #onDeath: (failure: EngineFailure) => void;

  /** @param onDeath called at most once, and not if the page disposed the engine */
  constructor(onDeath: (failure: EngineFailure) => void) {
    this.#onDeath = onDeath;
  }

  /** Resolves when the engine is created; rejects if it dies before that. */
  get engine(): Promise<HostedEngine> {
    return this.#engine.promise;
  }

  /** Aborts when the engine cannot answer any more; the reason is an `EngineFailure`. */
  get dead(): AbortSignal {
    return this.#dead.signal;
  }

  /** Aborts when the engine is dead or the page no longer wants it: downloads stop and keep their state. */
  get over(): AbortSignal {
    return AbortSignal.any([this.#dead.signal, this.#disposed.signal]);
  }

  created(engine: HostedEngine): void {
    this.#engine.resolve(engine);
  }

  /** Ends the engine: every request from now on gets `failure`. The first call counts. */
  die(failure: EngineFailure): void {
    if (this.#dead.signal.aborted) return;
    this.#dead.abort(failure);
    this.#engine.reject(failure);
    if (!this.#disposed.signal.aborted) this.#onDeath(failure);
  }

  /** Ends the engine because the page asked for it. */
  dispose(): void {
    this.#disposed.abort(new DOMException("the engine was disposed", "AbortError"));
    this.die(new EngineFailure("engine_unavailable", "the engine was disposed"));
  }

  /** The failure that a request gets for what a call of the engine threw. A trap ends the engine. */
  failureOf(reason: unknown): EngineFailure {
    if (isTrap(reason)) {
      this.die(new EngineFailure("internal_error", `the engine stopped: ${messageOf(reason)}`));
    }
    return toEngineFailure(this.#dead.signal.aborted ? this.#dead.signal.reason : reason);
  }

  /**
   * Resolves if the engine survives a `failure` that an answer reports; at once without one.
   *
   * @throws the engine's failure if it is dead
   */
  async survives(failure: unknown): Promise<void> {
    if (failure === undefined) return;
    const code = codeOf(failure, "");
    if (code === "device_lost") this.die(new EngineFailure(code, messageOf(failure)));
    if (code === "internal_error") {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOSS_REPORT_MS);
        this.dead.addEventListener(
          "abort",
          () => {
            clearTimeout(timer);
            resolve();
          },
          { once: true },
        );
      });
    }
    this.dead.throwIfAborted();
  }

  /** Also ends the engine on uncaught traps: one in a spawned task is reported only to `scope`. */
  watchUncaught(scope: WorkerScope): void {
    const onUncaught = (event: Event, reason: unknown) => {
      if (!isTrap(reason)) return;
      event.preventDefault();
      this.failureOf(reason);
    };
    scope.addEventListener("error", (event) => onUncaught(event, (event as ErrorEvent).error));
    scope.addEventListener("unhandledrejection", (event) =>
      onUncaught(event, (event as PromiseRejectionEvent).reason),
    );
  }
}

/** After a trap or a stack overflow the state of the wasm module is undefined. */
function isTrap(reason: unknown): boolean {
  return (
    reason instanceof WebAssembly.RuntimeError ||
    (reason instanceof RangeError && /call stack/i.test(reason.message))
  );
}
