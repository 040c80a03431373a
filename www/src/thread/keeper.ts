//! What `Engine` needs of what keeps its engine going: `worker_keeper.ts` in this tab, `shared_keeper.ts` in one of several.

import type { EngineWorker } from "./engine_worker.js";

/** What `Engine` uses of the worker that answers. */
export type AnsweringWorker = Pick<
  EngineWorker,
  "ready" | "openExchanges" | "info" | "setLora" | "pauseDownload" | "fail" | "loadFailure"
>;

/** What `Engine` uses of a `WorkerKeeper`. */
export interface Keeper {
  readonly worker: AnsweringWorker;
  connect(port: MessagePort, afterLoss?: boolean): Promise<AbortSignal>;
  restart(): Promise<void>;
  dispose(): Promise<void>;
}
