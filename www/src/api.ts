//! The public API of the package.
//!
//! The other folders, each using only those below it (lint rejects import cycles):
//!
//! | folder | runs in | part |
//! |---|---|---|
//! | `node` | Node, Deno, Bun | the entry there, and what a browser would supply |
//! | `react` | the page | hooks for React, an entry of its own |
//! | `ai_sdk` | the page | a provider for the AI SDK, an entry of its own |
//! | `prompt_api` | the page | Chrome's Prompt API, an entry of its own |
//! | `langchain` | the page | a model of LangChain, an entry of its own |
//! | `page` | the page | `createEngine`, `getEngine`, `engine.fetch`, `completions.create`, `serveFromPage`, `inspectModel`, `cache` |
//! | `service_worker`, `sw.ts` | the service worker | relays requests to a tab with an engine |
//! | `worker.ts` | the engine worker | its script, one file after the build |
//! | `wasm` | page and engine worker | the wasm module and its types |
//! | `worker` | the engine worker | starts `wasm`, answers exchanges, loads the model, extends WebGPU |
//! | `model_source` | page and engine worker | reads model files: URLs, cache, local files |
//! | `package_files.ts` | the page | addresses of the worker and of the embedded model |
//! | `platform.ts` | everywhere | what a browser or another program supplies: cache folder, locks, files, threads |
//! | `exchange` | everywhere | messages, ports, response bodies, the error answers of a dead engine |
//! | `generated` | | types generated from the Rust types |

export type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionFields,
  ChatMessage,
  Completion,
  CompletionChoice,
  EmbeddingList,
  EngineSwitches,
  FunctionTool,
  Grammar,
  InspectedModel,
  InspectedToken,
  InspectedTokenizer,
  JsonSchema,
  LoadOptions,
  Logprobs,
  ModelInspection,
  ModelRefusal,
  ResponseEvent,
  ResponseFormat,
  ResponseInputItem,
  ResponseItem,
  ResponseObject,
  TokenList,
  TokenPieceList,
  ToolCall,
  ToolChoice,
  ToolName,
  Usage,
} from "./generated/types.js";
export {
  type CachedFile,
  type CacheSize,
  type ModelCache,
  cache,
} from "./page/cache.js";
export type { CachedModel } from "./page/cached_model.js";
export type { AnswerStream, CallOptions, ComingStream } from "./page/calls.js";
export type {
  ChatCompletionRequest,
  ChatCompletionStream,
  ChatPicturePart,
  ChatRequestMessage,
} from "./page/chat.js";
export type { CompletionRequest, CompletionStream } from "./page/completions.js";
export type { EmbeddingRequest } from "./page/embeddings.js";
export { type Engine, createEngine } from "./page/engine.js";
export type { EngineOptions, ModelsOption, OneOfModels } from "./page/engine_options.js";
export { getEngine } from "./page/get_engine.js";
export type { EngineInfo, ModelInfo } from "./exchange/engine_info.js";
export { type ErrorObject, InpageError } from "./page/inpage_error.js";
export { type InspectOptions, inspectModel } from "./page/inspect_model.js";
export type { IsolatedFrameOptions } from "./page/isolation.js";
export type { LoraAdapter } from "./page/lora_option.js";
export type { HubOptions } from "./page/hub.js";
export type {
  CrossOriginStorageOptions,
  ModelOption,
  ModelPlace,
  ModelWithId,
} from "./page/model_option.js";
export type { FetchOptions } from "./page/request_option.js";
export type { ResponseRequest, ResponseStream } from "./page/responses.js";
export type { DetokenizeRequest, TemplateRequest, TokenizeRequest } from "./page/tokens.js";
export { type ServeOptions, type Serving, serveFromPage } from "./page/serve_from_page.js";
export type { UpstreamOptions, UpstreamReason, UpstreamRequest } from "./page/upstream.js";
export { servedFetch } from "./page/served_fetch.js";
export type { LoadProgress } from "./exchange/protocol.js";
export type { PictureInput } from "./page/attachments.js";
export type { ProjectorFile, ProjectorOption } from "./page/projector_option.js";
