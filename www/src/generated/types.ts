// Generated from the Rust code: do not edit. Rewrite it with
// `INPAGE_GENERATE=1 cargo test --lib --features test-hooks generated`.

/** Token counts in streams that do not ask for them. */
export type AlwaysIncludeUsage = boolean | UsagePlace;

/** A buffer on the GPU. */
export type BufferReport = {
  /** A tensor's name, `KV cache of a layer` or `states of a layer`. */
  name: string,
  /** Its size. */
  bytes: number, };

/** The purpose that a request needs a model for. */
export type Capability = "completions" | "embeddings" | "rerank";

/** One choice of a whole answer. */
export type ChatChoice = { index: number, message: ChatCompletionMessage, logprobs: ChatLogprobs | null, finish_reason: "stop" | "length" | "tool_calls" | "function_call",
  /** The stop string, expression or stop id that ended it, otherwise null. */
  stop_reason: StopReason | null,
  /** The generated ids; only with `return_tokens_as_token_ids` or `return_token_ids`. */
  token_ids?: Array<number>, };

/** The new part of a choice. */
export type ChatChunkChoice = { index: number, delta: ChatDelta, logprobs: ChatLogprobs | null,
  /** Null in all chunks of a choice but the last. */
  finish_reason: "stop" | "length" | "tool_calls" | "function_call" | null,
  /** The stop string, expression or stop id that ended the choice, otherwise null; only in its last chunk. */
  stop_reason?: StopReason | null,
  /** The ids of the tokens that the chunk adds; only with `return_tokens_as_token_ids` or `return_token_ids`. */
  token_ids?: Array<number>, };

/** An answer with whole messages. */
export type ChatCompletion = { id: string, object: "chat.completion",
  /** Unix seconds. */
  created: number,
  /** The model's id. */
  model: string,
  /** Changes with anything that the output depends on. */
  system_fingerprint: string, choices: Array<ChatChoice>, usage: ChatUsage,
  /** Times of the request. Present with the switch `timings`. */
  timings?: Timings,
  /** The ids of the prompt, with `return_token_ids`. */
  prompt_token_ids?: Array<number>,
  /** The tokens listed for each token of the prompt by their ids, with `prompt_logprobs`. */
  prompt_logprobs?: (Record<string, PromptLogprob> | null)[], };

/** A chunk of a streamed answer. */
export type ChatCompletionChunk = { id: string, object: "chat.completion.chunk",
  /** Unix seconds. */
  created: number,
  /** The model's id. */
  model: string,
  /** Changes with anything that the output depends on. */
  system_fingerprint: string, choices: Array<ChatChunkChoice>,
  /** The numbers of tokens, only with `include_usage`, and null in chunks that hold no counts. */
  usage?: ChatUsage | null,
  /** Times of the request. Present with the switch `timings`, in the last chunk that has a choice. */
  timings?: Timings,
  /** The ids of the prompt, with `return_token_ids`. */
  prompt_token_ids?: Array<number>,
  /** The tokens listed for each token of the prompt by their ids, with `prompt_logprobs`. */
  prompt_logprobs?: (Record<string, PromptLogprob> | null)[], };

/** A request for a message; `docs/api.md` says what each field means. Unknown fields are passed on. */
export type ChatCompletionFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** The conversation so far. Roles are `system`, `developer`, `user`, `assistant`, `tool` and `function`; content is a string or parts. */
  messages: ChatMessage[],
  /** Further variables of the chat template, such as `{"enable_thinking": false}`. */
  chat_template_kwargs?: Record<string, unknown> | null,
  /** The amount of thinking, if the model's chat template knows the word; `none` and `minimal` switch thinking off where the template can. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null,
  /** Whether the model thinks before it answers, if its chat template knows the variable `enable_thinking`; `adaptive` and `between_tools` are what the template does by itself. `budget_tokens` bounds the tokens of thinking. */
  thinking?: ThinkingOptions | null,
  /** The same as `thinking` with `enabled` or `disabled`. */
  enable_thinking?: boolean | null,
  /** The length that the text should have, if the chat template knows the word. */
  verbosity?: "low" | "medium" | "high" | null,
  /** End the prompt with the beginning of the assistant's message. */
  add_generation_prompt?: boolean | null,
  /** Continue the last message instead of beginning one. */
  continue_final_message?: boolean | null,
  /** Whether the model may call several tools in one message. */
  parallel_tool_calls?: boolean | null,
  /** Whether and how much the model thinks, and whether the answer has the reasoning. `effort` is the same as `reasoning_effort`, `max_tokens` as `thinking_token_budget`, `enabled` as `enable_thinking`, and `exclude: true` as `include_reasoning: false`. */
  reasoning?: ReasoningOptions | null,
  /** Whether the log-probabilities of the message's tokens are returned. */
  logprobs?: boolean | null,
  /** The number of most likely tokens that are listed per position. */
  top_logprobs?: number | null,
  /** The distribution that `logprobs` describes. */
  logprobs_mode?: "raw" | "processed" | null,
  /** Put the last message's content before that of the answer, if it is of the assistant or `add_generation_prompt` is false. */
  echo?: boolean | null,
  /** Whether the reasoning is part of the answer. */
  include_reasoning?: boolean | null,
  /** Where the reasoning is: as a member of its own with `parsed`, `auto` and `deepseek`, nowhere with `hidden`. */
  reasoning_format?: "parsed" | "auto" | "deepseek" | "hidden" | null,
  /** The maximum number of tokens of thinking, as `budget_tokens` of `thinking`. */
  thinking_token_budget?: number | null,
  /** Name tokens by their ids in `logprobs`, and return `token_ids`. */
  return_tokens_as_token_ids?: boolean | null,
  /** Return `token_ids` and `prompt_token_ids`. */
  return_token_ids?: boolean | null,
  /** The number of most likely tokens that are listed per token of the prompt, in `prompt_logprobs`. */
  prompt_logprobs?: number | null,
  /** Keep this many tokens of a prompt; -1: as many as the context holds. */
  truncate_prompt_tokens?: number | null,
  /** The side that `truncate_prompt_tokens` cuts: `left` keeps the prompt's end, `right` its beginning. */
  truncation_side?: "left" | "right" | null,
  /** Not used. */
  cache_prompt?: unknown,
  /** Not used. */
  cache_salt?: unknown,
  /** Not used. */
  early_stopping?: unknown,
  /** Not used. */
  id_slot?: unknown,
  /** Not used. */
  metadata?: unknown,
  /** Not used. */
  n_discard?: unknown,
  /** Not used. */
  n_keep?: unknown,
  /** Not used. */
  priority?: unknown,
  /** Not used. */
  prompt_cache_isolation_key?: unknown,
  /** Not used. */
  prompt_cache_key?: unknown,
  /** Not used. */
  prompt_cache_max_len?: unknown,
  /** Not used. */
  prompt_cache_retention?: unknown,
  /** Not used. */
  request_id?: unknown,
  /** Not used. */
  safety_identifier?: unknown,
  /** Not used. */
  service_tier?: unknown,
  /** Not used. */
  spaces_between_special_tokens?: unknown,
  /** Not used: how many tokens are guessed follows from how often guesses were right. */
  "speculative.p_min"?: unknown,
  /** Not used. */
  store?: unknown,
  /** Not used. */
  timings_per_token?: unknown,
  /** Text that the completion is expected to be, or to resemble, such as one that it repeats with changes. Its tokens are verified several at once; the completion is the same as without it. */
  prediction?: { type: "content", content: string | { type: "text", text: string }[] } | null,
  /** The same as `prediction`, as a string or token ids; not used beside it. */
  speculation?: string | number[] | null,
  /** The maximum number of tokens that are guessed at once; 0: none. */
  "speculative.n_max"?: number | null,
  /** The fewest tokens that are guessed at once. */
  "speculative.n_min"?: number | null,
  /** The maximum number of tokens of a completion; 0 generates nothing. */
  max_tokens?: number | null,
  /** The same as `max_tokens`; if several of its names are given, they must be equal. */
  max_completion_tokens?: number | null,
  /** The same as `max_tokens`; -1: until the context is full. */
  n_predict?: number | null,
  /** Strings that end the completion. */
  stop?: string | string[] | null,
  /** Regular expressions that end the completion where they match. */
  stop_regex?: string | string[] | null,
  /** Token ids that end the completion. */
  stop_token_ids?: number[] | null,
  /** Before the completion has this many tokens, end of text and stop ids are forbidden and stop strings do not count. */
  min_tokens?: number | null,
  /** Whether the completion includes the stop string that ended it. */
  include_stop_str_in_output?: boolean | null,
  /** Whether special tokens are left out of the text. */
  skip_special_tokens?: boolean | null,
  /** Continue after an end-of-text token. */
  ignore_eos?: boolean | null,
  /** The behavior when the prompt and `max_tokens` exceed the context. */
  context_length_exceeded_behavior?: "truncate" | "error" | null,
  /** Drop the start of a prompt that is too long. */
  truncate_sequence?: boolean | null,
  /** The only tokens that may be generated; end of text only if it is listed. */
  allowed_token_ids?: number[] | null,
  /** Strings that are not generated, as the tokenizer writes them. */
  bad_words?: string[] | null,
  /** Send the answer in chunks as server-sent events. */
  stream?: boolean | null,
  /** The reports of a stream besides the text: members `include_usage`, `continuous_usage_stats` and `include_obfuscation` (bool; the last has no effect). */
  stream_options?: StreamOptions | null,
  /** Choices per prompt. */
  n?: number | null,
  /** Candidates per prompt; the `n` best are returned. */
  best_of?: number | null,
  /** Below 1e-5 the most likely token is taken. */
  temperature?: number | null,
  /** Keep the most likely tokens whose probabilities add up to this; 0 keeps only the most likely one. */
  top_p?: number | null,
  /** Keep the tokens whose surprise is closest to the expected one, up to this probability mass; 1 is off. */
  typical_p?: number | null,
  /** Keep this many of the most likely tokens; -1 and 0 are off. */
  top_k?: number | null,
  /** Keep tokens at least this fraction as likely as the most likely one. */
  min_p?: number | null,
  /** The same seed gives the same output; -1 is an ordinary one. A `bigint` keeps what a `number` cannot hold. */
  seed?: number | bigint | null,
  /** The number that is subtracted from a token's logit per earlier occurrence in the completion. */
  frequency_penalty?: number | null,
  /** The number that is subtracted once from the logit of every token of the completion. */
  presence_penalty?: number | null,
  /** Makes tokens of prompt and completion less likely if above 1. */
  repetition_penalty?: number | null,
  /** The same as `repetition_penalty`. */
  repeat_penalty?: number | null,
  /** Token ids or strings, and what is added to their logits; or pairs of an id or a string and a number or false, which forbids the token. */
  logit_bias?: Record<string, number> | [number | string, number | false][] | null,
  /** Mirostat 2.0: the surprise to aim at; replaces `top_k`, `typical_p`, `top_p` and `min_p`. */
  mirostat_target?: number | null,
  /** Mirostat's learning rate; no effect without a target. */
  mirostat_lr?: number | null,
  /** DRY: above 0 penalizes tokens that continue a repetition. */
  dry_multiplier?: number | null,
  /** DRY: growth of the penalty per repeated token. */
  dry_base?: number | null,
  /** DRY: repetitions shorter than this are not penalized. */
  dry_allowed_length?: number | null,
  /** DRY: strings that no repetition extends across. */
  dry_sequence_breakers?: string[] | null,
  /** Whether the completion must be JSON. */
  response_format?: ResponseFormat | null,
  /** A grammar that the whole completion must match; a string is GBNF. */
  grammar?: Grammar | null,
  /** A JSON schema that the completion must match. */
  json_schema?: JsonSchema | null,
  /** The format that the completion must match; exactly one of the members `json`, `json_object`, `regex`, `choice` and `grammar`. */
  structured_outputs?: StructuredOutputs | null,
  /** A JSON schema, or its text. */
  guided_json?: Record<string, unknown> | boolean | string | null,
  /** A regular expression. */
  guided_regex?: string | null,
  /** Strings of which the completion is one. */
  guided_choice?: string[] | null,
  /** A grammar in GBNF or Lark. */
  guided_grammar?: string | null,
  /** A regular expression of the white space in the JSON of `guided_json`. */
  guided_whitespace_pattern?: string | null,
  /** Not used. */
  guided_decoding_backend?: string | null,
  /** A regular expression. */
  regex?: string | null,
  /** A grammar in EBNF. */
  ebnf?: string | null,
  /** Functions that the model may call. */
  tools?: FunctionTool[] | null,
  /** Whether the model may or must call a tool, and which. */
  tool_choice?: ToolChoice | null,
  /** The older form of `tools`: the functions that the model may call, one per message. */
  functions?: FunctionDeclaration[] | null,
  /** The older form of `tool_choice`. */
  function_call?: "none" | "auto" | { name: string } | null, };

