//! The requesting end of one HTTP exchange with the engine worker: used by `engine.fetch` in the page and by
//! the service worker. Where the port leads does not matter here.

import { orAborted } from "./abort.js";
import { ChunkReceiver, bestTransport, endedWhenLost } from "./body_stream.js";
import { type EngineFailure, failureEvents, toEngineFailure } from "./error_response.js";
import { isEventStream } from "./event_stream_type.js";
import type { BodyTransport, RequesterMessage, ResponderMessage, WireRequest } from "./protocol.js";

const HEARTBEAT_MS = 2000;

/** How an in-flight exchange is watched. */
export interface ExchangeOptions {
  /** Aborts when the other end is gone; the reason is an [`EngineFailure`] or another error. */
  lost: AbortSignal;
  /** The caller's abort: cancels the generation, rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  transport?: BodyTransport | undefined;
  /** For a requester that may end while the engine lives on: without heartbeats the exchange is cancelled. */
  heartbeat?: boolean;
  /** Called for every message of the other end. */
  onSign?: () => void;
  /** Called once, when nothing more will arrive on this port. */
  onEnd?: () => void;
}

/** The other end was lost before the head of its answer arrived. */
export class LostBeforeHead extends Error {
  constructor(readonly failure: EngineFailure) {
    super(failure.message);
  }
}

/**
 * Sends `request` over `port` and resolves with the response when its head has arrived.
 *
 * @throws LostBeforeHead if the other end is lost first, so that the caller may try another one
 * @throws the reason of `signal` if that aborts first
 */
export async function exchange(
  port: MessagePort,
  request: WireRequest,
  { lost, signal, transport = bestTransport(), heartbeat = false, onSign, onEnd }: ExchangeOptions,
): Promise<Response> {
  const post = (message: RequesterMessage) => port.postMessage(message);
  const beat = heartbeat ? setInterval(() => post({ type: "alive" }), HEARTBEAT_MS) : undefined;
  let ended = false;
  const end = () => {
    if (ended) return;
    ended = true;
    clearInterval(beat);
    signal?.removeEventListener("abort", onAbort);
    port.onmessage = null;
    // Messages posted before still arrive.
    port.close();
    onEnd?.();
  };
  const onAbort = () => post({ type: "cancel" });
  signal?.addEventListener("abort", onAbort);

  let receiver: ChunkReceiver | undefined;
  const head = new Promise<Extract<ResponderMessage, { type: "head" }>>((resolve) => {
    port.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
      onSign?.();
      if (data.type === "head") {
        if (!data.stream) receiver = new ChunkReceiver(post, () => {});
        resolve(data);
      } else {
        receiver?.accept(data);
      }
    };
  });
  post({ type: "request", request, transport, heartbeat });

  let answer: Extract<ResponderMessage, { type: "head" }>;
  try {
    answer = await orAborted(orAborted(head, lost), signal);
  } catch (reason) {
    if (!signal?.aborted) post({ type: "cancel" });
    end();
    throw signal?.aborted ? signal.reason : new LostBeforeHead(toEngineFailure(reason));
  }

  const { status, headers } = answer;
  const incoming = answer.stream ?? (receiver as ChunkReceiver | undefined)?.stream;
  if (incoming === undefined || isNullBodyStatus(status)) {
    await incoming?.cancel();
    end();
    return new Response(null, { status, headers });
  }
  const events = isEventStream(headers);
  const body = endedWhenLost(
    abortedBy(incoming, signal),
    lost,
    (reason, midEvent) =>
      events ? (midEvent ? "\n\n" : "") + failureEvents(toEngineFailure(reason)) : undefined,
    end,
  );
  return new Response(body, { status, headers });
}

/** `body`, which fails with the signal's reason when it aborts, as the body of a `fetch` does. */
function abortedBy<T>(body: ReadableStream<T>, signal: AbortSignal | undefined): ReadableStream<T> {
  if (signal === undefined) return body;
  const reader = body.getReader();
  return new ReadableStream<T>(
    {
      async pull(controller) {
        try {
          const piece = await orAborted(reader.read(), signal);
          if (piece.done) controller.close();
          else controller.enqueue(piece.value);
        } catch (reason) {
          reader.cancel(reason).catch(() => {});
          throw reason;
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Statuses whose `Response` may have no body. */
function isNullBodyStatus(status: number): boolean {
  return status === 101 || status === 204 || status === 205 || status === 304;
}
