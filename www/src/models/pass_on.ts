//! Answers an exchange in the page with the answer of an engine, positions and losses included: when the page or the engine is
//! lost, its requester can have the answer continued elsewhere.

import { deferred } from "../exchange/abort.js";
import { Attempt, type Connection, Lost } from "../exchange/attempt.js";
import { bestTransport } from "../exchange/body_stream.js";
import { toEngineFailure } from "../exchange/error_response.js";
import type { BodyItem, Resume, WireFailure, WireRequest } from "../exchange/protocol.js";
import type { Answer } from "../exchange/serve_port.js";

/** Resolves with the answer when its head has arrived, or with the loss of the engine. */
export async function passOn(
  connection: Connection,
  request: WireRequest,
  cancelled: AbortSignal,
  resume: Resume,
): Promise<Answer | { lost: WireFailure }> {
  const transport = bestTransport();
  const attempt = new Attempt(connection, {
    ...{ request, transport, resume },
    heartbeat: false,
    signal: cancelled,
  });
  let head: Awaited<ReturnType<Attempt["head"]>>;
  try {
    head = await attempt.head();
  } catch (reason) {
    if (reason instanceof Lost) return { lost: lossOf(reason) };
    throw reason;
  }
  const ended = deferred<void>();
  const body = new ReadableStream<BodyItem>(
    {
      async pull(controller) {
        try {
          const piece = await attempt.read();
          if (piece !== undefined) {
            controller.enqueue(piece);
            return;
          }
          controller.close();
        } catch (reason) {
          if (reason instanceof Lost) {
            controller.enqueue({ lost: lossOf(reason) });
            controller.close();
          } else controller.error(reason);
        }
        ended.resolve();
      },
      async cancel(reason) {
        ended.resolve();
        await attempt.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  cancelled.addEventListener("abort", () => ended.resolve(), { once: true });
  return { status: head.status, headers: head.headers, body, ended: ended.promise };
}

function lossOf({ reason }: Lost): WireFailure {
  const { code, message } = toEngineFailure(reason);
  return { code, message };
}
