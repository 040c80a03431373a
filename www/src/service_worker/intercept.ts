//! The service worker: relays requests below a base path to a tab that owns an engine. It keeps no state that it
//! cannot recover, because a browser may stop it between any two events.

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

/** Which requests to intercept. */
export interface InterceptOptions {
  /** Paths below which the engine answers; `["/v1", "/openai/v1"]` if omitted. */
  basePaths?: readonly string[] | undefined;
  /** Other origins whose base paths are intercepted too. */
  origins?: readonly string[] | undefined;
}

/** How often an exchange checks that both of its pages still exist. */
const LIVENESS_INTERVAL_MS = 500;

/** How many tabs are tried for one request. */
const MAX_ATTEMPTS = 2;

/**
 * Answers requests below the base paths from a tab's engine; all others go to the network. Call it while the
 * worker's script is evaluated: browsers ignore listeners that are added later.
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
    // KEEP_ALIVE needs no action: receiving the event is its whole effect.
    if (message?.type === CLAIM) (event as ExtendableEvent).waitUntil(scope.clients.claim());
    if (message?.type === CANCEL) cancellable.get(message.id)?.abort(callerGone());
  });
  scope.addEventListener("fetch", (event) => {
    const fetchEvent = event as FetchEvent;
    const url = new URL(fetchEvent.request.url);
    if (!ownOrigins.has(url.origin) || !isBelowBasePath(url, basePaths)) return;
    // No waitUntil for the body: browsers stop a worker whose event takes longer than five minutes. The page's
    // keep-alive messages keep the worker running while the body is sent.
    fetchEvent.respondWith(relay(scope, fetchEvent));
  });
}

/** Requests without a head yet, by the id that their page gave them. */
const cancellable = new Map<string, AbortController>();

const callerGone = () => new DOMException("the requesting page is gone", "AbortError");

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
 * The answer of the first tab that is not closed before it can give one.
 *
 * @throws EngineFailure if no tab answers
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
 * Signals that abort when the answering tab or the requesting page is gone. Not every browser reports this
 * through the port or the stream.
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
