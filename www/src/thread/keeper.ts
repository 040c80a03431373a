//! The interface through which `Engine` keeps its engine going: `worker_keeper.ts` in this tab, `shared_keeper.ts` in one of several.

import type { EngineWorker } from "./engine_worker.js";

/** The part of the answering worker that `Engine` uses. */
export type AnsweringWorker = Pick<
  EngineWorker,
  "ready" | "openExchanges" | "info" | "setLora" | "pauseDownload" | "fail" | "loadFailure"
>;

/** The part of a `WorkerKeeper` that `Engine` uses. */
export interface Keeper {
  readonly worker: AnsweringWorker;
  connect(port: MessagePort, afterLoss?: boolean): Promise<AbortSignal>;
  restart(): Promise<void>;
  dispose(): Promise<void>;
}
