//! One model behind an engine: keeps its worker alive, shares it with other tabs, changes its adapters. `exchange` defines
//! what is sent over a port.

import type { EngineChange } from "../exchange/engine_change.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import { EngineFailure } from "../exchange/error_response.js";
import type { LoraLocation } from "../exchange/protocol.js";
import type { Connection } from "../exchange/requester.js";
import { VERSION } from "../exchange/version.js";
import { identityOf } from "../cache/selection.js";
import type { EngineCore } from "./engine_core.js";
import { markLoad } from "./load_marks.js";
import type { EngineOptions } from "../options/engine_options.js";
import { type Admission, EngineWorker } from "../thread/engine_worker.js";
import { type Answering, answerOver } from "../api/fetch_door.js";
import type { Keeper } from "../thread/keeper.js";
import { type LoraAdapter, resolveLora } from "../options/lora.js";
import { resolveModel } from "../options/model.js";
import { resolveDraftModel } from "../options/draft_model.js";
import { resolveProjector } from "../options/projector.js";
import { SharedKeeper } from "../sharing/shared_keeper.js";
import { keyOf } from "../sharing/shared_messages.js";
import { WorkerKeeper } from "../thread/worker_keeper.js";

export class SingleModel implements EngineCore {
  readonly answer: Answering;
  #keeper: Keeper;
  /** The shared engine that this one leaves before its adapters change. */
  #sharedByDefault: SharedKeeper | undefined;
  /** Pending while this engine leaves the sharing: requests wait. */
  #moving: Promise<void> | undefined;
  readonly #startOwn: () => WorkerKeeper;
  /** The adapters that a new worker starts with. */
  #lora: LoraLocation[];
  readonly #resolveLora: (lora: readonly LoraAdapter[]) => LoraLocation[];
  #disposed = new AbortController();

  /**
   * Starts to load the model of `options`; with `admission`, when that allows it. `onChange` is called from then on. `isReduced`: it
   * gets less memory than the app wanted.
   *
   * @throws TypeError for an option that cannot be used
   */
  constructor(
    options: EngineOptions,
    onChange: (change: EngineChange) => void,
    { admission, isReduced = false }: { admission?: Admission; isReduced?: boolean } = {},
  ) {
    const { hub, device, threads, isolatedFrame, shared, workerUrl, wasmUrl } = options;
    const files = resolveFiles(options);
    const { id, location, projector, draftModel } = files;
    const load = loadOptions(options);
    const switches = { ...options.endpoint };
    this.#resolveLora = (adapters) => resolveLora(adapters, hub);
    this.#lora = this.#resolveLora(options.lora ?? []);
    const { bodyTransport } = options;
    this.answer = answerOver((afterLoss) => this.openPort(afterLoss), bodyTransport);
    let report = onChange;
    const start = (retryDelayMs: number, kernels: string | undefined) =>
      new EngineWorker(
        workerUrl,
        {
          modelId: id,
          model: location,
          projector,
          draftModel,
          lora: this.#lora,
          device,
          threads,
          pageHasWebGpu: "gpu" in (globalThis.navigator ?? {}),
          load,
          wasmUrl: wasmUrl === undefined ? undefined : absolute(wasmUrl),
          switches,
          retryDelayMs,
          kernels,
          asksToLoad: admission !== undefined,
        },
        (progress) => report({ type: "progress", progress }),
        isolatedFrame,
        admission,
      );
    this.#startOwn = () => new WorkerKeeper(start, (change) => report(change));
    const locations = [location, projector, draftModel, ...this.#lora.map((it) => it.location)];
    const isByDefault =
      shared === undefined &&
      canShare() &&
      locations.every((it) => it === undefined || it.kind === "url");
    const begin = () => {
      const worker = this.#startOwn();
      // With `models`, a load may wait for memory, so it is not marked here.
      if (admission === undefined) markLoad(location, device, isReduced, worker.worker.ready);
      return worker;
    };
    if (shared || isByDefault) {
      const keeper = new SharedKeeper(sharingKey(options, files, this.#lora), {
        start: begin,
        onChange,
        onLora: (located) => {
          this.#lora = located;
        },
      });
      report = (change) => {
        onChange(change);
        keeper.report(change);
      };
      this.#keeper = keeper;
      if (isByDefault) this.#sharedByDefault = keeper;
    } else {
      this.#keeper = begin();
    }
  }

  get ready(): Promise<void> {
    return this.#keeper.worker.ready;
  }

  get openExchanges(): number {
    return this.#keeper.worker.openExchanges;
  }

  fail(reason: unknown): void {
    this.#keeper.worker.fail(reason);
  }

  async info(): Promise<EngineInfo> {
    const shared = this.#keeper instanceof SharedKeeper;
    if (this.#disposed.signal.aborted) return { shared };
    return { ...(await this.#keeper.worker.info()), shared };
  }

  pauseDownload(isPaused: boolean): void {
    this.#keeper.worker.pauseDownload(isPaused);
  }

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
      this.#disposed.signal.throwIfAborted();
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

  async reload(): Promise<void> {
    if (this.#disposed.signal.aborted) {
      throw new EngineFailure("engine_unavailable", "the engine was disposed");
    }
    await this.#keeper.restart();
  }

  async dispose(): Promise<void> {
    this.#disposed.abort();
    await this.#keeper.dispose();
  }

  connect(port: MessagePort): Promise<AbortSignal> {
    return this.#connect(port);
  }

  /** Opens a port for a single exchange. `afterLoss`: the request was in flight when an earlier engine was lost. */
  async openPort(afterLoss: boolean): Promise<Connection> {
    const { port1, port2 } = new MessageChannel();
    return { port: port1, lost: await this.#connect(port2, afterLoss) };
  }

  async #connect(port: MessagePort, afterLoss = false): Promise<AbortSignal> {
    await this.#moving?.catch(() => {});
    return this.#keeper.connect(port, afterLoss);
  }
}
/** The address of an option that may be relative to the page's. */
function absolute(url: string | URL): string {
  return new URL(url, globalThis.document?.baseURI).href;
}

/** The places of the files that `options` name. */
function resolveFiles({ model, hub, projector, draftModel }: EngineOptions) {
  return {
    ...resolveModel(model, hub),
    projector: resolveProjector(projector, hub),
    draftModel: resolveDraftModel(draftModel, hub),
  };
}

/** The load options, with the memory budget. */
function loadOptions({ load, memoryBudgetBytes }: EngineOptions) {
  return { ...load, ...(memoryBudgetBytes !== undefined && { memoryBudgetBytes }) };
}

/** The key of an engine that is shared between tabs: tabs whose keys are equal share it. */
function sharingKey(
  options: EngineOptions,
  { id, location, projector, draftModel }: ReturnType<typeof resolveFiles>,
  lora: readonly LoraLocation[],
): Promise<string> {
  const { shared, device, threads } = options;
  const scripts = [options.workerUrl, options.wasmUrl].map((url) => url && absolute(url));
  const adapters = lora.map(({ location, ...adapter }) => [adapter, identityOf(location)]);
  return keyOf([
    ...[VERSION, shared ?? [scripts, adapters], id, identityOf(location)],
    projector && identityOf(projector),
    draftModel && identityOf(draftModel),
    ...[device, threads, loadOptions(options), { ...options.endpoint }],
  ]);
}

/** Sharing needs Web Locks and channels between tabs, and its key a hash. Pages that are not secure have neither locks nor hashes. */
function canShare(): boolean {
  const hasLocks = typeof navigator.locks?.request === "function";
  return hasLocks && typeof BroadcastChannel === "function" && globalThis.isSecureContext;
}