/** A message of the assistant. */
export type ChatCompletionMessage = { role: "assistant",
  /** Null if the message consists of calls. */
  content: string | null,
  /** Always null. */
  refusal: string | null,
  /** The reasoning before the content. */
  reasoning_content?: string, tool_calls?: Array<ChatToolCall>,
  /** The call, if the request has `functions`. */
  function_call?: ChatFunctionCall, };

/** Details of the generated tokens. */
export type ChatCompletionTokens = {
  /** Tokens before the content of the message. */
  reasoning_tokens: number,
  /** Tokens of `prediction` that are in the message; only with a prediction. */
  accepted_prediction_tokens?: number,
  /** Tokens of `prediction` that are not in the message; only with a prediction. */
  rejected_prediction_tokens?: number, };

/** A part of a message's content. */
export type ChatContentPart = { "type": "text", text: string, } | { "type": "refusal", refusal: string, } | { "type": "image_url", image_url: string | { url: string, detail?: string | null }, };

/** The addition of a chunk to a message. */
export type ChatDelta = {
  /** The role, only in the first chunk of a choice. */
  role?: "assistant", content?: string, reasoning_content?: string, tool_calls?: Array<ChatToolCallDelta>,
  /** The call, if the request has `functions`. */
  function_call?: ChatFunctionDelta, };

/** The function of a [`ChatToolCall`]. */
export type ChatFunctionCall = { name: string,
  /** JSON text. */
  arguments: string, };

/** The function of a [`ChatToolCallDelta`]. */
export type ChatFunctionDelta = { name?: string,
  /** Appended to the call's arguments. */
  arguments: string, };

/** Log-probabilities of a message's tokens. */
export type ChatLogprobs = { content: Array<ChatTokenLogprob>,
  /** Always null. */
  refusal: null, };

/** A message of a conversation. */
export type ChatMessage = { role: "system" | "developer" | "user" | "assistant" | "tool" | "function", content?: string | ChatContentPart[] | null, name?: string | null,
  /** Calls that the assistant made. */
  tool_calls?: Array<ChatMessageCall> | null,
  /** The older form of a call that the assistant made. */
  function_call?: { name: string, arguments: string } | null,
  /** The call that a tool answers. */
  tool_call_id?: string | null,
  /** The reasoning of the assistant; also called `reasoning`. */
  reasoning_content?: string | null,
  /** The reason why the assistant refused. */
  refusal?: string | null, };

/** A call that the assistant made. */
export type ChatMessageCall = { id?: string | null, type: "function", function: { name: string, arguments: string }, };

/** Details of the prompt's tokens. */
export type ChatPromptTokens = {
  /** The tokens that were found in the prefix cache. */
  cached_tokens: number, };

/** A token and its log-probability. */
export type ChatToken = { token: string, logprob: number,
  /** UTF-8, which may be a part of a character. */
  bytes: Array<number>, };

/** A token and the most likely ones in its place. */
export type ChatTokenLogprob = {
  /** The most likely tokens, as many as requested, best first. */
  top_logprobs: Array<ChatToken>, token: string, logprob: number,
  /** UTF-8, which may be a part of a character. */
  bytes: Array<number>, };

/** A call that the model has written. */
export type ChatToolCall = { id: string, type: "function", function: ChatFunctionCall, };

/** The addition of a chunk to a call. */
export type ChatToolCallDelta = {
  /** The call, counted from 0. */
  index: number,
  /** The id of the call, only in its first delta. */
  id?: string, type?: "function", function: ChatFunctionDelta, };

/** Token counts of a request. */
export type ChatUsage = { prompt_tokens: number, completion_tokens: number, total_tokens: number, prompt_tokens_details: ChatPromptTokens, completion_tokens_details: ChatCompletionTokens, };

/** A request to compact a conversation; `docs/api.md` says what each field means. */
export type CompactFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** The conversation so far: a string of the user, or items: messages, calls, their results, reasoning and compactions. Items of an earlier response can be sent back as they are. */
  input: string | ResponseInputItem[],
  /** A system message in front of `input`. */
  instructions?: string | null,
  /** Further variables of the chat template. */
  chat_template_kwargs?: Record<string, unknown> | null,
  /** Whether the model may call several tools in one answer. */
  parallel_tool_calls?: boolean | null,
  /** Not used. */
  cache_prompt?: unknown,
  /** Not used. */
  cache_salt?: unknown,
  /** Not used. */
  early_stopping?: unknown,
  /** Not used. */
  id_slot?: unknown,
  /** Not used. */
  metadata?: unknown,
  /** Not used. */
  n_discard?: unknown,
  /** Not used. */
  n_keep?: unknown,
  /** Not used. */
  priority?: unknown,
  /** Not used. */
  prompt_cache_isolation_key?: unknown,
  /** Not used. */
  prompt_cache_key?: unknown,
  /** Not used. */
  prompt_cache_max_len?: unknown,
  /** Not used. */
  prompt_cache_retention?: unknown,
  /** Not used. */
  request_id?: unknown,
  /** Not used. */
  safety_identifier?: unknown,
  /** Not used. */
  service_tier?: unknown,
  /** Not used. */
  spaces_between_special_tokens?: unknown,
  /** Not used: how many tokens are guessed follows from how often guesses were right. */
  "speculative.p_min"?: unknown,
  /** Not used. */
  store?: unknown,
  /** Not used. */
  timings_per_token?: unknown,
  /** Not used. */
  prompt_cache_options?: unknown,
  /** Not used: a summary has one part. */
  include?: unknown,
  /** Not used: no reasoning is asked for. */
  reasoning?: unknown,
  /** Not used: the summary is plain text. */
  text?: unknown,
  /** Not used: a summary calls no tools. */
  tool_choice?: unknown,
  /** Not used: a summary calls no tools. */
  tools?: unknown, };

/** A completion, or a chunk of a streamed one. */
export type Completion = {
  /** The URL of the switch `schemaUrl`, if it is set. */
  $schema?: string, id: string, object: "text_completion",
  /** Unix seconds. */
  created: number,
  /** The model's id. */
  model: string,
  /** Changes with anything that the output depends on. */
  system_fingerprint: string, choices: Array<CompletionChoice>,
  /** The numbers of tokens; in a stream only with `include_usage`, and null in chunks that hold no counts. */
  usage?: Usage | null,
  /** Times and counts, with `perf_metrics_in_response`; in a stream in the last chunk that has a choice. */
  perf_metrics?: PerfMetricsMember,
  /** Times of the request. Present with the switch `timings`; a stream has them in the last chunk that has a choice. */
  timings?: Timings, };

/** One choice of a completion; in a chunk, the part of it that is new. */
export type CompletionChoice = { index: number, text: string,
  /** Null if they were not requested. */
  logprobs: ShapedLogprobs | null,
  /** The generated ids; only with `return_tokens_as_token_ids` or `return_token_ids`. */
  token_ids?: Array<number>,
  /** The ids of the prompt, with `return_token_ids`; in a stream in the choice's first chunk. */
  prompt_token_ids?: Array<number>,
  /** The tokens listed for each token of the prompt by their ids, with `prompt_logprobs`; in a stream in the choice's first
  * chunk. */
  prompt_logprobs?: (Record<string, PromptLogprob> | null)[],
  /** Null in all chunks of a choice but the last. */
  finish_reason: "stop" | "length" | null,
  /** The stop string or stop id that ended the choice, otherwise null; only in its last part. */
  stop_reason?: StopReason | null,
  /** A complete call of one of the request's tools; in a stream in the choice's last chunk. */
  tool_calls?: ToolCall[],
  /** The text that the model was given and the text that it generated, with `raw_output`; in a stream in the choice's last chunk. */
  raw_output?: RawOutput, };

/** A request; `docs/api.md` says what each field means. Unknown fields are passed on. */
export type CompletionFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** One prompt or several, each as a string or as token ids; both may be mixed with the switch `mixedPrompts`. */
  prompt: string | string[] | ArrayLike<number> | ArrayLike<number>[] | (string | number | (string | number)[])[] | null,
  /** The text that follows the completion. */
  suffix?: string | null,
  /** The meaning of `suffix`. */
  suffix_mode?: "append" | "fim" | "reject" | null,
  /** Whether the tokenizer adds its start-of-text token to a prompt that is text. */
  add_special_tokens?: boolean | null,
  /** Keep this many tokens of a prompt; -1: as many as the context holds. */
  truncate_prompt_tokens?: number | null,
  /** The side that `truncate_prompt_tokens` cuts: `left` keeps the prompt's end, `right` its beginning. */
  truncation_side?: "left" | "right" | null,
  /** Images for a model that sees: `data:` URLs, or one list of them per prompt; with the switch `remoteImages` also `http:` and `https:` URLs. */
  images?: string[] | string[][] | null,
  /** Not used. */
  cache_prompt?: unknown,
  /** Not used. */
  cache_salt?: unknown,
  /** Not used. */
  early_stopping?: unknown,
  /** Not used. */
  id_slot?: unknown,
  /** Not used. */
  metadata?: unknown,
  /** Not used. */
  n_discard?: unknown,
  /** Not used. */
  n_keep?: unknown,
  /** Not used. */
  priority?: unknown,
  /** Not used. */
  prompt_cache_isolation_key?: unknown,
  /** Not used. */
  prompt_cache_key?: unknown,
  /** Not used. */
  prompt_cache_max_len?: unknown,
  /** Not used. */
  prompt_cache_retention?: unknown,
  /** Not used. */
  request_id?: unknown,
  /** Not used. */
  safety_identifier?: unknown,
  /** Not used. */
  service_tier?: unknown,
  /** Not used. */
  spaces_between_special_tokens?: unknown,
  /** Not used: how many tokens are guessed follows from how often guesses were right. */
  "speculative.p_min"?: unknown,
  /** Not used. */
  store?: unknown,
  /** Not used. */
  timings_per_token?: unknown,
  /** Text that the completion is expected to be, or to resemble, such as one that it repeats with changes. Its tokens are verified several at once; the completion is the same as without it. */
  prediction?: { type: "content", content: string | { type: "text", text: string }[] } | null,
  /** The same as `prediction`, as a string or token ids; not used beside it. */
  speculation?: string | number[] | null,
  /** The maximum number of tokens that are guessed at once; 0: none. */
  "speculative.n_max"?: number | null,
  /** The fewest tokens that are guessed at once. */
  "speculative.n_min"?: number | null,
  /** Not used: it is about chat templates. */
  chat_template_kwargs?: unknown,
  /** Not used: it is about chat templates. */
  enable_thinking?: unknown,
  /** Not used: it is about chat templates. */
  reasoning_effort?: unknown,
  /** Not used: it is about chat templates. */
  reasoning_history?: unknown,
  /** Not used: it is about chat templates. */
  thinking?: unknown,
  /** Not used: it is about chat templates. */
  verbosity?: unknown,
  /** The maximum number of tokens of a completion; 0 generates nothing. */
  max_tokens?: number | null,
  /** The same as `max_tokens`; if several of its names are given, they must be equal. */
  max_completion_tokens?: number | null,
  /** The same as `max_tokens`; -1: until the context is full. */
  n_predict?: number | null,
  /** Strings that end the completion. */
  stop?: string | string[] | null,
  /** Regular expressions that end the completion where they match. */
  stop_regex?: string | string[] | null,
  /** Token ids that end the completion. */
  stop_token_ids?: number[] | null,
  /** Before the completion has this many tokens, end of text and stop ids are forbidden and stop strings do not count. */
  min_tokens?: number | null,
  /** Whether the completion includes the stop string that ended it. */
  include_stop_str_in_output?: boolean | null,
  /** Whether special tokens are left out of the text. */
  skip_special_tokens?: boolean | null,
  /** Continue after an end-of-text token. */
  ignore_eos?: boolean | null,
  /** The behavior when the prompt and `max_tokens` exceed the context. */
  context_length_exceeded_behavior?: "truncate" | "error" | null,
  /** Drop the start of a prompt that is too long. */
  truncate_sequence?: boolean | null,
  /** The only tokens that may be generated; end of text only if it is listed. */
  allowed_token_ids?: number[] | null,
  /** Strings that are not generated, as the tokenizer writes them. */
  bad_words?: string[] | null,
  /** Send the answer in chunks as server-sent events. */
  stream?: boolean | null,
  /** The reports of a stream besides the text: members `include_usage`, `continuous_usage_stats` and `include_obfuscation` (bool; the last has no effect). */
  stream_options?: StreamOptions | null,
  /** Choices per prompt. */
  n?: number | null,
  /** Candidates per prompt; the `n` best are returned. */
  best_of?: number | null,
  /** Put the prompt before the completion. */
  echo?: boolean | null,
  /** Put this many tokens of the prompt's end before the completion. */
  echo_last?: number | null,
  /** Return what the model was given and what it generated, in `raw_output` of each choice. */
  raw_output?: boolean | null,
  /** Return times and token counts, in `perf_metrics`. */
  perf_metrics_in_response?: boolean | null,
  /** The number of most likely tokens that are listed per position; with `top_logprobs` whether any are. */
  logprobs?: number | boolean | null,
  /** The number of most likely tokens that are listed if `logprobs` is true or a number. */
  top_logprobs?: number | null,
  /** The distribution that `logprobs` describes. */
  logprobs_mode?: "raw" | "processed" | null,
  /** Name tokens by their ids in `logprobs`, and return `token_ids`. */
  return_tokens_as_token_ids?: boolean | null,
  /** Return `token_ids` and `prompt_token_ids`. */
  return_token_ids?: boolean | null,
  /** The number of most likely tokens that are listed per token of the prompt, in `prompt_logprobs`. */
  prompt_logprobs?: number | null,
  /** Below 1e-5 the most likely token is taken. */
  temperature?: number | null,
  /** Keep the most likely tokens whose probabilities add up to this; 0 keeps only the most likely one. */
  top_p?: number | null,
  /** Keep the tokens whose surprise is closest to the expected one, up to this probability mass; 1 is off. */
  typical_p?: number | null,
  /** Keep this many of the most likely tokens; -1 and 0 are off. */
  top_k?: number | null,
  /** Keep tokens at least this fraction as likely as the most likely one. */
  min_p?: number | null,
  /** The same seed gives the same output; -1 is an ordinary one. A `bigint` keeps what a `number` cannot hold. */
  seed?: number | bigint | null,
  /** The number that is subtracted from a token's logit per earlier occurrence in the completion. */
  frequency_penalty?: number | null,
  /** The number that is subtracted once from the logit of every token of the completion. */
  presence_penalty?: number | null,
  /** Makes tokens of prompt and completion less likely if above 1. */
  repetition_penalty?: number | null,
  /** The same as `repetition_penalty`. */
  repeat_penalty?: number | null,
  /** Token ids or strings, and what is added to their logits; or pairs of an id or a string and a number or false, which forbids the token. */
  logit_bias?: Record<string, number> | [number | string, number | false][] | null,
  /** Mirostat 2.0: the surprise to aim at; replaces `top_k`, `typical_p`, `top_p` and `min_p`. */
  mirostat_target?: number | null,
  /** Mirostat's learning rate; no effect without a target. */
  mirostat_lr?: number | null,
  /** DRY: above 0 penalizes tokens that continue a repetition. */
  dry_multiplier?: number | null,
  /** DRY: growth of the penalty per repeated token. */
  dry_base?: number | null,
  /** DRY: repetitions shorter than this are not penalized. */
  dry_allowed_length?: number | null,
  /** DRY: strings that no repetition extends across. */
  dry_sequence_breakers?: string[] | null,
  /** Whether the completion must be JSON. */
  response_format?: ResponseFormat | null,
  /** A grammar that the whole completion must match; a string is GBNF. */
  grammar?: Grammar | null,
  /** A JSON schema that the completion must match. */
  json_schema?: JsonSchema | null,
  /** The format that the completion must match; exactly one of the members `json`, `json_object`, `regex`, `choice` and `grammar`. */
  structured_outputs?: StructuredOutputs | null,
  /** A JSON schema, or its text. */
  guided_json?: Record<string, unknown> | boolean | string | null,
  /** A regular expression. */
  guided_regex?: string | null,
  /** Strings of which the completion is one. */
  guided_choice?: string[] | null,
  /** A grammar in GBNF or Lark. */
  guided_grammar?: string | null,
  /** A regular expression of the white space in the JSON of `guided_json`. */
  guided_whitespace_pattern?: string | null,
  /** Not used. */
  guided_decoding_backend?: string | null,
  /** A regular expression. */
  regex?: string | null,
  /** A grammar in EBNF. */
  ebnf?: string | null,
  /** Functions that the model may call. */
  tools?: FunctionTool[] | null,
  /** Whether the model may or must call a tool, and which. */
  tool_choice?: ToolChoice | null, };

