//! The engine as the worker uses it: `wasm/inpage.d.ts` declares the real one, tests use a fake one.

import type { EngineFailure } from "../exchange/error_response.js";
import type { Attachment, HeaderList, StartOptions } from "../exchange/protocol.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import type { Hasher } from "../model_source/store/hash.js";
import type { ModelFiles } from "../byte_source.js";

/** The engine's device, as the Rust side asks for it (`src/web/webgpu.rs`). */
export interface ExtendedDevice {
  /** The adapter's name, or that the browser hides it. wgpu passes on only `description`, which browsers leave empty. */
  readonly adapter: string;
  /** True if the device has subgroup operations. */
  readonly subgroups: boolean;
  /** True if WGSL has products of packed bytes. */
  readonly packedDot: boolean;
  /** Starts compiling WGSL sources; resolves when all are compiled or refused. */
  compileAhead(sources: string[]): Promise<void>;
}

/** The functions that the worker adds to WebGPU for the engine. */
export interface GivenWebGpu {
  /** The device that was created last. */
  readonly device: ExtendedDevice | undefined;
}

/** One answer of the engine. */
export interface EngineResponse {
  readonly status: number;
  readonly headers: HeaderList;
  /** The next chunk of the body; `undefined` at its end and after `cancel()`. */
  next(): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Stops the generation of the body. */
  cancel(): void;
  /** The position of the answer after the last returned chunk; `undefined` if it cannot be continued. */
  readonly position?: string | undefined;
  /** The error, with a `code`, that the status or the last returned chunk reports. */
  readonly failure?: unknown;
  /** Releases the response's memory in the wasm module. */
  free(): void;
}

/** A LoRA adapter whose files are open; `scale` is the factor of its contribution. */
export interface HostedAdapter {
  readonly name: string;
  readonly files: ModelFiles;
  readonly scale: number;
}

/** The endpoint, and the model once it is loaded. */
export interface HostedEngine {
  /** Requests the GPU device, reads the model from `files`, the projector, the draft model and the adapters, and makes it ready. */
  load(
    files: ModelFiles,
    projector: ModelFiles | undefined,
    draftModel: ModelFiles | undefined,
    lora: HostedAdapter[],
    onProgress: (loadedBytes: number, totalBytes: number) => void,
  ): Promise<void>;
  /** The memory that the model needs, judging by the headers of its files; `undefined` if that is unknown. */
  memoryNeeded?(files: ModelFiles): Promise<number | undefined>;
  /** A new hash of a file that is downloaded; its bytes pass through the wasm module. */
  createHasher(): Hasher;
  /**
   * Tells the endpoint why the model could not be loaded, and when a request starts another attempt: in
   * milliseconds since 1970, or never.
   */
  loadFailed(reason: string, retryAtMs: number | undefined): void;
  /**
   * Replaces the adapters once in-flight requests have ended.
   *
   * @throws Error with a `code` if one does not fit; then the old ones stay in use
   */
  setLora(lora: HostedAdapter[]): Promise<void>;
  /**
   * `signal` cancels the request until the head of its answer is there. With the `position` of an answer that
   * another engine began, the answer continues there. `attachments` are the images that the body names.
   */
  handle(
    method: string,
    url: string,
    headers: HeaderList,
    body: Uint8Array,
    signal: AbortSignal,
    position: string | undefined,
    attachments: readonly Attachment[],
  ): Promise<EngineResponse>;
  info(): EngineInfo;
  /** The number of the oldest operation that the GPU has not finished. */
  pendingOperation?(): number | undefined;
  /**
   * The facts that were found out about the kernels: for an engine that takes over, which then gives the same answers to the last
   * bit, and for the next visit, whose self-test it replaces.
   */
  kernels?(): string | undefined;
}

/**
 * Creates the engine, which calls `onDeath` when it cannot answer any more, and gives the GPU's memory back when
 * `dead` aborts. `keptKernels` resolves with what an engine's `kernels()` returned in an earlier visit.
 *
 * @throws InvalidOptions if another attempt would fail again
 */
export type EngineFactory = (
  options: StartOptions,
  onDeath: (failure: EngineFailure) => void,
  dead: AbortSignal,
  keptKernels: Promise<string | undefined>,
) => Promise<HostedEngine>;
