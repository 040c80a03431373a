//! The service worker's part: relays a fetch below a base path to a tab that owns an engine. Keeps
//! nothing that it cannot find again, because a browser may end it between any two events.

import { isBelowBasePath } from "../exchange/base_paths.js";
import { EngineFailure, failureResponse } from "../exchange/error_response.js";
import { findEngine } from "./find_engine.js";
import {
  CANCEL,
  CLAIM,
  DEFAULT_BASE_PATHS,
  type PageToServiceWorker,
  REQUEST_ID_HEADER,
  type WireRequest,
} from "../exchange/protocol.js";
import { LostBeforeHead, exchange } from "../exchange/requester.js";
import { toWireRequest } from "../exchange/wire_request.js";
import type {
  ExtendableEvent,
  ExtendableMessageEvent,
  FetchEvent,
  ServiceWorkerScope,
} from "../worker_scopes.js";

/** What to intercept. */
export interface InterceptOptions {
  /** Paths below which the engine answers; `["/v1", "/openai/v1"]` if left out. */
  basePaths?: readonly string[] | undefined;
  /** Origins besides the worker's own whose base paths are answered too. */
  origins?: readonly string[] | undefined;
}

/** How often an exchange looks whether both of its pages are still there. */
const LIVENESS_INTERVAL_MS = 500;

/** Tabs asked for one request before it is given up. */
const MAX_ATTEMPTS = 2;

/**
 * Answers fetches below the base paths from a tab's engine; leaves all others to the network. Call
 * it while the worker's script runs first: later listeners are ignored by browsers.
 */
export function intercept({
  basePaths = DEFAULT_BASE_PATHS,
  origins = [],
}: InterceptOptions = {}): void {
  const scope = globalThis as unknown as ServiceWorkerScope;
  const ownOrigins = new Set([scope.location.origin, ...origins]);

  scope.addEventListener("install", () => void scope.skipWaiting());
  scope.addEventListener("activate", (event) =>
    (event as ExtendableEvent).waitUntil(scope.clients.claim()),
  );
  scope.addEventListener("message", (event) => {
    const message = (event as ExtendableMessageEvent).data as PageToServiceWorker | null;
    // KEEP_ALIVE needs no answer: that an event came is all it is for.
    if (message?.type === CLAIM) (event as ExtendableEvent).waitUntil(scope.clients.claim());
    if (message?.type === CANCEL) cancellable.get(message.id)?.abort(callerGone());
  });
  scope.addEventListener("fetch", (event) => {
    const fetchEvent = event as FetchEvent;
    const url = new URL(fetchEvent.request.url);
    if (!ownOrigins.has(url.origin) || !isBelowBasePath(url, basePaths)) return;
    // Not held with waitUntil until the body ends: browsers end an event, and with it the worker,
    // after five minutes. The body runs on while the page's keep-alive messages keep the worker up.
    fetchEvent.respondWith(relay(scope, fetchEvent));
  });
}

/** Requests whose head is awaited, by the id that their page gave them. */
const cancellable = new Map<string, AbortController>();

const callerGone = () => new DOMException("the page that asked is gone", "AbortError");

async function relay(
  scope: ServiceWorkerScope,
  { request, clientId }: FetchEvent,
): Promise<Response> {
  const id = request.headers.get(REQUEST_ID_HEADER);
  const cancelled = new AbortController();
  if (id !== null) cancellable.set(id, cancelled);
  try {
    const signal = AbortSignal.any([request.signal, cancelled.signal]);
    return await answerFromTab(scope, await toWireRequest(request), clientId, signal);
  } catch (reason) {
    if (reason instanceof EngineFailure) return failureResponse(reason);
    throw reason;
  } finally {
    if (id !== null) cancellable.delete(id);
  }
}

/**
 * The answer of the first tab that stays long enough to give one.
 *
 * @throws EngineFailure when there is none
 */
async function answerFromTab(
  scope: ServiceWorkerScope,
  wire: WireRequest,
  callerId: string,
  signal: AbortSignal,
): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const owner = await findEngine(scope.clients, callerId);
    if (owner === undefined) {
      throw new EngineFailure(
        "engine_unavailable",
        "no open tab of this site runs an inpage engine",
      );
    }
    const watch = watchClients(scope, owner.clientId, callerId);
    try {
      return await exchange(owner.port, wire, {
        lost: watch.ownerLost,
        heartbeat: true,
        signal: AbortSignal.any([signal, watch.callerLost]),
        onEnd: watch.stop,
      });
    } catch (reason) {
      if (!(reason instanceof LostBeforeHead)) throw reason;
      if (attempt === MAX_ATTEMPTS) throw reason.failure;
    }
  }
}

/**
 * Signals that abort when the tab that answers, or the page that asked, is gone: neither port nor
 * stream tells so in every browser.
 */
function watchClients(scope: ServiceWorkerScope, ownerId: string, callerId: string) {
  const owner = new AbortController();
  const caller = new AbortController();
  const timer = setInterval(async () => {
    if (!(await scope.clients.get(ownerId))) {
      owner.abort(
        new EngineFailure("engine_unavailable", "the tab that ran the engine was closed"),
      );
    } else if (callerId !== "" && !(await scope.clients.get(callerId))) {
      caller.abort(callerGone());
    }
  }, LIVENESS_INTERVAL_MS);
  return {
    ownerLost: owner.signal,
    callerLost: caller.signal,
    stop: () => clearInterval(timer),
  };
}
