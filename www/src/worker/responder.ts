//! One HTTP exchange with a requester, seen from the engine worker. Moves bytes and cancellations
//! between a port and the engine's response.

import { deferred, orAborted } from "../exchange/abort.js";
import { ChunkSender } from "../exchange/body_stream.js";
import { type EngineFailure, failureAnswer, failureEvents } from "../exchange/error_response.js";
import type {
  HeaderList,
  RequesterMessage,
  ResponderMessage,
  WireRequest,
} from "../exchange/protocol.js";
import type { EngineResponse, HostedEngine } from "./hosted_engine.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** How long a line may stay without its request. */
const UNUSED_LINE_MS = 30_000;

/** A requester that announced heartbeats and is silent for this long is gone. */
const PULSE_TICK_MS = 3000;
const MAX_SILENT_TICKS = 4;

/** What the worker knows of its engine's health. */
export interface EngineLife {
  /** Aborts when the engine can answer no more. */
  dead: AbortSignal;
  /** Takes what a call of the engine threw; a trap ends the engine. */
  failureOf(error: unknown): EngineFailure;
}

/** Answers the one request that comes over `port`; resolves when the exchange is over. */
export async function respond(
  port: MessagePort,
  engine: Promise<HostedEngine>,
  life: EngineLife,
): Promise<void> {
  const post = (message: ResponderMessage, transfer: Transferable[] = []) =>
    port.postMessage(message, transfer);
  const cancelled = new AbortController();
  const sender = new ChunkSender();
  cancelled.signal.addEventListener("abort", () => sender.stop());

  let silentTicks = 0;
  let pulse: ReturnType<typeof setInterval> | undefined;
  const asked = new Promise<Extract<RequesterMessage, { type: "request" }>>((resolve) => {
    port.onmessage = ({ data }: MessageEvent<RequesterMessage>) => {
      silentTicks = 0;
      if (data.type === "request") resolve(data);
      else if (data.type === "credit") sender.grant(data.chunks);
      else if (data.type === "cancel") cancelled.abort();
    };
  });
  // A requester may end between asking for the line and using it (service workers do).
  const patience = setTimeout(() => cancelled.abort(), UNUSED_LINE_MS);
  try {
    const { request, transport, heartbeat } = await orAborted(asked, cancelled.signal);
    clearTimeout(patience);
    if (heartbeat) {
      pulse = setInterval(() => {
        // Ticks, not time: a machine that slept wakes both ends at once.
        if (++silentTicks === MAX_SILENT_TICKS) cancelled.abort();
      }, PULSE_TICK_MS);
    }
    const { status, headers, body, ended } = await answer(request, engine, life, cancelled.signal);
    if (transport === "transfer") {
      post({ type: "head", status, headers, stream: body }, [body as unknown as Transferable]);
      await ended;
    } else {
      post({ type: "head", status, headers });
      await sender.send(body, (message) =>
        post(message, message.type === "chunk" ? [message.bytes.buffer] : []),
      );
    }
  } catch (error) {
    // Cancelled before the head: nobody waits for one.
    if (!cancelled.signal.aborted) throw error;
  } finally {
    clearTimeout(patience);
    clearInterval(pulse);
    port.onmessage = null;
    port.close();
  }
}

interface Answer {
  status: number;
  headers: HeaderList;
  body: ReadableStream<Bytes>;
  /** Settles when the body was read to its end, or is read no more. */
  ended: Promise<void>;
}

/** The engine's answer, or the answer that the engine is dead. */
async function answer(
  request: WireRequest,
  engine: Promise<HostedEngine>,
  life: EngineLife,
  cancelled: AbortSignal,
): Promise<Answer> {
  const either = AbortSignal.any([life.dead, cancelled]);
  try {
    const hosted = await orAborted(engine, either);
    const { method, url, headers, body } = request;
    const handled = hosted.handle(method, url, headers, body, cancelled);
    // An answer that comes after its reader has gone would run on unread.
    handled.then(
      (late) => {
        if (either.aborted && !life.dead.aborted) late.cancel();
      },
      () => {},
    );
    const response = await orAborted(handled, either);
    const ended = deferred<void>();
    return {
      status: response.status,
      headers: response.headers,
      body: bodyOf(response, life, cancelled, () => ended.resolve()),
      ended: ended.promise,
    };
  } catch (error) {
    if (cancelled.aborted) throw error;
    const { status, headers, body } = failureAnswer(life.failureOf(error));
    return {
      status,
      headers,
      body: new Response(body).body as Answer["body"],
      ended: Promise.resolve(),
    };
  }
}

/** The response's body as a stream; after the engine's death it ends with an error event. */
function bodyOf(
  response: EngineResponse,
  life: EngineLife,
  cancelled: AbortSignal,
  onEnd: () => void,
): ReadableStream<Bytes> {
  const isEvents = response.headers.some(
    ([name, value]) =>
      name.toLowerCase() === "content-type" && value.startsWith("text/event-stream"),
  );
  const stop = () => {
    // A dead engine must not be called, and has nothing left to stop.
    if (!life.dead.aborted) response.cancel();
    onEnd();
  };
  cancelled.addEventListener("abort", stop, { once: true });
  return new ReadableStream<Bytes>(
    {
      async pull(controller) {
        try {
          const piece = await orAborted(response.next(), life.dead);
          if (piece !== undefined) {
            controller.enqueue(piece);
            return;
          }
          response.free();
        } catch (error) {
          const failure = life.failureOf(error);
          onEnd();
          if (!isEvents) throw failure;
          controller.enqueue(new TextEncoder().encode(failureEvents(failure)));
        }
        onEnd();
        cancelled.removeEventListener("abort", stop);
        try {
          controller.close();
        } catch {
          // The reader cancelled while the last piece was awaited.
        }
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
}