/** Details of the generated tokens. */
export type CompletionTokensDetails = {
  /** Tokens of the prediction that are in the completion. */
  accepted_prediction_tokens: number,
  /** Tokens of the prediction that are not in the completion. */
  rejected_prediction_tokens: number, };

/** The form in which a model is stored. */
export type ContainerReport = {
  /** Format of the files with tensors. */
  kind: "gguf" | "safetensors",
  /** The number of files that were opened. */
  files: number, };

/** A token with its log-probability. */
export type ContentEntry = { token: string,
  /** Null for the first token of an echoed prompt. */
  logprob: number | null,
  /** The bytes of its text. */
  bytes: Array<number>, top_logprobs: Array<ContentTop>, };

/** One of the most likely tokens. */
export type ContentTop = { token: string, logprob: number, bytes: Array<number>, };

/** The treatment of a prompt and `max_tokens` that exceed the context. */
export type ContextLengthExceededBehavior = "truncate" | "error";

/** The word `"context"`: until the context is full. */
export type ContextWord = "context";

/** Cross-origin access. */
export type Cors = {
  /** `Access-Control-Allow-Origin`. */
  allowOrigin: string, };

/** `max_tokens` of a request without it. */
export type DefaultMaxTokens = number | ContextWord;

/** A request for the text of token ids; `docs/api.md` says what each field means. */
export type DetokenizeFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** Token ids. */
  tokens: ArrayLike<number>,
  /** Leave special tokens out of the text. */
  skip_special_tokens?: boolean | null, };

/** The device that a load asks for. */
export type DeviceChoice = "auto" | "webgpu" | "cpu";

/** The kind of device that a model computes on. */
export type DeviceKind = "webgpu" | "cpu" | "reference";

/** The draft model, for `engine.info()`. */
export type DraftModelReport = {
  /** Its architecture. */
  architecture: string,
  /** Its layers. */
  layers: number,
  /** Size of its files. */
  fileBytes: number,
  /** Bytes of its KV cache in all layers. */
  kvBytes: number, };

/** The vector of one input. */
export type Embedding = { object: "embedding",
  /** The input's place. */
  index: number,
  /** Numbers, or base64 if that was asked for. */
  embedding: number[] | string, };

/** A request for embeddings; `docs/api.md` says what each field means. */
export type EmbeddingFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** One text or several, each as a string or as token ids; none empty, and at most 2048. Both may be mixed with the switch `mixedPrompts`. */
  input: string | string[] | ArrayLike<number> | ArrayLike<number>[] | (string | number | (string | number)[])[],
  /** The form of vectors: numbers, or little-endian 32-bit floats in base64. */
  encoding_format?: "float" | "base64" | null,
  /** Keep this many elements of each vector, and normalize it again. */
  dimensions?: number | null,
  /** Whether the tokenizer adds its tokens to texts. */
  add_special_tokens?: boolean | null,
  /** Keep this many tokens of a prompt; -1: as many as the context holds. */
  truncate_prompt_tokens?: number | null,
  /** The side that `truncate_prompt_tokens` cuts: `left` keeps the prompt's end, `right` its beginning. */
  truncation_side?: "left" | "right" | null, };

/** The vectors of a request's inputs, in their order. */
export type EmbeddingList = { object: "list", data: Array<Embedding>,
  /** The id of the model that answered. */
  model: string, usage: EmbeddingUsage, };

/** Token counts of an embedding request. */
export type EmbeddingUsage = { prompt_tokens: number, total_tokens: number, };

/** A route, as TypeScript knows it. */
export type EndpointRoute = {
  /** Below a base path. If it ends with a slash, the rest of the URL's path is the parameter. */
  path: string, method: "GET" | "POST",
  /** The capability that a model needs, so that the name `default` means it. Null: the route answers without a model. */
  capability: Capability | null,
  /** The requests that another server may answer instead. */
  upstream: Upstream, };

/** The result of `engine.info()`. Once a model is loaded, it also has the members of the load report. */
export type EngineInfo = {
  /** The version of this build. */
  version: string,
  /** The model's id in requests. */
  model: string,
  /** Candidates that are queued or running. */
  activeGenerations: number, };

/** Switches of an engine. A `profile` sets several; single switches override it. */
export type EngineSwitches = Partial<Switches> & { profile?: "default" | "openai" | "openai-strict" | "jiekou" | "tokensmind" | "fireworks" | "vllm" | "mistralrs" | "mistral.rs" | "llamacpp" | "llama.cpp" };

/** The body of every answer that is an error. */
export type ErrorBody = { error: ErrorObject, };

/** The fault. */
export type ErrorObject = { message: string,
  /** The kind of error, such as `invalid_request_error`. */
  type: string,
  /** The field that is wrong, if it is one. */
  param: string | null, code: string, };

/** A mixture of experts. */
export type ExpertsReport = {
  /** Experts of a layer. */
  count: number,
  /** Experts that a token uses. */
  used: number, };

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

/** The format that the whole completion must match. */
export type Grammar = { "type": "regex", "value": string } | { "type": "lark", "value": string } | { "type": "json_schema", "value": JsonSchema } | { "type": "llguidance", "value": LlGuidanceGrammar } | string;

/** A model answers requests. */
export type Health = { status: "ok", };

/** The sizes of a model. */
export type Hyperparameters = {
  /** Longest sequence that the model supports, in tokens. */
  contextTokens: number,
  /** Layers. */
  layers: number,
  /** Layers with a recurrence, in place of attention or beside it. */
  recurrentLayers: number,
  /** Width of the residual stream. */
  dim: number,
  /** Width of the feed-forward layers; of one expert, where there are experts. */
  ffnDim: number,
  /** Query heads. */
  heads: number,
  /** Key and value heads. */
  kvHeads: number,
  /** Elements of a head. */
  headDim: number,
  /** Rows of the embedding table. */
  vocab: number,
  /** The rotary position embedding; `None` where positions are learned vectors. */
  rope: RopeReport | null,
  /** Layers with a sliding window, by its size. */
  windows: Array<WindowReport>,
  /** The mixture of experts, if it is one. */
  experts: ExpertsReport | null, };

/** Sizes of images, and how many tokens they become. */
export type ImageSizes = {
  /** `square`: every image is stretched to one square. `tiles`: it is cut into squares, beside the whole image as one. `any`: it is
  * seen in a size near its own. */
  kind: "square" | "tiles" | "any",
  /** Width and height of a square, in pixels; of `any`, what both sides are multiples of. */
  sidePixels: number,
  /** The longest side that an image is resized to before it is cut. */
  longestEdgePixels: number | null,
  /** The fewest tokens of an image, without the text around it. */
  minTokens: number,
  /** The most tokens of an image, without the text around it. */
  maxTokens: number, };

/** The description of a model in its header. Parts that this build does not support are `None`; [`super::refusal`] says why. */
export type InspectedModel = {
  /** `general.name`. */
  name: string | null,
  /** `general.architecture`. */
  architecture: string | null,
  /** Elements of all tensors. */
  parameters: number,
  /** Bytes of all tensors, in the types they have after loading. */
  loadedBytes: number,
  /** Types of the tensors after loading, the one with the most bytes first. The matrices of a folder
  * are converted to the type of `quantize`; all other tensors keep the type of their file. */
  tensorTypes: Array<TensorTypeReport>,
  /** Its sizes, if the architecture is known. */
  hyperparameters: Hyperparameters | null,
  /** GPU memory that it needs. */
  memory: MemoryReport | null, };

/** The description of a vision tower and its projector in their header. Parts that this build does not support are `None`. */
export type InspectedProjector = {
  /** `general.name`. */
  name: string | null,
  /** The family of models, as `clip.projector_type` names it. */
  kind: string | null,
  /** Elements of all tensors. */
  parameters: number,
  /** Bytes of all tensors. */
  loadedBytes: number,
  /** Types of the tensors, the one with the most bytes first. */
  tensorTypes: Array<TensorTypeReport>,
  /** Its sizes, if the family is known. */
  hyperparameters: TowerSizes | null, };

/** One token. */
export type InspectedToken = {
  /** Its id. */
  id: number,
  /** Its text, as `logprobs` lists it. */
  text: string, };

