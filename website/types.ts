//! The contents of the TypeScript reference: the exports of the package, and the types that those name.

export * from "../www/src/exports.js";
export type * from "../www/src/generated/types.js";
// Both have types of these names.
export type { EngineInfo, ErrorObject, LoadOptions } from "../www/src/exports.js";
export type { BodyTransport } from "../www/src/exchange/protocol.js";
export type {
  EngineIsolation,
  EngineSharing,
  ModelInfos,
  ModelStorage,
} from "../www/src/exchange/engine_info.js";
export type { Chat, ChatCompletions } from "../www/src/api/chat.js";
export type { Completions } from "../www/src/api/completions.js";
export type { Embeddings } from "../www/src/api/embeddings.js";
export type { PlaceOptions } from "../www/src/site/interception.js";
export type { Responses } from "../www/src/api/responses.js";
