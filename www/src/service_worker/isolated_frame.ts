//! The document of the hidden frame that gives pages threads: a header isolates the frame alone, so the page around it needs
//! none. The frame starts the engine worker and passes messages between it and the page.

import {
  FRAME_CONNECT,
  type FrameToPage,
  PAGE_PARAMETER,
  isFrameUrl,
} from "../exchange/isolated_frame.js";
import { bindClient, releaseOfClient } from "../exchange/kept_site.js";
import type { FetchEvent, ServiceWorkerScope } from "../worker_scopes.js";

/** True for a frame in a page. The frame's URL is not reserved as a page of its own. */
export function isFrameRequest(request: Request, scope: string): boolean {
  const { method, mode, destination, url } = request;
  const isFrame = mode === "navigate" && destination === "iframe";
  return method === "GET" && isFrame && isFrameUrl(new URL(url), scope);
}

const CONNECTED: FrameToPage["type"] = "connected";
const MESSAGE: FrameToPage["type"] = "message";
const ERROR: FrameToPage["type"] = "error";

// Text, because bundlers rewrite functions. Only the first message of the page that contains the frame is taken, and only if
// that page has the same origin: everything else comes through its port.
const SCRIPT = `"use strict";
addEventListener("message", function connect({ data, origin, source, ports: [port] }) {
  const isOwn = origin === location.origin && source === parent && parent !== window;
  if (!isOwn || data?.type !== "${FRAME_CONNECT}" || !port) return;
  removeEventListener("message", connect);
  let worker;
  const fail = ({ message }) =>
    port.postMessage({ type: "${ERROR}", message: message || "its script could not be loaded" });
  port.onmessage = ({ data: { type, script, message }, ports }) => {
    if (type === "message") return worker?.postMessage(message, ports);
    try {
      worker = new Worker(script, { type: "module", name: "inpage" });
      worker.onmessage = ({ data, ports }) =>
        port.postMessage({ type: "${MESSAGE}", message: data }, ports);
      worker.onerror = (event) => {
        event.preventDefault();
        fail(event);
      };
    } catch (error) {
      fail(error);
    }
  };
  const connected = () => {
    port.postMessage({ type: "${CONNECTED}", isolated: crossOriginIsolated });
    return new Promise(() => {});
  };
  navigator.locks.request(data.lock, connected).catch(fail);
});`;

/**
 * The frame. Offline, its worker gets files of the same release as the page. Its policy names no ancestors: a site's page may
 * itself be in a page of another site, and the script obeys its parent only.
 */
export async function frameAnswer(
  scope: ServiceWorkerScope,
  { request, resultingClientId }: FetchEvent,
): Promise<Response> {
  const site = scope.registration.scope;
  const page = new URL(request.url).searchParams.get(PAGE_PARAMETER);
  const release = page === null ? undefined : await releaseOfClient(site, page);
  if (release !== undefined) await bindClient(site, resultingClientId, release);
  const nonce = crypto.randomUUID();
  const html = `<!doctype html><meta charset="utf-8"><title>inpage</title><script nonce="${nonce}">${SCRIPT}</script>`;
  return new Response(html, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "content-security-policy": `default-src 'none'; script-src 'nonce-${nonce}'; worker-src 'self'; base-uri 'none'; form-action 'none'`,
      "document-isolation-policy": "isolate-and-credentialless",
    },
  });
}
