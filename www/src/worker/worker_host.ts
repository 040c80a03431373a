//! Serves the page from the engine worker: receives its messages and answers them. The engine is an
//! interface here, so that tests can use a fake one.

import { type Deferred, deferred, orAborted } from "../exchange/abort.js";
import {
  codeOf,
  EngineFailure,
  InvalidOptions,
  messageOf,
  toEngineFailure,
} from "../exchange/error_response.js";
import type {
  LoadProgress,
  PageToWorker,
  StartOptions,
  WorkerActivity,
  WorkerToPage,
} from "../exchange/protocol.js";
import { DownloadPause } from "../model_source/transfer/pause.js";
import type { StorageReport } from "../model_source/transfer/url_file.js";
import type { WorkerScope } from "../worker_scopes.js";
import { AdapterChanges } from "./adapters.js";
import { EngineLife } from "./engine_life.js";
import type { EngineFactory, HostedEngine } from "../wasm/hosted_engine.js";
import { KeptKernels } from "./kept_kernels.js";
import { isPermanent, loadModel, reportFailure } from "./load.js";
import { namingModule } from "./wasm_failure.js";
import { StorageSummary } from "./storage_summary.js";
import { respond } from "./responder.js";

/** Time for the last answers to leave the worker before the page terminates it. */
const DISPOSE_DELAY_MS = 50;

/** Failures of a load after which the kernels are tested again. */
const BLAMED_ON_KERNELS = ["device_lost", "internal_error"];

/** Serves `scope`'s page until the page terminates the worker. */
export function hostEngine(scope: WorkerScope, createEngine: EngineFactory): void {
  const host = new WorkerHost((message) => scope.postMessage(message), createEngine);
  host.life.watchUncaught(scope);
  scope.addEventListener("message", (event) => {
    const { data, ports } = event as MessageEvent<PageToWorker>;
    host.take(data, ports);
  });
  scope.postMessage({ type: "here", script: scope.location?.href } satisfies WorkerToPage);
}

class WorkerHost {
  readonly life: EngineLife;
  #post: (message: WorkerToPage) => void;
  #createEngine: EngineFactory;
  #adapters: AdapterChanges;
  #pause = new DownloadPause();
  #storage = new StorageSummary();
  #engine: HostedEngine | undefined;
  #openExchanges = 0;
  #openChanges = 0;
  #isLoading = false;
  #optionsAreInvalid = false;
  #allowed: Deferred<void> | undefined;
  /** Resolves when the note on the kernels is written or removed. A worker that ends before that loses it. */
  #noteKept: Promise<void> = Promise.resolve();

  constructor(post: (message: WorkerToPage) => void, createEngine: EngineFactory) {
    this.#post = post;
    this.#createEngine = createEngine;
    this.life = new EngineLife(({ code, message }) =>
      post({ type: "failed", failure: { code, message }, permanent: this.#optionsAreInvalid }),
    );
    this.#adapters = new AdapterChanges(this.life, this.#pause);
  }

  take(message: PageToWorker, ports: readonly MessagePort[]): void {
    switch (message.type) {
      case "start":
        void this.#start(message.options);
        break;
      case "connect":
        if (ports[0]) void this.#serve(ports[0]);
        break;
      case "info":
        void this.#info(message.call);
        break;
      case "pause-download":
        if (message.paused) this.#pause.pause();
        else this.#pause.resume();
        break;
      case "set-lora": {
        const { call, lora } = message;
        this.#openChanges += 1;
        void this.#adapters.set(lora).then((failure) => {
          this.#openChanges -= 1;
          this.#post({ type: "lora-set", call, failure });
        });
        break;
      }
      case "load-allowed":
        this.#allowed?.resolve();
        break;
      case "load-refused": {
        const { code, message: reason } = message.failure;
        this.#allowed?.reject(new EngineFailure(code, reason));
        break;
      }
      case "ping": {
        const operation = this.#engine?.pendingOperation?.();
        this.#post({ type: "pong", beat: message.beat, activity: this.#activity(), operation });
        break;
      }
      case "dispose":
        void this.#dispose();
        break;
    }
  }

  async #start(options: StartOptions): Promise<void> {
    this.#isLoading = true;
    const kept = new KeptKernels(options);
    const loaded = this.#load(options);
    // Awaited below, unless the engine cannot be created, which ends the load.
    loaded.catch(() => {});
    try {
      const { life } = this;
      const onDeath = (failure: EngineFailure) => life.die(failure);
      this.#engine = await this.#createEngine(options, onDeath, life.dead, kept.text);
      life.created(this.#engine);
    } catch (error) {
      this.#optionsAreInvalid = error instanceof InvalidOptions;
      this.life.die(toEngineFailure(namingModule(error, options.wasmUrl)));
      return;
    }
    try {
      await loaded;
      const engine = await this.life.engine;
      const kernels = engine.kernels?.();
      this.#isLoading = false;
      this.#post({ type: "ready", kernels });
      this.#noteKept = kept.keep(kernels);
      await this.#noteKept;
    } catch (error) {
      // Ends the engine if the error is a trap.
      this.life.failureOf(error);
      const cause: unknown = this.life.dead.aborted ? this.life.dead.reason : error;
      if (BLAMED_ON_KERNELS.includes(codeOf(cause, ""))) this.#noteKept = kept.drop();
      await this.#noteKept;
      if (this.life.over.aborted) return;
      await reportFailure(error, options, this.life);
      this.#isLoading = false;
      const code = codeOf(error, "model_not_loaded");
      const failure = { code, message: messageOf(error) };
      this.#post({ type: "load-failed", failure, permanent: isPermanent(error) });
    }
  }

  /** Opens the model while the engine is created, and loads it then. */
  async #load(options: StartOptions): Promise<void> {
    const onProgress = (progress: LoadProgress) => this.#post({ type: "progress", progress });
    this.#storage.expect(options.model);
    const onStorage = (report: StorageReport) => this.#storage.add(report);
    const mayRead = options.asksToLoad ? (bytes: number) => this.#ask(bytes) : undefined;
    if (options.asksToLoad) await this.#ask(undefined);
    const hooks = { pause: this.#pause, onProgress, onStorage, mayRead };
    await loadModel(options, this.life, hooks);
  }

  /** Asks the page whether the load may go on; the endpoint answers meanwhile. */
  async #ask(memoryBytes: number | undefined): Promise<void> {
    this.#allowed = deferred();
    this.#post({ type: "ask-to-load", memoryBytes });
    try {
      await orAborted(this.#allowed.promise, this.life.over);
    } finally {
      this.#allowed = undefined;
    }
  }

  #activity(): WorkerActivity {
    // A load that waits until it may go on does nothing.
    if ((this.#isLoading && !this.#allowed) || this.#openChanges > 0) return "load";
    return this.#openExchanges > 0 ? "requests" : "idle";
  }

  async #serve(port: MessagePort): Promise<void> {
    this.#post({ type: "open-exchanges", count: ++this.#openExchanges });
    await respond(port, this.life);
    this.#post({ type: "open-exchanges", count: --this.#openExchanges });
  }

  async #info(call: number): Promise<void> {
    const info = await this.life.engine
      .then((engine) => (this.life.dead.aborted ? undefined : engine.info()))
      .catch(() => undefined);
    this.#post({ type: "info", call, info: info && { ...info, ...this.#storage.info } });
  }

  async #dispose(): Promise<void> {
    this.life.dispose();
    const answersLeft = new Promise((resolve) => setTimeout(resolve, DISPOSE_DELAY_MS));
    await Promise.all([answersLeft, this.#noteKept]);
    this.#post({ type: "disposed" });
  }
}
