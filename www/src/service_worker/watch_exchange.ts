//! Watches the two pages of an open exchange, the one that answers and the one that asked, and keeps the service worker
//! running in the meantime.

import { EngineFailure } from "../exchange/error_response.js";
import { PING, type ServiceWorkerToPage, type WireFailure } from "../exchange/protocol.js";
import type { Clients } from "../worker_scopes.js";
import type { EngineOwner } from "./find_engine.js";

/** The interval in which an exchange checks that both of its pages still exist. */
const LIVENESS_INTERVAL_MS = 500;

/** Browsers stop a service worker that gets no event for about 30 seconds. */
const TICKS_PER_PING = 20;

/**
 * The answering tab is frozen after this many ticks without a message: 20 seconds, in which its engine would send six
 * heartbeats, and its page two. A page that is not frozen notices itself that its engine hangs. Ticks are counted instead of time:
 * after a sleep of the machine both ends wake at once.
 */
const MAX_SILENT_TICKS = 40;

/** An open exchange. */
interface Open {
  readonly owner: EngineOwner;
  readonly lost: AbortController;
  onSign(): void;
}

const open = new Set<Open>();

export interface Watch {
  /** Aborts when the answering tab is gone or frozen, or its engine is lost. */
  readonly ownerLost: AbortSignal;
  /** True if `ownerLost` aborted because the tab has another engine. */
  readonly hasOtherEngine: boolean;
  /** Aborts when the requesting page is gone. */
  readonly callerLost: AbortSignal;
  /** The owner calls this for every message of the answering engine. */
  onSign(): void;
  stop(): void;
}

/** Watches both pages; not every browser reports through the port or the stream that one is gone. */
export function watchExchange(clients: Clients, owner: EngineOwner, callerId: string): Watch {
  const lost = new AbortController();
  const caller = new AbortController();
  let ticks = 0;
  let silentTicks = 0;
  const onSign = () => {
    silentTicks = 0;
  };
  const exchange: Open = { owner, lost, onSign };
  open.add(exchange);
  const timer = setInterval(async () => {
    const ownerPage = await clients.get(owner.clientId);
    if (ownerPage === undefined) {
      lost.abort(unavailable("was closed"));
    } else if (++silentTicks > MAX_SILENT_TICKS) {
      lost.abort(unavailable("does not answer any more; the browser may have frozen it"));
    } else if (callerId !== "" && !(await clients.get(callerId))) {
      caller.abort(callerGone());
    } else if (++ticks % TICKS_PER_PING === 0) {
      const ping: ServiceWorkerToPage = { type: PING };
      ownerPage.postMessage(ping);
    }
  }, LIVENESS_INTERVAL_MS);
  return {
    ownerLost: lost.signal,
    get hasOtherEngine() {
      return lost.signal.reason instanceof WorkerLoss;
    },
    callerLost: caller.signal,
    onSign,
    stop: () => {
      clearInterval(timer);
      open.delete(exchange);
    },
  };
}

/** Ends the exchanges whose answering tab says that it is frozen or left. */
export function ownerPaused(ownerId: string): void {
  for (const { lost } of exchangesOf(ownerId)) lost.abort(unavailable("was closed or frozen"));
}

/** Ends the exchanges with an engine whose tab says that its worker is lost. */
export function workerLost(ownerId: string, engine: number, { code, message }: WireFailure): void {
  for (const { owner, lost } of exchangesOf(ownerId)) {
    if (owner.engine === engine) lost.abort(new WorkerLoss(code, message));
  }
}

/** A page has answered a ping. */
export function ownerIsAlive(ownerId: string): void {
  for (const { onSign } of exchangesOf(ownerId)) onSign();
}

const exchangesOf = (id: string) => [...open].filter(({ owner }) => owner.clientId === id);

class WorkerLoss extends EngineFailure {}

/** The reason when the requesting page is gone or has aborted. */
export const callerGone = () => new DOMException("the requesting page is gone", "AbortError");

const unavailable = (what: string) =>
  new EngineFailure("engine_unavailable", `the tab that ran the engine ${what}`);
