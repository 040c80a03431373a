//! What `src/web` exports, written by hand: the build puts the module itself beside the compiled
//! files. The browser tests start the real module through these types.

import type { HeaderList } from "../exchange/protocol.js";
import type { LoadOptions } from "../page/load_options.js";
import type { ModelInspection } from "../page/model_inspection.js";
import type { ModelFiles } from "../model_source/source.js";
import type { WebGpuExtension } from "../worker/webgpu_features.js";

/** Compiles and starts the module; its start function runs once. */
export default function init(options?: {
  module_or_path?: string | URL | BufferSource | undefined;
}): Promise<unknown>;

/** One answer of the engine. */
export class InpageResponse {
  readonly status: number;
  readonly headers: HeaderList;
  /** The next piece of the body; `undefined` at its end and after `cancel()`. */
  next(): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Stops the generation behind the body. */
  cancel(): void;
  free(): void;
}

/** A low-rank adapter of a model; `scale` is what its part is multiplied by. */
export interface PageAdapter {
  readonly name: string;
  readonly files: ModelFiles;
  readonly scale: number;
}

/** What `InpageEngine.create` takes. */
export interface EngineOptions {
  /** What requests may name the model by. */
  readonly modelId: string;
  /** The endpoint's switches, as given; Rust validates them. */
  readonly switches: Readonly<Record<string, unknown>>;
  /** How to load the model, as given; Rust validates it. */
  readonly load: LoadOptions;
  /** What JavaScript adds to wgpu; without it the engine uses WebGPU as wgpu does. */
  readonly webgpu?: WebGpuExtension;
  /** Called with a message when the module panics; nothing of it may be called afterwards. */
  onPanic(message: string): void;
}

/** The engine: the endpoint, and the model once it is loaded. */
export class InpageEngine {
  /**
   * The endpoint, with the model registered as `loading`.
   *
   * @throws Error naming the switch or option that is unknown or has a wrong value
   */
  static create(options: EngineOptions): InpageEngine;
  /** Asks for the GPU device, reads the model from `files` and the adapters, makes it ready. */
  load(
    files: ModelFiles,
    lora: PageAdapter[],
    onProgress: (loadedBytes: number, totalBytes: number) => void,
  ): Promise<void>;
  /** Tells the endpoint that the load failed before `load` was called (download, file). */
  loadFailed(message: string): void;
  /**
   * These adapters and no others from now on, once running requests have ended.
   *
   * @throws Error with a `code` if one does not fit; then the old ones stay
   */
  setLora(lora: PageAdapter[]): Promise<void>;
  handle(
    method: string,
    url: string,
    headers: HeaderList,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<InpageResponse>;
  info(): object;
  activeGenerations(): number;
  free(): void;
}

/** How a model would be loaded: the options of `inspectModel` in the package. */
export interface InspectionOptions {
  readonly load?: LoadOptions;
  readonly sequences?: number;
  readonly maxBindingBytes?: number;
}

/**
 * Reads the headers of the model that `files` make up. Needs no GPU.
 *
 * @throws Error with a `code` if the bytes cannot be had or an option is wrong
 */
export function inspectModel(
  files: ModelFiles,
  options: InspectionOptions,
): Promise<ModelInspection>;
