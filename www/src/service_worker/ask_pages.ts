//! Asks the open pages whether they serve a URL that no visible claim covers. Browsers hide the claims of open pages from
//! service workers when the storage of the site was cleared (`Clear-Site-Data`).

import { ASK, type ServesAnswer, type ServiceWorkerToPage } from "../exchange/protocol.js";
import type { Clients } from "../worker_scopes.js";

/** The time to wait for a page that has not been asked before. Pages that have ever served answer immediately. */
const ANSWER_TIMEOUT_MS = 500;

/**
 * Pages that did not answer: they never served, or are busy or frozen. They are not waited for until they send something. When
 * the browser stops the service worker, this is lost, and they are asked again.
 */
const silent = new Set<string>();

/** A page has sent something. */
export function heardFrom(clientId: string): void {
  silent.delete(clientId);
}

/** A question to pages. */
export interface Question {
  url: string;
  scope: string;
  /** The ids of the claims that the worker sees. */
  claims: readonly string[];
}

/** True if an open page answers in time that it serves the URL. */
export async function pagesServe(clients: Clients, question: Question): Promise<boolean> {
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = new Set(pages.map(({ id }) => id));
  for (const id of silent) if (!open.has(id)) silent.delete(id);
  const asked = pages.filter(({ id }) => !silent.has(id));
  const waiting = new Set(asked.map(({ id }) => id));
  if (waiting.size === 0) return false;
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      for (const id of waiting) silent.add(id);
      resolve(false);
    }, ANSWER_TIMEOUT_MS);
    const end = (serves: boolean) => {
      clearTimeout(timer);
      resolve(serves);
    };
    for (const page of asked) {
      const { port1, port2 } = new MessageChannel();
      // The answer may come late. The port stays open for it.
      port1.onmessage = ({ data }: MessageEvent<ServesAnswer>) => {
        port1.close();
        heardFrom(page.id);
        waiting.delete(page.id);
        if (data.serves || waiting.size === 0) end(data.serves);
      };
      const message: ServiceWorkerToPage = { type: ASK, ...question };
      page.postMessage(message, [port2]);
    }
  });
}
