//! Every message between page, engine worker and service worker: types and a few constants, no code.

import type { DeviceChoice, EngineSwitches, LoadOptions } from "../generated/types.js";
import type { EngineInfo } from "./engine_info.js";
import type { ServedUrls } from "./served_urls.js";

/** Headers in order; an array, because that survives structured clone and keeps duplicates. */
export type HeaderList = [name: string, value: string][];

/** The transport of a response body: as one transferred stream, or in chunks with flow control by credit. */
export type BodyTransport = "transfer" | "chunks";

/** One HTTP request. `body` is raw bytes; only the Rust handler parses them. */
export interface WireRequest {
  method: string;
  /** The absolute URL. */
  url: string;
  headers: HeaderList;
  body: Uint8Array;
  /** Images that the body names as `attachment:0` and so on; service workers send none. */
  attachments?: readonly Attachment[] | undefined;
}

/** An image beside the body of a request: the bytes of its file, or opaque pixels row by row. */
export type Attachment = { file: Uint8Array } | { width: number; rgba: Uint8Array };

// Each exchange has its own MessagePort between the requester (page or service worker) and the engine worker.
// So messages need no ids, and those of the service worker do not pass through the page's main thread.

/** Requester to engine worker, on the exchange's port. */
export type RequesterMessage =
  | {
      type: "request";
      request: WireRequest;
      transport: BodyTransport;
      heartbeat: boolean;
      /** Absent from requesters that cannot continue with another engine, such as service workers of older versions. */
      resume?: Resume;
    }
  /** A message that is sent every few seconds if `heartbeat` was announced: a port does not report that its other end is gone. */
  | { type: "alive" }
  /** The requester accepts `chunks` more chunks (transport "chunks" only). */
  | { type: "credit"; chunks: number }
  /** Nobody reads the answer any more; also sent on a port whose request was never sent. */
  | { type: "cancel" };

/** A message of a requester that can continue an answer with another engine when this one is lost. */
export interface Resume {
  /** The position of the answer, if earlier engines have delivered a part of it. Only Rust reads it. */
  position: string | undefined;
}

/** A part of a body. `position` is the position of the answer after it, if the answer can be continued. */
export interface BodyPiece {
  bytes: Uint8Array<ArrayBuffer>;
  position?: string | undefined;
}

/** The last item of a body whose engine was lost. */
export interface BodyLoss {
  lost: WireFailure;
}

/** The items of a transferred body: bytes alone for a requester that sends no `resume`. */
export type BodyItem = Uint8Array<ArrayBuffer> | BodyPiece | BodyLoss;

/** Engine worker to requester, on the exchange's port. */
export type ResponderMessage =
  /** The page has an engine and accepts the port (sent by the page, before anything else). `engine`: its number in the page. */
  | { type: "accepted"; engine?: number }
  /** The page serves no such URL, or no longer (sent by the page, instead of the above). */
  | { type: "declined" }
  /** A message that is sent every few seconds if the requester announced heartbeats: this end is not frozen. */
  | { type: "alive" }
  /** `stream` is present if and only if the transport is "transfer". */
  | {
      type: "head";
      status: number;
      headers: HeaderList;
      stream?: ReadableStream<BodyItem>;
    }
  | ({ type: "chunk" } & BodyPiece)
  /** The engine was lost, before the head or in the body; only for a requester that sends `resume`. */
  | { type: "lost"; failure: WireFailure }
  | { type: "end" }
  /** The body failed, after the head. */
  | { type: "error"; message: string };

/** The options for `fetch` with which files are requested. */
export interface RequestOptions {
  /** The headers that are sent to every URL. */
  headers: HeaderList;
  init: Pick<RequestInit, "credentials" | "mode" | "priority" | "referrer" | "referrerPolicy">;
  /** A bearer token that is sent to one origin only. */
  token: { origin: string; value: string } | undefined;
}

/** The use of the storage that sites share. */
export interface CrossOriginUse {
  /** Look there before a download. */
  read: boolean;
  /** The origins that a verified download is offered to; undefined: none. */
  offer: "same-site" | "*" | readonly string[] | undefined;
}

