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
} from "./completions.js";
export { type Engine, type EngineInfo, type EngineOptions, createEngine } from "./engine.js";
export { type ErrorObject, InpageError } from "./inpage_error.js";
export { type InspectOptions, inspectModel } from "./inspect_model.js";
export type {
  InspectedModel,
  InspectedToken,
  InspectedTokenizer,
  ModelInspection,
  ModelRefusal,
} from "./model_inspection.js";
export type { ModelOption, ModelPlace, ModelWithId } from "./model_option.js";
export type { LoraAdapter } from "./lora_option.js";
export type { LoadProgress } from "./protocol.js";
export { type ServeOptions, type Serving, serveFromPage } from "./serve_from_page.js";
export { servedFetch } from "./served_fetch.js";
export type { LoadOptions } from "./load_options.js";
export type { EngineSwitches } from "./switches.js";
