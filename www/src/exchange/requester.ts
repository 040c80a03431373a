//! The requesting end of one HTTP exchange: used by `engine.fetch` in the page and by the service worker. When an engine
//! is lost, the request is made again to the next one, which continues the answer. The callers connect the ports.

import { Attempt, type AttemptOptions, type Connection, type Head, Lost } from "./attempt.js";
import { bestTransport, endsEvent } from "./body_stream.js";
import { EngineFailure, failureEvents, toEngineFailure } from "./error_response.js";
import { isEventStream } from "./event_stream_type.js";
import type { BodyTransport, WireRequest } from "./protocol.js";

export type { Connection } from "./attempt.js";

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * A request that lost this many engines within [`LOSS_WINDOW_MS`], or without a piece of its answer in between, is given up, because it
 * may be what breaks them.
 */
const MAX_LOSSES = 3;
const LOSS_WINDOW_MS = 60_000;

/** The time that a request of a lost engine waits until the model is loaded again and has room for it. */
const RECOVERY_MS = 60_000;

/** The options for watching an exchange and for the loss of its engine. */
export interface ExchangeOptions {
  /** The caller's abort: cancels the generation, rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  transport?: BodyTransport | undefined;
  /** Whether the requester sends heartbeats, because it may end while the engine lives on. Without them the exchange is cancelled. */
  heartbeat?: boolean;
  /** Connects to the engine that takes over when one is lost. When it rejects, the answer ends with an error. */
  reconnect: () => Promise<Connection>;
}

/** The other end was lost before the head of its answer arrived. */
export class LostBeforeHead extends Error {
  constructor(readonly failure: EngineFailure) {
    super(failure.message);
  }
}

/**
 * Sends `request` over `connection` and resolves with the response when its head has arrived.
 *
 * @throws LostBeforeHead if the other end is lost first, and no other engine takes over
 * @throws the reason of `signal` if that aborts first
 */
export async function exchange(
  connection: Connection,
  request: WireRequest,
  options: ExchangeOptions,
): Promise<Response> {
  const answer = new Answer(request, options);
  let head: Head;
  try {
    head = await answer.open(connection);
  } catch (reason) {
    throw reason instanceof Lost ? new LostBeforeHead(toEngineFailure(reason.reason)) : reason;
  }
  const { status, headers } = head;
  if (isNullBodyStatus(status)) {
    await answer.cancel();
    return new Response(null, { status, headers });
  }
  const events = isEventStream(headers);
  const body = new ReadableStream<Bytes>(
    {
      async pull(controller) {
        try {
          const bytes = await answer.read();
          if (bytes === undefined) controller.close();
          else controller.enqueue(bytes);
        } catch (reason) {
          if (!(reason instanceof Lost)) throw reason;
          if (!events) throw reason.reason;
          const text = failureEvents(toEngineFailure(reason.reason), request.url);
          controller.enqueue(new TextEncoder().encode(answer.midEvent ? `\n\n${text}` : text));
          controller.close();
        }
      },
      cancel: (reason) => answer.cancel(reason),
    },
    // Read upstream only when the reader asks: an unread body must hold the engine back.
    { highWaterMark: 0 },
  );
  return new Response(body, { status, headers });
}

/** An answer, given by one engine after another. */
class Answer {
  #request: WireRequest;
  #options: ExchangeOptions;
  #attempt: Attempt | undefined;
  /** The head of the first attempt that delivered one. */
  #head: Head | undefined;
  #position: string | undefined;
  #hasBegun = false;
  #lossTimes_ms: number[] = [];
  /** Engines that broke since the last piece. Those that were closed or replaced do not count. */
  #breaksInARow = 0;

  /** True if the last delivered bytes are a part of an event. */
  midEvent = false;

  constructor(request: WireRequest, options: ExchangeOptions) {
    this.#request = request;
    this.#options = options;
  }

  /** Resolves with the head. */
  async open(connection: Connection): Promise<Head> {
    let next = connection;
    for (;;) {
      try {
        this.#attempt = new Attempt(next, this.#attemptOptions());
        const head = await this.#attempt.head();
        const lostAt_ms = this.#lossTimes_ms.at(-1);
        if (lostAt_ms === undefined || (head.status !== 503 && head.status !== 429)) {
          this.#head ??= head;
          return head;
        }
        // The model could not be loaded yet, or all requests of the lost engine came at once.
        next = await this.#connectionLater(await this.#failureIn(head), lostAt_ms);
      } catch (reason) {
        next = await this.#connectionAfter(reason);
      }
    }
  }

