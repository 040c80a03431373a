//! What the engine worker does apart from being wasm: exchanges over ports, the model's bytes, and
//! an orderly end when the engine dies. Knows the engine only as an interface, so that a fake one
//! can stand in for it in tests.

import { deferred, orAborted } from "../exchange/abort.js";
import { EngineFailure, messageOf, toEngineFailure } from "../exchange/error_response.js";
import { ADAPTER_CONFIG } from "../model_source/named_files.js";
import { openModel } from "../model_source/open.js";
import type { ModelFiles } from "../model_source/source.js";
import type {
  LoadProgress,
  LoraLocation,
  PageToWorker,
  StartOptions,
  WireFailure,
  WorkerToPage,
} from "../exchange/protocol.js";
import type { EngineFactory, HostedAdapter, HostedEngine } from "./hosted_engine.js";
import { respond } from "./responder.js";
import type { WorkerScope } from "../worker_scopes.js";

/** Time for the last answers to leave the worker before the page ends it. */
const FAREWELL_MS = 50;

/** Serves `scope`'s page until the page ends the worker. */
export function hostEngine(scope: WorkerScope, createEngine: EngineFactory): void {
  const post = (message: WorkerToPage) => scope.postMessage(message);
  const engine = deferred<HostedEngine>();
  // Aborts when the engine is dead; the reason is its EngineFailure.
  const dead = new AbortController();
  // Aborts when the page gives up: downloads stop and are noted.
  const disposed = new AbortController();
  let options: StartOptions | undefined;
  let openExchanges = 0;

  const die = (failure: EngineFailure) => {
    if (dead.signal.aborted) return;
    dead.abort(failure);
    engine.reject(failure);
    if (!disposed.signal.aborted) {
      post({ type: "failed", failure: { code: failure.code, message: failure.message } });
    }
  };
  const failureOf = (reason: unknown): EngineFailure => {
    if (isTrap(reason)) {
      die(new EngineFailure("internal_error", `the engine stopped: ${messageOf(reason)}`));
    }
    return toEngineFailure(dead.signal.aborted ? dead.signal.reason : reason);
  };
  // A trap in a spawned task surfaces here and nowhere else; so does running out of memory.
  const onUncaught = (event: Event, reason: unknown) => {
    if (!isTrap(reason)) return;
    event.preventDefault();
    failureOf(reason);
  };
  scope.addEventListener("error", (event) => onUncaught(event, (event as ErrorEvent).error));
  scope.addEventListener("unhandledrejection", (event) =>
    onUncaught(event, (event as PromiseRejectionEvent).reason),
  );

  const start = async (given: StartOptions) => {
    options = given;
    try {
      engine.resolve(await createEngine(given, die));
      post({ type: "listening" });
    } catch (error) {
      die(toEngineFailure(error));
      return;
    }
    await load();
  };

  const load = async () => {
    const { model, lora } = options as StartOptions;
    // A download goes on beside the load: where that fails, nobody wants the rest.
    const failed = new AbortController();
    const signal = AbortSignal.any([dead.signal, disposed.signal, failed.signal]);
    const report = latest((progress: LoadProgress) => post({ type: "progress", progress }));
    let isDownloading = false;
    const onDownload = (progress: LoadProgress) => {
      isDownloading = (progress.totalBytes ?? progress.loadedBytes) !== progress.loadedBytes;
      report(progress);
    };
    try {
      const hosted = await engine.promise;
      let files: ModelFiles;
      let adapters: HostedAdapter[];
      try {
        [files, adapters] = await Promise.all([
          openModel(model, onDownload, signal),
          openAdapters(lora, signal),
        ]);
      } catch (error) {
        hosted.loadFailed(messageOf(error));
        throw error;
      }
      // What arrives is loaded at once: while it does, the download is what is waited for.
      const onProgress = (loadedBytes: number, totalBytes: number) => {
        if (!isDownloading) report({ phase: "load", loadedBytes, totalBytes });
      };
      await orAborted(hosted.load(files, adapters, onProgress), signal);
      report({ phase: "ready", loadedBytes: files.openedBytes, totalBytes: files.openedBytes });
      post({ type: "ready" });
    } catch (error) {
      failed.abort(error);
      failureOf(error);
      if (dead.signal.aborted || disposed.signal.aborted) return;
      const code = codeOf(error, "model_not_loaded");
      post({ type: "load-failed", failure: { code, message: messageOf(error) } });
    }
  };

  // One after another: the last one asked for is the one that stays.
  let lorasSet: Promise<void> = Promise.resolve();
  const setLora = (call: number, lora: LoraLocation[]) => {
    const signal = AbortSignal.any([dead.signal, disposed.signal]);
    const set = async () => {
      const hosted = await engine.promise;
      const adapters = await openAdapters(lora, signal);
      await orAborted(hosted.setLora(adapters), signal);
    };
    const end = (failure: WireFailure | undefined) => post({ type: "lora-set", call, failure });
    lorasSet = lorasSet.then(set).then(
      () => end(undefined),
      (error: unknown) => {
        failureOf(error);
        end({ code: codeOf(error, "adapter_not_readable"), message: messageOf(error) });
      },
    );
  };

  const serve = async (port: MessagePort) => {
    post({ type: "open-exchanges", count: ++openExchanges });
    await respond(port, engine.promise, { dead: dead.signal, failureOf });
    post({ type: "open-exchanges", count: --openExchanges });
  };

  const dispose = async () => {
    disposed.abort(new DOMException("the engine was disposed", "AbortError"));
    die(new EngineFailure("engine_unavailable", "the engine was disposed"));
    await new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
    post({ type: "disposed" });
  };

  scope.addEventListener("message", (event) => {
    const { data, ports } = event as MessageEvent<PageToWorker>;
    switch (data.type) {
      case "start":
        void start(data.options);
        break;
      case "connect":
        if (ports[0]) void serve(ports[0]);
        break;
      case "info":
        engine.promise
          .then((hosted) => hosted.info())
          .catch(() => undefined)
          .then((info) => post({ type: "info", call: data.call, info }));
        break;
      case "set-lora":
        setLora(data.call, data.lora);
        break;
      case "reload":
        void load();
        break;
      case "dispose":
        void dispose();
        break;
    }
  });
  post({ type: "here" });
}

