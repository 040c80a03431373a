//! The public API of the package.
//!
//! The other folders, each using only those below it (lint rejects import cycles):
//!
//! | folder | runs in | part |
//! |---|---|---|
//! | `page` | the page | `createEngine`, `engine.fetch`, `completions.create`, `serveFromPage`, `inspectModel` |
//! | `worker`, `worker.ts` | the engine worker | owns the wasm module, answers exchanges, loads the model |
//! | `service_worker`, `sw.ts` | the service worker | relays requests to a tab with an engine |
//! | `wasm` | page and engine worker | the wasm module and its types |
//! | `model_source` | page and engine worker | reads model files: URLs, cache, local files |
//! | `exchange` | everywhere | messages, ports, response bodies, the error answers of a dead engine |

export type {
  CallOptions,
  Completion,
  CompletionChoice,
  CompletionRequest,
  CompletionStream,
  FunctionTool,
  Grammar,
  JsonSchema,
  Logprobs,
  ResponseFormat,
  ToolCall,
  ToolChoice,
  ToolName,
  Usage,
} from "./page/completions.js";
export { type Engine, type EngineOptions, createEngine } from "./page/engine.js";
export type { EngineInfo } from "./page/engine_info.js";
export { type ErrorObject, InpageError } from "./page/inpage_error.js";
export { type InspectOptions, inspectModel } from "./page/inspect_model.js";
export type {
  InspectedModel,
  InspectedToken,
  InspectedTokenizer,
  ModelInspection,
  ModelRefusal,
} from "./page/model_inspection.js";
export type { ModelOption, ModelPlace, ModelWithId } from "./page/model_option.js";
export type { LoraAdapter } from "./page/lora_option.js";
export type { LoadProgress } from "./exchange/protocol.js";
export { type ServeOptions, type Serving, serveFromPage } from "./page/serve_from_page.js";
export { servedFetch } from "./page/served_fetch.js";
export type { LoadOptions } from "./page/load_options.js";
export type { EngineSwitches } from "./page/switches.js";
