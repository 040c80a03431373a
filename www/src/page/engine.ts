//! `createEngine` and `Engine`: keeps one engine worker alive and hands out ports to it. `exchange` defines what is sent
//! over a port.

import type {
  ChatMessage,
  DeviceChoice,
  EngineSwitches,
  LoadOptions,
  TokenList,
  TokenPieceList,
} from "../generated/types.js";
import { basePathsOf } from "../exchange/base_paths.js";
import { cache } from "./cache.js";
import { identityOf } from "./cached_model.js";
import { type CallOptions, Calls } from "./calls.js";
import { Chat } from "./chat.js";
import { Completions } from "./completions.js";
import { Embeddings } from "./embeddings.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import { VERSION } from "../exchange/version.js";
import { EngineWorker } from "./engine_worker.js";
import { EngineFailure } from "../exchange/error_response.js";
import type { HubOptions } from "./hub.js";
import type { Connection } from "../exchange/requester.js";
import { createFetchDoor } from "./fetch_door.js";
import type { IsolatedFrameOptions } from "./isolation.js";
import type { Keeper } from "./keeper.js";
import { type LoraAdapter, resolveLora } from "./lora_option.js";
import { type ModelOption, resolveModel } from "./model_option.js";
import type { BodyTransport, LoadProgress, LoraLocation } from "../exchange/protocol.js";
import { relay } from "./relay.js";
import { Responses } from "./responses.js";
import { SharedKeeper } from "./shared_keeper.js";
import { keyOf } from "./shared_messages.js";
import {
  type DetokenizeRequest,
  type TemplateRequest,
  type TokenizeRequest,
  Tokens,
} from "./tokens.js";
import { createUpstreamDoor, replacesFailedEngine, type UpstreamOptions } from "./upstream.js";
import { WorkerKeeper } from "./worker_keeper.js";

/** The options of `createEngine`, in one object with the endpoint's switches. */
export interface EngineOptions extends EngineSwitches {
  /**
   * `"embedded"` (the model in the package; the default), the URL of a GGUF file, `hf:OWNER/NAME/FILE.gguf`, a `File`
   * or a `Blob`; or an object: one of these with the model's `id`, `{ folder: URL }` of a Hugging Face folder, or
   * `{ files: [File, ...] }` of a folder or a split GGUF file.
   */
  model?: ModelOption;
  /** Where `hf:` names are looked up, and the token for it. */
  hub?: HubOptions;
  /** Ask the browser not to evict the origin's storage, which has the cached models. */
  persist?: boolean;
  /** LoRA adapters, applied all at once; `setLora` changes them. */
  lora?: readonly LoraAdapter[];
  /**
   * Where the model computes. `auto` (the default): on a hardware GPU whose kernels pass the self-test, else on the CPU.
   * `webgpu`: through WebGPU, on a software adapter too. `cpu`: on the CPU. `engine.info()` reports the device.
   */
  device?: DeviceChoice;
  /**
   * Most threads of the CPU device. The default is the number of the machine's logical processors, at most 8. More than
   * one needs a cross-origin isolated page or an isolated frame. `engine.info()` reports how many there are.
   */
  threads?: number;
  /**
   * Threads for the CPU device in a page that is not cross-origin isolated: the engine runs in a hidden frame of the page, which
   * the service worker of this package isolates. If omitted, such a service worker is used if it is active. An object says where
   * it is, as for `serveFromPage`, and registers it if it is not there: `{}` means `/sw.js`. `false`: no frame.
   * Without the frame there is one thread; `engine.info().isolationReason` says why.
   */
  isolatedFrame?: IsolatedFrameOptions | false;
  /** Context and memory. */
  load?: LoadOptions;
  onProgress?: (progress: LoadProgress) => void;
  /** Aborts the load. */
  signal?: AbortSignal;
  /** Resolve immediately and load in the background: until `engine.ready`, requests get 503 `model_loading`. */
  background?: boolean;
  /**
   * One engine for all tabs of the site that ask for the same model with the same options: one of them runs it, and when
   * that tab is closed, frozen or left, another one takes over and continues the in-flight requests. If omitted, models and
   * adapters that are named by URL are shared, until `setLora` is called. `true`: local files are shared too, and
   * `setLora` changes the adapters for all tabs. A text: the same, with tabs that give the same text. `false`: an engine of its
   * own.
   */
  shared?: boolean | string;
  /** The wasm module, where a bundler cannot find it by itself. */
  wasmUrl?: string | URL;
  /** The engine worker's script, where a bundler cannot find it by itself. */
  workerUrl?: string | URL;
  /** How response bodies leave the worker; detected if omitted. */
  bodyTransport?: BodyTransport;
  /**
   * A server that gets requests while the model loads, when it does not fit or the queue is full, or as a function of
   * the request decides. Without it no request leaves the page.
   */
  upstream?: UpstreamOptions;
}

