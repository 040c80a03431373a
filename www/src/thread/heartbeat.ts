//! The heartbeat of an engine worker: notices that the worker has ended or hangs, or that its GPU does. What follows from that is
//! the concern of `engine_worker.ts`.

import { EngineFailure } from "../exchange/error_response.js";
import type { Pulse, WorkerActivity } from "../exchange/protocol.js";

/** All limits. Tests shorten them. */
export const HEARTBEAT = {
  /** The time between two questions, while the worker has something to do. */
  beatMs: 2000,
  /**
   * Beats without an answer after which the worker counts as lost: 10 s, 1 minute and 5 minutes. A worker that computes on the CPU
   * answers between two steps, so a limit is at least the longest legitimate step. An idle one has no steps. During a load
   * drivers compile kernels.
   */
  maxSilentBeats: { idle: 5, requests: 30, load: 150 } satisfies Record<WorkerActivity, number>,
  /** A step may take this many times as long as the longest one of this worker until now. */
  longestStepFactor: 4,
};

/**
 * Asks the worker as long as it has something to do, and has no timer otherwise. Beats are counted instead of time: the timers of
 * hidden pages are slowed down, and after a sleep of the machine or a freeze of the page one late beat counts as one.
 */
export class Heartbeat {
  readonly #ask: (beat: number) => void;
  readonly #onHang: (failure: EngineFailure) => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** The number of the last question. */
  #asked = 0;
  #isAnswered = true;
  /** The activity of the worker when it was asked. */
  #askedDuring: WorkerActivity = "idle";
  #silentBeats = 0;
  /** The activity of the worker at its last answer. */
  #activity: WorkerActivity = "idle";
  /** The activity that the worker was told to start since the last question. */
  #told: WorkerActivity | undefined;
  /** The oldest operation of the GPU that is not finished. */
  #operation: number | undefined;
  #operationBeats = 0;
  /** The longest step of each activity, in beats. */
  readonly #longestSteps: Record<WorkerActivity, number> = { idle: 0, requests: 0, load: 0 };
  #isEnded = false;

  /**
   * `ask` sends a question, whose answer is passed to `take`. `onHang` is called at most once, with the failure for requests
   * that are in flight.
   */
  constructor(ask: (beat: number) => void, onHang: (failure: EngineFailure) => void) {
    this.#ask = ask;
    this.#onHang = onHang;
  }

  /** The owner calls this before it tells the worker to do something. */
  expect(activity: WorkerActivity): void {
    if (this.#isEnded) return;
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#beat(), HEARTBEAT.beatMs);
      // The worker is idle still, so a dead one is noticed soon.
      this.#askNow();
    }
    if (this.#told !== "load") this.#told = activity;
  }

  /** The worker's answer to a question. */
  take({ beat, activity, operation }: Pulse): void {
    if (beat !== this.#asked || this.#isAnswered) return;
    this.#isAnswered = true;
    this.#noteStep(this.#askedDuring, this.#silentBeats);
    this.#silentBeats = 0;
    if (operation !== this.#operation) {
      this.#noteStep(this.#activity, this.#operationBeats);
      this.#operation = operation;
      this.#operationBeats = 0;
    }
    this.#activity = activity;
    if (activity === "idle" && this.#told === undefined) this.#stop();
  }

  /** The worker's load has ended. */
  loaded(): void {
    if (this.#askedDuring === "load") this.#askedDuring = "requests";
    if (this.#activity === "load") this.#activity = "requests";
    if (this.#told === "load") this.#told = "requests";
  }

  /** No more answers are expected. */
  end(): void {
    this.#isEnded = true;
    this.#stop();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#operation = undefined;
    this.#operationBeats = 0;
  }

  #askNow(): void {
    this.#isAnswered = false;
    this.#silentBeats = 0;
    this.#askedDuring = this.#told ?? this.#activity;
    this.#told = undefined;
    this.#ask(++this.#asked);
  }

  #beat(): void {
    if (this.#operation !== undefined) {
      // The worker may prepare the next turn of a chat while it has no requests.
      const during = this.#activity === "load" ? "load" : "requests";
      const limit = this.#limitOf(during);
      if (++this.#operationBeats > limit) {
        const message = `the GPU has not finished an operation for ${seconds(limit)} s`;
        this.#hang(new EngineFailure("device_lost", message));
        return;
      }
    }
    if (this.#isAnswered) {
      this.#askNow();
      return;
    }
    const limit = this.#limitOf(this.#askedDuring);
    if (++this.#silentBeats <= limit) return;
    const message = `the engine worker has not answered for ${seconds(limit)} s`;
    this.#hang(new EngineFailure("internal_error", message));
  }

  #noteStep(activity: WorkerActivity, beats: number): void {
    this.#longestSteps[activity] = Math.max(this.#longestSteps[activity], beats);
  }

  #limitOf(activity: WorkerActivity): number {
    const longest = HEARTBEAT.longestStepFactor * this.#longestSteps[activity];
    return Math.max(HEARTBEAT.maxSilentBeats[activity], longest);
  }

  #hang(failure: EngineFailure): void {
    this.end();
    this.#onHang(failure);
  }
}

const seconds = (beats: number) => Math.round((beats * HEARTBEAT.beatMs) / 1000);
