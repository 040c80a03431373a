//! The service worker's part: relays a fetch below a base path to a tab that owns an engine. Keeps
//! nothing that it cannot find again, because a browser may end it between any two events.

import { isBelowBasePath } from "./base_paths.js";
import { EngineFailure, failureResponse } from "./error_response.js";
import { toWireRequest } from "./fetch_door.js";
import { findEngine } from "./find_engine.js";
import {
  CLAIM,
  DEFAULT_BASE_PATHS,
  type PageToServiceWorker,
  type WireRequest,
} from "./protocol.js";
import { LostBeforeHead, exchange } from "./requester.js";
import type {
  ExtendableEvent,
  ExtendableMessageEvent,
  FetchEvent,
  ServiceWorkerScope,
} from "./worker_scopes.js";

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
    const message = (event as ExtendableMessageEvent).data as Partial<PageToServiceWorker> | null;
    // KEEP_ALIVE needs no answer: that an event came is all it is for.
    if (message?.type === CLAIM) (event as ExtendableEvent).waitUntil(scope.clients.claim());
  });
  scope.addEventListener("fetch", (event) => {
    const fetchEvent = event as FetchEvent;
    const url = new URL(fetchEvent.request.url);
    if (!ownOrigins.has(url.origin) || !isBelowBasePath(url, basePaths)) return;
    const ended = new Promise<void>((resolve) => {
      fetchEvent.respondWith(relay(scope, fetchEvent, resolve));
    });
    // Responded is not finished: the body still runs through here.
    fetchEvent.waitUntil(ended);
  });
}

async function relay(
  scope: ServiceWorkerScope,
  { request, clientId }: FetchEvent,
  onEnd: () => void,
): Promise<Response> {
  let wire: WireRequest;
  try {
    wire = await toWireRequest(request);
  } catch (error) {
    onEnd();
    throw error;
  }
  for (let attempt = 1; ; attempt++) {
    const owner = await findEngine(scope.clients, clientId);
    if (owner === undefined) {
      onEnd();
      return failureResponse(
        new EngineFailure("engine_unavailable", "no open tab of this site runs an inpage engine"),
      );
    }
    const watch = watchClients(scope, owner.clientId, clientId);
    try {
      return await exchange(owner.port, wire, {
        lost: watch.ownerLost,
        signal: AbortSignal.any([request.signal, watch.callerLost]),
        onEnd: () => {
          watch.stop();
          // A failed attempt is not the end of the event: another may follow.
          if (watch.hadHead) onEnd();
        },
      }).then((response) => {
        watch.hadHead = true;
        return response;
      });
    } catch (reason) {
      watch.stop();
      if (reason instanceof LostBeforeHead && attempt < MAX_ATTEMPTS) continue;
      onEnd();
      if (reason instanceof LostBeforeHead) return failureResponse(reason.failure);
      throw reason;
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
      caller.abort(new DOMException("the page that asked is gone", "AbortError"));
    }
  }, LIVENESS_INTERVAL_MS);
  return {
    ownerLost: owner.signal,
    callerLost: caller.signal,
    hadHead: false,
    stop: () => clearInterval(timer),
  };
}
