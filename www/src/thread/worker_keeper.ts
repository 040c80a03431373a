//! Keeps an engine going: which worker gets a request, and when another worker is started after a failure.

import type { EngineChange } from "../exchange/engine_change.js";
import { EngineFailure } from "../exchange/error_response.js";
import type { EngineWorker } from "./engine_worker.js";
import { refuse } from "../exchange/refusal.js";

/** The pause after the first failed load; it doubles with every further one. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

/** A requester that waits for the time of `Retry-After` may still be a little early by this clock. */
const TIMER_SLACK_MS = 50;

/**
 * Starts a worker. If its load fails, the next attempt comes after `retryDelayMs`. `kernels` are those of the worker
 * that it takes over from.
 */
export type StartWorker = (retryDelayMs: number, kernels: string | undefined) => EngineWorker;

/**
 * One worker at a time. A worker that failed after it had been loaded is replaced when the next request comes. After a
 * failed load, requests start further attempts, at most one at a time and with growing pauses between them, unless
 * another attempt would fail again.
 */
export class WorkerKeeper {
  readonly #start: StartWorker;
  readonly #onChange: (change: EngineChange) => void;
  #worker: EngineWorker;
  #failedLoads = 0;
  #hasLoaded = false;
  #kernels: string | undefined;
  #nextAttempt_ms = 0;
  /** Resolves when the worker that takes over after `restart` has been created. */
  #restarted: Promise<void> | undefined;
  #disposed = false;

  constructor(start: StartWorker, onChange: (change: EngineChange) => void) {
    this.#start = start;
    this.#onChange = onChange;
    this.#worker = this.#begin();
  }

  /** The current worker; it may have failed. */
  get worker(): EngineWorker {
    return this.#worker;
  }

  /**
   * Passes a port on to an engine; resolves with a signal that aborts when that engine is lost. `afterLoss`: the request
   * was in flight when an earlier engine was lost.
   */
  async connect(port: MessagePort, afterLoss = false): Promise<AbortSignal> {
    await this.#restarted;
    // The worker's own report of its failure may still be on its way; its next answer comes after that.
    if (afterLoss) await this.#worker.info();
    if (this.#disposed) {
      const disposed = new EngineFailure("engine_unavailable", "the engine was disposed");
      if (afterLoss) throw disposed;
      refuse(port, disposed);
      return NEVER;
    }
    if (this.#mayRestart()) {
      const old = this.#worker;
      this.#worker = this.#begin();
      // A failed one ends by itself, once its last answers have left it.
      if (!old.failed) void old.dispose();
    }
    const worker = this.#worker;
    if (worker.failed) {
      refuse(port, this.#refusal(worker));
      return NEVER;
    }
    // In-flight requests of a lost engine, and the request that finds it lost, wait instead of getting a 503. A model
    // that has never been loaded may take long: there the endpoint itself decides.
    if (this.#hasLoaded && worker.isLoading) worker.connectWhenLoaded(port);
    else worker.connect(port);
    return worker.lost;
  }

  /** Starts a new worker at once; in-flight requests continue with it. */
  async restart(): Promise<void> {
    await this.#restarted;
    const restarted = this.#worker.dispose().then(() => {
      if (this.#disposed) return;
      this.#failedLoads = 0;
      this.#worker = this.#begin();
    });
    this.#restarted = restarted;
    await restarted;
    this.#restarted = undefined;
    await this.#worker.ready;
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#worker.dispose();
  }

  #begin(): EngineWorker {
    const pause_ms = Math.min(FIRST_PAUSE_MS * 2 ** this.#failedLoads, LONGEST_PAUSE_MS);
    this.#onChange({ type: "statechange", state: "loading" });
    const worker = this.#start(pause_ms, this.#kernels);
    worker.ready.then(
      () => {
        this.#failedLoads = 0;
        this.#hasLoaded = true;
        this.#kernels = worker.kernels;
        if (worker === this.#worker) this.#onChange({ type: "statechange", state: "ready" });
      },
      () => {
        if (worker !== this.#worker) return;
        this.#failedLoads += 1;
        this.#nextAttempt_ms = performance.now() + pause_ms;
        // It may have been disposed meanwhile.
        if (worker.loadFailure) this.#onChange({ type: "statechange", state: "failed" });
      },
    );
    void worker.broken.then((failure) => {
      if (worker !== this.#worker || this.#disposed) return;
      this.#onChange({ type: "lost", failure });
      this.#onChange({ type: "statechange", state: "failed" });
    });
    return worker;
  }

  #mayRestart(): boolean {
    const { failed, loadFailure } = this.#worker;
    if (loadFailure === undefined) return failed;
    return !loadFailure.permanent && performance.now() >= this.#nextAttempt_ms - TIMER_SLACK_MS;
  }

  #refusal({ loadFailure }: EngineWorker): EngineFailure {
    const reason = loadFailure?.message ?? "it failed";
    if (loadFailure?.permanent) {
      const remedy = "another attempt would fail again, so correct it and call engine.reload()";
      return new EngineFailure(
        "model_not_loaded",
        `the engine could not be started: ${reason}; ${remedy}`,
      );
    }
    const pause_ms = this.#nextAttempt_ms - performance.now();
    const seconds = Math.max(Math.ceil(pause_ms / 1000), 1);
    const message = `the model could not be loaded (${reason}); the next attempt is in ${seconds} s`;
    return new EngineFailure("model_not_loaded", message, seconds);
  }
}

/** A signal that never aborts, for answers that no engine gives. */
const NEVER = new AbortController().signal;