/**
 * The source of the model's files. `ggufName` is the name of a GGUF file or of one of its parts;
 * without it, the location is a Hugging Face folder, whose URLs end with a slash. A `File` or `Blob` is
 * cloned by reference, not copied.
 */
export type ModelLocation =
  | {
      kind: "url";
      /** The same file or folder at several places, tried in order. */
      urls: readonly string[];
      ggufName: string | undefined;
      cache: boolean;
      /** Query parameters that are not part of the cache key, besides those of signatures. */
      ignoreQuery: readonly string[];
      /** The SHA-256 that is expected of a file, by its name: 64 hexadecimal digits in lower case. */
      sha256: Readonly<Record<string, string>>;
      requests: RequestOptions;
      /** Undefined: not used. */
      crossOrigin: CrossOriginUse | undefined;
    }
  | { kind: "files"; files: { name: string; blob: Blob }[]; ggufName: string | undefined };

/** A LoRA adapter, and the factor of its contribution. */
export interface LoraLocation {
  name: string;
  location: ModelLocation;
  scale: number;
}

/** Everything the worker needs to start. */
export interface StartOptions {
  modelId: string;
  model: ModelLocation;
  /** The file of a vision tower and its projector. */
  projector: ModelLocation | undefined;
  /** The files of a smaller model that guesses tokens. */
  draftModel: ModelLocation | undefined;
  lora: LoraLocation[];
  /** The device as the caller gave it; Rust validates it. */
  device: DeviceChoice | undefined;
  /** The maximum number of threads of the CPU device, as given by the caller. */
  threads: number | undefined;
  /** True if the page has WebGPU; workers of some browsers do not. */
  pageHasWebGpu: boolean;
  /** The options as the caller gave them; Rust validates them. */
  load: LoadOptions;
  wasmUrl: string | undefined;
  /** The engine switches of specification 14, as given by the caller; Rust validates them. */
  switches: EngineSwitches;
  /** If this load fails, requests start another attempt after this time. */
  retryDelayMs: number;
  /** The form of the kernels of the engine that this one replaces. Only Rust reads it. */
  kernels: string | undefined;
  /** Ask the page before the files are opened, and again before the weights are read: it has several models. */
  asksToLoad: boolean;
}

/** The progress of a load. */
export interface LoadProgress {
  /** The name of the model that is loaded, for an engine with several. */
  model?: string | undefined;
  /**
   * `download`: bytes from the network; they are passed to the engine as they arrive. `waiting`: another tab
   * downloads the same file, and the bytes are that tab's. `load`: bytes from the engine to the GPU, after the download.
   */
  phase: "download" | "waiting" | "load" | "ready";
  loadedBytes: number;
  /** Undefined while a server does not send the size. */
  totalBytes: number | undefined;
  /** The rate of a download in the last seconds; undefined while it is unknown. */
  bytesPerSecond?: number | undefined;
  /** The time that a download still needs at this rate; undefined while it is unknown. */
  remainingMs?: number | undefined;
}

/** The activity of the worker: none, answering requests, or loading a model or adapters. */
export type WorkerActivity = "idle" | "requests" | "load";

/** The answer to a `ping`. */
export interface Pulse {
  /** The number of the `ping` that is answered. */
  beat: number;
  activity: WorkerActivity;
  /** The number of the oldest operation that the GPU has not finished. */
  operation: number | undefined;
}

/** A failure in a form that survives structured clone. */
export interface WireFailure {
  /** A code of specification 2.2 (`internal_error`, `device_lost`, ...) or `aborted`. */
  code: string;
  message: string;
}

/** Page to engine worker. */
export type PageToWorker =
  | { type: "start"; options: StartOptions }
  /** A port for one exchange comes with it. */
  | { type: "connect" }
  | { type: "info"; call: number }
  /** Send no requests for model files until the pause ends. */
  | { type: "pause-download"; paused: boolean }
  /** Replace the LoRA adapters once in-flight requests have ended; answered by `lora-set`. */
  | { type: "set-lora"; call: number; lora: LoraLocation[] }
  /** The worker may do what its last `ask-to-load` asked for. */
  | { type: "load-allowed" }
  /** There is no room for the model. The load fails, and is tried again by later requests. */
  | { type: "load-refused"; failure: WireFailure }
  /** Answered by `pong` as soon as the worker handles events. */
  | { type: "ping"; beat: number }
  /** End in-flight requests with an error answer each; answered by `disposed`. */
  | { type: "dispose" };