/**
 * Starts an engine in a worker and loads its model, or joins the tabs that share one: see `shared`.
 *
 * @throws InpageError if there is no WebGPU where `device` requires it, or the model cannot be fetched or run; not if `upstream` replaces a failed
 * engine
 * @throws DOMException named `AbortError` if `signal` aborts first
 */
export async function createEngine(options: EngineOptions = {}): Promise<Engine> {
  options.signal?.throwIfAborted();
  const engine = new Engine(options);
  try {
    if (!options.background) await engine.ready;
  } catch (error) {
    const { signal, upstream } = options;
    if (upstream && replacesFailedEngine(upstream) && !signal?.aborted) return engine;
    await engine.dispose();
    throw error;
  }
  return engine;
}

/** A model that answers requests; created by `createEngine`. */
export class Engine {
  /** The chat API. */
  readonly chat: Chat;
  /** The completions API. */
  readonly completions: Completions;
  /** The embeddings API. */
  readonly embeddings: Embeddings;
  /** The Responses API. */
  readonly responses: Responses;
  /** A `fetch` that answers URLs below the base paths itself. Pass it to an SDK. */
  readonly fetch: typeof fetch;
  /** The paths below which the endpoint answers. */
  readonly basePaths: readonly string[];

  readonly #tokens: Tokens;
  #keeper: Keeper;
  /** The shared engine that this one leaves before its adapters change. */
  #sharedByDefault: SharedKeeper | undefined;
  /** Pending while this engine leaves the sharing: requests wait. */
  #moving: Promise<void> | undefined;
  readonly #startOwn: () => WorkerKeeper;
  /** Requests of the service worker pass through `fetch`, too. */
  readonly #relays: boolean;
  /** The adapters that a new worker starts with. */
  #lora: LoraLocation[];
  readonly #resolveLora: (lora: readonly LoraAdapter[]) => LoraLocation[];
  #disposed = new AbortController();

