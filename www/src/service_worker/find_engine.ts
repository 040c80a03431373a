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

/** The same delay for a tab that is known to answer in any case, unless its thread is busy for long. */
const LISTENING_TAB_GRACE_MS = 1000;

/** Tabs that are expected to accept or decline. When the browser stops the service worker this is lost, until a tab answers again. */
const listening = new Set<string>();

/** A tab has asked what is intercepted. It does so when it begins to serve, and to find the frame of an isolated engine. */
export function nowListens(clientId: string): void {
  listening.add(clientId);
}

/** The preferred tab if it has an engine, else the first tab that answers, else `undefined`. */
export async function findEngine(
  clients: Clients,
  { url, scope, preferredId, excluded }: Wanted,
): Promise<EngineOwner | undefined> {
  const all = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = new Set(all.map(({ id }) => id));
  for (const id of listening) if (!open.has(id)) listening.delete(id);
  const pages = all.filter(({ id }) => !excluded.has(id));
  if (pages.length === 0) return undefined;
  const asked: MessagePort[] = [];
  const chosen = await new Promise<EngineOwner | undefined>((resolve) => {
    const graceMs = listening.has(preferredId) ? LISTENING_TAB_GRACE_MS : OWN_TAB_GRACE_MS;
    const preferredIsThere = pages.some((page) => page.id === preferredId);
    let preferredAnswers = false;
    let other: EngineOwner | undefined;
    setTimeout(() => resolve(other), ANSWER_TIMEOUT_MS);
    for (const page of pages) {
      const { port1, port2 } = new MessageChannel();
      asked.push(port1);
      port1.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
        listening.add(page.id);
        const isPreferred = page.id === preferredId;
        if (isPreferred) preferredAnswers = true;
        if (data.type === "declined" && isPreferred && other !== undefined) resolve(other);
        if (data.type !== "accepted") return;
        const owner = { clientId: page.id, engine: data.engine, port: port1 };
        // A preferred tab that has answered has declined: otherwise it would have been chosen.
        if (isPreferred || preferredAnswers || !preferredIsThere) return resolve(owner);
        other ??= owner;
        setTimeout(() => {
          // It may have asked only for the frame of its engine. It is known again once it answers.
          if (!preferredAnswers) listening.delete(preferredId);
          resolve(other);
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