/** The properties of a file's tokenizer. */
export type InspectedTokenizer = {
  /** The kind, as `tokenizer.ggml.model` names it in GGUF files: `gpt2` (BPE), `llama` (SentencePiece
  * BPE), `t5` (SentencePiece unigram). */
  kind: string,
  /** The pre-tokenizer, which splits text before BPE: `tokenizer.ggml.pre`. */
  preTokenizer: string | null,
  /** Number of tokens. */
  tokens: number,
  /** Start of text. */
  bos: InspectedToken | null,
  /** End of text. */
  eos: InspectedToken | null,
  /** Whether prompts get the start-of-text token. */
  addsBos: boolean,
  /** Whether prompts get the end-of-text token. */
  addsEos: boolean,
  /** All tokens that end a text or a turn, the end-of-text token first. */
  ends: Array<InspectedToken>,
  /** The tokens before the prefix, the suffix and the middle of a fill-in-the-middle prompt, if the model
  * has them. */
  fillInMiddle: [InspectedToken, InspectedToken, InspectedToken] | null,
  /** Whether the file has a chat template. */
  hasChatTemplate: boolean, };

/** The options of the load, and the device. */
export type InspectionOptions = {
  /** Load options, as for `createEngine`. */
  load?: LoadOptions,
  /** KV cache for this many sequences of the whole context, instead of `load.kvPoolTokens`. */
  sequences?: number,
  /** `maxStorageBufferBindingSize` of the target device. If omitted, the minimum of WebGPU and the usual
  * value of desktop browsers are both reported, and the latter decides. */
  maxBindingBytes?: number, };

/** A JSON schema. */
export type JsonSchema = Record<string, unknown> | boolean;

/** The format of a KV cache. */
export type KvFormat = "f32" | "f16" | "q8_0";

/** Whether a model runs on devices with a limit. */
export type LimitReport = {
  /** Largest part of a buffer that kernels see. */
  maxBindingBytes: number,
  /** `None` if it runs. */
  refusal: ModelRefusal | null, };

/** A grammar in llguidance's own JSON form. */
export type LlGuidanceGrammar = { grammars: Record<string, unknown>[], max_tokens?: number, };

/** Options of a load. In JavaScript the members have camelCase names. */
export type LoadOptions = {
  /** Longest sequence, in tokens; if omitted, the model's own context, at most 4096. */
  contextTokens?: number,
  /** Format of the KV cache: `f32` is exact, `f16` (the default) takes half the memory, `q8_0` little
  * more than a quarter and needs heads of a multiple of 32 elements. */
  kvFormat?: KvFormat,
  /** Tensor type that the matrices of a Hugging Face folder are converted to while they are loaded;
  * those of GGUF files are not converted. `q8_0` (the default) takes about half of 16-bit floats
  * and does not change the answers noticeably; `q4_0` and `q4_k` take about a quarter and cost some
  * quality; `none` keeps the stored type. Rows that do not fit the blocks of a type become `q8_0`
  * or `f16`; norms, biases and the routers of experts stay exact. */
  quantize?: Quantize,
  /** Tokens of KV cache that all sequences share, cached prompts included; 4096 if omitted, and never
  * less than one sequence may need. */
  kvPoolTokens?: number,
  /** The maximum number of bytes of memory that the model may need. A model that needs more is refused before its weights are
  * read, and the error says what would fit. */
  memoryBudgetBytes?: number,
  /** Arithmetic that products may use: `f32`, or with `auto` (the default) f16 or bytes where that is
  * measured to be clearly faster. `engine.info().variant` reports the choice. */
  precision?: Precision, };

/** A loaded model and its device. */
export type LoadReport = {
  /** The reason why it is not a GPU, where the device was chosen automatically and is not one. */
  deviceReason: string | null,
  /** The form of the kernels that was validated on the device. */
  variant: string,
  /** `general.architecture`. */
  architecture: string,
  /** Layers. */
  layers: number,
  /** Size of the files with tensors as they are loaded; of GGUF files including their headers. */
  fileBytes: number,
  /** Longest sequence, in tokens. */
  contextTokens: number,
  /** Format of the KV cache. */
  kvFormat: KvFormat,
  /** Tokens of KV cache that all sequences share. */
  kvPoolTokens: number,
  /** Size of the KV cache of all layers. */
  kvBytes: number,
  /** Length of a logits row. */
  vocabSize: number,
  /** Dispatches of one greedy decode step. */
  decodeDispatches: number,
  /** The projector, which makes rows of images; `None`: the model takes text only. */
  projector: ProjectorReport | null,
  /** The smaller model that guesses tokens; `None`: there is none. */
  draftModel: DraftModelReport | null,
  /** The way in which tools get into prompts; `None`: the model has no chat template. */
  tools: ToolPrompts | null,
  /** Low-rank adapters in use. */
  lora: Array<LoraReport>,
  /** The times of the parts of the load. */
  loadMs: LoadTimes,
  /** The kind of the device. */
  device: DeviceKind,
  /** Threads that compute; 0 where that is not known. */
  threads: number,
  /** The adapter's own description. */
  adapter: string,
  /** The API underneath: `BrowserWebGpu`, `Vulkan`, ...; `Cpu`; `Reference` for the CPU twins. */
  backend: string,
  /** The adapter computes on the CPU (SwiftShader, lavapipe, WARP). */
  softwareAdapter: boolean,
  /** The device has subgroup operations. */
  subgroups: boolean,
  /** Shaders can compute in f16. */
  shaderF16: boolean,
  /** Shaders can multiply four bytes at once (a language feature that some browsers lack). */
  packedDot: boolean,
  /** Smallest subgroup of the device, in lanes (0: unknown). */
  subgroupMinLanes: number,
  /** Largest buffer, in bytes. */
  maxBufferBytes: number,
  /** Largest part of a buffer that a kernel can see, in bytes. */
  maxBindingBytes: number,
  /** Storage buffers a kernel can have. */
  maxStorageBuffers: number,
  /** Lanes a workgroup can have. */
  maxWorkgroupLanes: number, };

/** The times of the parts of a load, in milliseconds. On the reference device the parts after
* `device` are 0: it has no clock. */
export type LoadTimes = {
  /** The time in a page from the worker's start until its script and the wasm module ran and the source
  * was open. */
  worker: number,
  /** Reading the headers, and the tokenizer's tables. */
  header: number,
  /** Requesting the device. */
  device: number,
  /** Compiling and validating the kernels; concurrent with `weights`. */
  kernels: number,
  /** Reading the weights and uploading them to the device. */
  weights: number,
  /** Recording the steps. */
  recording: number, };

/** Log-probabilities: four arrays of equal length, one entry per token. */
export type Logprobs = { tokens: Array<string>, token_logprobs: Array<number | null>, top_logprobs: (Record<string, number> | null)[],
  /** Code points before each token. */
  text_offset: Array<number>, };

/** Log-probabilities: one object per token. */
export type LogprobsContent = { content: Array<ContentEntry>, };

/** The form of `logprobs` in answers. */
export type LogprobsShape = "arrays" | "content";

/** An adapter in use, for `engine.info()`. */
export type LoraReport = {
  /** Its name. */
  name: string,
  /** Its scale. */
  scale: number, };

/** The GPU memory that a model needs. */
export type MemoryReport = {
  /** Longest sequence that memory is reserved for, in tokens: never more than the model's own context. */
  contextTokens: number,
  /** Format of the KV cache. */
  kvFormat: KvFormat,
  /** Tokens of KV cache that all sequences share. */
  kvPoolTokens: number,
  /** Weights, in the kernels' layout. */
  weightBytes: number,
  /** KV cache of all layers. */
  kvBytes: number,
  /** States of sequences in recurrent layers. */
  stateBytes: number,
  /** Other memory of steps and samplers, approximately. */
  scratchBytes: number,
  /** The sum. */
  totalBytes: number,
  /** The largest buffer that a kernel has to see as a whole. */
  largestBuffer: BufferReport, };

/** A block of a message's content. */
export type MessageBlock = { "type": "text", text: string,
  /** Always null. */
  citations: null, } | { "type": "thinking", thinking: string,
  /** Always empty. */
  signature: string, } | { "type": "tool_use", id: string, name: string,
  /** The arguments; of a call that was cut off, what is whole of them. */
  input: unknown, };

/** The part that an event appends to a block. */
export type MessageBlockDelta = { "type": "text_delta", text: string, } | { "type": "thinking_delta", thinking: string, } | { "type": "input_json_delta", partial_json: string, };

/** The end of a message; the members are null until it has ended. */
export type MessageEnd = { stop_reason: MessageStopReason | null,
  /** The stop sequence that ended it, if one did. */
  stop_sequence: string | null, };

/** The body of an error of the routes of messages. */
export type MessageError = { type: "error",
  /** Its `type` is one of Anthropic's. */
  error: ErrorObject,
  /** Null in the event of a stream. */
  request_id: string | null, };