  /** Use `createEngine`. */
  constructor(options: EngineOptions) {
    const {
      model,
      hub,
      persist,
      lora,
      device,
      threads,
      isolatedFrame,
      load,
      onProgress,
      signal,
      background,
      wasmUrl,
      workerUrl,
      bodyTransport,
      upstream,
      shared,
      ...switches
    } = options;
    const resolved = resolveModel(model, hub);
    this.#resolveLora = (adapters) => resolveLora(adapters, hub);
    this.#lora = this.#resolveLora(lora ?? []);
    if (persist) void cache.persist();
    const absolute = (url: string | URL) => new URL(url, globalThis.document?.baseURI).href;
    this.basePaths = switches.basePaths ?? basePathsOf(switches.profile);
    const door = createFetchDoor(
      (afterLoss) => this.#openPort(afterLoss),
      this.basePaths,
      bodyTransport,
    );
    this.fetch = upstream ? createUpstreamDoor(door, this.basePaths, upstream) : door;
    this.#relays = upstream !== undefined;
    const calls = new Calls(this.fetch, this.basePaths[0] ?? "/v1", switches.apiKey ?? undefined);
    this.chat = new Chat(calls);
    this.completions = new Completions(calls);
    this.embeddings = new Embeddings(calls);
    this.responses = new Responses(calls);
    this.#tokens = new Tokens(calls);
    let report = (progress: LoadProgress) => onProgress?.(progress);
    const start = (retryDelayMs: number, kernels: string | undefined) =>
      new EngineWorker(
        workerUrl,
        {
          modelId: resolved.id,
          model: resolved.location,
          lora: this.#lora,
          device,
          threads,
          pageHasWebGpu: "gpu" in (globalThis.navigator ?? {}),
          load: { ...load },
          wasmUrl: wasmUrl === undefined ? undefined : absolute(wasmUrl),
          switches: { ...switches },
          retryDelayMs,
          kernels,
        },
        report,
        isolatedFrame,
      );
    this.#startOwn = () => new WorkerKeeper(start);
    const { id, location } = resolved;
    const isByDefault =
      shared === undefined &&
      canShare() &&
      [location, ...this.#lora.map(({ location }) => location)].every(({ kind }) => kind === "url");
    if (shared || isByDefault) {
      const scripts = [workerUrl, wasmUrl].map((url) => url && absolute(url));
      const adapters = this.#lora.map(({ location, ...adapter }) => [
        adapter,
        identityOf(location),
      ]);
      const keeper = new SharedKeeper(
        keyOf([
          ...[VERSION, shared ?? [scripts, adapters], id, identityOf(location)],
          ...[device, threads, load, switches],
        ]),
        {
          start: this.#startOwn,
          onProgress: (progress) => onProgress?.(progress),
          onLora: (located) => {
            this.#lora = located;
          },
        },
      );
      report = (progress) => {
        onProgress?.(progress);
        keeper.report(progress);
      };
      this.#keeper = keeper;
      if (isByDefault) this.#sharedByDefault = keeper;
    } else {
      this.#keeper = this.#startOwn();
    }

    const onAbort = () => {
      this.#keeper.worker.fail(signal?.reason);
      void this.dispose();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    const loaded = () => signal?.removeEventListener("abort", onAbort);
    this.ready.then(loaded, loaded);
  }

  /** Resolves when the model is loaded; rejects if loading fails. */
  get ready(): Promise<void> {
    return this.#keeper.worker.ready;
  }

  /** False once disposed. */
  get alive(): boolean {
    return !this.disposed.aborted;
  }

  /** Aborts when the engine is disposed. */
  get disposed(): AbortSignal {
    return this.#disposed.signal;
  }

  /** The number of in-flight requests. */
  get openExchanges(): number {
    return this.#keeper.worker.openExchanges;
  }

