//! The public API of the package.

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