/** A request for a message in Anthropic's form; `docs/api.md` says what each field means. Unknown fields are passed on. */
export type MessageFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** The conversation so far: turns of `user`, `assistant` and `system`, whose content is a string or blocks. The content of an answer can be sent back as it is. */
  messages: MessageTurn[],
  /** The system prompt. */
  system?: string | MessageTextBlock[] | null,
  /** Further variables of the chat template. */
  chat_template_kwargs?: Record<string, unknown> | null,
  /** Not used. */
  cache_prompt?: unknown,
  /** Not used. */
  cache_salt?: unknown,
  /** Not used. */
  early_stopping?: unknown,
  /** Not used. */
  id_slot?: unknown,
  /** Not used. */
  metadata?: unknown,
  /** Not used. */
  n_discard?: unknown,
  /** Not used. */
  n_keep?: unknown,
  /** Not used. */
  priority?: unknown,
  /** Not used. */
  prompt_cache_isolation_key?: unknown,
  /** Not used. */
  prompt_cache_key?: unknown,
  /** Not used. */
  prompt_cache_max_len?: unknown,
  /** Not used. */
  prompt_cache_retention?: unknown,
  /** Not used. */
  request_id?: unknown,
  /** Not used. */
  safety_identifier?: unknown,
  /** Not used. */
  service_tier?: unknown,
  /** Not used. */
  spaces_between_special_tokens?: unknown,
  /** Not used: how many tokens are guessed follows from how often guesses were right. */
  "speculative.p_min"?: unknown,
  /** Not used. */
  store?: unknown,
  /** Not used. */
  timings_per_token?: unknown,
  /** Text that the completion is expected to be, or to resemble, such as one that it repeats with changes. Its tokens are verified several at once; the completion is the same as without it. */
  prediction?: { type: "content", content: string | { type: "text", text: string }[] } | null,
  /** The same as `prediction`, as a string or token ids; not used beside it. */
  speculation?: string | number[] | null,
  /** The maximum number of tokens that are guessed at once; 0: none. */
  "speculative.n_max"?: number | null,
  /** The fewest tokens that are guessed at once. */
  "speculative.n_min"?: number | null,
  /** The same as `max_tokens`; if several of its names are given, they must be equal. */
  max_completion_tokens?: number | null,
  /** The same as `max_tokens`; -1: until the context is full. */
  n_predict?: number | null,
  /** Strings that end the completion. */
  stop?: string | string[] | null,
  /** Regular expressions that end the completion where they match. */
  stop_regex?: string | string[] | null,
  /** Token ids that end the completion. */
  stop_token_ids?: number[] | null,
  /** Before the completion has this many tokens, end of text and stop ids are forbidden and stop strings do not count. */
  min_tokens?: number | null,
  /** Whether the completion includes the stop string that ended it. */
  include_stop_str_in_output?: boolean | null,
  /** Whether special tokens are left out of the text. */
  skip_special_tokens?: boolean | null,
  /** Continue after an end-of-text token. */
  ignore_eos?: boolean | null,
  /** The behavior when the prompt and `max_tokens` exceed the context. */
  context_length_exceeded_behavior?: "truncate" | "error" | null,
  /** Drop the start of a prompt that is too long. */
  truncate_sequence?: boolean | null,
  /** The only tokens that may be generated; end of text only if it is listed. */
  allowed_token_ids?: number[] | null,
  /** Strings that are not generated, as the tokenizer writes them. */
  bad_words?: string[] | null,
  /** Send the answer in chunks as server-sent events. */
  stream?: boolean | null,
  /** The reports of a stream besides the text: members `include_usage`, `continuous_usage_stats` and `include_obfuscation` (bool; the last has no effect). */
  stream_options?: StreamOptions | null,
  /** Keep the most likely tokens whose probabilities add up to this; 0 keeps only the most likely one. */
  top_p?: number | null,
  /** Keep the tokens whose surprise is closest to the expected one, up to this probability mass; 1 is off. */
  typical_p?: number | null,
  /** Keep this many of the most likely tokens; -1 and 0 are off. */
  top_k?: number | null,
  /** Keep tokens at least this fraction as likely as the most likely one. */
  min_p?: number | null,
  /** The same seed gives the same output; -1 is an ordinary one. A `bigint` keeps what a `number` cannot hold. */
  seed?: number | bigint | null,
  /** The number that is subtracted from a token's logit per earlier occurrence in the completion. */
  frequency_penalty?: number | null,
  /** The number that is subtracted once from the logit of every token of the completion. */
  presence_penalty?: number | null,
  /** Makes tokens of prompt and completion less likely if above 1. */
  repetition_penalty?: number | null,
  /** The same as `repetition_penalty`. */
  repeat_penalty?: number | null,
  /** Token ids or strings, and what is added to their logits; or pairs of an id or a string and a number or false, which forbids the token. */
  logit_bias?: Record<string, number> | [number | string, number | false][] | null,
  /** Mirostat 2.0: the surprise to aim at; replaces `top_k`, `typical_p`, `top_p` and `min_p`. */
  mirostat_target?: number | null,
  /** Mirostat's learning rate; no effect without a target. */
  mirostat_lr?: number | null,
  /** DRY: above 0 penalizes tokens that continue a repetition. */
  dry_multiplier?: number | null,
  /** DRY: growth of the penalty per repeated token. */
  dry_base?: number | null,
  /** DRY: repetitions shorter than this are not penalized. */
  dry_allowed_length?: number | null,
  /** DRY: strings that no repetition extends across. */
  dry_sequence_breakers?: string[] | null,
  /** A grammar that the whole completion must match; a string is GBNF. */
  grammar?: Grammar | null,
  /** A JSON schema that the completion must match. */
  json_schema?: JsonSchema | null,
  /** The format that the completion must match; exactly one of the members `json`, `json_object`, `regex`, `choice` and `grammar`. */
  structured_outputs?: StructuredOutputs | null,
  /** A JSON schema, or its text. */
  guided_json?: Record<string, unknown> | boolean | string | null,
  /** A regular expression. */
  guided_regex?: string | null,
  /** Strings of which the completion is one. */
  guided_choice?: string[] | null,
  /** A grammar in GBNF or Lark. */
  guided_grammar?: string | null,
  /** A regular expression of the white space in the JSON of `guided_json`. */
  guided_whitespace_pattern?: string | null,
  /** Not used. */
  guided_decoding_backend?: string | null,
  /** A regular expression. */
  regex?: string | null,
  /** A grammar in EBNF. */
  ebnf?: string | null,
  /** The maximum number of tokens of the answer, thinking included. Counting tokens needs no limit. */
  max_tokens: number,
  /** Strings that end the answer; it does not include them. */
  stop_sequences?: string[] | null,
  /** Below 1e-5 the most likely token is taken. */
  temperature?: number | null,
  /** Functions that the model may call. Tools that Anthropic defines are refused. */
  tools?: MessageTool[] | null,
  /** Whether the model may or must call a tool, and which; `disable_parallel_tool_use` is a member of it. */
  tool_choice?: MessageToolChoice | null,
  /** Whether the model thinks before it answers, if its chat template knows the variable `enable_thinking`; `adaptive` and `between_tools` are what the template does by itself. `budget_tokens` bounds the tokens of thinking. */
  thinking?: ThinkingOptions | null,
  /** `format` is what the text must be; `effort` is for chat templates that know the word. */
  output_config?: MessageOutputConfig | null,
  /** An older name of `output_config.format`. */
  output_format?: MessageFormat | null,
  /** Not used: prompts are cached without it. */
  cache_control?: unknown,
  /** Not used. */
  diagnostics?: unknown,
  /** Not used. */
  inference_geo?: unknown,
  /** Not used. */
  speed?: unknown,
  /** Not used. */
  user_profile_id?: unknown,
  /** Not used. */
  workspace_id?: unknown, };

/** The JSON schema that the text must satisfy. */
export type MessageFormat = { type: "json_schema", schema: JsonSchema, };

/** The place of an image. */
export type MessageImageSource = { "type": "base64", media_type: string, data: string, } | { "type": "url", url: string, };

/** A message of the assistant. */
export type MessageObject = { id: string, type: "message", role: "assistant",
  /** The model's id. */
  model: string, content: Array<MessageBlock>, usage: MessageUsage, stop_reason: MessageStopReason | null,
  /** The stop sequence that ended it, if one did. */
  stop_sequence: string | null, };

/** Settings of the answer. */
export type MessageOutputConfig = { format?: MessageFormat | null,
  /** If the chat template knows the word. */
  effort?: "low" | "medium" | "high" | "xhigh" | "max" | null, };

export type MessageOutputTokens = {
  /** Number of tokens up to the last one of thinking. */
  thinking_tokens: number, };

export type MessageStopReason = "end_turn" | "max_tokens" | "stop_sequence" | "tool_use";

/** An event of a streamed message. */
export type MessageStreamEvent = { "type": "message_start", message: MessageObject, } | { "type": "content_block_start", index: number, content_block: MessageBlock, } | { "type": "content_block_delta", index: number, delta: MessageBlockDelta, } | { "type": "content_block_stop", index: number, } | { "type": "message_delta", delta: MessageEnd, usage: MessageUsage, } | { "type": "message_stop" };

/** A block of text. */
export type MessageTextBlock = { type: "text", text: string, };

/** The number of tokens of a prompt. */
export type MessageTokenCount = { input_tokens: number, };

/** A function that the model may call. */
export type MessageTool = { type?: "custom" | null, name: string, description?: string | null,
  /** A JSON schema of an object. The arguments satisfy it. */
  input_schema: Record<string, unknown>, strict?: boolean | null, };

/** Whether the model may or must call a tool, and which. */
export type MessageToolChoice = { "type": "auto", disable_parallel_tool_use?: boolean | null, } | { "type": "any", disable_parallel_tool_use?: boolean | null, } | { "type": "tool", name: string, disable_parallel_tool_use?: boolean | null, } | { "type": "none" };

/** A turn of a conversation. */
export type MessageTurn = { role: "user" | "assistant" | "system", content: string | MessageTurnBlock[], };

/** A block of a turn. The blocks of an answer are such blocks, too. */
export type MessageTurnBlock = { "type": "text", text: string, } | { "type": "image", source: MessageImageSource, } | { "type": "tool_use", id: string, name: string, input: unknown, } | { "type": "tool_result", tool_use_id: string,
  /** A string, or blocks of text and images. */
  content?: string | MessageTurnBlock[] | null, is_error?: boolean | null, } | { "type": "thinking", thinking: string, signature?: string | null, } | { "type": "redacted_thinking", data: string, };

/** Token counts of a message. */
export type MessageUsage = {
  /** Tokens of the prompt, without those that were cached. */
  input_tokens: number,
  /** Always 0. */
  cache_creation_input_tokens: number,
  /** Tokens of the prompt that were found in the KV cache. */
  cache_read_input_tokens: number,
  /** Tokens of the answer, including thinking. */
  output_tokens: number, output_tokens_details: MessageOutputTokens, };

/** The word `"messages"`: routes that answer with messages of the assistant. */
export type MessageWord = "messages";

/** The unit of `mirostat_target`. */
export type MirostatTargetUnit = "perplexity" | "bits";

/** One model as the endpoint lists it. */
export type ModelCard = { id: string, object: "model",
  /** Unix seconds of the registration. */
  created: number, owned_by: string, status: "unloaded" | "loading" | "ready" | "failed",
  /** The longest sequence in tokens; only of a ready model. */
  context_length?: number,
  /** The same, by its name in vLLM. */
  max_model_len?: number,
  /** `completions`, and `chat` if it has a chat template; `embeddings`, or `rerank`. */
  capabilities: Array<string>,
  /** The form of tools in prompts; only of a ready model with a chat template. */
  tools?: ToolPrompts, };

/** The description of a model, and whether it runs. */
export type ModelInspection = {
  /** The version of this build. */
  version: string,
  /** Size of all files with tensors that were opened. */
  fileBytes: number,
  /** The form in which the model is stored. */
  container: ContainerReport,
  /** Whether a load would succeed, judging by the headers. */
  runs: boolean,
  /** The error of a load. */
  refusal: ModelRefusal | null,
  /** The same for each limit: the one in the options, or the smallest and the usual one. */
  devices: Array<LimitReport>,
  /** `None` if a header cannot be read, or if the file is only a projector. */
  model: InspectedModel | null,
  /** The vision tower and its projector, of an `mmproj` file or of a folder that has one. */
  projector: InspectedProjector | null,
  /** `None` if this build supports no tokenizer of the model. */
  tokenizer: InspectedTokenizer | null, };

/** The registered models. */
export type ModelList = { object: "list", data: Array<ModelCard>, };

/** The reason why a model does not run. */
export type ModelRefusal = {
  /** `unsupported_model`, `invalid_model_file` or `out_of_memory`. */
  code: string,
  /** A message for humans. */
  message: string, };

/** A schema with its name. */
export type NamedSchema = { schema: JsonSchema, name?: string | null, description?: string | null, strict?: boolean | null, };

/** Times of a request in seconds, and its tokens. */
export type PerfMetricsMember = { "prompt-tokens": number, "cached-prompt-tokens": number, "server-time-to-first-token": number, "server-processing-time": number, };

/** Arithmetic that products may use. */
export type Precision = "auto" | "f32";

/** The projector, which makes rows of images, for `engine.info()`. */
export type ProjectorReport = {
  /** The family of models, as `clip.projector_type` names it. */
  kind: string,
  /** Layers of the tower. */
  layers: number,
  /** Size of the file. */
  fileBytes: number,
  /** The placeholder of an image in a prompt. */
  placeholder: string, };

/** A token that could be at a position of the prompt. */
export type PromptLogprob = { logprob: number,
  /** The rank from 1 on; null for a token that is not among the requested best ones. */
  rank: number | null, decoded_token: string, };

/** Details of the prompt tokens. */
export type PromptTokensDetails = {
  /** The tokens that were found in the prefix cache. */
  cached_tokens: number, };

export type Quantize = "none" | "f32" | "f16" | "bf16" | "q8_0" | "q4_0" | "q4_1" | "q5_0" | "q5_1" | "q4_k" | "q5_k" | "q6_k";

/** The prompt as the model received it, and what it generated. */
export type RawOutput = { prompt_fragments: [string], prompt_token_ids: Array<number>,
  /** The generated text with special tokens. */
  completion: string, completion_token_ids: Array<number>,
  /** Null without `logprobs`. */
  completion_logprobs: LogprobsContent | null, };

/** How much the model thinks, and whether the answer has the reasoning. Either `effort` or `max_tokens`. */
export type ReasoningOptions = { effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null,
  /** The maximum number of tokens of thinking. */
  max_tokens?: number | null,
  /** Whether the model thinks; true with `effort` or `max_tokens` unless it is given. */
  enabled?: boolean | null,
  /** Whether the reasoning is left out of the answer. */
  exclude?: boolean | null,
  /** The form of a summary. It has no effect, because the answer has the reasoning itself. */
  summary?: "auto" | "concise" | "detailed" | null, };

/** The text that a chat template made of messages. */
export type RenderedTemplate = { prompt: string, };

/** The text of a document. */
export type RerankDocument = { text: string, };

/** The body of an error of the routes that rerank, with the message where the clients of these APIs read it. */
export type RerankError = { error: ErrorObject,
  /** The message, for clients of Cohere. */
  message: string,
  /** The message, for clients of Jina and Voyage. */
  detail: string, };

/** A request for an order of documents; `docs/api.md` says what each field means. */
export type RerankFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** The text that documents are compared with. */
  query: string,
  /** The texts to put in order, at least one and at most 2048: strings, or objects with a member `text`. */
  documents: (string | { text: string })[],
  /** The number of results: the best documents. */
  top_n?: number | null,
  /** Whether results contain their documents. */
  return_documents?: boolean | null,
  /** The maximum number of tokens of a document: those after it are cut. */
  max_tokens_per_doc?: number | null,
  /** Scores from 0 to 1. False: the output of the model as it is. */
  use_activation?: boolean | null,
  /** Keep this many tokens of a prompt; -1: as many as the context holds. */
  truncate_prompt_tokens?: number | null,
  /** The side that `truncate_prompt_tokens` cuts: `left` keeps the prompt's end, `right` its beginning. */
  truncation_side?: "left" | "right" | null, };

