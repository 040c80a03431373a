//! For pages served by the service worker: a `fetch` whose abort also stops a generation that is not streamed.
//! Browsers do not tell a service worker that its caller aborted before the answer.

import { CANCEL, type PageToServiceWorker, REQUEST_ID_HEADER } from "../exchange/protocol.js";

/**
 * The page's `fetch`, except that an abort is also sent to the service worker. Not needed for streams, nor for
 * `engine.fetch`.
 */
export const servedFetch: typeof fetch = async (input, init) => {
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  const worker = navigator.serviceWorker?.controller;
  if (!signal || !worker) return fetch(input, init);
  const request = new Request(input, init);
  const id = crypto.randomUUID();
  const headers = new Headers(request.headers);
  headers.set(REQUEST_ID_HEADER, id);
  const cancel = () => {
    const message: PageToServiceWorker = { type: CANCEL, id };
    worker.postMessage(message);
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    return await fetch(request, { headers, signal });
  } finally {
    // After the head, cancelling the body is enough.
    signal.removeEventListener("abort", cancel);
  }
};
