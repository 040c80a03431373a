//! Finds a tab with an engine: the service worker asks all tabs and takes one that answers.

import {
  CONNECT,
  type RequesterMessage,
  type ResponderMessage,
  type ServiceWorkerToPage,
} from "../exchange/protocol.js";
import type { Clients } from "../worker_scopes.js";

/** A tab with an engine, and a port to that engine. */
export interface EngineOwner {
  clientId: string;
  /** Its number in that tab. */
  engine: number | undefined;
  port: MessagePort;
}

/** The engine that is wanted, and the tabs that are asked. */
export interface Wanted {
  /** The URL that the engine has to serve. */
  url: string;
  /** The scope of this service worker. */
  scope: string;
  /** This tab answers if it can. */
  preferredId: string;
  /** Tabs that are not asked again. */
  excluded: ReadonlySet<string>;
}

/** The time to wait for an answer; a tab that is frozen or has no engine never answers. */
const ANSWER_TIMEOUT_MS = 2000;

/** The delay after others with which the requesting tab's own engine may answer and still be preferred. */
const OWN_TAB_GRACE_MS = 30;

/** The same delay if that tab is known to serve: it will answer, unless its thread is busy for long. */
const SERVING_TAB_GRACE_MS = 1000;

/**
 * Tabs that serve, or did when they were last heard. When the browser stops the service worker, this is lost, until a tab
 * answers again.
 */
const serving = new Set<string>();

/** A tab has asked what is intercepted, which it does when it begins to serve. */
export function nowServes(clientId: string): void {
  serving.add(clientId);
}

/** The preferred tab if it has an engine, else the first tab that answers, else `undefined`. */
export async function findEngine(
  clients: Clients,
  { url, scope, preferredId, excluded }: Wanted,
): Promise<EngineOwner | undefined> {
  const all = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = new Set(all.map(({ id }) => id));
  for (const id of serving) if (!open.has(id)) serving.delete(id);
  const pages = all.filter(({ id }) => !excluded.has(id));
  if (pages.length === 0) return undefined;
  const asked: MessagePort[] = [];
  const chosen = await new Promise<EngineOwner | undefined>((resolve) => {
    setTimeout(() => resolve(undefined), ANSWER_TIMEOUT_MS);
    const preferredIsThere = pages.some((page) => page.id === preferredId);
    const graceMs = serving.has(preferredId) ? SERVING_TAB_GRACE_MS : OWN_TAB_GRACE_MS;
    let preferredAnswers = false;
    for (const page of pages) {
      const { port1, port2 } = new MessageChannel();
      asked.push(port1);
      port1.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
        if (data.type !== "accepted") return;
        serving.add(page.id);
        if (page.id === preferredId) preferredAnswers = true;
        const owner = { clientId: page.id, engine: data.engine, port: port1 };
        if (page.id === preferredId || !preferredIsThere) return resolve(owner);
        setTimeout(() => {
          if (!preferredAnswers) serving.delete(preferredId);
          resolve(owner);
        }, graceMs);
      };
      const message: ServiceWorkerToPage = { type: CONNECT, url, scope };
      page.postMessage(message, [port2]);
    }
  });
  for (const port of asked) {
    if (port === chosen?.port) continue;
    // The tab that accepted the other end can close it.
    const cancel: RequesterMessage = { type: "cancel" };
    port.postMessage(cancel);
    port.close();
  }
  return chosen;
}