/** Documents in the order of their scores. */
export type RerankList = { object: "list", id: string,
  /** The id of the model that answered. */
  model: string,
  /** The best document first; of equal ones the earlier. */
  results: Array<RerankResult>, usage: RerankUsage,
  /** The token counts as Cohere's API has them. The AI SDK's provider for Cohere refuses an answer without this member. */
  meta: RerankMeta, };

/** What Cohere's answers say about the request. */
export type RerankMeta = { tokens: RerankMetaTokens, };

/** Token counts as Cohere names them. */
export type RerankMetaTokens = { input_tokens: number, };

/** A document and its score. */
export type RerankResult = {
  /** The document's place in the request. */
  index: number,
  /** The score of the document, from 0 to 1 with `use_activation`. */
  relevance_score: number,
  /** The document, if it was asked for. */
  document?: RerankDocument, };

/** Token counts of a request: those of the query count once for each document. */
export type RerankUsage = { prompt_tokens: number, total_tokens: number, };

/** The result of a call. */
export type ResponseCallOutput = { type: "function_call_output", call_id: string, output: string | ResponseInputPart[], id?: string | null, status?: string | null, };

/** An item of a compacted conversation. */
export type ResponseCompactedItem = { "type": "message", id: string, status: ResponseStatus, role: "user", content: Array<ResponseKeptPart>, } | { "type": "compaction", id: string,
  /** The summary, for this endpoint to read. */
  encrypted_content: string, };

/** A compacted conversation. */
export type ResponseCompaction = { id: string, object: "response.compaction",
  /** Unix seconds. */
  created_at: number,
  /** The messages of the user, and then the compaction. */
  output: Array<ResponseCompactedItem>, usage: ResponseUsage, };

/** The error of a response that failed. */
export type ResponseError = { code: string, message: string, };

/** An event with its number, which counts the events of the response from 0. */
export type ResponseEvent = { sequence_number: number, } & ({ "type": "response.created", response: ResponseObject, } | { "type": "response.in_progress", response: ResponseObject, } | { "type": "response.output_item.added", output_index: number, item: ResponseItem, } | { "type": "response.output_item.done", output_index: number, item: ResponseItem, } | { "type": "response.content_part.added", item_id: string, output_index: number, content_index: number, part: ResponsePart, } | { "type": "response.content_part.done", item_id: string, output_index: number, content_index: number, part: ResponsePart, } | { "type": "response.output_text.delta", item_id: string, output_index: number, content_index: number, delta: string, logprobs: Array<ChatTokenLogprob>, } | { "type": "response.output_text.done", item_id: string, output_index: number, content_index: number, text: string, logprobs: Array<ChatTokenLogprob>, } | { "type": "response.reasoning_text.delta", item_id: string, output_index: number, content_index: number, delta: string, } | { "type": "response.reasoning_text.done", item_id: string, output_index: number, content_index: number, text: string, } | { "type": "response.function_call_arguments.delta", item_id: string, output_index: number, delta: string, } | { "type": "response.function_call_arguments.done", item_id: string, output_index: number, name: string, arguments: string, } | { "type": "response.completed", response: ResponseObject, } | { "type": "response.incomplete", response: ResponseObject, } | { "type": "response.failed", response: ResponseObject, } | { "type": "error", code: string, message: string, param: string | null, error: ErrorObject, });

/** A request for a response; `docs/api.md` says what each field means. Unknown fields are passed on. */
export type ResponseFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** The conversation so far: a string of the user, or items: messages, calls, their results, reasoning and compactions. Items of an earlier response can be sent back as they are. */
  input: string | ResponseInputItem[],
  /** A system message in front of `input`. */
  instructions?: string | null,
  /** Further variables of the chat template. */
  chat_template_kwargs?: Record<string, unknown> | null,
  /** Whether the model may call several tools in one answer. */
  parallel_tool_calls?: boolean | null,
  /** Not used. */
  cache_prompt?: unknown,
  /** Not used. */
  cache_salt?: unknown,
  /** Not used. */
  early_stopping?: unknown,
  /** Not used. */
  id_slot?: unknown,
  /** Not used. */
  n_discard?: unknown,
  /** Not used. */
  n_keep?: unknown,
  /** Not used. */
  priority?: unknown,
  /** Not used. */
  prompt_cache_isolation_key?: unknown,
  /** Not used. */
  prompt_cache_max_len?: unknown,
  /** Not used. */
  prompt_cache_retention?: unknown,
  /** Not used. */
  request_id?: unknown,
  /** Not used. */
  service_tier?: unknown,
  /** Not used. */
  spaces_between_special_tokens?: unknown,
  /** Not used: how many tokens are guessed follows from how often guesses were right. */
  "speculative.p_min"?: unknown,
  /** Not used. */
  timings_per_token?: unknown,
  /** Text that the completion is expected to be, or to resemble, such as one that it repeats with changes. Its tokens are verified several at once; the completion is the same as without it. */
  prediction?: { type: "content", content: string | { type: "text", text: string }[] } | null,
  /** The same as `prediction`, as a string or token ids; not used beside it. */
  speculation?: string | number[] | null,
  /** The maximum number of tokens that are guessed at once; 0: none. */
  "speculative.n_max"?: number | null,
  /** The fewest tokens that are guessed at once. */
  "speculative.n_min"?: number | null,
  /** The maximum number of tokens of a completion; 0 generates nothing. */
  max_tokens?: number | null,
  /** The same as `max_tokens`; if several of its names are given, they must be equal. */
  max_completion_tokens?: number | null,
  /** The same as `max_tokens`; -1: until the context is full. */
  n_predict?: number | null,
  /** Strings that end the completion. */
  stop?: string | string[] | null,
  /** Regular expressions that end the completion where they match. */
  stop_regex?: string | string[] | null,
  /** Token ids that end the completion. */
  stop_token_ids?: number[] | null,
  /** Before the completion has this many tokens, end of text and stop ids are forbidden and stop strings do not count. */
  min_tokens?: number | null,
  /** Whether the completion includes the stop string that ended it. */
  include_stop_str_in_output?: boolean | null,
  /** Whether special tokens are left out of the text. */
  skip_special_tokens?: boolean | null,
  /** Continue after an end-of-text token. */
  ignore_eos?: boolean | null,
  /** The behavior when the prompt and `max_tokens` exceed the context. */
  context_length_exceeded_behavior?: "truncate" | "error" | null,
  /** Drop the start of a prompt that is too long. */
  truncate_sequence?: boolean | null,
  /** The only tokens that may be generated; end of text only if it is listed. */
  allowed_token_ids?: number[] | null,
  /** Strings that are not generated, as the tokenizer writes them. */
  bad_words?: string[] | null,
  /** Send the answer in chunks as server-sent events. */
  stream?: boolean | null,
  /** The reports of a stream besides the text: members `include_usage`, `continuous_usage_stats` and `include_obfuscation` (bool; the last has no effect). */
  stream_options?: StreamOptions | null,
  /** Below 1e-5 the most likely token is taken. */
  temperature?: number | null,
  /** Keep the most likely tokens whose probabilities add up to this; 0 keeps only the most likely one. */
  top_p?: number | null,
  /** Keep the tokens whose surprise is closest to the expected one, up to this probability mass; 1 is off. */
  typical_p?: number | null,
  /** Keep this many of the most likely tokens; -1 and 0 are off. */
  top_k?: number | null,
  /** Keep tokens at least this fraction as likely as the most likely one. */
  min_p?: number | null,
  /** The same seed gives the same output; -1 is an ordinary one. A `bigint` keeps what a `number` cannot hold. */
  seed?: number | bigint | null,
  /** The number that is subtracted from a token's logit per earlier occurrence in the completion. */
  frequency_penalty?: number | null,
  /** The number that is subtracted once from the logit of every token of the completion. */
  presence_penalty?: number | null,
  /** Makes tokens of prompt and completion less likely if above 1. */
  repetition_penalty?: number | null,
  /** The same as `repetition_penalty`. */
  repeat_penalty?: number | null,
  /** Token ids or strings, and what is added to their logits; or pairs of an id or a string and a number or false, which forbids the token. */
  logit_bias?: Record<string, number> | [number | string, number | false][] | null,
  /** Mirostat 2.0: the surprise to aim at; replaces `top_k`, `typical_p`, `top_p` and `min_p`. */
  mirostat_target?: number | null,
  /** Mirostat's learning rate; no effect without a target. */
  mirostat_lr?: number | null,
  /** DRY: above 0 penalizes tokens that continue a repetition. */
  dry_multiplier?: number | null,
  /** DRY: growth of the penalty per repeated token. */
  dry_base?: number | null,
  /** DRY: repetitions shorter than this are not penalized. */
  dry_allowed_length?: number | null,
  /** DRY: strings that no repetition extends across. */
  dry_sequence_breakers?: string[] | null,
  /** A grammar that the whole completion must match; a string is GBNF. */
  grammar?: Grammar | null,
  /** A JSON schema that the completion must match. */
  json_schema?: JsonSchema | null,
  /** The format that the completion must match; exactly one of the members `json`, `json_object`, `regex`, `choice` and `grammar`. */
  structured_outputs?: StructuredOutputs | null,
  /** A JSON schema, or its text. */
  guided_json?: Record<string, unknown> | boolean | string | null,
  /** A regular expression. */
  guided_regex?: string | null,
  /** Strings of which the completion is one. */
  guided_choice?: string[] | null,
  /** A grammar in GBNF or Lark. */
  guided_grammar?: string | null,
  /** A regular expression of the white space in the JSON of `guided_json`. */
  guided_whitespace_pattern?: string | null,
  /** Not used. */
  guided_decoding_backend?: string | null,
  /** A regular expression. */
  regex?: string | null,
  /** A grammar in EBNF. */
  ebnf?: string | null,
  /** The maximum number of tokens of the answer, reasoning included. */
  max_output_tokens?: number | null,
  /** The format of the text: `format` is `text`, `json_object`, or `json_schema` with `schema` beside `type`; `verbosity` is for chat templates that know the word. */
  text?: ResponseText | null,
  /** Functions that the model may call, with `name` and `parameters` beside `type`. */
  tools?: ResponseTool[] | null,
  /** Whether the model may or must call a tool, and which. */
  tool_choice?: ToolChoice | null,
  /** Not used: it counts the calls of tools that a vendor runs. */
  max_tool_calls?: number | null,
  /** The amount of thinking: `effort` is for chat templates that know the word. No `summary` is made: the reasoning itself is an item. */
  reasoning?: ResponseReasoningOptions | null,
  /** The parts of the answer besides the text. */
  include?: ("message.output_text.logprobs" | "reasoning.encrypted_content")[] | null,
  /** The number of most likely tokens that are listed per position. */
  top_logprobs?: number | null,
  /** The distribution that the log-probabilities describe. */
  logprobs_mode?: "raw" | "processed" | null,
  /** The treatment of an input that is too long: it is refused, and so is `auto`. */
  truncation?: "disabled" | null,
  /** Repeated in the answer. */
  metadata?: Record<string, string> | null,
  /** Repeated in the answer. */
  safety_identifier?: string | null,
  /** Repeated in the answer. */
  prompt_cache_key?: string | null,
  /** Nothing is stored. */
  store?: false | null,
  /** Answers are given at once. */
  background?: false | null,
  /** Not used. */
  prompt_cache_options?: unknown, };

/** Whether the completion must be JSON. */
export type ResponseFormat = { "type": "text" } | { "type": "json_object", schema?: JsonSchema | null, } | { "type": "json_schema", json_schema: FormatSchema, } | { "type": "grammar", grammar: string, };

/** The reason why a response is incomplete. */
export type ResponseIncompleteDetails = { reason: "max_output_tokens", };

/** A call that the model made. */
export type ResponseInputCall = { type: "function_call", call_id: string, name: string,
  /** JSON text. */
  arguments: string, id?: string | null, status?: string | null, };

/** A conversation that was compacted. */
export type ResponseInputCompaction = { type: "compaction",
  /** The string that this endpoint wrote. */
  encrypted_content: string, id?: string | null, };

/** An item of a conversation. The items of an answer are items, too. */
export type ResponseInputItem = ResponseInputMessage | ResponseInputCall | ResponseCallOutput | ResponseInputReasoning | ResponseInputCompaction;

/** A message of a conversation. */
export type ResponseInputMessage = { type?: "message", role: "system" | "developer" | "user" | "assistant", content: string | ResponseInputPart[], id?: string | null, status?: string | null, };

/** A part of a message's content, or of a tool's result. */
export type ResponseInputPart = { "type": "input_text", text: string, } | { "type": "output_text", text: string, } | { "type": "refusal", refusal: string, };

