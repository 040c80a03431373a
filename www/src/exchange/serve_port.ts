//! The answering end of one HTTP exchange: moves bytes and cancellations between a port and an answer.

import { orAborted } from "./abort.js";
import { ChunkSender, pieceOf } from "./body_stream.js";
import { toEngineFailure } from "./error_response.js";
import type {
  BodyItem,
  HeaderList,
  RequesterMessage,
  ResponderMessage,
  Resume,
  WireFailure,
  WireRequest,
} from "./protocol.js";

/** An answer whose head is known. */
export interface Answer {
  status: number;
  headers: HeaderList;
  body: ReadableStream<BodyItem>;
  /** Resolves when the body was read to its end or cancelled. */
  ended: Promise<void>;
}

/** The time that a port may stay without its request. */
const UNUSED_PORT_MS = 30_000;

/** A requester that announced heartbeats is gone after this many ticks without a message. */
const HEARTBEAT_TICK_MS = 3000;
const MAX_SILENT_TICKS = 4;

/** Answers a request; `cancelled` aborts when nobody waits for the answer any more. */
export type AnswerRequest = (
  request: WireRequest,
  cancelled: AbortSignal,
  resume: Resume | undefined,
) => Promise<Answer | { lost: WireFailure }>;

/** Answers the one request that comes over `port`; resolves when the exchange is over. */
export async function servePort(port: MessagePort, answer: AnswerRequest): Promise<void> {
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
    const answered = await answer(request, cancelled.signal, resume);
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

/** `body` for requesters that accept only bytes as items. */
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
