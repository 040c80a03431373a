//! `createEngine` and `Engine`: the public face of one model or several. `single.ts` and `group.ts` do the work.

// For apps whose own `lib` has no `AsyncDisposable`.
/// <reference lib="esnext.disposable" preserve="true" />

import type { ChatMessage, RerankList, TokenList, TokenPieceList } from "../generated/types.js";
import { throwingInpageErrors } from "../api/inpage_error.js";
import { basePathsOf } from "../exchange/base_paths.js";
import type { EngineChange, LoadState } from "../exchange/engine_change.js";
import { normalizedOrigins } from "../exchange/served_urls.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import { cache } from "../cache/cache.js";
import { type CallOptions, Calls } from "../api/calls.js";
import { Chat } from "../api/chat.js";
import { Completions } from "../api/completions.js";
import { Embeddings } from "../api/embeddings.js";
import type { EngineCore } from "../models/engine_core.js";
import type { EngineOptions } from "../options/engine_options.js";
import { type Answering, createFetchDoor, networkFetch } from "../api/fetch_door.js";
import type { LoraAdapter } from "../options/lora.js";
import { EngineEvents, eventOf } from "./events.js";
import { setInternals } from "./internals.js";
import { attemptsOf, optionsOfModels } from "../models/attempts.js";
import { FittedModel } from "../models/fitted.js";
import { type RememberedCrash, crashedLoad, hasMarks } from "../models/load_marks.js";
import { deviceBudgetBytes, pageHints } from "../device_budget.js";
import { ModelGroup } from "../models/group.js";
import { haveName, withFilesOfNames } from "../options/catalog_name.js";
import { invalidOption, refuseUnknownOptions } from "../options/names.js";
import { refusePlace } from "../options/place_check.js";
import { relay } from "../api/relay.js";
import { Messages } from "../api/messages.js";
import { type RerankRequest, rerank } from "../api/rerank.js";
import { Responses } from "../api/responses.js";
import { SingleModel } from "../models/single.js";
import {
  type DetokenizeRequest,
  type TemplateRequest,
  type TokenizeRequest,
  Tokens,
} from "../api/tokens.js";
import { answerWithUpstream, replacesFailedEngine } from "../api/upstream.js";

/**
 * Starts an engine in a worker and loads its model, or joins the tabs that share one: see `shared`. With `models` it resolves at
 * once, and models are loaded when they are asked for.
 *
 * @throws InpageError for an option that cannot be used (`invalid_option`), and if there is no WebGPU where `device` requires it, or the model cannot be fetched or run; not if `upstream` replaces a failed
 * engine
 * @throws DOMException named `AbortError` if `signal` aborts first
 */
