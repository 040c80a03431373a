//! The engines that this page serves: answers the service workers that look for one. `interception.ts` determines which
//! URLs a service worker intercepts.

import {
  CONNECT,
  KEEP_ALIVE,
  type PageToServiceWorker,
  PAUSED,
  PING,
  type ResponderMessage,
  type ServiceWorkerToPage,
} from "../exchange/protocol.js";
import { type ServedUrls, covers } from "../exchange/served_urls.js";
import type { Engine } from "./engine.js";

/** An engine, and what it is served for. */
export interface ServedEngine extends ServedUrls {
  readonly engine: Engine;
  readonly scope: string;
}

/** The one that was added last answers, if several serve a URL. */
const served: ServedEngine[] = [];

/** The service workers that have connected to an engine of this page. */
const connected = new Set<ServiceWorker>();

let listens = false;

/** Answers for `engine` from now on. The returned function ends that. */
export function addServedEngine(
  container: ServiceWorkerContainer,
  engine: ServedEngine,
): () => void {
  served.unshift(engine);
  if (!listens) listen(container);
  listens = true;
  return () => {
    const index = served.indexOf(engine);
    if (index >= 0) served.splice(index, 1);
  };
}

function listen(container: ServiceWorkerContainer): void {
  container.addEventListener("message", (event: MessageEvent<ServiceWorkerToPage | null>) => {
    const { data, ports, source } = event;
    const worker = source instanceof ServiceWorker ? source : undefined;
    if (data?.type === CONNECT && ports[0]) connect(data.url, data.scope, ports[0], worker);
    if (data?.type === PING) tell(worker, { type: KEEP_ALIVE });
  });
  // Without this, messages are held back until the page is loaded.
  container.startMessages();
  // Otherwise the requests that run here would wait until the page is resumed.
  const onPause = () => {
    for (const worker of connected) tell(worker, { type: PAUSED });
  };
  document.addEventListener("freeze", onPause);
  addEventListener("pagehide", onPause);
}

function connect(
  url: string,
  scope: string,
  port: MessagePort,
  worker: ServiceWorker | undefined,
): void {
  const asked = new URL(url);
  const found = served.find(
    (candidate) =>
      candidate.scope === scope &&
      candidate.engine.alive &&
      covers(candidate, asked, location.origin),
  );
  if (found === undefined) return;
  if (worker) connected.add(worker);
  port.postMessage({ type: "accepted" } satisfies ResponderMessage);
  found.engine.connect(port);
}

function tell(worker: ServiceWorker | undefined, message: PageToServiceWorker): void {
  worker?.postMessage(message);
}
