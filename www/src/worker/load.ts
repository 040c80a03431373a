//! Loads the model: opens its files, passes them to the engine while they download, reports progress.

import { orAborted } from "../exchange/abort.js";
import { codeOf, messageOf } from "../exchange/error_response.js";
import type { LoadProgress, ModelLocation, StartOptions } from "../exchange/protocol.js";
import { NoSuchFile } from "../model_source/transfer/http.js";
import { type OpenOptions, openModel } from "../model_source/open.js";
import type { DownloadPause } from "../model_source/transfer/pause.js";
import { DownloadProgress } from "../model_source/transfer/progress.js";
import type { ModelFiles } from "../byte_source.js";
import type { StorageReport } from "../model_source/transfer/url_file.js";
import { openAdapters } from "./adapters.js";
import type { EngineLife } from "./engine_life.js";

/** Progress within a phase is reported at most this often. */
const REPORT_INTERVAL_MS = 50;

export interface LoadHooks {
  pause: DownloadPause;
  onProgress: (progress: LoadProgress) => void;
  onStorage: (report: StorageReport) => void;
  /** Resolves when a model that needs this memory may be loaded. */
  mayRead?: ((memoryBytes: number) => Promise<void>) | undefined;
}

/** @throws whatever the download or the engine fails with */
export async function loadModel(
  { model, projector, draftModel, lora }: StartOptions,
  life: EngineLife,
  { pause, onProgress, onStorage, mayRead }: LoadHooks,
): Promise<void> {
  // The download runs in parallel with the load: when the load fails, the download stops.
  const failed = new AbortController();
  const signal = AbortSignal.any([life.over, failed.signal]);
  const ended = new AbortController();
  const reading = AbortSignal.any([signal, ended.signal]);
  const report = throttled(onProgress, reading);
  let isDownloading = false;
  const onDownload = (progress: LoadProgress) => {
    isDownloading = (progress.totalBytes ?? progress.loadedBytes) !== progress.loadedBytes;
    report(progress);
  };
  // Bytes are loaded as they arrive, so during a download its progress is the one that counts.
  const onLoad = (loadedBytes: number, totalBytes: number) => {
    if (!isDownloading) report({ phase: "load", loadedBytes, totalBytes });
  };
  try {
    // The download begins while the wasm module arrives.
    const createHasher = async () => (await life.engine).createHasher();
    const options = { signal, pause, reading, createHasher };
    const progress = new DownloadProgress(onDownload);
    const ofModels = { ...options, progress, onStorage };
    const [files, tower, draft, adapters] = await Promise.all([
      openModel(model, ofModels),
      projector && openBeside("projector", projector, ofModels),
      draftModel && openBeside("draft model", draftModel, ofModels),
      openAdapters(lora, options),
    ]);
    const engine = await life.engine;
    const besideBytes = () => (tower?.openedBytes ?? 0) + (draft?.openedBytes ?? 0);
    if (mayRead) {
      const needed = await orAborted(Promise.resolve(engine.memoryNeeded?.(files)), signal);
      await orAborted(mayRead((needed ?? files.openedBytes) + besideBytes()), signal);
    }
    await orAborted(engine.load(files, tower, draft, adapters, onLoad), signal);
    const openedBytes = files.openedBytes + besideBytes();
    report({ phase: "ready", loadedBytes: openedBytes, totalBytes: openedBytes });
  } catch (error) {
    failed.abort(error);
    throw error;
  } finally {
    ended.abort();
  }
}

/** @throws an error that begins with `what` */
async function openBeside(
  what: string,
  location: ModelLocation,
  options: OpenOptions,
): Promise<ModelFiles> {
  try {
    return await openModel(location, options);
  } catch (error) {
    options.signal.throwIfAborted();
    const Kind = error instanceof NoSuchFile ? NoSuchFile : TypeError;
    throw new Kind(`${what}: ${messageOf(error)}`);
  }
}

/** Tells the endpoint, which answers requests already, why the load failed and whether it will be tried again. */
export async function reportFailure(
  error: unknown,
  { retryDelayMs }: StartOptions,
  life: EngineLife,
): Promise<void> {
  const engine = await life.engine;
  if (isPermanent(error)) {
    const remedy = "another attempt would fail again, so correct it and call engine.reload()";
    engine.loadFailed(`${messageOf(error)}; ${remedy}`, undefined);
  } else {
    engine.loadFailed(messageOf(error), Date.now() + retryDelayMs);
  }
}

/** Errors of the Rust side about what the model is. */
const PERMANENT_CODES = ["invalid_model_file", "unsupported_model"];

/** True if another attempt at the same load would fail again. */
export function isPermanent(error: unknown): boolean {
  return error instanceof NoSuchFile || PERMANENT_CODES.includes(codeOf(error, ""));
}

/**
 * `report`, called at most every `REPORT_INTERVAL_MS`, and always at the start and end of a phase. The last progress
 * before a silence is reported, too. Nothing is reported once `ended` is aborted: the download of bytes that the engine
 * has not waited for may go on then, and `ready` is the last phase.
 */
function throttled(
  report: (progress: LoadProgress) => void,
  ended: AbortSignal,
): (progress: LoadProgress) => void {
  let reportedAt = 0;
  let last: LoadProgress | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    reportedAt = performance.now();
    if (last !== undefined) report(last);
  };
  ended.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return (progress) => {
    if (ended.aborted) return;
    const isBoundary =
      progress.phase !== last?.phase || progress.loadedBytes === progress.totalBytes;
    last = progress;
    const waitMs = reportedAt + REPORT_INTERVAL_MS - performance.now();
    if (isBoundary || waitMs <= 0) flush();
    else timer ??= setTimeout(flush, waitMs);
  };
}
