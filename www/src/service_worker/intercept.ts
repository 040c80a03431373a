//! The service worker: relays requests for the endpoint's routes to a tab that owns an engine, and leaves all others to the
//! network. It keeps no state that it cannot recover, because a browser may stop it between any two events.

import { DEFAULT_BASE_PATHS, spelledByEndpoint } from "../exchange/base_paths.js";
import { claimsIn } from "../exchange/claims.js";
import { EngineFailure, failureResponse } from "../exchange/error_response.js";
import { frameUrl } from "../exchange/isolated_frame.js";
import {
  CANCEL,
  CLAIM,
  type InterceptionReport,
  KEEP_ALIVE,
  type PageToServiceWorker,
  PAUSED,
  RELAYED_HEADER,
  REPORT,
  REQUEST_ID_HEADER,
  type WireRequest,
  WORKER_LOST,
} from "../exchange/protocol.js";
import { type Connection, LostBeforeHead, exchange } from "../exchange/requester.js";
import {
  covers,
  fromQuery,
  normalizedBasePaths,
  normalizedOrigins,
} from "../exchange/served_urls.js";
import { toWireRequest } from "../exchange/wire_request.js";
import type {
  ExtendableEvent,
  ExtendableMessageEvent,
  FetchEvent,
  ServiceWorkerScope,
} from "../worker_scopes.js";
import { heardFrom, pagesServe } from "./ask_pages.js";
import { findEngine, nowListens } from "./find_engine.js";
import { frameAnswer, isFrameRequest } from "./isolated_frame.js";
import { isSiteFile, siteAnswer } from "./site_answer.js";
import {
  callerGone,
  ownerIsAlive,
  ownerPaused,
  watchExchange,
  workerLost,
} from "./watch_exchange.js";

/** The requests to intercept. The pages that call `serveFromPage` decide about omitted members. */
export interface InterceptOptions {
  /** Paths below which the engine answers. */
  basePaths?: readonly string[] | undefined;
  /** Other origins whose base paths are intercepted too. */
  origins?: readonly string[] | undefined;
  /** Also answer for the site's own files when there is no network, as `serveFromPage` with `offline` keeps them. */
  offline?: boolean | undefined;
}

/**
 * The status of an answer that nobody waits for, because the caller has aborted. A rejected answer would be logged as an
 * error of the page.
 */
const UNREAD_STATUS = 499;

/**
 * Answers requests for the endpoint's routes from a tab's engine; all others go to the network. Call it while the worker's
 * script is evaluated: browsers ignore listeners that are added later.
 *
 * @throws TypeError if a base path is not a path, or an origin not an origin
 */
export function intercept({ basePaths, origins, offline }: InterceptOptions = {}): void {
  const scope = globalThis as unknown as ServiceWorkerScope;
  // The pages' decision is in the script's URL: it must be known at the first event after a restart.
  const ofPages = fromQuery(new URL(scope.location.href));
  const intercepted = {
    basePaths: normalizedBasePaths(basePaths ?? ofPages.basePaths ?? DEFAULT_BASE_PATHS),
    origins: normalizedOrigins(origins ?? ofPages.origins ?? []),
    offline: offline ?? ofPages.offline,
  };
  const fixed = {
    basePaths: basePaths !== undefined,
    origins: origins !== undefined,
    offline: offline !== undefined,
  };

  const report = async ({ ports: [port], source }: ExtendableMessageEvent) => {
    const site = scope.registration.scope;
    const claims = (await claimsIn(site)).map(({ id }) => id);
    const frame = frameUrl(site, source?.id);
    port?.postMessage({ intercepted, fixed, claims, frame } satisfies InterceptionReport);
  };

  scope.addEventListener("install", () => void scope.skipWaiting());
  scope.addEventListener("activate", (event) =>
    (event as ExtendableEvent).waitUntil(scope.clients.claim()),
  );
  scope.addEventListener("message", (event) => {
    const sent = event as ExtendableMessageEvent;
    const message = sent.data as PageToServiceWorker | null;
    if (message?.type === CLAIM) sent.waitUntil(scope.clients.claim());
    if (message?.type === CANCEL) cancellable.get(message.id)?.abort(callerGone());
    if (sent.source !== null) {
      const { id } = sent.source;
      heardFrom(id);
      if (message?.type === KEEP_ALIVE) ownerIsAlive(id);
      if (message?.type === PAUSED) ownerPaused(id);
      if (message?.type === WORKER_LOST) workerLost(id, message.engine, message.failure);
    }
    if (message?.type === REPORT) {
      if (sent.source !== null) nowListens(sent.source.id);
      sent.waitUntil(report(sent));
    }
  });
  scope.addEventListener("fetch", (event) => {
    const fetchEvent = event as FetchEvent;
    const { request } = fetchEvent;
    // A navigation is never a request to the endpoint.
    const isPage = request.mode === "navigate";
    if (isFrameRequest(request, scope.registration.scope)) {
      fetchEvent.respondWith(frameAnswer(scope, fetchEvent));
    } else if (!isPage && covers(intercepted, new URL(request.url), scope.location.origin)) {
      // No waitUntil for the body: browsers stop a worker whose event takes longer than five minutes. The answers to pings
      // keep the worker running while the body is sent.
      fetchEvent.respondWith(answer(scope, fetchEvent, intercepted.basePaths));
    } else if (intercepted.offline && isSiteFile(request)) {
      fetchEvent.respondWith(siteAnswer(scope, fetchEvent));
    }
  });
}

