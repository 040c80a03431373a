//! The page's handle of one engine worker. A failed worker is never repaired: `Engine` starts another one.

import { type Deferred, deferred } from "../exchange/abort.js";
import type { EngineInfo, EngineIsolation } from "../exchange/engine_info.js";
import { EngineFailure, codeOf, messageOf, toEngineFailure } from "../exchange/error_response.js";
import { type EngineThread, platform } from "../platform.js";
import { PageThread } from "./engine_thread.js";
import { Heartbeat } from "./heartbeat.js";
import { InpageError } from "../api/inpage_error.js";
import type { IsolatedFrameOptions } from "../site/interception.js";
import { scriptFailure } from "./worker_script.js";
import type {
  LoadProgress,
  LoraLocation,
  PageToWorker,
  StartOptions,
  WireFailure,
  WorkerActivity,
  WorkerToPage,
} from "../exchange/protocol.js";

/** The time that a worker may take to send its last answers before it is terminated. */
const DISPOSE_TIMEOUT_MS = 1000;

/** The activity of the worker after these messages; it does nothing after the others. */
const ACTIVITIES: { readonly [type in PageToWorker["type"]]?: WorkerActivity } = {
  start: "load",
  "load-allowed": "load",
  "set-lora": "load",
  connect: "requests",
  info: "requests",
};

/** Decides when a worker with `asksToLoad` may load its model. */
export interface Admission {
  /** Resolves when the files may be opened. `loaded` settles when the load has ended. */
  mayOpen(loaded: Promise<void>): Promise<void>;
  /**
   * Resolves when there is room for a model that needs this memory.
   *
   * @throws EngineFailure `model_not_loaded` if there is none for too long
   */
  mayRead(memoryBytes: number): Promise<void>;
  /** The number of in-flight requests has changed. */
  onOpenExchanges(): void;
}

/** Stands for a thread that could not be started. */
const NO_THREAD: EngineThread = {
  onmessage: null,
  onerror: null,
  postMessage() {},
  terminate() {},
};

