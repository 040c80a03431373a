//! Requests to the endpoint through `engine.fetch`, and their answers, whole or as streams. All rules of the endpoint are in
//! Rust; which routes there are is the concern of `completions.ts`, `chat.ts`, `responses.ts`, `messages.ts`,
//! `embeddings.ts` and `tokens.ts`.

import { abortError, onceAborted } from "../exchange/abort.js";
import { detachImages, withAttachments } from "./attachments.js";
import { eventData } from "./event_stream.js";
import { PLACEHOLDER_SITE } from "./fetch_scope.js";
import { InpageError, asInpageError } from "./inpage_error.js";
import { encodeBody } from "./json_body.js";

/** The means to abort a call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** A request with these fields, and with others, which are sent too. */
export type Open<Fields> = Fields | (Fields & { [field: string]: unknown });

/** A member as other packages declare it, with what the endpoint does not have. The endpoint checks it. */
export interface Typed {
  type: string;
}

/** A streamed answer, to be iterated once. Leaving the loop or calling `cancel()` stops the generation. */
export interface AnswerStream<Chunk> extends AsyncIterable<Chunk> {
  /** Stops the generation; a running loop ends. */
  cancel(): Promise<void>;
}

/**
 * A streamed answer that is on its way. It can be awaited, for the errors of the request apart from those of the stream, or
 * iterated at once: `for await (const chunk of engine.completions.create({ ..., stream: true }))`.
 */
export interface ComingStream<Stream extends AnswerStream<unknown>>
  extends Promise<Stream>,
    AsyncIterable<Stream extends AnswerStream<infer Chunk> ? Chunk : never> {}

/** Events that end a stream, besides `[DONE]`. A failed response has an event `error` before its last one. */
const LAST_EVENTS = ["response.completed", "response.incomplete", "message_stop"];

/** Calls of the endpoint below one base path. */
export class Calls {
  readonly #fetch: typeof fetch;
  readonly #base: string;
  readonly #headers: Record<string, string>;

  /** `fetchDoor` must answer below `basePath`. */
  constructor(fetchDoor: typeof fetch, basePath: string, apiKey: string | undefined) {
    this.#fetch = fetchDoor;
    // The page's own origin may be opaque.
    this.#base = new URL(basePath, PLACEHOLDER_SITE).href.replace(/\/+$/, "");
    this.#headers = { "content-type": "application/json" };
    // Whoever holds the engine object has configured the key.
    if (apiKey !== undefined) this.#headers.authorization = `Bearer ${apiKey}`;
  }

  /**
   * Sends a request to a route and returns its answer: a stream (`ComingStream`) if the body asks for one.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts; also from the iterator
   */
  post<Whole, Chunk>(
    route: string,
    body: object,
    options?: CallOptions,
  ): Promise<Whole | AnswerStream<Chunk>> {
    const answer = this.#send<Whole, Chunk>(route, body, options);
    const isStream = (body as { stream?: unknown } | undefined)?.stream === true;
    if (!isStream) return answer;
    const iterate = async function* () {
      yield* (await answer) as AnswerStream<Chunk>;
    };
    return Object.defineProperty(answer, Symbol.asyncIterator, { value: iterate });
  }

  async #send<Whole, Chunk>(
    route: string,
    body: object,
    { signal }: CallOptions = {},
  ): Promise<Whole | AnswerStream<Chunk>> {
    // One controller for both the caller's signal and `cancel()` of the stream.
    const controller = new AbortController();
    const follow = () => controller.abort(abortError(signal?.reason));
    if (signal?.aborted) follow();
    const stopFollowing = signal && onceAborted(signal, follow);
    const unfollow = () => stopFollowing?.();
    try {
      if (typeof body !== "object" || body === null) {
        throw InpageError.local("invalid_type", "the request body must be an object");
      }
      const { body: detached, attachments } = await detachImages(body);
      const init = {
        method: "POST",
        headers: this.#headers,
        body: encodeBody(detached),
        signal: controller.signal,
      };
      const url = `${this.#base}/${route}`;
      const response = await this.#fetch(url, withAttachments(init, attachments));
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (response.ok && isStream && response.body) {
        return new ChunkStream<Chunk>(response.body, controller, unfollow);
      }
      const text = await response.text();
      unfollow();
      if (!response.ok) throw InpageError.fromAnswer(response.status, text);
      return JSON.parse(text) as Whole;
    } catch (error) {
      unfollow();
      // In Chromium, a body that fails is a TypeError "Failed to fetch", whatever the reason.
      if (controller.signal.aborted) throw controller.signal.reason;
      // `fetch` rejects with a TypeError where nobody answers.
      throw asInpageError(error, "engine_unavailable");
    }
  }
}

class ChunkStream<Chunk> implements AnswerStream<Chunk> {
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

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void> {
    if (this.#started) {
      throw InpageError.local("invalid_option", "the stream of an answer can be read only once");
    }
    this.#started = true;
    try {
      for await (const data of eventData(this.#body)) {
        if (data === "[DONE]") return;
        const chunk = JSON.parse(data);
        if (chunk.error) throw InpageError.fromErrorObject(undefined, chunk.error);
        if (chunk.type === "error") {
          const { message, code, param } = chunk;
          throw InpageError.fromErrorObject(undefined, { message, code, param });
        }
        yield chunk;
        if (LAST_EVENTS.includes(chunk.type)) return;
      }
      throw new InpageError(undefined, {
        message: "the stream ended before it was complete",
        type: "server_error",
        param: null,
        code: "engine_unavailable",
      });
    } catch (error) {
      if (!this.#cancelled) throw asInpageError(error, "engine_unavailable");
    } finally {
      this.#onEnd();
    }
  }
}
