// Generated from the Rust types: do not edit. Rewrite it with
// `INPAGE_WRITE_TYPES=1 cargo test --lib --features test-hooks typescript`.

/** A completion, or a chunk of a streamed one. */
export type Completion = {
  /** Only with the switch `schemaUrl`. */
  $schema?: string, id: string, object: "text_completion",
  /** Unix seconds. */
  created: number,
  /** The model's id. */
  model: string,
  /** Changes with anything that the output depends on. */
  system_fingerprint: string, choices: Array<CompletionChoice>,
  /** In a stream only with `include_usage`, and null in chunks that hold no counts. */
  usage?: Usage | null, };

/** One choice of a completion; in a chunk, the part of it that is new. */
export type CompletionChoice = { index: number, text: string,
  /** Null if they were not asked for. */
  logprobs: Logprobs | null,
  /** The generated ids; only with `return_tokens_as_token_ids`. */
  token_ids?: Array<number>,
  /** In a chunk null until the choice's last one. */
  finish_reason: "stop" | "length" | null,
  /** Only where the choice ends: the stop string or stop id that ended it, null for any other end. */
  stop_reason?: StopReason | null,
  /** A complete call of one of the request's tools; in a stream in the choice's last chunk. */
  tool_calls?: ToolCall[], };

/** A request; `docs/api.md` says what each field means. Unknown fields are passed on. */
export type CompletionFields = {
  /** A model's id, or `default` for the one that is ready. */
  model: string,
  /** One prompt or several, each as text or as token ids. */
  prompt: string | string[] | ArrayLike<number> | ArrayLike<number>[],
  /** What follows the completion. */
  suffix?: string | null,
  /** What `suffix` means. */
  suffix_mode?: SuffixMode | null,
  /** `data:` URLs, or one list of them per prompt. */
  images?: string[] | string[][] | null,
  /** Not used. */
  user?: string | null,
  /** Most tokens of a completion. */
  max_tokens?: number | null,
  /** The same as `max_tokens`. */
  max_completion_tokens?: number | null,
  /** Texts that end the completion. */
  stop?: string | string[] | null,
  /** Whether the completion includes the stop string that ended it. */
  include_stop_str_in_output?: boolean | null,
  /** Whether special tokens are left out of the text. */
  skip_special_tokens?: boolean | null,
  /** Continue after an end-of-text token. */
  ignore_eos?: boolean | null,
  /** What happens when the prompt and `max_tokens` exceed the context. */
  context_length_exceeded_behavior?: ContextLengthExceededBehavior | null,
  /** Drop the start of a prompt that is too long. */
  truncate_sequence?: boolean | null,
  /** Send the completion in chunks as server-sent events. */
  stream?: boolean | null,
  /** Only with `stream`. */
  stream_options?: StreamOptions | null,
  /** Put the prompt before the completion. */
  echo?: boolean | null,
  /** Choices returned per prompt. */
  n?: number | null,
  /** Candidates generated per prompt; the `n` best are returned. */
  best_of?: number | null,
  /** How many of the most likely tokens are listed per position. */
  logprobs?: number | null,
  /** Which distribution `logprobs` describes. */
  logprobs_mode?: "raw" | "processed" | null,
  /** Name tokens by their ids in `logprobs`, and return `token_ids`. */
  return_tokens_as_token_ids?: boolean | null,
  /** 0 (greedy) to 2. */
  temperature?: number | null,
  /** Keep the most likely tokens whose probabilities add up to this. */
  top_p?: number | null,
  /** Keep so many of the most likely tokens; -1 and 0 are off. */
  top_k?: number | null,
  /** Keep tokens at least this fraction as likely as the most likely one. */
  min_p?: number | null,
  /** A 64-bit integer: a `bigint` keeps what a `number` cannot hold. */
  seed?: number | bigint | null,
  /** Subtracted from a token's logit per earlier occurrence in the completion. */
  frequency_penalty?: number | null,
  /** Subtracted once from the logit of every token of the completion. */
  presence_penalty?: number | null,
  /** Makes tokens of prompt and completion less likely if above 1. */
  repetition_penalty?: number | null,
  /** Token ids, and what is added to their logits. */
  logit_bias?: Record<string, number> | null,
  /** Mirostat 2.0: the surprise to aim at; replaces `top_k`, `top_p` and `min_p`. */
  mirostat_target?: number | null,
  /** Mirostat's learning rate. */
  mirostat_lr?: number | null,
  /** DRY: above 0 penalizes tokens that continue a repetition. */
  dry_multiplier?: number | null,
  /** DRY: growth of the penalty per repeated token. */
  dry_base?: number | null,
  /** DRY: repetitions shorter than this are not penalized. */
  dry_allowed_length?: number | null,
  /** DRY: texts that no repetition extends across. */
  dry_sequence_breakers?: Array<string> | null,
  /** Whether the completion must be JSON. */
  response_format?: ResponseFormat | null,
  /** What the whole completion must match. */
  grammar?: Grammar | null,
  /** Functions that the model may call. */
  tools?: Array<FunctionTool> | null,
  /** Whether the model may or must call a tool, and which. */
  tool_choice?: ToolChoice | null, };