/** Requests without a head yet, by the id that their page gave them. */
const cancellable = new Map<string, AbortController>();

/**
 * The engine's answer if an open page serves the URL. Otherwise the network's answer, but only on the site's own origin:
 * a request to another origin carries that origin's API key, and must not change from local to remote because a tab was
 * closed.
 */
async function answer(
  scope: ServiceWorkerScope,
  event: FetchEvent,
  basePaths: readonly string[],
): Promise<Response> {
  const { request } = event;
  const url = new URL(request.url);
  const ownOrigin = scope.location.origin;
  const isServed = async () => {
    const site = scope.registration.scope;
    const claims = await claimsIn(site);
    if (claims.some((claim) => covers(claim, url, ownOrigin))) return true;
    // If no claim is visible, the pages are asked.
    const ids = claims.map(({ id }) => id);
    return pagesServe(scope.clients, { url: request.url, scope: site, claims: ids });
  };
  let unread = request;
  if (await isServed()) {
    unread = request.clone();
    const response = await relay(scope, event, basePaths);
    if (response !== undefined) return response;
    // The claim of a page that was just closed lasts a little longer than its answers.
    if (await isServed()) {
      return failureResponse(noTab("no open tab of this site answers"), request.url);
    }
  }
  if (url.origin === ownOrigin) return fetch(unread);
  return failureResponse(
    noTab(
      `no open tab of this site serves ${url.origin}, and the request was not sent there, because serveFromPage named this origin; serving.stop() ends that`,
    ),
    request.url,
  );
}

const noTab = (message: string) => new EngineFailure("engine_unavailable", message);

/** A tab's answer, or an error answer; `undefined` if no tab has taken the request. */
async function relay(
  scope: ServiceWorkerScope,
  { request, clientId }: FetchEvent,
  basePaths: readonly string[],
): Promise<Response | undefined> {
  const id = request.headers.get(REQUEST_ID_HEADER);
  const cancelled = new AbortController();
  if (id !== null) cancellable.set(id, cancelled);
  const signal = AbortSignal.any([request.signal, cancelled.signal]);
  try {
    const wire = await toWireRequest(request, spelledByEndpoint(request.url, basePaths));
    const response = await answerFromTab(scope, wire, clientId, signal);
    response?.headers.set(RELAYED_HEADER, "1");
    return response;
  } catch (reason) {
    if (reason instanceof EngineFailure) return failureResponse(reason, request.url);
    if (signal.aborted || isAbort(reason)) return new Response(null, { status: UNREAD_STATUS });
    throw reason;
  } finally {
    if (id !== null) cancellable.delete(id);
  }
}

const isAbort = (reason: unknown) => reason instanceof DOMException && reason.name === "AbortError";

/**
 * A tab's answer; `undefined` if no tab takes the request. When that tab is closed or frozen, or its engine is lost,
 * another one continues.
 *
 * @throws EngineFailure if none does
 */
async function answerFromTab(
  scope: ServiceWorkerScope,
  wire: WireRequest,
  callerId: string,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const caller = new AbortController();
  const excluded = new Set<string>();
  const connect = async (): Promise<Connection | undefined> => {
    const owner = await findEngine(scope.clients, {
      url: wire.url,
      scope: scope.registration.scope,
      preferredId: callerId,
      excluded,
    });
    if (owner === undefined) return undefined;
    const watch = watchExchange(scope.clients, owner, callerId);
    watch.ownerLost.addEventListener("abort", () => {
      if (!watch.hasOtherEngine) excluded.add(owner.clientId);
    });
    watch.callerLost.addEventListener("abort", () => caller.abort(watch.callerLost.reason));
    const { port } = owner;
    return { port, lost: watch.ownerLost, onSign: watch.onSign, onEnd: watch.stop };
  };
  const reconnect = async () => {
    const connection = await connect();
    if (connection === undefined) throw noTab("no other tab of this site answers");
    return connection;
  };
  const first = await connect();
  if (first === undefined) return undefined;
  try {
    return await exchange(first, wire, {
      heartbeat: true,
      signal: AbortSignal.any([signal, caller.signal]),
      reconnect,
    });
  } catch (reason) {
    throw reason instanceof LostBeforeHead ? reason.failure : reason;
  }
}
