//! Every message between page, engine worker and service worker, in one place.
//! Only types and a few constants: nothing here knows how a message is sent or answered.

import type { LoadOptions } from "../page/load_options.js";

/** Header lines in order; an array because it survives structured clone and keeps duplicates. */
export type HeaderList = [name: string, value: string][];

/** How a response body travels: as one transferred stream, or piece by piece on credit. */
export type BodyTransport = "transfer" | "chunks";

/** One HTTP request. `body` is the raw bytes; nobody but the Rust handler looks into them. */
export interface WireRequest {
  method: string;
  /** Absolute. */
  url: string;
  headers: HeaderList;
  body: Uint8Array;
}

// One exchange = one MessagePort. The requester (page or service worker) holds one end, the engine
// worker the other, so no message needs an id and the page's main thread is not in the way.

/** Requester to engine worker, on the exchange's port. */
export type RequesterMessage =
  | { type: "request"; request: WireRequest; transport: BodyTransport; heartbeat: boolean }
  /** Sent every few seconds where `heartbeat` was announced: no port tells that its end is gone. */
  | { type: "alive" }
  /** The requester can take `chunks` more pieces (transport "chunks" only). */
  | { type: "credit"; chunks: number }
  /** Nobody reads any more; also sent for an exchange that never got its request. */
  | { type: "cancel" };

/** Engine worker to requester, on the exchange's port. */
export type ResponderMessage =
  /** The page has an engine and took the port (sent by the page, before anything else). */
  | { type: "accepted" }
  /** `stream` is there exactly when the transport is "transfer". */
  | {
      type: "head";
      status: number;
      headers: HeaderList;
      stream?: ReadableStream<Uint8Array<ArrayBuffer>>;
    }
  | { type: "chunk"; bytes: Uint8Array<ArrayBuffer> }
  | { type: "end" }
  /** The body broke; after the head only. */
  | { type: "error"; message: string };

/**
 * Where the worker gets the model's files. `ggufName` is the name of a GGUF file or of its first part;
 * without one it is a Hugging Face folder, whose `url` ends with a slash. A `File` or `Blob` is cloned
 * by reference, not copied.
 */
export type ModelLocation =
  | { kind: "url"; url: string; cache: boolean; ggufName: string | undefined }
  | { kind: "files"; files: { name: string; blob: Blob }[]; ggufName: string | undefined };

/** A low-rank adapter, and what its part is multiplied by. */
export interface LoraLocation {
  name: string;
  location: ModelLocation;
  scale: number;
}

/** What the worker needs to start. */
export interface StartOptions {
  modelId: string;
  model: ModelLocation;
  lora: LoraLocation[];
  /** As given; Rust validates them. */
  load: LoadOptions;
  wasmUrl: string | undefined;
  /** The engine switches of API.md section 14, as given; Rust validates them. */
  switches: Record<string, unknown>;
}

/** How far a model is. */
export interface LoadProgress {
  /**
   * `download`: bytes into the cache (and, as they come, through the engine). `load`: bytes through the
   * engine onto the GPU, once nothing is downloaded any more.
   */
  phase: "download" | "load" | "ready";
  loadedBytes: number;
  /** Unknown while a server does not tell. */
  totalBytes: number | undefined;
}

/** A failure in a form that survives structured clone. */
export interface WireFailure {
  /** A code of API.md section 2.2 (`internal_error`, `device_lost`, ...) or `aborted`. */
  code: string;
  message: string;
}

/** Page to engine worker. */
export type PageToWorker =
  | { type: "start"; options: StartOptions }
  /** A port for one exchange comes with it. */
  | { type: "connect" }
  | { type: "info"; call: number }
  /** These adapters and no others from now on, once running requests have ended; `lora-set` follows. */
  | { type: "set-lora"; call: number; lora: LoraLocation[] }
  /** Loads the model again, after a failed load. */
  | { type: "reload" }
  /** Ends everything that runs with an orderly answer; `disposed` follows. */
  | { type: "dispose" };

/** Engine worker to page. */
export type WorkerToPage =
  /** The script listens; what is sent before may be lost (a bundler may load scripts late). */
  | { type: "here" }
  /** The wasm module runs and answers requests; the model may still be loading. */
  | { type: "listening" }
  | { type: "progress"; progress: LoadProgress }
  | { type: "ready" }
  | { type: "load-failed"; failure: WireFailure }
  /** The engine is dead; the page starts a fresh worker with the next request. */
  | { type: "failed"; failure: WireFailure }
  | { type: "info"; call: number; info: unknown }
  /** With a failure, the adapters are those from before. */
  | { type: "lora-set"; call: number; failure: WireFailure | undefined }
  /** Exchanges that are open now; the page keeps the service worker awake while there are any. */
  | { type: "open-exchanges"; count: number }
  | { type: "disposed" };

/** Service worker to page: "take this port if you have an engine". The port comes with it. */
export interface ConnectMessage {
  type: typeof CONNECT;
}

/** Page to service worker. */
export type PageToServiceWorker =
  /** Take control of pages that you do not control yet (first load, forced reload). */
  | { type: typeof CLAIM }
  /** Something of mine is under way: being sent this keeps a service worker from idling out. */
  | { type: typeof KEEP_ALIVE }
  /** The caller of the request with this id gave up before its head. */
  | { type: typeof CANCEL; id: string };

export const CONNECT = "inpage:connect";
export const CLAIM = "inpage:claim";
export const KEEP_ALIVE = "inpage:keep-alive";
export const CANCEL = "inpage:cancel";

/** Names a request for [`CANCEL`]; from page to service worker only. */
export const REQUEST_ID_HEADER = "x-inpage-request-id";

/** Base paths when none are configured (API.md section 1.2). */
export const DEFAULT_BASE_PATHS: readonly string[] = ["/v1", "/openai/v1"];
