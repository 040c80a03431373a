//! The options of `createEngine`.

import type { BodyTransport, LoadProgress } from "../exchange/protocol.js";
import type {
  DeviceChoice,
  EngineSwitches,
  LoadOptions as RustLoadOptions,
} from "../generated/types.js";
import type { HubOptions } from "./hub.js";
import type { IsolatedFrameOptions } from "../site/interception.js";
import type { LoraAdapter } from "./lora.js";
import type { ModelOption } from "./model.js";
import type { DraftModelOption } from "./draft_model.js";
import type { ProjectorOption } from "./projector.js";
import type { UpstreamOptions } from "../api/upstream.js";

/** The options of `createEngine`. */
export interface EngineOptions {
  /**
   * `"embedded"` (the model in the package; the default), a name of the catalog (`inpage/catalog`), the URL of a GGUF file, `hf:OWNER/NAME/FILE.gguf`, a `File`
   * or a `Blob`; or an object: one of these with the model's `id`, `{ folder: URL }` of a Hugging Face folder, or
   * `{ files: [File, ...] }` of a folder or a split GGUF file.
   */
  model?: ModelOption;
  /**
   * Several models instead of one, by the names that requests use for them. A model is loaded when it is first asked for. The
   * other options apply to each model; those of a single model can be given beside its `model`.
   */
  models?: ModelsOption;
  /**
   * Models to load instead of `model`, in their order: when memory does not suffice for the one before, or when its last load on this
   * device ended with its tab less than a day ago. They may have options of their own. `engine.info().fitted` says which one it is.
   */
  fallbackModels?: readonly (ModelOption | FallbackModel)[];
  /**
   * Load a model that does not fit memory otherwise with a KV cache in q8_0, then with a context of 2,048 or 1,024 tokens,
   * unless `load` has these options. `engine.info().fitted` says what was changed. The default is true on iOS and Android without
   * `memoryBudgetBytes`.
   */
  fitMemory?: boolean;
  /**
   * The maximum number of bytes of memory that the engine's models may need together. If omitted, on iOS and Android what such a device gives a tab, and no
   * limit elsewhere. `Infinity`: no limit. A model that needs more by itself is refused
   * before its weights are read. Of several models, those that were not used for the longest time are unloaded before another one is
   * loaded.
   */
  memoryBudgetBytes?: number;
  /** The hub where `hf:` names are looked up, and the token for it. */
  hub?: HubOptions;
  /** Ask the browser not to evict the origin's storage, which has the cached models. */
  persist?: boolean;
  /**
   * The vision tower, with which a model sees images: the URL of its GGUF file (`mmproj-….gguf`), `hf:OWNER/NAME/FILE.gguf`, a
   * `File` or a `Blob`, or an object with one of these and the options of a download. With `models`, each has its own.
   */
  projector?: ProjectorOption;
  /**
   * A smaller model with the same tokenizer that guesses the next tokens: its URL, `hf:OWNER/NAME`, a `File` or a `Blob`, or an object with one
   * of these and the options of a download. The model verifies several guesses at once, so answers are the same; they come sooner where guesses
   * are often right, and nothing is guessed where that does not pay. It needs memory of its own. With `models`, each has its own.
   */
  draftModel?: DraftModelOption;
  /** LoRA adapters, applied all at once; `setLora` changes them. */
  lora?: readonly LoraAdapter[];
  /**
   * The device that the model computes on. `auto` (the default): on a hardware GPU whose kernels pass the self-test, else on the CPU.
   * `webgpu`: through WebGPU, on a software adapter too. `cpu`: on the CPU. `engine.info()` reports the device.
   */
  device?: DeviceChoice;
  /**
   * The maximum number of threads of the CPU device. The default is the number of the machine's logical processors, at most 8. More than
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
  /** The length of the context, the KV cache and the arithmetic. */
  load?: LoadOptions;
  /** The switches of the endpoint: which dialect it speaks, what it allows. */
  endpoint?: EngineSwitches;
  /** Called as listeners of the event `progress` are, from the first report on. */
  onProgress?: (progress: LoadProgress) => void;
  /** Aborts the load. */
  signal?: AbortSignal;
  /**
   * Resolve immediately and load in the background: until `engine.ready`, requests wait. With `upstream`, or
   * `endpoint: { whenModelNotReady: "error" }`, they get 503 `model_loading`.
   */
  background?: boolean;
  /**
   * One engine for all tabs of the site that ask for the same model with the same options: one of them runs it, and when
   * that tab is closed, frozen or left, another one takes over and continues the in-flight requests. If omitted, models and
   * adapters that are named by URL are shared, until `setLora` is called. `true`: local files are shared too, and
   * `setLora` changes the adapters for all tabs. A string: the same, with tabs that give the same string. `false`: an engine of its
   * own.
   */
  shared?: boolean | string;
  /**
   * Origins besides the page's own whose endpoint `engine.fetch` answers, such as `["https://api.openai.com"]` for an SDK
   * without a base URL. `serveFromPage` has `origins` for the plain `fetch`.
   */
  fetchOrigins?: readonly string[];
  /** The wasm module, where a bundler cannot find it by itself. */
  wasmUrl?: string | URL;
  /** The engine worker's script, where a bundler cannot find it by itself. */
  workerUrl?: string | URL;
  /** The transport of response bodies from the worker; detected if omitted. */
  bodyTransport?: BodyTransport;
  /**
   * A server that gets requests while the model loads, when it does not fit or the queue is full, or as a function of
   * the request decides. Without it no request leaves the page.
   */
  upstream?: UpstreamOptions;
}

/** The options of a load. The memory that a model may need is `memoryBudgetBytes` of the engine. */
export type LoadOptions = Omit<RustLoadOptions, "memoryBudgetBytes">;

/** One of `fallbackModels` with options of its own; the others are those of the engine. */
export type FallbackModel = Pick<
  OneOfModels,
  "model" | "projector" | "draftModel" | "lora" | "device" | "load"
>;

/** Several models by their names: none is empty or `default`. */
export type ModelsOption = Readonly<Record<string, ModelOption | OneOfModels>>;

/** One of several models, with options of its own. */
export interface OneOfModels
  extends Partial<
    Pick<EngineOptions, "projector" | "draftModel" | "lora" | "device" | "threads" | "load">
  > {
  model: ModelOption;
  /** The switches that are those of one model. */
  endpoint?: Pick<EngineSwitches, "chatTemplate">;
  /** Other names that requests may use for it. */
  aliases?: readonly string[];
  /** The capabilities of the model, for requests for `default` and for the list of models before it was loaded for the first time. */
  capabilities?: readonly string[];
}