/** `contextLengthExceededBehavior` */
export type ContextLengthExceededBehavior = "truncate" | "error";

/** The word `"context"`: until the context is full. */
export type ContextWord = "context";

/** `cors` */
export type Cors = {
  /** `Access-Control-Allow-Origin`. */
  allowOrigin: string, };

/** `defaultMaxTokens` */
export type DefaultMaxTokens = number | ContextWord;

/** Switches of an engine. A `profile` sets several; single switches override it. */
export type EngineSwitches = Partial<Switches> & { profile?: "default" | "openai" | "openai-strict" | "jiekou" | "tokensmind" | "fireworks" | "vllm" | "mistralrs" | "mistral.rs" };

/** The body of every answer that is an error. */
export type ErrorBody = { error: ErrorObject, };

/** What went wrong. */
export type ErrorObject = { message: string,
  /** The kind of error, such as `invalid_request_error`. */
  type: string,
  /** The field that is wrong, if it is one. */
  param: string | null, code: string, };

/** A schema, or OpenAI's form with the schema inside. */
export type FormatSchema = JsonSchema | NamedSchema;

/** The function of a [`ToolCall`]. */
export type FunctionCall = { name: string,
  /** JSON text. */
  arguments: string, };

/** The function of a [`FunctionTool`]. */
export type FunctionDeclaration = { name: string, description?: string | null,
  /** A JSON schema of an object. */
  parameters?: Record<string, unknown> | null,
  /** Whether the arguments must satisfy `parameters`. */
  strict?: boolean | null, };

/** A function that the model may call. */
export type FunctionTool = { "type": "function", function: FunctionDeclaration, };

/** What the whole completion must match. */
export type Grammar = { "type": "regex", "value": string } | { "type": "lark", "value": string } | { "type": "json_schema", "value": JsonSchema } | { "type": "llguidance", "value": LlGuidanceGrammar };

/** A JSON schema. */
export type JsonSchema = Record<string, unknown> | boolean;

/** A grammar in llguidance's own JSON form. */
export type LlGuidanceGrammar = { grammars: Record<string, unknown>[], max_tokens?: number, };

/** Log-probabilities: four arrays of equal length, one entry per token. */
export type Logprobs = { tokens: Array<string>, token_logprobs: Array<number | null>, top_logprobs: (Record<string, number> | null)[],
  /** Code points before each token. */
  text_offset: Array<number>, };

/** `mirostatTargetUnit` */
export type MirostatTargetUnit = "perplexity" | "bits";

/** One model as the endpoint lists it. */
export type ModelCard = { id: string, object: "model",
  /** Unix seconds of the registration. */
  created: number, owned_by: string, status: "unloaded" | "loading" | "ready" | "failed",
  /** In tokens; only of a ready model. */
  context_length?: number, capabilities: Array<string>, };

/** The registered models. */
export type ModelList = { object: "list", data: Array<ModelCard>, };

/** A schema with its name. */
export type NamedSchema = { schema: JsonSchema, name?: string | null, description?: string | null, strict?: boolean | null, };

/** Which prompt tokens cost nothing. */
export type PromptTokensDetails = {
  /** Taken from the prefix cache. */
  cached_tokens: number, };

