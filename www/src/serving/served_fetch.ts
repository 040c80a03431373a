//! For pages served by the service worker: a `fetch` whose abort also stops a generation that is not streamed, and whose
//! streams end with an error event when the service worker is stopped. Plain `fetch` can do neither.

import { endsEvent } from "../exchange/body_stream.js";
import { EngineFailure, failureEvents } from "../exchange/error_response.js";
import { isEventStream } from "../exchange/event_stream_type.js";
import {
  CANCEL,
  type PageToServiceWorker,
  RELAYED_HEADER,
  REQUEST_ID_HEADER,
} from "../exchange/protocol.js";
import { fromQuery } from "../exchange/served_urls.js";
import { networkFetch } from "../api/fetch_door.js";

/** The browser's: an app may put `servedFetch` in its place. */
const network = /* @__PURE__ */ networkFetch();

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * The page's `fetch`, with two differences for requests that the service worker answers: an abort is also sent to the
 * service worker, and a stream that breaks off ends with an error event. Not needed where `engine.fetch` can be used.
 */
export const servedFetch: typeof fetch = async (input, init) => {
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  const worker = navigator.serviceWorker?.controller;
  const request = new Request(input, init);
  if (!worker || !mayBeServed(request, worker)) return network(input, init);
  const id = crypto.randomUUID();
  const headers = new Headers(request.headers);
  if (signal) headers.set(REQUEST_ID_HEADER, id);
  const cancel = () => {
    const message: PageToServiceWorker = { type: CANCEL, id };
    worker.postMessage(message);
  };
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return withLastEvent(await network(request, { headers, signal: signal ?? null }), signal);
  } finally {
    // After the head, cancelling the body is enough.
    signal?.removeEventListener("abort", cancel);
  }
};

/** Other requests are left as they are: an additional header would make a request to another origin need a preflight. */
function mayBeServed({ url }: Request, worker: ServiceWorker): boolean {
  const { origins = [] } = fromQuery(new URL(worker.scriptURL));
  return [location.origin, ...origins].includes(new URL(url).origin);
}

/** `response`; if it is a stream of the service worker, it ends with an error event when it breaks off. */
function withLastEvent(response: Response, signal: AbortSignal | null | undefined): Response {
  const isServed = response.headers.has(RELAYED_HEADER);
  if (!isServed || !response.body || !isEventStream([...response.headers])) return response;
  const failure = new EngineFailure(
    "engine_unavailable",
    "the stream broke off, because the service worker that relays it was stopped",
  );
  const reader = response.body.getReader();
  let midEvent = false;
  const body = new ReadableStream<Bytes>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
          } else {
            midEvent = !endsEvent(value);
            controller.enqueue(value);
          }
        } catch (reason) {
          if (signal?.aborted) throw reason;
          const text = failureEvents(failure, response.url);
          controller.enqueue(new TextEncoder().encode(midEvent ? `\n\n${text}` : text));
          controller.close();
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers, url } = response;
  const wrapped = new Response(body, { status, statusText, headers });
  return Object.defineProperty(wrapped, "url", { value: url });
}
