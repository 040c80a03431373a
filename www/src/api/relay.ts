//! Answers an exchange in the page itself with a `Response`. Used for requests of the service worker that may be handed to
//! another server.

import { deferred } from "../exchange/abort.js";
import { EngineFailure, failureResponse, messageOf } from "../exchange/error_response.js";
import type { BodyItem } from "../exchange/protocol.js";
import { type Answer, servePort } from "../exchange/serve_port.js";
import type { Answering } from "./fetch_door.js";

/** Answers the request that comes over `port` with what `answer` gives. */
export function relay(port: MessagePort, answer: Answering): Promise<void> {
  return servePort(port, async (request, cancelled) => {
    const response = await answer(request, cancelled).catch((error) => {
      cancelled.throwIfAborted();
      const failure = new EngineFailure("engine_unavailable", messageOf(error));
      return failureResponse(failure, request.url);
    });
    return answerOf(response);
  });
}

/** `response` as the answer of an exchange. */
export function answerOf(response: Response): Answer {
  const ended = deferred<void>();
  const reader = response.body?.getReader();
  return {
    status: response.status,
    headers: [...response.headers],
    ended: ended.promise,
    body: new ReadableStream<BodyItem>(
      {
        async pull(controller) {
          try {
            const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
            if (!done) {
              controller.enqueue({ bytes: value });
              return;
            }
            controller.close();
          } catch (error) {
            controller.error(error);
          }
          ended.resolve();
        },
        async cancel(reason) {
          ended.resolve();
          await reader?.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    ),
  };
}