  /** The next bytes of the body; `undefined` at its end. */
  async read(): Promise<Bytes | undefined> {
    for (;;) {
      try {
        const piece = await this.#attempt?.read();
        if (piece === undefined) return undefined;
        this.#position = piece.position ?? this.#position;
        this.#hasBegun = true;
        this.#breaksInARow = 0;
        this.midEvent = !endsEvent(piece.bytes);
        return piece.bytes;
      } catch (reason) {
        // An answer that was delivered in part can be continued only from a position.
        if (this.#hasBegun && this.#position === undefined) throw reason;
        const head = await this.open(await this.#connectionAfter(reason));
        if (head.status !== this.#head?.status) throw new Lost(await this.#failureIn(head), true);
      }
    }
  }

  cancel(reason?: unknown): Promise<void> | undefined {
    return this.#attempt?.cancel(reason);
  }

  #attemptOptions(): AttemptOptions {
    const { signal, transport = bestTransport(), heartbeat = false } = this.#options;
    const resume = { position: this.#position };
    return { request: this.#request, transport, heartbeat, signal, resume };
  }

  /** The engine after one that was lost. Throws failures that another engine cannot fix. */
  async #connectionAfter(reason: unknown): Promise<Connection> {
    if (!(reason instanceof Lost) || reason.isFinal) throw reason;
    const failure = toEngineFailure(reason.reason);
    const now = performance.now();
    this.#lossTimes_ms = this.#lossTimes_ms.filter((time) => now - time < LOSS_WINDOW_MS);
    this.#lossTimes_ms.push(now);
    if (failure.code !== "engine_unavailable") this.#breaksInARow += 1;
    const isOften = this.#lossTimes_ms.length >= MAX_LOSSES;
    if (isOften || this.#breaksInARow >= MAX_LOSSES) {
      const when = isOften ? "within a minute" : "in a row";
      const message = `${failure.message}. This happened ${MAX_LOSSES} times ${when} while this request was answered, so it is given up`;
      throw new Lost(new EngineFailure(failure.code, message), true);
    }
    return this.#reconnect(failure);
  }

  /** The engine after one that cannot answer yet, after the pause that it asks for. */
  async #connectionLater(failure: EngineFailure, lostAt_ms: number): Promise<Connection> {
    const pause_ms = 1000 * (failure.retryAfterS ?? Number.POSITIVE_INFINITY);
    if (performance.now() + pause_ms > lostAt_ms + RECOVERY_MS) throw new Lost(failure, true);
    await pause(pause_ms, this.#options.signal);
    return this.#reconnect(failure);
  }

  async #reconnect(failure: EngineFailure): Promise<Connection> {
    const { reconnect, signal } = this.#options;
    try {
      const connection = await reconnect();
      signal?.throwIfAborted();
      return connection;
    } catch {
      if (signal?.aborted) throw signal.reason;
      // The reason of the loss is more useful than the reason why there is no other engine.
      throw new Lost(failure, true);
    }
  }

  /** The failure that an error answer reports. */
  async #failureIn({ headers }: Head): Promise<EngineFailure> {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const piece = await this.#attempt?.read();
      if (piece === undefined) break;
      text += decoder.decode(piece.bytes, { stream: true });
    }
    const retryAfter = headers.find(([name]) => name.toLowerCase() === "retry-after")?.[1];
    const mayRetry =
      retryAfter !== undefined && new Headers(headers).get("x-should-retry") === null;
    try {
      const { code, message } = JSON.parse(text).error;
      return new EngineFailure(code, message, mayRetry ? Number(retryAfter) : undefined);
    } catch {
      return new EngineFailure("internal_error", "the engine that took over gave no answer");
    }
  }
}

function pause(duration_ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, duration_ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Statuses whose `Response` may have no body. */
function isNullBodyStatus(status: number): boolean {
  return status === 101 || status === 204 || status === 205 || status === 304;
}