  /**
   * The ids that a completion of this prompt or, with `messages`, a chat would give the model. The model does not run.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  tokenize(
    request: TokenizeRequest & { with_pieces: true },
    options?: CallOptions,
  ): Promise<TokenPieceList>;
  tokenize(
    request: string | (TokenizeRequest & { with_pieces?: false | null }),
    options?: CallOptions,
  ): Promise<TokenList>;
  tokenize(
    request: string | TokenizeRequest,
    options?: CallOptions,
  ): Promise<TokenList | TokenPieceList> {
    return this.#tokens.tokenize(request, options);
  }

  /**
   * The text of token ids, special tokens included unless `skip_special_tokens` is true.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  detokenize(
    request: ArrayLike<number> | DetokenizeRequest,
    options?: CallOptions,
  ): Promise<string> {
    return this.#tokens.detokenize(request, options);
  }

  /**
   * The text that the chat template makes of messages.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  applyTemplate(
    request: readonly ChatMessage[] | TemplateRequest,
    options?: CallOptions,
  ): Promise<string> {
    return this.#tokens.applyTemplate(request, options);
  }

  /** The device, the kernels, the model and the timings of its load. */
  async info(): Promise<EngineInfo> {
    const shared = this.#keeper instanceof SharedKeeper;
    if (!this.alive) return { shared };
    return { ...(await this.#keeper.worker.info()), shared };
  }

  /**
   * Stops downloading the model's files until `resumeDownload`. What has arrived stays, and the download continues
   * from there. Files that are cached or local are read on.
   */
  pauseDownload(): void {
    this.#keeper.worker.pauseDownload(true);
  }

  resumeDownload(): void {
    this.#keeper.worker.pauseDownload(false);
  }

  /**
   * Replaces the LoRA adapters by these; an empty list leaves the plain model. The model stays loaded.
   * In-flight requests finish with the old adapters, later ones wait for the new ones. An engine that is shared by default
   * becomes one of its own first; if another tab runs it, the model is loaded in this tab.
   *
   * @throws InpageError if an adapter cannot be fetched or does not fit the model; the old ones stay in use
   */
  async setLora(lora: readonly LoraAdapter[]): Promise<void> {
    const located = this.#resolveLora(lora);
    while (this.#moving !== undefined) await this.#moving.catch(() => {});
    const shared = this.#sharedByDefault;
    if (shared === undefined) return this.#replaceLora(this.#keeper, located);
    const moving = this.#leave(shared, located);
    this.#moving = moving;
    try {
      await moving;
    } finally {
      this.#moving = undefined;
    }
  }

  /** Changes the adapters without those of the tabs that share the engine. */
  async #leave(shared: SharedKeeper, lora: LoraLocation[]): Promise<void> {
    await shared.worker.ready;
    const own = shared.takeAlong();
    if (own) {
      this.#keeper = own;
      this.#sharedByDefault = undefined;
      return this.#replaceLora(own, lora);
    }
    const started = this.#startOwn();
    try {
      await this.#replaceLora(started, lora);
      this.disposed.throwIfAborted();
    } catch (error) {
      await started.dispose();
      throw error;
    }
    this.#keeper = started;
    this.#sharedByDefault = undefined;
    shared.retire();
  }

  async #replaceLora(keeper: Keeper, lora: LoraLocation[]): Promise<void> {
    const { worker } = keeper;
    await worker.ready;
    await worker.setLora(lora);
    this.#lora = lora;
  }

  /**
   * Starts again with a new worker and GPU device, and loads the model again; in-flight requests continue with it. After
   * a failure of the engine, the loss of the GPU device or a load that failed, requests do this automatically. `reload`
   * does it at once, and also after a failure that would recur unless its cause is removed.
   */
  async reload(): Promise<void> {
    if (!this.alive) throw new EngineFailure("engine_unavailable", "the engine was disposed");
    await this.#keeper.restart();
  }

  /** Ends in-flight requests and frees all resources. */
  async dispose(): Promise<void> {
    this.#disposed.abort();
    await this.#keeper.dispose();
  }

  /** Passes the engine a port for a single exchange; the other end of the channel may be anywhere. */
  connect(port: MessagePort): void {
    if (this.#relays) void relay(port, this.fetch);
    else void this.#connect(port);
  }

  async #connect(port: MessagePort, afterLoss = false): Promise<AbortSignal> {
    await this.#moving?.catch(() => {});
    return this.#keeper.connect(port, afterLoss);
  }

  async #openPort(afterLoss: boolean): Promise<Connection> {
    const { port1, port2 } = new MessageChannel();
    return { port: port1, lost: await this.#connect(port2, afterLoss) };
  }
}

/** Sharing needs Web Locks and channels between tabs, and its key a hash. Pages that are not secure have neither locks nor hashes. */
function canShare(): boolean {
  const hasLocks = typeof navigator.locks?.request === "function";
  return hasLocks && typeof BroadcastChannel === "function" && globalThis.isSecureContext;
}
