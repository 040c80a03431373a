//! The core of `Engine`: one model (`single.ts`) or several (`group.ts`).

import type { EngineInfo } from "../exchange/engine_info.js";
import type { Answering } from "../api/fetch_door.js";
import type { LoraAdapter } from "../options/lora.js";

export interface EngineCore {
  /** Answers a request of this page below the base paths. */
  readonly answer: Answering;
  /** Resolves when requests can be answered; rejects if the model cannot be loaded. */
  readonly ready: Promise<void>;
  /** Ends the load: `ready` rejects with `reason`. */
  fail(reason: unknown): void;
  info(): Promise<EngineInfo>;
  pauseDownload(isPaused: boolean): void;
  /** `model` says which one of several. */
  setLora(lora: readonly LoraAdapter[], model?: string): Promise<void>;
  reload(): Promise<void>;
  dispose(): Promise<void>;
  /**
   * Answers the one request that comes over `port`. If the worker has the port, resolves with a signal that aborts when the worker is
   * lost; otherwise the page itself tells the requester.
   */
  connect(port: MessagePort): Promise<AbortSignal> | undefined;
}