/** The reasoning of the model. */
export type ResponseInputReasoning = { type: "reasoning", content?: { type: "reasoning_text", text: string }[] | null, summary?: { type: "summary_text", text: string }[] | null,
  /** The string that an answer of this endpoint had here. */
  encrypted_content?: string | null, id?: string | null, status?: string | null, };

/** The number of tokens of an input. */
export type ResponseInputTokenCount = { object: "response.input_tokens", input_tokens: number, };

export type ResponseInputTokens = {
  /** The tokens that were found in the KV cache. */
  cached_tokens: number, };

/** An item of the output. */
export type ResponseItem = { "type": "reasoning", id: string, status: ResponseStatus,
  /** Always empty. */
  summary: never[],
  /** One part. */
  content: Extract<ResponsePart, { type: "reasoning_text" }>[],
  /** The reasoning, to be sent back: with `reasoning.encrypted_content` in `include`, once the item is done. */
  encrypted_content?: string, } | { "type": "message", id: string, status: ResponseStatus, role: "assistant",
  /** One part. */
  content: Extract<ResponsePart, { type: "output_text" }>[], } | { "type": "function_call", id: string, status: ResponseStatus, call_id: string, name: string,
  /** JSON text. */
  arguments: string, };

/** A part of a message of the user. */
export type ResponseKeptPart = { "type": "input_text", text: string, } | { "type": "input_image", image_url: string, detail: "low" | "high" | "auto", };

/** A response. */
export type ResponseObject = { id: string, object: "response",
  /** Unix seconds. */
  created_at: number,
  /** Unix seconds; null unless the response is completed. */
  completed_at: number | null, status: ResponseStatus, error: ResponseError | null, incomplete_details: ResponseIncompleteDetails | null,
  /** The model's id. */
  model: string,
  /** Changes with anything that the output depends on. */
  system_fingerprint: string, output: Array<ResponseItem>,
  /** Null until the response is over. */
  usage: ResponseUsage | null, temperature: number, top_p: number, frequency_penalty: number, presence_penalty: number, instructions: string | null, max_output_tokens: number | null, max_tool_calls: number | null, metadata: Record<string, string>, parallel_tool_calls: boolean, prompt_cache_key: string | null, reasoning: ResponseReasoning, safety_identifier: string | null, text: ResponseTextConfig,
  /** The choice of the request; `auto` without one. */
  tool_choice: ToolChoice, tools: ResponseTool[], top_logprobs: number, user: string | null, background: false, previous_response_id: null, service_tier: "default", store: false, truncation: "disabled", };

export type ResponseOutputTokens = {
  /** Number of tokens up to the last one of reasoning. */
  reasoning_tokens: number, };

/** A part of an item's content. */
export type ResponsePart = { "type": "reasoning_text", text: string, } | { "type": "output_text", text: string,
  /** Always empty. */
  annotations: never[],
  /** Empty unless requested. */
  logprobs: Array<ChatTokenLogprob>, };

/** The amount of thinking. */
export type ResponseReasoning = { effort: string | null, summary: string | null, };

/** The amount of thinking. */
export type ResponseReasoningOptions = {
  /** If the chat template knows the word. */
  effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null,
  /** No summary is made: the reasoning itself is in the answer. */
  summary?: "auto" | "concise" | "detailed" | null,
  /** The same as `summary`. */
  generate_summary?: "auto" | "concise" | "detailed" | null, };

/** The state of a response or an item. */
export type ResponseStatus = "in_progress" | "completed" | "incomplete" | "failed";

/** The format of a response's text. */
export type ResponseText = { format?: ResponseTextFormat | null,
  /** The length that the text should have, if the chat template knows the word. */
  verbosity?: "low" | "medium" | "high" | null, };

/** The format of the text. */
export type ResponseTextConfig = { format: ResponseTextFormat, verbosity?: "low" | "medium" | "high", };

/** Whether the text must be JSON. */
export type ResponseTextFormat = { "type": "text" } | { "type": "json_object" } | { "type": "json_schema", schema: JsonSchema, name?: string | null, description?: string | null, strict?: boolean | null, };

/** A function that the model may call. */
export type ResponseTool = { type: "function", name: string, description?: string | null,
  /** A JSON schema of an object. */
  parameters?: Record<string, unknown> | null,
  /** Whether the arguments must satisfy `parameters`. */
  strict?: boolean | null, };

/** Token counts of a response. */
export type ResponseUsage = { input_tokens: number, input_tokens_details: ResponseInputTokens, output_tokens: number, output_tokens_details: ResponseOutputTokens, total_tokens: number, };

/** A rotary position embedding. */
export type RopeReport = {
  /** Base of the frequencies. */
  base: number,
  /** Base of layers that have frequencies of their own. */
  localBase: number | null,
  /** Elements of each head that are rotated. */
  dims: number,
  /** Layers without any rotation. */
  unrotatedLayers: number,
  /** The scaling of frequencies for longer contexts. */
  scaling: "none" | "linear" | "yarn" | "longrope" | "llama3",
  /** The ratio of the context to that of the training, where the scaling says so. */
  factor: number | null,
  /** Context of the training, in tokens, where the scaling says so. */
  originalTokens: number | null, };

/** The bounds of `temperature`, penalties and biases. */
export type SamplingBounds = "standard" | "open";

/** Log-probabilities in the form that the request and the switch `logprobsShape` ask for. */
export type ShapedLogprobs = Logprobs | LogprobsContent;

/** The tokens that are guessed. */
export type SpeculationMode = "auto" | "off" | "predictions" | "all";

/** The stop of the request that ended a candidate. */
export type StopReason = string | number;

/** The reports of a stream besides the text. */
export type StreamOptions = {
  /** End the stream with a chunk that holds the token counts. */
  include_usage?: boolean | null,
  /** Whether every chunk has running token counts. */
  continuous_usage_stats?: boolean | null,
  /** Not used. */
  include_obfuscation?: boolean | null, };

/** The format that the completion must match. */
export type StructuredOutputs = {
  /** A JSON schema, or its text. */
  json?: Record<string, unknown> | boolean | string | null,
  /** One JSON object. */
  json_object?: boolean | null, regex?: string | null,
  /** Strings of which the completion is one. */
  choice?: Array<string> | null,
  /** The grammar is in GBNF or Lark. */
  grammar?: string | null,
  /** No white space between JSON tokens. */
  disable_any_whitespace?: boolean | null,
  /** A regular expression of the white space between JSON tokens. */
  whitespace_pattern?: string | null, };

/** The meaning of `suffix`. */
export type SuffixMode = "append" | "fim" | "reject";

/** The behavior of the endpoint where vendors differ. The JSON form has camelCase names. */
export type Switches = {
  /** Default of `include_stop_str_in_output`: whether a matched stop string is returned. */
  stopTextIncluded: boolean,
  /** Default of `context_length_exceeded_behavior`: `"truncate"` generates what fits, `"error"` refuses the request. */
  contextLengthExceededBehavior: ContextLengthExceededBehavior,
  /** Default of `max_tokens`; `"context"` generates until the context is full. */
  defaultMaxTokens: DefaultMaxTokens,
  /** The maximum number of tokens of a message without `max_tokens`, as far as they fit the context; `"context"`: all that fit. */
  defaultMaxMessageTokens: DefaultMaxTokens,
  /** Default of `suffix_mode`: `"append"`, `"fim"` or `"reject"`. */
  suffixMode: SuffixMode,
  /** The treatment of unknown fields: `"ignore"` warns once per name, `"error"` refuses the request. */
  unknownFields: UnknownFields,
  /** Token counts in streams that do not ask for them. True: as if every stream set `include_usage`; `"last_choice"`: in
  * the last chunk that has a choice, without an extra chunk. */
  alwaysIncludeUsage: AlwaysIncludeUsage,
  /** Unit of `mirostat_target`: `"perplexity"` or `"bits"`. */
  mirostatTargetUnit: MirostatTargetUnit,
  /** Default of `logprobs_mode`: the distribution that log-probabilities describe, `"raw"` or `"processed"`. */
  logprobsMode: "raw" | "processed",
  /** The place that `text_offset` counts from when the prompt is not echoed: `"text"`, the start of the text, or `"prompt"`, the
  * start of the prompt. */
  textOffsetBase: TextOffsetBase,
  /** Largest `logprobs`. */
  maxLogprobs: number,
  /** The maximum number of stop strings. */
  maxStopSequences: number,
  /** Largest `n`. */
  maxN: number,
  /** Largest `best_of`. */
  maxBestOf: number,
  /** The maximum number of prompts in one request. */
  maxPrompts: number,
  /** The maximum number of candidates of one request over all its prompts. */
  maxSequences: number,
  /** The routes where the sampling values and the limit of tokens that the model's files recommend fill what the request leaves out:
  * `"messages"`: in chat and responses; true: everywhere; false: nowhere. */
  useModelGenerationDefaults: UseModelDefaults,
  /** Whether a request without `model` means `"default"`. */
  allowMissingModel: boolean,
  /** The treatment of a request while its model loads: `"wait"` holds it, `"error"` refuses it with 503. `createEngine`
  * sets `"wait"`, unless there is an `upstream`. */
  whenModelNotReady: WhenModelNotReady,
  /** If set, every request except `OPTIONS` requires `Authorization: Bearer <key>` or `X-Api-Key: <key>`. */
  apiKey: string | null,
  /** Cross-origin access: the value of `Access-Control-Allow-Origin`. */
  cors: Cors,
  /** The paths below which the routes are. */
  basePaths: Array<string>,
  /** Largest request body in bytes. */
  maxBodyBytes: number,
  /** Whether images may be at `http:` and `https:` URLs, which a web page fetches under its own rules. */
  remoteImages: boolean,
  /** The maximum number of waiting requests; more are refused with 429. */
  maxQueue: number,
  /** Silence on a stream in milliseconds after which a comment is sent; 0 sends none. */
  keepAliveMs: number,
  /** If set, answers begin with `"$schema"`; an absolute URL. */
  schemaUrl: string | null,
  /** The form of `logprobs` in answers: `"arrays"`, or `"content"` as chat completions have it. */
  logprobsShape: LogprobsShape,
  /** Whether `logprobs` may be a boolean without `top_logprobs`. */
  booleanLogprobs: boolean,
  /** The bounds of `temperature`, penalties and biases: `"standard"`, or `"open"` without upper bounds. */
  samplingBounds: SamplingBounds,
  /** The names that tools may have: `"standard"` (1 to 64 of `A-Z a-z 0-9 _ -`), or `"any"` that is not empty. */
  toolNames: ToolNames,
  /** Whether an object of a JSON schema without `additionalProperties` may have members that the schema does not name,
  * and a tuple further items. */
  openObjects: boolean,
  /** Whether an array of `prompt` may hold strings and token ids, as llama.cpp takes it. */
  mixedPrompts: boolean,
  /** Status of requests that are JSON, but not valid: 400 or 422. */
  invalidRequestStatus: 400 | 422,
  /** Longest time a request may take to answer, in milliseconds. */
  requestTimeoutMs: number | null,
  /** The text of a chat template (Jinja) instead of those of the model's files. */
  chatTemplate: string | null,
  /** A conversation that ends with a message of the assistant is continued within it, unless the request says otherwise. */
  assistantPrefill: boolean,
  /** Whether answers have llama.cpp's `timings`. */
  timings: boolean,
  /** Whether the engine feeds the conversation after a chat message while it is idle, so that its next turn begins sooner. */
  prepareNextTurn: boolean,
  /** Tokens that are guessed and verified several at once, which changes how fast they come and not which: `"off"`: none;
  * `"predictions"`: those of requests with a `prediction`, and those that a constraint forces; `"all"`: also those that
  * follow where the end of the text occurred before, and those of a draft model or of the model's own head; `"auto"`:
  * `"all"`, on a GPU without those that follow elsewhere in the text. */
  speculation: SpeculationMode,
  /** The model that `"default"` means when several models are ready. */
  defaultModel: string | null, };

