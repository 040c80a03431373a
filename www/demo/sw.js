//! The demo's service worker: the package's interceptor, and a cache of the demo for offline use. The package itself
//! caches models.

import { intercept } from "../dist/service_worker/intercept.js";
import { keepSite, keptAnswer } from "./offline.js";

/**
 * @typedef {Event & { waitUntil(promise: Promise<unknown>): void }} ExtendableEvent
 * @typedef {ExtendableEvent & { request: Request, respondWith(answer: Promise<Response>): void }} FetchEvent
 */

/** @type {(event: Event) => ExtendableEvent} */
const extendable = (event) => /** @type {ExtendableEvent} */ (event);

intercept();

addEventListener("message", (event) => {
  if (event.data !== "demo:keep") return;
  const kept = keepSite().then((done) => event.ports[0]?.postMessage(done));
  extendable(event).waitUntil(kept);
});

const FOLDERS = ["./", "../dist/"].map((path) => new URL(path, location.href).href);

addEventListener("fetch", (event) => {
  const fetching = /** @type {FetchEvent} */ (event);
  const { request } = fetching;
  if (request.method !== "GET" || !FOLDERS.some((folder) => request.url.startsWith(folder))) return;
  fetching.respondWith(keptAnswer(request));
});
