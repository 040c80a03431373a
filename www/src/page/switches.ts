//! The engine switches of specification 14. Rust validates them and defines their defaults.

/** All optional. A `profile` sets several; single switches override it. */
export interface EngineSwitches {
  profile?: "default" | "openai" | "jiekou" | "fireworks" | "vllm" | "mistralrs";
  /** Whether a matched stop string is returned when the request does not say. */
  stopTextIncluded?: boolean;
  /** What happens when prompt and `max_tokens` exceed the context and the request does not say. */
  contextLengthExceededBehavior?: "truncate" | "error";
  /** `max_tokens` of a request without it; `context` goes on until the context is full. */
  defaultMaxTokens?: number | "context";
  /** What `suffix` means when the request does not say. */
  suffixMode?: "append" | "fim" | "reject";
  /** Fields nobody knows: one warning per name, or an error. */
  unknownFields?: "ignore" | "error";
  /** As if every request set `stream_options.include_usage`. */
  alwaysIncludeUsage?: boolean;
  mirostatTargetUnit?: "perplexity" | "bits";
  /** Which distribution `logprobs` describe when the request does not say. */
  logprobsMode?: "raw" | "processed";
  /** What `text_offset` counts from when the prompt is not echoed. */
  textOffsetBase?: "text" | "prompt";
  maxLogprobs?: number;
  maxStopSequences?: number;
  maxN?: number;
  maxBestOf?: number;
  maxPrompts?: number;
  /** Largest number of prompts times candidates of a request. */
  maxSequences?: number;
  /** Whether the model's own sampling defaults fill what a request leaves out. */
  useModelGenerationDefaults?: boolean;
  /** Whether a request without `model` means the model that is loaded. */
  allowMissingModel?: boolean;
  /** What the alias `default` means when several models are loaded. */
  defaultModel?: string;
  /** `wait` holds requests until the model is ready instead of answering 503. */
  whenModelNotReady?: "error" | "wait";
  /** If set, requests must carry `Authorization: Bearer <key>`. */
  apiKey?: string;
  cors?: { allowOrigin?: string };
  /** Where the routes hang; `["/v1", "/openai/v1"]` if left out. */
  basePaths?: string[];
  maxBodyBytes?: number;
  maxQueue?: number;
  /** Silence on a stream after which a comment is sent; 0 sends none. */
  keepAliveMs?: number;
  /** If set, answers open with `"$schema"`; an absolute URL. */
  schemaUrl?: string;
  requestTimeoutMs?: number;
}
