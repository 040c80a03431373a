//! The engine as the worker uses it: `wasm/inpage.d.ts` declares the real one, tests use a fake one.

import type { EngineFailure } from "../exchange/error_response.js";
import type { HeaderList, StartOptions } from "../exchange/protocol.js";
import type { ModelFiles } from "../model_source/source.js";

/** One answer of the engine (see `wasm/inpage.d.ts`). */
export interface EngineResponse {
  readonly status: number;
  readonly headers: HeaderList;
  next(): Promise<Uint8Array<ArrayBuffer> | undefined>;
  cancel(): void;
  free(): void;
}

/** A LoRA adapter whose files are open (see `wasm/inpage.d.ts`). */
export interface HostedAdapter {
  readonly name: string;
  readonly files: ModelFiles;
  readonly scale: number;
}

/** See `wasm/inpage.d.ts`. */
export interface HostedEngine {
  load(
    files: ModelFiles,
    lora: HostedAdapter[],
    onProgress: (loadedBytes: number, totalBytes: number) => void,
  ): Promise<void>;
  loadFailed(message: string): void;
  setLora(lora: HostedAdapter[]): Promise<void>;
  handle(
    method: string,
    url: string,
    headers: HeaderList,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<EngineResponse>;
  info(): object;
}

/** Creates the engine, which calls `onDeath` when it cannot answer any more. */
export type EngineFactory = (
  options: StartOptions,
  onDeath: (failure: EngineFailure) => void,
) => Promise<HostedEngine>;
