//! The engine worker's end of one HTTP exchange: moves bytes and cancellations between a port and the
//! engine's response.

import { deferred, orAborted } from "../exchange/abort.js";
import { ChunkSender, pieceOf } from "../exchange/body_stream.js";
import { failureAnswer, failureEvents, toEngineFailure } from "../exchange/error_response.js";
import { isEventStream } from "../exchange/event_stream_type.js";
import type {
  BodyItem,
  HeaderList,
  RequesterMessage,
  ResponderMessage,
  Resume,
  WireFailure,
  WireRequest,
} from "../exchange/protocol.js";
import type { EngineLife } from "./engine_life.js";
import type { EngineResponse } from "./hosted_engine.js";

/** How long a port may stay without its request. */
const UNUSED_PORT_MS = 30_000;

/** A requester that announced heartbeats is gone after this many ticks without a message. */
const HEARTBEAT_TICK_MS = 3000;
const MAX_SILENT_TICKS = 4;

/** Answers the one request that comes over `port`; resolves when the exchange is over. */
export async function respond(port: MessagePort, life: EngineLife): Promise<void> {
  const post = (message: ResponderMessage, transfer: Transferable[] = []) =>
    port.postMessage(message, transfer);
  const cancelled = new AbortController();
  const sender = new ChunkSender();
  cancelled.signal.addEventListener("abort", () => sender.stop());

  let silentTicks = 0;
  let heartbeatTimer: ReturnType<typeof setInterval> | undefined;
  const asked = new Promise<Extract<RequesterMessage, { type: "request" }>>((resolve) => {
    port.onmessage = ({ data }: MessageEvent<RequesterMessage>) => {
      silentTicks = 0;
      if (data.type === "request") resolve(data);
      else if (data.type === "credit") sender.grant(data.chunks);
      else if (data.type === "cancel") cancelled.abort();
    };
  });
  // A requester may end between asking for the port and using it (service workers do).
  const unusedTimer = setTimeout(() => cancelled.abort(), UNUSED_PORT_MS);
  try {
    const { request, transport, heartbeat, resume } = await orAborted(asked, cancelled.signal);
    clearTimeout(unusedTimer);
    if (heartbeat) {
      heartbeatTimer = setInterval(() => {
        // Ticks are counted instead of time: after a sleep of the machine both ends wake at once.
        if (++silentTicks === MAX_SILENT_TICKS) cancelled.abort();
        else post({ type: "alive" });
      }, HEARTBEAT_TICK_MS);
    }
    const answered = await answer(request, life, cancelled.signal, resume);
    if ("lost" in answered) {
      post({ type: "lost", failure: answered.lost });
      return;
    }
    const { status, headers, body, ended } = answered;
    if (transport === "transfer") {
      const stream = resume ? body : bytesOf(body);
      post({ type: "head", status, headers, stream }, [stream as unknown as Transferable]);
      await ended;
    } else {
      post({ type: "head", status, headers });
      await sender.send(body, (message) =>
        post(message, message.type === "chunk" ? [message.bytes.buffer] : []),
      );
    }
  } catch (error) {
    // Cancelled before the head: nobody waits for it.
    if (!cancelled.signal.aborted) throw error;
  } finally {
    clearTimeout(unusedTimer);
    clearInterval(heartbeatTimer);
    port.onmessage = null;
    port.close();
  }
}

interface Answer {
  status: number;
  headers: HeaderList;
  body: ReadableStream<BodyItem>;
  /** Resolves when the body was read to its end or cancelled. */
  ended: Promise<void>;
}

/** The engine's answer. If it is dead: an error answer, or its failure for a requester that can go to another. */
async function answer(
  request: WireRequest,
  life: EngineLife,
  cancelled: AbortSignal,
  resume: Resume | undefined,
): Promise<Answer | { lost: WireFailure }> {
  const either = AbortSignal.any([life.dead, cancelled]);
  try {
    const hosted = await orAborted(life.engine, either);
    const { method, url, headers, body } = request;
    const handled = hosted.handle(method, url, headers, body, cancelled, resume?.position);
    // An answer that comes after its requester is gone would otherwise continue unread.
    handled.then(
      (late) => {
        if (either.aborted && !life.dead.aborted) late.cancel();
      },
      () => {},
    );
    const response = await orAborted(handled, either);
    await orAborted(life.survives(response.failure), cancelled);
    const ended = deferred<void>();
    return {
      status: response.status,
      headers: response.headers,
      body: bodyOf(response, life, { cancelled, resume, onEnd: () => ended.resolve() }),
      ended: ended.promise,
    };
  } catch (error) {
    if (cancelled.aborted) throw error;
    const failure = life.failureOf(error);
    if (resume && life.dead.aborted) return { lost: wireFailure(failure) };
    const { status, headers, body } = failureAnswer(failure);
    return {
      status,
      headers,
      body: new Response(body).body as Answer["body"],
      ended: Promise.resolve(),
    };
  }
}

interface BodyOptions {
  cancelled: AbortSignal;
  resume: Resume | undefined;
  onEnd: () => void;
}

/**
 * The response's body as a stream. After the engine's death it ends with the loss, or with an error event for a
 * requester that cannot go to another engine.
 */
function bodyOf(
  response: EngineResponse,
  life: EngineLife,
  { cancelled, resume, onEnd }: BodyOptions,
): ReadableStream<BodyItem> {
  const isEvents = isEventStream(response.headers);
  const stop = () => {
    // A dead engine must not be called, and has nothing left to cancel.
    if (!life.dead.aborted) response.cancel();
    onEnd();
  };
  cancelled.addEventListener("abort", stop, { once: true });
  return new ReadableStream<BodyItem>(
    {
      async pull(controller) {
        try {
          const bytes = await orAborted(response.next(), life.dead);
          if (bytes !== undefined) {
            await life.survives(response.failure);
            controller.enqueue(resume ? { bytes, position: response.position } : { bytes });
            return;
          }
          response.free();
        } catch (error) {
          const failure = life.failureOf(error);
          onEnd();
          if (resume && life.dead.aborted) {
            controller.enqueue({ lost: wireFailure(failure) });
          } else {
            if (!isEvents) throw failure;
            controller.enqueue({ bytes: new TextEncoder().encode(failureEvents(failure)) });
          }
        }
        onEnd();
        cancelled.removeEventListener("abort", stop);
        try {
          controller.close();
        } catch {
          // The reader cancelled while the last piece was on its way.
        }
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
}

/** `body` for requesters that know no other items than bytes. */
function bytesOf(body: ReadableStream<BodyItem>): ReadableStream<BodyItem> {
  const reader = body.getReader();
  return new ReadableStream<BodyItem>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else if ("lost" in value) controller.error(toEngineFailure(value.lost.message));
        else controller.enqueue(pieceOf(value).bytes);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

function wireFailure({ code, message }: { code: string; message: string }): WireFailure {
  return { code, message };
}
