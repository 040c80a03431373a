//! `engine.completions.create`: sends a request through `engine.fetch` and parses the answer. All rules of the
//! endpoint are in Rust.

import { abortError } from "../exchange/abort.js";
import { eventData } from "./event_stream.js";
import { InpageError } from "./inpage_error.js";
import { encodeBody } from "./json_body.js";

/** Token counts of a request (specification 10.6). */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
}

/** One choice; in a chunk, the part of it that is new. */
export interface CompletionChoice {
  index: number;
  text: string;
  logprobs: Logprobs | null;
  /** In a chunk null until the choice's last one. */
  finish_reason: "stop" | "length" | null;
  /** On a finished choice: the stop string or stop id that ended it, null for any other end. */
  stop_reason?: string | number | null;
  /** With `return_tokens_as_token_ids`: the generated ids. */
  token_ids?: number[];
  /** A complete call of one of the request's tools; in a stream in the choice's last chunk. */
  tool_calls?: ToolCall[];
}

/** A call the model has written. */
export interface ToolCall {
  id: string;
  type: "function";
  /** `arguments` is JSON text. */
  function: { name: string; arguments: string };
}

/** Legacy log probabilities: parallel arrays, one entry a token. */
export interface Logprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[] | null;
  text_offset: number[];
}

/** The answer, and each chunk of a streamed one. */
export interface Completion {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  system_fingerprint?: string;
  choices: CompletionChoice[];
  usage?: Usage | null;
}

/** A function the model may call. */
export interface FunctionTool {
  type: "function";
  function: {
    name: string;
    description?: string | null;
    /** A JSON schema of an object. */
    parameters?: Record<string, unknown> | null;
    /** Whether the arguments must satisfy `parameters`. */
    strict?: boolean | null;
  };
}

/** A tool of `tools`, by name. */
export type ToolName =
  | { type: "function"; name: string }
  | { type: "function"; function: { name: string } };

/** Whether and which tools the model must or may call. */
export type ToolChoice =
  | "none"
  | "auto"
  | "required"
  | ToolName
  | { type: "allowed_tools"; mode: "auto" | "required"; tools: ToolName[] };

/** A JSON schema. */
export type JsonSchema = Record<string, unknown> | boolean;

/** What the whole completion must be. */
export type Grammar =
  | { type: "regex" | "lark"; value: string }
  | { type: "json_schema"; value: JsonSchema }
  | { type: "llguidance"; value: { grammars: Record<string, unknown>[]; max_tokens?: number } };

/** Whether the completion must be JSON. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object"; schema?: JsonSchema | null }
  | {
      type: "json_schema";
      /** The schema, or OpenAI's form with the schema inside. */
      json_schema:
        | JsonSchema
        | {
            schema: JsonSchema;
            name?: string | null;
            description?: string | null;
            strict?: boolean | null;
          };
    };

/** What the endpoint takes; `docs/api.md` says what each field means. Others are passed on. */
export interface CompletionRequest {
  model: string;
  prompt: string | string[] | ArrayLike<number> | ArrayLike<number>[];
  suffix?: string | null;
  suffix_mode?: "append" | "fim" | "reject" | null;
  /** `data:` URLs, or one list of them per prompt. */
  images?: string[] | string[][] | null;
  user?: string | null;

  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stop?: string | string[] | null;
  include_stop_str_in_output?: boolean | null;
  skip_special_tokens?: boolean | null;
  ignore_eos?: boolean | null;
  context_length_exceeded_behavior?: "truncate" | "error" | null;
  truncate_sequence?: boolean | null;

  stream?: boolean | null;
  stream_options?: {
    include_usage?: boolean | null;
    continuous_usage_stats?: boolean | null;
    include_obfuscation?: boolean | null;
  } | null;
  n?: number | null;
  best_of?: number | null;
  echo?: boolean | null;
  logprobs?: number | null;
  logprobs_mode?: "raw" | "processed" | null;
  return_tokens_as_token_ids?: boolean | null;

  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  min_p?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  repetition_penalty?: number | null;
  /** Token ids, and what is added to their logits. */
  logit_bias?: Record<string, number> | null;
  /** A 64-bit integer: a `bigint` keeps what a `number` cannot hold. */
  seed?: number | bigint | null;
  mirostat_target?: number | null;
  mirostat_lr?: number | null;
  dry_multiplier?: number | null;
  dry_base?: number | null;
  dry_allowed_length?: number | null;
  dry_sequence_breakers?: string[] | null;

