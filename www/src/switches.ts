//! The engine switches of API.md section 14 as TypeScript sees them. Rust validates them and holds
//! their defaults; nothing here reads one.

/** All optional. A `profile` sets several; single switches override it. */
export interface EngineSwitches {
  profile?: "default" | "openai" | "jiekou" | "fireworks" | "vllm" | "mistralrs";
  stopTextIncluded?: boolean;
  contextLengthExceededBehavior?: "truncate" | "error";
  defaultMaxTokens?: number | "context";
  unknownFields?: "ignore" | "error";
  alwaysIncludeUsage?: boolean;
  maxLogprobs?: number;
  maxStopSequences?: number;
  maxN?: number;
  maxBestOf?: number;
  maxPrompts?: number;
  maxSequences?: number;
  useModelGenerationDefaults?: boolean;
  /** Whether a request without `model` means the model that is loaded. */
  allowMissingModel?: boolean;
  /** `wait` holds requests until the model is ready instead of answering 503. */
  whenModelNotReady?: "error" | "wait";
  /** If set, requests must carry `Authorization: Bearer <key>`. */
  apiKey?: string;
  cors?: { allowOrigin?: string };
  /** Where the routes hang; `["/v1", "/openai/v1"]` if left out. */
  basePaths?: string[];
  maxBodyBytes?: number;
  maxQueue?: number;
  keepAliveMs?: number;
  schemaUrl?: string;
  requestTimeoutMs?: number;
}