/** Whether the completion must be JSON. */
export type ResponseFormat = { "type": "text" } | { "type": "json_object", schema?: JsonSchema | null, } | { "type": "json_schema", json_schema: FormatSchema, };

/** Which of the request's stops ended a choice. */
export type StopReason = string | number;

/** What a stream reports besides the completion. */
export type StreamOptions = {
  /** End the stream with a chunk that holds the token counts. */
  include_usage?: boolean | null,
  /** Put running token counts into every chunk. */
  continuous_usage_stats?: boolean | null,
  /** Not used. */
  include_obfuscation?: boolean | null, };

/** `suffixMode` */
export type SuffixMode = "append" | "fim" | "reject";

/** How the endpoint behaves where vendors differ. The JSON form has camelCase names. */
export type Switches = {
  /** Whether a matched stop string is returned when the request does not say. */
  stopTextIncluded: boolean,
  /** What happens when prompt and `max_tokens` exceed the context and the request does not say. */
  contextLengthExceededBehavior: ContextLengthExceededBehavior,
  /** `max_tokens` of a request without it. */
  defaultMaxTokens: DefaultMaxTokens,
  /** What `suffix` means when the request does not say. */
  suffixMode: SuffixMode,
  /** What happens to fields nobody knows. */
  unknownFields: UnknownFields,
  /** As if every streaming request set `stream_options.include_usage`. */
  alwaysIncludeUsage: boolean,
  /** Unit of `mirostat_target`. */
  mirostatTargetUnit: MirostatTargetUnit,
  /** Which distribution log-probabilities describe when the request does not say. */
  logprobsMode: "raw" | "processed",
  /** What `text_offset` counts from when the prompt is not echoed. */
  textOffsetBase: TextOffsetBase,
  /** Largest `logprobs`. */
  maxLogprobs: number,
  /** Most stop strings. */
  maxStopSequences: number,
  /** Largest `n`. */
  maxN: number,
  /** Largest `best_of`. */
  maxBestOf: number,
  /** Most prompts in one request. */
  maxPrompts: number,
  /** Most candidates of one request over all its prompts. */
  maxSequences: number,
  /** Whether the model's own sampling defaults fill what the request leaves out. */
  useModelGenerationDefaults: boolean,
  /** Whether a request without `model` means `"default"`. */
  allowMissingModel: boolean,
  /** What a request gets while its model loads. */
  whenModelNotReady: WhenModelNotReady,
  /** If set, every route but `OPTIONS` demands `Bearer <key>`. */
  apiKey: string | null,
  /** Cross-origin access. */
  cors: Cors,
  /** Where the routes hang. */
  basePaths: Array<string>,
  /** Largest request body. */
  maxBodyBytes: number,
  /** Most waiting requests; the engine enforces it. */
  maxQueue: number,
  /** Silence on a stream after which a comment is sent; 0 sends none. */
  keepAliveMs: number,
  /** If set, responses open with `"$schema"`; an absolute URL. */
  schemaUrl: string | null,
  /** Longest time a request may take to answer; none by default. */
  requestTimeoutMs: number | null,
  /** What the alias `default` means when several models are ready. */
  defaultModel: string | null, };

/** `textOffsetBase` */
export type TextOffsetBase = "text" | "prompt";

/** A call that the model has written. */
export type ToolCall = { id: string, type: "function", function: FunctionCall, };

/** Whether the model may or must call a tool, and which. */
export type ToolChoice = "none" | "auto" | "required" | ToolName | { type: "allowed_tools", mode: "auto" | "required", tools: Array<ToolName>, };

/** A tool of `tools`, by name. */
export type ToolName = { type: "function", name: string, } | { type: "function", function: { name: string }, };

/** `unknownFields` */
export type UnknownFields = "ignore" | "error";

/** Token counts of a request. */
export type Usage = { prompt_tokens: number, completion_tokens: number, total_tokens: number,
  /** Only if some prompt tokens were cached. */
  prompt_tokens_details?: PromptTokensDetails, };

/** `whenModelNotReady` */
export type WhenModelNotReady = "error" | "wait";
