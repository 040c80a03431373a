//! The engine worker's answers: the engine's responses as bodies that a port carries.

import { deferred, orAborted } from "../exchange/abort.js";
import { failureAnswer, failureEvents } from "../exchange/error_response.js";
import { isEventStream } from "../exchange/event_stream_type.js";
import type { BodyItem, Resume, WireFailure, WireRequest } from "../exchange/protocol.js";
import { type Answer, servePort } from "../exchange/serve_port.js";
import type { EngineLife } from "./engine_life.js";
import type { EngineResponse } from "../wasm/hosted_engine.js";

/** Answers the one request that comes over `port`; resolves when the exchange is over. */
export function respond(port: MessagePort, life: EngineLife): Promise<void> {
  return servePort(port, (request, cancelled, resume) => answer(life, request, cancelled, resume));
}

/** The engine's answer. If it is dead: an error answer, or its failure for a requester that can go to another. */
async function answer(
  life: EngineLife,
  request: WireRequest,
  cancelled: AbortSignal,
  resume: Resume | undefined,
): Promise<Answer | { lost: WireFailure }> {
  const either = AbortSignal.any([life.dead, cancelled]);
  try {
    const hosted = await orAborted(life.engine, either);
    const { method, url, headers, body, attachments = [] } = request;
    const position = resume?.position;
    const handled = hosted.handle(method, url, headers, body, cancelled, position, attachments);
    // An answer that comes after its requester is gone would otherwise continue unread.
    handled.then(
      (late) => {
        if (either.aborted && !life.dead.aborted) late.cancel();
      },
      () => {},
    );
    const response = await orAborted(handled, either);
    await orAborted(life.survives(faultOf(response)), cancelled);
    const ended = deferred<void>();
    return {
      status: response.status,
      headers: response.headers,
      body: bodyOf(response, life, {
        ...{ url: request.url, cancelled, resume },
        onEnd: () => ended.resolve(),
      }),
      ended: ended.promise,
    };
  } catch (error) {
    if (cancelled.aborted) throw error;
    const failure = life.failureOf(error);
    if (resume && life.dead.aborted) return { lost: wireFailure(failure) };
    const { status, headers, body } = failureAnswer(failure, request.url);
    return {
      status,
      headers,
      body: new Response(body).body as Answer["body"],
      ended: Promise.resolve(),
    };
  }
}

/** The failure that may be the engine's own: a refused request says nothing about it, and is answered at once. */
function faultOf({ status, failure }: EngineResponse): unknown {
  return status >= 400 && status < 500 ? undefined : failure;
}

interface BodyOptions {
  /** The URL of the request. */
  url: string;
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
  { url, cancelled, resume, onEnd }: BodyOptions,
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
            await life.survives(faultOf(response));
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
            controller.enqueue({ bytes: new TextEncoder().encode(failureEvents(failure, url)) });
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

function wireFailure({ code, message }: { code: string; message: string }): WireFailure {
  return { code, message };
}