  response_format?: ResponseFormat | null;
  grammar?: Grammar | null;
  tools?: FunctionTool[] | null;
  tool_choice?: ToolChoice | null;
  [field: string]: unknown;
}

/** How a call can be aborted. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** A streamed answer, to be iterated once. Leaving the loop or calling `cancel()` stops the generation. */
export interface CompletionStream extends AsyncIterable<Completion> {
  /** Stops the generation; a running loop ends. */
  cancel(): Promise<void>;
}

/** The completions API; `fetchDoor` must answer below `basePath`. */
export class Completions {
  readonly #fetch: typeof fetch;
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(fetchDoor: typeof fetch, basePath: string, apiKey: string | undefined) {
    this.#fetch = fetchDoor;
    // `engine.fetch` looks at the path only, and the page's own origin may be opaque.
    this.#url = new URL(`${basePath}/completions`, "http://inpage.invalid").href;
    this.#headers = { "content-type": "application/json" };
    // Whoever holds the engine object has configured the key.
    if (apiKey !== undefined) this.#headers.authorization = `Bearer ${apiKey}`;
  }

  /**
   * Requests a completion.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts; also from the iterator
   */
  create(
    body: CompletionRequest & { stream: true },
    options?: CallOptions,
  ): Promise<CompletionStream>;
  create(
    body: CompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<Completion>;
  create(body: CompletionRequest, options?: CallOptions): Promise<Completion | CompletionStream>;
  async create(
    body: CompletionRequest,
    { signal }: CallOptions = {},
  ): Promise<Completion | CompletionStream> {
    // One controller for both the caller's signal and `cancel()` of the stream.
    const controller = new AbortController();
    const follow = () => controller.abort(abortError(signal?.reason));
    if (signal?.aborted) follow();
    signal?.addEventListener("abort", follow, { once: true });
    const unfollow = () => signal?.removeEventListener("abort", follow);
    try {
      const response = await this.#fetch(this.#url, {
        method: "POST",
        headers: this.#headers,
        body: encodeBody(body),
        signal: controller.signal,
      });
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (response.ok && isStream && response.body) {
        return new ChunkStream(response.body, controller, unfollow);
      }
      const text = await response.text();
      unfollow();
      if (!response.ok) throw InpageError.fromAnswer(response.status, text);
      return JSON.parse(text) as Completion;
    } catch (error) {
      unfollow();
      throw error;
    }
  }
}

class ChunkStream implements CompletionStream {
  readonly #body: ReadableStream<Uint8Array>;
  readonly #controller: AbortController;
  readonly #onEnd: () => void;
  #started = false;
  #cancelled = false;

  constructor(body: ReadableStream<Uint8Array>, controller: AbortController, onEnd: () => void) {
    this.#body = body;
    this.#controller = controller;
    this.#onEnd = onEnd;
  }

  async cancel(): Promise<void> {
    this.#cancelled = true;
    this.#controller.abort(abortError(undefined));
    this.#onEnd();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Completion, void> {
    if (this.#started) throw new TypeError("a completion stream can be read only once");
    this.#started = true;
    try {
      for await (const data of eventData(this.#body)) {
        if (data === "[DONE]") return;
        const chunk = JSON.parse(data);
        if (chunk.error) throw InpageError.fromErrorObject(undefined, chunk.error);
        yield chunk;
      }
      throw new InpageError(undefined, {
        message: "the stream ended before it was complete",
        type: "server_error",
        param: null,
        code: "engine_unavailable",
      });
    } catch (error) {
      if (!this.#cancelled) throw error;
    } finally {
      this.#onEnd();
    }
  }
}
