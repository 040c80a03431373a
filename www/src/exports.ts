//! The public API of the package: what the entries `index.ts` and `node/index.ts` share. ARCHITECTURE.md has the folders and their order.

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
  Logprobs,
  ModelInspection,
  ModelRefusal,
  ResponseEvent,
  ResponseFormat,
  ResponseInputItem,
  ResponseItem,
  MessageObject,
  MessageStreamEvent,
  MessageTokenCount,
  RerankList,
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
} from "./cache/cache.js";
export type { CachedModel } from "./cache/selection.js";
export type { AnswerStream, CallOptions, ComingStream } from "./api/calls.js";
export type {
  ChatCompletionRequest,
  ChatCompletionStream,
  ChatImagePart,
  ChatRequestMessage,
} from "./api/chat.js";
export type { CompletionRequest, CompletionStream } from "./api/completions.js";
export type { EmbeddingRequest } from "./api/embeddings.js";
export type { RerankRequest } from "./api/rerank.js";
export { type Engine, createEngine } from "./engine/engine.js";
export type {
  EngineOptions,
  FallbackModel,
  LoadOptions,
  ModelsOption,
  OneOfModels,
} from "./options/engine_options.js";
export type { EngineEventMap, EngineEvents } from "./engine/events.js";
export { type CrashedLoad, previousLoadCrashed } from "./engine/previous_load.js";
export { getEngine } from "./engine/get_engine.js";
export type { LoadState } from "./exchange/engine_change.js";
export type { EngineInfo, ModelInfo } from "./exchange/engine_info.js";
export { type ErrorObject, InpageError } from "./api/inpage_error.js";
export { type InspectOptions, inspectModel } from "./engine/inspect.js";
export type { IsolatedFrameOptions } from "./site/interception.js";
export type { LoraAdapter } from "./options/lora.js";
export type { HubOptions } from "./options/hub.js";
export type {
  CrossOriginStorageOptions,
  ModelOption,
  ModelPlace,
  ModelWithId,
} from "./options/model.js";
export type { FetchOptions } from "./options/fetch.js";
export type {
  MessageCountRequest,
  MessageImageBlock,
  MessageRequest,
  MessageRequestTurn,
  MessageStream,
} from "./api/messages.js";
export type {
  CompactedConversation,
  CompactRequest,
  KeptMessage,
  ResponseRequest,
  ResponseStream,
} from "./api/responses.js";
export type { DetokenizeRequest, TemplateRequest, TokenizeRequest } from "./api/tokens.js";
export { type ServeOptions, type Serving, serveFromPage } from "./serving/serve_from_page.js";
export type { UpstreamOptions, UpstreamReason, UpstreamRequest } from "./api/upstream.js";
export { servedFetch } from "./serving/served_fetch.js";
export type { LoadProgress } from "./exchange/protocol.js";
export type { ImageInput } from "./api/attachments.js";
export type { DraftModelOption } from "./options/draft_model.js";
export type { ProjectorFile, ProjectorOption } from "./options/projector.js";