export async function createEngine(options: EngineOptions = {}): Promise<Engine> {
  options.signal?.throwIfAborted();
  const named = haveName(options) ? await withFilesOfNames(options) : options;
  const engine = engineOf(named, hasMarks(named) ? await crashesOf(named) : []);
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

/** @throws InpageError `invalid_option` for an option that cannot be used, and those of `refusePlace` */
function engineOf(options: EngineOptions, crashes: Crashes): Engine {
  refuseUnknownOptions(options);
  refusePlace(options);
  try {
    return new Engine(options, crashes);
  } catch (error) {
    // Only the options are read here.
    throw error instanceof TypeError ? invalidOption(error.message, error) : error;
  }
}

/**
 * An answer to a request that comes while the model loads is worth waiting for, unless another server would answer
 * meanwhile.
 */
function withDefaults(options: EngineOptions): EngineOptions & { isDevices: boolean } {
  const { endpoint, upstream } = options;
  const hints = options.memoryBudgetBytes === undefined ? pageHints() : undefined;
  const ofDevice = hints && deviceBudgetBytes(hints);
  const memoryBudgetBytes = options.memoryBudgetBytes ?? ofDevice;
  const whenModelNotReady = endpoint?.whenModelNotReady ?? (upstream ? "error" : "wait");
  const isNumber = typeof memoryBudgetBytes === "number" && memoryBudgetBytes > 0;
  if (memoryBudgetBytes !== undefined && !isNumber) {
    throw new TypeError(`memoryBudgetBytes must be a positive number, not ${memoryBudgetBytes}`);
  }
  const { memoryBudgetBytes: _, ...others } = options;
  return {
    ...others,
    ...(isNumber &&
      memoryBudgetBytes !== Number.POSITIVE_INFINITY && {
        memoryBudgetBytes: Math.floor(memoryBudgetBytes),
      }),
    endpoint: { ...endpoint, whenModelNotReady },
    isDevices: ofDevice !== undefined,
  };
}

/** Loads of each model, `model` first, that ended with their tab. */
type Crashes = readonly (RememberedCrash | undefined)[];

/** @throws InpageError `invalid_option` for an option that cannot be used */
function crashesOf(options: EngineOptions): Promise<Crashes> {
  return throwingInpageErrors(() => Promise.all(optionsOfModels(options).map(crashedLoad)));
}

/** One model. It takes attempts where memory is short, a load has ended with its tab, or there are other models. */
function oneModel(
  { fitMemory, ...options }: EngineOptions,
  crashes: Crashes,
  isDevices: boolean,
  onChange: (change: EngineChange) => void,
): EngineCore {
  const attempts = attemptsOf(options, crashes, fitMemory ?? isDevices);
  const [first] = attempts;
  return attempts.length === 1 && first?.model === 0 && !crashes[0]
    ? new SingleModel(first.options, onChange)
    : new FittedModel(attempts, crashes[0], onChange);
}

/** The key of the method that `await using` calls; the one of bundlers where the program has none. */
const ASYNC_DISPOSE: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * A model that answers requests, or several; created by `createEngine`. It dispatches the events `progress`, `statechange` and
 * `lost`. `await using engine = await createEngine()` disposes it at the end of the block.
 */
export class Engine extends EngineEvents implements AsyncDisposable {
  /** The chat API. */
  readonly chat: Chat;
  /** The completions API. */
  readonly completions: Completions;
  /** The embeddings API. */
  readonly embeddings: Embeddings;
  /** Anthropic's Messages API. */
  readonly messages: Messages;
  /** The Responses API. */
  readonly responses: Responses;
  /**
   * A `fetch` whose endpoint is this engine. Pass it to an SDK, or put it in place of the global one: it answers the routes of
   * the endpoint on the page's own origin, on `fetchOrigins`, and below `https://inpage.invalid`. Everything else goes to the
   * network as it is.
   */
  readonly fetch: typeof fetch;
  /** The paths below which the endpoint answers. */
  readonly basePaths: readonly string[];

  readonly #calls: Calls;
  readonly #tokens: Tokens;
  readonly #core: EngineCore;
  #disposed = new AbortController();
  #state: LoadState;

  /** Use `createEngine`. */
  constructor(given: EngineOptions, crashes: Crashes = []) {
    super();
    const { isDevices, ...options } = withDefaults(given);
    const { models, fetchOrigins = [], persist, signal, upstream, onProgress } = options;
    const { apiKey, basePaths, profile } = options.endpoint ?? {};
    this.basePaths = basePaths ?? basePathsOf(profile);
    const origins = normalizedOrigins(fetchOrigins, "fetchOrigins");
    const network = networkFetch();
    const own: Answering = (request, requestSignal) => this.#core.answer(request, requestSignal);
    // Before a worker is started: its options may be wrong.
    const relayed = upstream && answerWithUpstream(own, this.basePaths, upstream, network);
    const answer = relayed ?? own;
    this.#state = models === undefined ? "loading" : "ready";
    const onChange = (change: EngineChange) => {
      if (change.type === "progress") onProgress?.(change.progress);
      this.#take(change);
    };
    const core =
      models === undefined
        ? oneModel(options, crashes, isDevices, onChange)
        : new ModelGroup(options, this.basePaths, onChange);
    this.#core = core;
    setInternals(this, {
      connect(port) {
        if (relayed === undefined) return core.connect(port);
        // The page answers requests of the service worker itself.
        void relay(port, relayed);
        return undefined;
      },
    });
    if (persist) void cache.persist();
    this.fetch = createFetchDoor(answer, { basePaths: this.basePaths, origins, network });
    const calls = new Calls(this.fetch, this.basePaths[0] ?? "/v1", apiKey ?? undefined);
    this.#calls = calls;
    this.chat = new Chat(calls);
    this.completions = new Completions(calls);
    this.embeddings = new Embeddings(calls);
    this.messages = new Messages(calls);
    this.responses = new Responses(calls);
    this.#tokens = new Tokens(calls);

    const onAbort = () => {
      core.fail(signal?.reason);
      void this.dispose();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    const loaded = () => signal?.removeEventListener("abort", onAbort);
    this.ready.then(loaded, loaded);
  }

  /** Resolves when the model is loaded; rejects if loading fails. With several models it is resolved: see `loadModel`. */
  get ready(): Promise<void> {
    return this.#core.ready;
  }

  /** Whether the model can answer. An engine with several models is `ready` from the start; `info` and events tell their states. */
  get state(): LoadState {
    return this.#state;
  }

  /** False once disposed. */
  get alive(): boolean {
    return !this.disposed.aborted;
  }

  /** Aborts when the engine is disposed. */
  get disposed(): AbortSignal {
    return this.#disposed.signal;
  }

  /**
   * Puts documents in the order in which they fit a query. The model must be a reranker: `docs/models.md` lists which.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  rerank(request: RerankRequest, options?: CallOptions): Promise<RerankList> {
    return rerank(this.#calls, request, options);
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
  info(): Promise<EngineInfo> {
    return throwingInpageErrors(() => this.#core.info());
  }

  /**
   * Loads one of several models, without a request for it. A model that is loaded counts as used. After a load that failed,
   * the next attempt begins at once.
   *
   * @param model its name or an alias
   * @throws InpageError if it cannot be loaded, if there is no such model (`model_not_found`), or if the engine was created without
   * `models` (`invalid_option`)
   */
  loadModel(model: string): Promise<void> {
    return throwingInpageErrors(() => this.#group("loadModel").load(model));
  }

  /**
   * Unloads one of several models when its in-flight requests have ended. A later request loads it again. Without effect on a
   * model that is not loaded.
   *
   * @param model its name or an alias
   * @throws InpageError if there is no such model (`model_not_found`), or if the engine was created without `models`
   * (`invalid_option`)
   */
  unloadModel(model: string): Promise<void> {
    return throwingInpageErrors(() => this.#group("unloadModel").unload(model));
  }

  #group(method: string): ModelGroup {
    if (this.#core instanceof ModelGroup) return this.#core;
    throw new TypeError(`${method} is for engines with several models, created with models`);
  }

  /**
   * Stops downloading the model's files until `resumeDownload`. What has arrived stays, and the download continues
   * from there. Files that are cached or local are read on.
   */
  pauseDownload(): void {
    this.#core.pauseDownload(true);
  }

  resumeDownload(): void {
    this.#core.pauseDownload(false);
  }

  /**
   * Replaces the LoRA adapters by these; an empty list leaves the plain model. The model stays loaded.
   * In-flight requests finish with the old adapters, later ones wait for the new ones. An engine that is shared by default
   * becomes one of its own first; if another tab runs it, the model is loaded in this tab.
   *
   * @param model the name of the model or an alias, of an engine with several; it is loaded if necessary
   * @throws InpageError if an adapter cannot be fetched or does not fit the model; the old ones stay in use
   */
  setLora(lora: readonly LoraAdapter[], model?: string): Promise<void> {
    return throwingInpageErrors(() => this.#core.setLora(lora, model));
  }

  /**
   * Starts again with a new worker and GPU device, and loads the model again; in-flight requests continue with it. After
   * a failure of the engine, the loss of the GPU device or a load that failed, requests do this automatically. `reload`
   * does it at once, and also after a failure that would recur unless its cause is removed. Of several models, it does
   * this with all that are loaded, or could not be.
   *
   * @throws InpageError if the model cannot be loaded
   */
  reload(): Promise<void> {
    return throwingInpageErrors(() => this.#core.reload());
  }

  /** Ends in-flight requests and frees all resources. */
  async dispose(): Promise<void> {
    this.#take({ type: "statechange", state: "disposed" });
    this.#disposed.abort();
    await this.#core.dispose();
  }

  /** `dispose`, at the end of a block with `await using`. */
  [ASYNC_DISPOSE](): Promise<void> {
    return this.dispose();
  }

  /** Dispatches what has happened; nothing happens to a disposed engine. */
  #take(change: EngineChange): void {
    if (this.#state === "disposed") return;
    if (change.type === "statechange" && change.model === undefined) {
      if (change.state === this.#state) return;
      this.#state = change.state;
    }
    this.dispatchEvent(eventOf(change));
  }
}
