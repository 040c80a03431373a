//! `createEngine` and the engine as the page sees it: keeps one engine worker alive and hands out
//! lines to it. Knows nothing of what is said over a line.

import { Completions } from "./completions.js";
import type { EngineInfo } from "./engine_info.js";
import { EngineWorker } from "./engine_worker.js";
import { EngineFailure } from "../exchange/error_response.js";
import { type Line, createFetchDoor } from "./fetch_door.js";
import type { LoadOptions } from "./load_options.js";
import { type LoraAdapter, resolveLora } from "./lora_option.js";
import { type ModelOption, resolveModel } from "./model_option.js";
import {
  type BodyTransport,
  DEFAULT_BASE_PATHS,
  type LoadProgress,
  type LoraLocation,
} from "../exchange/protocol.js";
import type { EngineSwitches } from "./switches.js";

/** What `createEngine` takes; the switches of the endpoint stand beside. */
export interface EngineOptions extends EngineSwitches {
  /**
   * `"embedded"` (the model in the package, if left out), a URL of a GGUF file, a `File` or `Blob`;
   * or an object: one of these with the `id` that requests name it by, `{ folder: URL }` of a Hugging
   * Face folder, or `{ files: [File, ...] }` of a folder or of a split GGUF file.
   */
  model?: ModelOption;
  /** Low-rank adapters on top of the model, all at once; `setLora` changes them. */
  lora?: readonly LoraAdapter[];
  /** Context and memory. */
  load?: LoadOptions;
  onProgress?: (progress: LoadProgress) => void;
  /** Gives the load up. */
  signal?: AbortSignal;
  /** Resolve at once and load on: requests are answered 503 `model_loading` until `engine.ready`. */
  background?: boolean;
  /** The wasm module, where a bundler cannot find it by itself. */
  wasmUrl?: string | URL;
  /** The engine worker's script, where a bundler cannot find it by itself. */
  workerUrl?: string | URL;
  /** How bodies come out of the worker; found out if left out. */
  bodyTransport?: BodyTransport;
}

/**
 * Starts an engine in a worker of its own and loads its model.
 *
 * @throws InpageError if there is no WebGPU or the model cannot be had or run
 * @throws DOMException named `AbortError` if `signal` aborts first
 */
export async function createEngine(options: EngineOptions = {}): Promise<Engine> {
  options.signal?.throwIfAborted();
  const engine = new Engine(options);
  try {
    if (!options.background) await engine.ready;
  } catch (error) {
    await engine.dispose();
    throw error;
  }
  return engine;
}

/** A model that answers requests; made by `createEngine`. */
export class Engine {
  /** The endpoint as a function. */
  readonly completions: Completions;
  /** A `fetch` that answers URLs below the base paths itself; for SDKs. */
  readonly fetch: typeof fetch;
  /** Where the routes hang. */
  readonly basePaths: readonly string[];

  readonly #startWorker: () => EngineWorker;
  #worker: EngineWorker;
  /** What a fresh worker begins with. */
  #lora: LoraLocation[];
  #disposed = false;

  /** Use `createEngine`. */
  constructor(options: EngineOptions) {
    const {
      model,
      lora,
      load,
      onProgress,
      signal,
      background,
      wasmUrl,
      workerUrl,
      bodyTransport,
      ...switches
    } = options;
    const resolved = resolveModel(model);
    this.#lora = resolveLora(lora ?? []);
    const absolute = (url: string | URL) => new URL(url, document.baseURI).href;
    this.basePaths = switches.basePaths ?? DEFAULT_BASE_PATHS;
    this.fetch = createFetchDoor(() => this.#openLine(), this.basePaths, bodyTransport);
    this.completions = new Completions(this.fetch, this.basePaths[0] ?? "/v1", switches.apiKey);
    this.#startWorker = () =>
      new EngineWorker(
        workerUrl,
        {
          modelId: resolved.id,
          model: resolved.location,
          lora: this.#lora,
          load: { ...load },
          wasmUrl: wasmUrl === undefined ? undefined : absolute(wasmUrl),
          switches: { ...switches },
        },
        onProgress ?? (() => {}),
      );
    this.#worker = this.#startWorker();

    const onAbort = () => {
      this.#worker.fail(signal?.reason);
      void this.dispose();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    const loaded = () => signal?.removeEventListener("abort", onAbort);
    this.#worker.ready.then(loaded, loaded);
  }

  /** Resolves when the model is loaded; rejects if that failed. */
  get ready(): Promise<void> {
    return this.#worker.ready;
  }

  /** False once disposed. */
  get alive(): boolean {
    return !this.#disposed;
  }

  /** Requests that are being answered. */
  get openExchanges(): number {
    return this.#worker.openExchanges;
  }

  /** Adapter, kernel variant, model: what the engine runs on. */
  info(): Promise<EngineInfo> {
    return this.#worker.info();
  }

  /**
   * Answers by these low-rank adapters, and no others, from now on; none give the model as it is. The
   * model stays loaded. Requests that run end by the old ones, later ones wait for the new.
   *
   * @throws InpageError if an adapter cannot be had or does not fit; then the old ones stay
   */
  async setLora(lora: readonly LoraAdapter[]): Promise<void> {
    const located = resolveLora(lora);
    await this.#worker.ready;
    await this.#worker.setLora(located);
    this.#lora = located;
  }

  /**
   * Starts over with a fresh worker, GPU device and copy of the model. Happens by itself with the
   * next request after the engine failed or the GPU device was lost.
   */
  async reload(): Promise<void> {
    if (this.#disposed) throw new EngineFailure("engine_unavailable", "the engine was disposed");
    await this.#worker.dispose();
    this.#worker = this.#startWorker();
    await this.#worker.ready;
  }

  /** Ends running requests and frees everything. */
  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#worker.dispose();
  }

  /** Hands one end of a line for a single exchange to the engine; the other end may be anywhere. */
  connect(port: MessagePort): void {
    if (!this.#worker.failed || this.#disposed) {
      this.#worker.connect(port);
      return;
    }
    // The request that finds the engine dead waits for the new one, and is not told to come back.
    this.#worker = this.#startWorker();
    this.#worker.connectWhenLoaded(port);
  }

  #openLine(): Line {
    const { port1, port2 } = new MessageChannel();
    this.connect(port2);
    return { port: port1, lost: this.#worker.lost };
  }
}