/** A request for the text of messages; `docs/api.md` says what each field means. */
export type TemplateFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** The conversation so far. Roles are `system`, `developer`, `user`, `assistant`, `tool` and `function`; content is a string or parts. */
  messages: ChatMessage[],
  /** Further variables of the chat template, such as `{"enable_thinking": false}`. */
  chat_template_kwargs?: Record<string, unknown> | null,
  /** The amount of thinking, if the model's chat template knows the word; `none` and `minimal` switch thinking off where the template can. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null,
  /** Whether the model thinks before it answers, if its chat template knows the variable `enable_thinking`; `adaptive` and `between_tools` are what the template does by itself. `budget_tokens` bounds the tokens of thinking. */
  thinking?: ThinkingOptions | null,
  /** The same as `thinking` with `enabled` or `disabled`. */
  enable_thinking?: boolean | null,
  /** The length that the text should have, if the chat template knows the word. */
  verbosity?: "low" | "medium" | "high" | null,
  /** End the prompt with the beginning of the assistant's message. */
  add_generation_prompt?: boolean | null,
  /** Continue the last message instead of beginning one. */
  continue_final_message?: boolean | null,
  /** Whether the model may call several tools in one message. */
  parallel_tool_calls?: boolean | null,
  /** Whether and how much the model thinks, and whether the answer has the reasoning. `effort` is the same as `reasoning_effort`, `max_tokens` as `thinking_token_budget`, `enabled` as `enable_thinking`, and `exclude: true` as `include_reasoning: false`. */
  reasoning?: ReasoningOptions | null,
  /** Functions that the model may call. */
  tools?: FunctionTool[] | null,
  /** Whether the model may or must call a tool, and which. */
  tool_choice?: ToolChoice | null,
  /** The older form of `tools`: the functions that the model may call, one per message. */
  functions?: FunctionDeclaration[] | null,
  /** The older form of `tool_choice`. */
  function_call?: "none" | "auto" | { name: string } | null, };

/** The tensors of one type. */
export type TensorTypeReport = {
  /** ggml's name of the type. */
  type: string,
  /** Number of tensors. */
  tensors: number,
  /** Their elements. */
  elements: number,
  /** Their bytes in that type. */
  bytes: number, };

/** The start of `text_offset` when the prompt is not echoed. */
export type TextOffsetBase = "text" | "prompt";

/** Whether the model thinks before it answers. */
export type ThinkingOptions = { "type": "enabled",
  /** The maximum number of tokens of thinking. */
  budget_tokens?: number | null, } | { "type": "disabled" } | { "type": "adaptive" } | { "type": "between_tools" };

/** The time that the prompt and the completion took, waiting included, with the switch `timings`. */
export type Timings = {
  /** Tokens of the prompt that were cached. */
  cache_n: number,
  /** Prompt tokens that were not cached. */
  prompt_n: number,
  /** The time until the first token. */
  prompt_ms: number, prompt_per_token_ms: number, prompt_per_second: number,
  /** Generated tokens. */
  predicted_n: number,
  /** The time from the first token on. */
  predicted_ms: number, predicted_per_token_ms: number, predicted_per_second: number, };

/** The ids of a prompt. */
export type TokenList = {
  /** The number of tokens. */
  count: number,
  /** The context of the model in tokens. */
  max_model_len: number, tokens: Array<number>,
  /** The text of each token, as `logprobs` lists it; only if it was asked for. */
  token_strs: Array<string> | null, };

/** A token and its text. */
export type TokenPiece = { id: number,
  /** The bytes, where they are not whole characters. */
  piece: string | number[], };

/** The ids of a prompt with their strings, for `with_pieces`. */
export type TokenPieceList = {
  /** The number of tokens. */
  count: number,
  /** The context of the model in tokens. */
  max_model_len: number, tokens: Array<TokenPiece>,
  /** The text of each token, as `logprobs` lists it; only if it was asked for. */
  token_strs: Array<string> | null, };

/** The text of token ids. */
export type TokenText = { prompt: string,
  /** The same, by its name in llama.cpp. */
  content: string, };

/** A request for token ids; `docs/api.md` says what each field means. */
export type TokenizeFields = {
  /** A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`). */
  model: string,
  /** Not used. */
  user?: string | null,
  /** Further variables of the chat template, such as `{"enable_thinking": false}`. */
  chat_template_kwargs?: Record<string, unknown> | null,
  /** The amount of thinking, if the model's chat template knows the word; `none` and `minimal` switch thinking off where the template can. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null,
  /** Whether the model thinks before it answers, if its chat template knows the variable `enable_thinking`; `adaptive` and `between_tools` are what the template does by itself. `budget_tokens` bounds the tokens of thinking. */
  thinking?: ThinkingOptions | null,
  /** The same as `thinking` with `enabled` or `disabled`. */
  enable_thinking?: boolean | null,
  /** The length that the text should have, if the chat template knows the word. */
  verbosity?: "low" | "medium" | "high" | null,
  /** End the prompt with the beginning of the assistant's message. */
  add_generation_prompt?: boolean | null,
  /** Continue the last message instead of beginning one. */
  continue_final_message?: boolean | null,
  /** Whether the model may call several tools in one message. */
  parallel_tool_calls?: boolean | null,
  /** Whether and how much the model thinks, and whether the answer has the reasoning. `effort` is the same as `reasoning_effort`, `max_tokens` as `thinking_token_budget`, `enabled` as `enable_thinking`, and `exclude: true` as `include_reasoning: false`. */
  reasoning?: ReasoningOptions | null,
  /** A string as completions read it, or token ids. Either this or `messages`. */
  prompt?: string | ArrayLike<number> | null,
  /** Another name of `prompt`, for a string. */
  content?: string | null,
  /** A conversation, which the chat template renders. */
  messages?: ChatMessage[] | null,
  /** Whether the tokenizer adds its start-of-text token to a prompt that is text. Not with `messages`. */
  add_special_tokens?: boolean | null,
  /** Another name of `add_special_tokens`. */
  add_special?: boolean | null,
  /** Must be true: the strings of special tokens in a prompt become these tokens. */
  parse_special?: boolean | null,
  /** Return the text of each token, too. */
  return_token_strs?: boolean | null,
  /** Return tokens as objects, such as `{"id": 1, "piece": "<s>"}`; a piece is an array of bytes where these are not whole characters. */
  with_pieces?: boolean | null,
  /** Functions that the model may call. */
  tools?: FunctionTool[] | null,
  /** Whether the model may or must call a tool, and which. */
  tool_choice?: ToolChoice | null,
  /** The older form of `tools`: the functions that the model may call, one per message. */
  functions?: FunctionDeclaration[] | null,
  /** The older form of `tool_choice`. */
  function_call?: "none" | "auto" | { name: string } | null, };

/** A call that the model has written. */
export type ToolCall = { id: string, type: "function", function: FunctionCall, };

/** Whether the model may or must call a tool, and which. */
export type ToolChoice = "none" | "auto" | "required" | ToolName | { type: "allowed_tools", mode: "auto" | "required", tools: Array<ToolName>, } | { type: "allowed_tools", allowed_tools: { mode: "auto" | "required"; tools: Array<ToolName> }, };

/** A tool of `tools`, by name. */
export type ToolName = { type: "function", name: string, } | { type: "function", function: { name: string }, };

/** The names that tools may have. */
export type ToolNames = "standard" | "any";

/** The form of tools in a prompt. */
export type ToolPrompts = "template" | "generic";

/** The sizes of a vision tower. */
export type TowerSizes = {
  /** The embedding length of the text models that it fits. */
  embeddingLength: number,
  /** The placeholder of an image in a prompt. */
  placeholder: string,
  /** Layers. */
  layers: number,
  /** Width of the residual stream. */
  dim: number,
  /** Width of the feed-forward layers. */
  ffnDim: number,
  /** Attention heads. */
  heads: number,
  /** Width and height of a patch, in pixels. */
  patchPixels: number,
  /** The sizes and tokens of images. */
  images: ImageSizes, };

/** The treatment of unknown fields. */
export type UnknownFields = "ignore" | "error";

/** The requests of a route that the page may hand to the server of the option `upstream`. */
export type Upstream = "any" | "chosen" | "never";

/** Token counts of a request. */
export type Usage = { prompt_tokens: number, completion_tokens: number, total_tokens: number,
  /** The cached tokens of the prompt, if there are some. */
  prompt_tokens_details?: PromptTokensDetails,
  /** Details of the completion tokens, only with a prediction. */
  completion_tokens_details?: CompletionTokensDetails, };

/** The chunk with the token counts. */
export type UsagePlace = "last_choice";

/** The routes where values that the model's files recommend fill what the request leaves out. */
export type UseModelDefaults = boolean | MessageWord;

/** The treatment of a request while its model loads. */
export type WhenModelNotReady = "error" | "wait";

/** Layers with a sliding window. */
export type WindowReport = {
  /** Tokens that a token attends to, including itself. */
  tokens: number,
  /** Number of layers. */
  layers: number, };

/** The routes below a base path. */
export const ROUTES: readonly EndpointRoute[] = [
  {"path":"completions","method":"POST","capability":"completions","upstream":"any"},
  {"path":"chat/completions","method":"POST","capability":"completions","upstream":"any"},
  {"path":"responses","method":"POST","capability":"completions","upstream":"any"},
  {"path":"responses/input_tokens","method":"POST","capability":"completions","upstream":"never"},
  {"path":"responses/compact","method":"POST","capability":"completions","upstream":"chosen"},
  {"path":"messages","method":"POST","capability":"completions","upstream":"any"},
  {"path":"messages/count_tokens","method":"POST","capability":"completions","upstream":"never"},
  {"path":"embeddings","method":"POST","capability":"embeddings","upstream":"chosen"},
  {"path":"rerank","method":"POST","capability":"rerank","upstream":"chosen"},
  {"path":"reranking","method":"POST","capability":"rerank","upstream":"chosen"},
  {"path":"tokenize","method":"POST","capability":"completions","upstream":"never"},
  {"path":"detokenize","method":"POST","capability":"completions","upstream":"never"},
  {"path":"apply-template","method":"POST","capability":"completions","upstream":"never"},
  {"path":"models","method":"GET","capability":null,"upstream":"never"},
  {"path":"models/","method":"GET","capability":null,"upstream":"never"},
  {"path":"health","method":"GET","capability":null,"upstream":"never"},
];

/** Paths without a base path that a server answers, and the routes at them; a page leaves these paths to the network. */
export const ROOT_PATHS: Readonly<Record<string, string>> = {
  "tokenize": "tokenize",
  "detokenize": "detokenize",
  "apply-template": "apply-template",
  "rerank": "rerank",
  "reranking": "reranking",
  "v2/rerank": "rerank",
  "health": "health",
};

/** The names of the switches. */
export const SWITCHES: Readonly<Record<keyof EngineSwitches, true>> = {
  "profile": true,
  "stopTextIncluded": true,
  "contextLengthExceededBehavior": true,
  "defaultMaxTokens": true,
  "defaultMaxMessageTokens": true,
  "suffixMode": true,
  "unknownFields": true,
  "alwaysIncludeUsage": true,
  "mirostatTargetUnit": true,
  "logprobsMode": true,
  "textOffsetBase": true,
  "maxLogprobs": true,
  "maxStopSequences": true,
  "maxN": true,
  "maxBestOf": true,
  "maxPrompts": true,
  "maxSequences": true,
  "useModelGenerationDefaults": true,
  "allowMissingModel": true,
  "whenModelNotReady": true,
  "apiKey": true,
  "cors": true,
  "basePaths": true,
  "maxBodyBytes": true,
  "remoteImages": true,
  "maxQueue": true,
  "keepAliveMs": true,
  "schemaUrl": true,
  "logprobsShape": true,
  "booleanLogprobs": true,
  "samplingBounds": true,
  "toolNames": true,
  "openObjects": true,
  "mixedPrompts": true,
  "invalidRequestStatus": true,
  "requestTimeoutMs": true,
  "chatTemplate": true,
  "assistantPrefill": true,
  "timings": true,
  "prepareNextTurn": true,
  "speculation": true,
  "defaultModel": true,
};

/** The settings of the profiles that the page reads itself. */
export const PROFILES: Readonly<Record<NonNullable<EngineSwitches["profile"]>, Readonly<Pick<Switches, "basePaths" | "allowMissingModel">>>> = {
  "default": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":false},
  "openai": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":false},
  "openai-strict": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":false},
  "jiekou": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":false},
  "tokensmind": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":false},
  "fireworks": {"basePaths":["/v1","/openai/v1","/inference/v1"],"allowMissingModel":false},
  "vllm": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":false},
  "mistralrs": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":true},
  "mistral.rs": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":true},
  "llamacpp": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":true},
  "llama.cpp": {"basePaths":["/v1","/openai/v1"],"allowMissingModel":true},
};

/** The names of the options of a load. */
export const LOAD_OPTIONS: Readonly<Record<keyof LoadOptions, true>> = {
  "contextTokens": true,
  "kvFormat": true,
  "quantize": true,
  "kvPoolTokens": true,
  "memoryBudgetBytes": true,
  "precision": true,
};

/** The formats of a KV cache. */
export const KV_FORMATS: readonly KvFormat[] = [
  "f32",
  "f16",
  "q8_0",
];