/** `report`, at most every 50 ms but never missing the end of a phase. */
function latest(report: (progress: LoadProgress) => void): (progress: LoadProgress) => void {
  let reportedAt = 0;
  let phase = "";
  return (progress) => {
    const now = performance.now();
    const boundary = progress.phase !== phase || progress.loadedBytes === progress.totalBytes;
    if (!boundary && now - reportedAt < 50) return;
    reportedAt = now;
    phase = progress.phase;
    report(progress);
  };
}

/** What the Rust side says it failed of; bytes that could not be had have no code. */
function codeOf(error: unknown, otherwise: string): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : otherwise;
}

/** @throws TypeError naming the adapter that cannot be had */
function openAdapters(lora: LoraLocation[], signal: AbortSignal): Promise<HostedAdapter[]> {
  const open = async ({ name, location, scale }: LoraLocation) => {
    try {
      return { name, scale, files: await openModel(location, () => {}, signal, ADAPTER_CONFIG) };
    } catch (error) {
      signal.throwIfAborted();
      throw new TypeError(`LoRA adapter ${name}: ${messageOf(error)}`);
    }
  };
  return Promise.all(lora.map(open));
}

/** After one of these the wasm module is in an unknown state: a trap, or its stack overflowed. */
function isTrap(reason: unknown): boolean {
  return (
    reason instanceof WebAssembly.RuntimeError ||
    (reason instanceof RangeError && /call stack/i.test(reason.message))
  );
}