export class EngineWorker {
  #worker: EngineThread & { readonly isolation?: EngineIsolation };
  #ready = deferred<void>();
  #lost = new AbortController();
  #broken = deferred<WireFailure>();
  #disposed = deferred<void>();
  #infoCalls = new Map<number, (info: EngineInfo) => void>();
  #loraCalls = new Map<number, Deferred<void>>();
  #calls = 0;
  /** Messages held back until the worker's script listens; `undefined` from then on. */
  #unsent: [PageToWorker, Transferable[]][] | undefined = [];
  #onProgress: (progress: LoadProgress) => void;
  #admission: Admission | undefined;
  #heartbeat = new Heartbeat(
    (beat) => this.#post({ type: "ping", beat }),
    (failure) => this.#lose(failure),
  );

  /** True when it cannot answer any more. */
  failed = false;
  /** The failure of the load; `permanent` if another attempt would fail again. */
  loadFailure: { message: string; permanent: boolean } | undefined;
  /** The form of the loaded model's kernels, for the worker that takes over. */
  kernels: string | undefined;
  /** True while the model is neither loaded nor failed. */
  isLoading = true;
  /** The number of in-flight requests. */
  openExchanges = 0;

  constructor(
    scriptUrl: string | URL | undefined,
    options: StartOptions,
    onProgress: (progress: LoadProgress) => void,
    isolatedFrame: IsolatedFrameOptions | false | undefined,
    admission?: Admission,
  ) {
    this.#onProgress = onProgress;
    this.#admission = admission;
    try {
      this.#worker =
        platform().startThread?.() ?? new PageThread(scriptUrl, options, isolatedFrame);
    } catch (error) {
      this.#worker = NO_THREAD;
      this.#failToStart(scriptUrl, messageOf(error));
      return;
    }
    this.#worker.onmessage = ({ data }: MessageEvent<WorkerToPage>) => this.#take(data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      const { message = "" } = event;
      // A script that has sent a message was loaded.
      if (this.#unsent !== undefined && platform().startThread === undefined) {
        this.#failToStart(scriptUrl, message);
        return;
      }
      this.#lose(new EngineFailure("internal_error", `the engine worker failed: ${message}`));
    };
    this.#post({ type: "start", options });
  }

  #failToStart(scriptUrl: string | URL | undefined, reason: string): void {
    this.fail(new EngineFailure("worker_unavailable", scriptFailure(scriptUrl, reason)));
    this.#end();
  }

  /** Resolves when the model is loaded. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /**
   * Aborts when no more answers can arrive. The reason is an `EngineFailure`: `engine_unavailable` if the worker has told its
   * requesters, another one if it hangs or has ended without a word.
   */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Resolves when a worker whose model was loaded fails; never if that does not happen. */
  get broken(): Promise<WireFailure> {
    return this.#broken.promise;
  }

  connect(port: MessagePort): void {
    this.#post({ type: "connect" }, [port]);
  }

  /** Connects as `connect` does, but after the load has ended, successfully or not. */
  connectWhenLoaded(port: MessagePort): void {
    const connect = () => this.connect(port);
    this.#ready.promise.then(connect, connect);
  }

  info(): Promise<EngineInfo> {
    if (this.failed) return Promise.resolve({});
    return new Promise((resolve) => {
      const call = this.#calls++;
      this.#infoCalls.set(call, resolve);
      this.#post({ type: "info", call });
    });
  }

  pauseDownload(paused: boolean): void {
    if (!this.failed) this.#post({ type: "pause-download", paused });
  }

  /** Replaces the LoRA adapters once in-flight requests have ended. */
  async setLora(lora: LoraLocation[]): Promise<void> {
    if (this.failed) throw InpageError.local("engine_unavailable", "the engine has failed");
    const made = deferred<void>();
    const call = this.#calls++;
    this.#loraCalls.set(call, made);
    this.#post({ type: "set-lora", call, lora });
    await made.promise;
  }

  /** Ends every in-flight answer with an error, then terminates the worker. */
  async dispose(): Promise<void> {
    this.#ready.reject(new DOMException("the engine was disposed", "AbortError"));
    if (this.#lost.signal.aborted) return;
    this.#post({ type: "dispose" });
    const timer = setTimeout(() => this.#disposed.resolve(), DISPOSE_TIMEOUT_MS);
    await this.#disposed.promise;
    clearTimeout(timer);
    this.failed = true;
    this.#end();
  }

  /** Marks the worker as failed; rejects `ready` if the model is still loading. */
  fail(reason: unknown, permanent = false): void {
    this.failed = true;
    this.#heartbeat.end();
    if (this.isLoading) this.loadFailure = { message: messageOf(reason), permanent };
    this.isLoading = false;
    if (this.loadFailure === undefined) {
      this.#broken.resolve({ code: codeOf(reason, "internal_error"), message: messageOf(reason) });
    }
    this.#ready.reject(
      reason instanceof EngineFailure ? InpageError.local(reason.code, reason.message) : reason,
    );
  }

  #take(message: WorkerToPage): void {
    switch (message.type) {
      case "progress":
        this.#onProgress(message.progress);
        break;
      case "ready":
        this.isLoading = false;
        this.#heartbeat.loaded();
        this.kernels = message.kernels;
        this.#ready.resolve();
        break;
      case "load-failed":
        this.isLoading = false;
        this.loadFailure = { message: message.failure.message, permanent: message.permanent };
        this.#ready.reject(InpageError.local(message.failure.code, message.failure.message));
        break;
      case "failed":
        this.fail(
          InpageError.local(message.failure.code, message.failure.message),
          message.permanent,
        );
        // Its last answers are on their way; after them its GPU memory can be released.
        setTimeout(() => this.#end(), DISPOSE_TIMEOUT_MS);
        break;
      case "info":
        this.#infoCalls.get(message.call)?.(
          message.info ? { ...message.info, ...this.#worker.isolation } : {},
        );
        this.#infoCalls.delete(message.call);
        break;
      case "lora-set": {
        const { call, failure } = message;
        const made = this.#loraCalls.get(call);
        this.#loraCalls.delete(call);
        if (failure === undefined) made?.resolve();
        else made?.reject(InpageError.local(failure.code, failure.message));
        break;
      }
      case "open-exchanges":
        this.openExchanges = message.count;
        this.#admission?.onOpenExchanges();
        break;
      case "ask-to-load":
        void this.#ask(message.memoryBytes);
        break;
      case "disposed":
        this.#disposed.resolve();
        break;
      case "pong":
        this.#heartbeat.take(message);
        break;
      case "here": {
        const unsent = this.#unsent ?? [];
        this.#unsent = undefined;
        for (const [waiting, transfer] of unsent) this.#post(waiting, transfer);
        break;
      }
    }
  }

  async #ask(memoryBytes: number | undefined): Promise<void> {
    try {
      if (memoryBytes === undefined) await this.#admission?.mayOpen(this.ready);
      else await this.#admission?.mayRead(memoryBytes);
      if (!this.failed) this.#post({ type: "load-allowed" });
    } catch (error) {
      const { code, message } = toEngineFailure(error);
      if (!this.failed) this.#post({ type: "load-refused", failure: { code, message } });
    }
  }

  /** The worker has ended or hangs: it gives no more answers. */
  #lose(failure: EngineFailure): void {
    this.fail(failure);
    this.#end(failure);
  }

  #end(reason = new EngineFailure("engine_unavailable", "the engine was stopped")): void {
    this.#heartbeat.end();
    this.#worker.terminate();
    this.openExchanges = 0;
    this.#admission?.onOpenExchanges();
    for (const resolve of this.#infoCalls.values()) resolve({});
    this.#infoCalls.clear();
    const ended = InpageError.local("engine_unavailable", "the engine was stopped");
    for (const made of this.#loraCalls.values()) made.reject(ended);
    this.#loraCalls.clear();
    this.#lost.abort(reason);
  }

  #post(message: PageToWorker, transfer: Transferable[] = []): void {
    if (this.#unsent) {
      this.#unsent.push([message, transfer]);
      return;
    }
    const activity = ACTIVITIES[message.type];
    if (activity) this.#heartbeat.expect(activity);
    try {
      this.#worker.postMessage(message, transfer);
    } catch (error) {
      this.fail(new EngineFailure("internal_error", messageOf(error)));
    }
  }
}