/** Engine worker to page. */
export type WorkerToPage =
  /** The script at this URL listens; messages sent before this may be lost (a bundler may load scripts late). */
  | { type: "here"; script: string | undefined }
  | { type: "progress"; progress: LoadProgress }
  /** May the files be opened; with `memoryBytes`, may a model that needs so much memory be loaded? Answered by `load-allowed` or `load-refused`. */
  | { type: "ask-to-load"; memoryBytes: number | undefined }
  | { type: "ready"; kernels: string | undefined }
  | { type: "load-failed"; failure: WireFailure; permanent: boolean }
  /** The engine is dead; the page starts a new worker with the next request, unless that would fail again. */
  | { type: "failed"; failure: WireFailure; permanent: boolean }
  | { type: "info"; call: number; info: EngineInfo | undefined }
  /** The adapters were set. With a failure, the previous ones stay in use. */
  | { type: "lora-set"; call: number; failure: WireFailure | undefined }
  /** The number of open exchanges; the page keeps the service worker awake while there are any. */
  | { type: "open-exchanges"; count: number }
  | ({ type: "pong" } & Pulse)
  | { type: "disposed" };

/** Service worker to page. */
export type ServiceWorkerToPage =
  /** Accept the port that comes with this message if you serve `url` in this scope, else decline. */
  | { type: typeof CONNECT; url: string; scope: string }
  /**
   * Do you serve `url` in this scope? Answer with a [`ServesAnswer`] over the port that comes with this message. `claims` are
   * the ids of the claims that the worker sees.
   */
  | { type: typeof ASK; url: string; scope: string; claims: readonly string[] }
  /** Answer with `KEEP_ALIVE`: an exchange is open, and the browser stops a service worker that gets no events. */
  | { type: typeof PING };

/** Page to service worker. */
export type PageToServiceWorker =
  /** Take control of pages that have no controller yet (first load, forced reload). */
  | { type: typeof CLAIM }
  /** Answer over the port that comes with this message, with an [`InterceptionReport`]. */
  | { type: typeof REPORT }
  /** Receiving a message keeps the browser from stopping an idle service worker, and says that the page is not frozen. */
  | { type: typeof KEEP_ALIVE }
  /** This page is frozen or was left: its engine will not continue the answers that it began. */
  | { type: typeof PAUSED }
  /** The worker of an engine of this page hangs or has ended without a word. Another one continues the answers that it began. */
  | { type: typeof WORKER_LOST; engine: number; failure: WireFailure }
  /** The caller of the request with this id aborted it before its head. */
  | { type: typeof CANCEL; id: string };

/** Whether a page serves a URL. */
export interface ServesAnswer {
  serves: boolean;
}

/** The requests that a service worker intercepts. */
export interface InterceptionReport {
  intercepted: ServedUrls;
  /** The settings that the worker's own script makes, which pages cannot change. */
  fixed: { basePaths: boolean; origins: boolean; offline: boolean };
  /** The ids of the claims that the worker sees. */
  claims: string[];
  /** The URL of the isolated frame for the page that asked; workers of older versions have none. */
  frame?: string;
}

export const CONNECT = "inpage:connect";
export const ASK = "inpage:ask";
export const PING = "inpage:ping";
export const CLAIM = "inpage:claim";
export const REPORT = "inpage:report";
export const KEEP_ALIVE = "inpage:keep-alive";
export const PAUSED = "inpage:paused";
export const WORKER_LOST = "inpage:worker-lost";
export const CANCEL = "inpage:cancel";

/** Identifies a request for [`CANCEL`]; used between page and service worker only. */
export const REQUEST_ID_HEADER = "x-inpage-request-id";

/** Says that the service worker relays this answer; used between page and service worker only. */
export const RELAYED_HEADER = "x-inpage-relayed";
