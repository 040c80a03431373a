//! Watches the two pages of an open exchange, the one that answers and the one that asked, and keeps the service worker
//! running in the meantime.

import { EngineFailure } from "../exchange/error_response.js";
import { PING, type ServiceWorkerToPage } from "../exchange/protocol.js";
import type { Clients } from "../worker_scopes.js";

/** How often an exchange checks that both of its pages still exist. */
const LIVENESS_INTERVAL_MS = 500;

/** Browsers stop a service worker that gets no event for about 30 seconds. */
const TICKS_PER_PING = 20;

/**
 * The answering engine is frozen after this many ticks without a message: 20 seconds, in which it would send six
 * heartbeats. Ticks are counted instead of time: after a sleep of the machine both ends wake at once.
 */
const MAX_SILENT_TICKS = 40;

/** The exchanges that are open, for [`ownerPaused`]. */
const open = new Map<AbortController, string>();

export interface Watch {
  /** Aborts when the answering tab is gone or frozen. */
  readonly ownerLost: AbortSignal;
  /** Aborts when the requesting page is gone. */
  readonly callerLost: AbortSignal;
  /** To be called for every message of the answering engine. */
  onSign(): void;
  stop(): void;
}

/** Watches both pages; not every browser reports through the port or the stream that one is gone. */
export function watchExchange(clients: Clients, ownerId: string, callerId: string): Watch {
  const owner = new AbortController();
  const caller = new AbortController();
  let ticks = 0;
  let silentTicks = 0;
  open.set(owner, ownerId);
  const timer = setInterval(async () => {
    const ownerPage = await clients.get(ownerId);
    if (ownerPage === undefined) {
      owner.abort(unavailable("was closed"));
    } else if (++silentTicks > MAX_SILENT_TICKS) {
      owner.abort(unavailable("does not answer any more; the browser may have frozen it"));
    } else if (callerId !== "" && !(await clients.get(callerId))) {
      caller.abort(callerGone());
    } else if (++ticks % TICKS_PER_PING === 0) {
      const ping: ServiceWorkerToPage = { type: PING };
      ownerPage.postMessage(ping);
    }
  }, LIVENESS_INTERVAL_MS);
  return {
    ownerLost: owner.signal,
    callerLost: caller.signal,
    onSign: () => {
      silentTicks = 0;
    },
    stop: () => {
      clearInterval(timer);
      open.delete(owner);
    },
  };
}

/** Ends the exchanges whose answering tab says that it is frozen or left. */
export function ownerPaused(ownerId: string): void {
  for (const [owner, id] of open) {
    if (id === ownerId) owner.abort(unavailable("was closed or frozen"));
  }
}

/** The reason when the requesting page is gone or has aborted. */
export const callerGone = () => new DOMException("the requesting page is gone", "AbortError");

const unavailable = (what: string) =>
  new EngineFailure("engine_unavailable", `the tab that ran the engine ${what}`);
