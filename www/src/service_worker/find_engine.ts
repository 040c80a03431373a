//! How the service worker finds a tab with an engine: asks all of them, takes one that answers.

import {
  CONNECT,
  type ConnectMessage,
  type RequesterMessage,
  type ResponderMessage,
} from "../exchange/protocol.js";
import type { Clients } from "../worker_scopes.js";

/** A line to the engine of one tab. */
export interface EngineOwner {
  clientId: string;
  port: MessagePort;
}

/** Longest wait for any tab; a tab that is frozen or has no engine does not answer at all. */
const ANSWER_TIMEOUT_MS = 2000;

/** How long the asking tab's own engine may be slower than another tab's and still be preferred. */
const OWN_TAB_GRACE_MS = 30;

/** The tab `preferredId` if it has an engine, else the first that answers, else `undefined`. */
export async function findEngine(
  clients: Clients,
  preferredId: string,
): Promise<EngineOwner | undefined> {
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  if (pages.length === 0) return undefined;
  const asked: MessagePort[] = [];
  const chosen = await new Promise<EngineOwner | undefined>((resolve) => {
    setTimeout(() => resolve(undefined), ANSWER_TIMEOUT_MS);
    const preferredIsThere = pages.some((page) => page.id === preferredId);
    for (const page of pages) {
      const { port1, port2 } = new MessageChannel();
      asked.push(port1);
      port1.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
        if (data.type !== "accepted") return;
        const owner = { clientId: page.id, port: port1 };
        if (page.id === preferredId || !preferredIsThere) resolve(owner);
        else setTimeout(() => resolve(owner), OWN_TAB_GRACE_MS);
      };
      const message: ConnectMessage = { type: CONNECT };
      page.postMessage(message, [port2]);
    }
  });
  for (const port of asked) {
    if (port === chosen?.port) continue;
    // Whoever took the other end may let go of it.
    const cancel: RequesterMessage = { type: "cancel" };
    port.postMessage(cancel);
    port.close();
  }
  return chosen;
}
