//! The engines that this page serves: answers the service workers that look for one. `interception.ts` determines which
//! URLs a service worker intercepts.

import { toEngineFailure } from "../exchange/error_response.js";
import {
  ASK,
  CONNECT,
  KEEP_ALIVE,
  type PageToServiceWorker,
  PAUSED,
  PING,
  type ResponderMessage,
  type ServesAnswer,
  type ServiceWorkerToPage,
  WORKER_LOST,
} from "../exchange/protocol.js";
import { type ServedUrls, covers } from "../exchange/served_urls.js";
import type { Engine } from "../engine/engine.js";
import { internalsOf } from "../engine/internals.js";

/** An engine, and what it is served for. */
export interface ServedEngine extends ServedUrls {
  readonly engine: Engine;
  readonly scope: string;
  /** The id of the claim. */
  readonly id: string;
  /** Called when a service worker does not see the claim. */
  onUnseen(): void;
}

/** The one that was added last answers, if several serve a URL. */
const served: ServedEngine[] = [];

/** The service workers that have connected to an engine of this page. */
const connected = new Set<ServiceWorker>();

/** Engines are numbered for the service workers. */
const numbers = new WeakMap<Engine, number>();
let numbered = 0;

/** The workers of engines that have answered. */
const watched = new WeakSet<AbortSignal>();

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
    if (data?.type === ASK && ports[0]) {
      const found = servedAt(data.url, data.scope);
      if (found !== undefined && !data.claims.includes(found.id)) found.onUnseen();
      ports[0].postMessage({ serves: found !== undefined } satisfies ServesAnswer);
    }
    if (data?.type === PING) tell(worker, { type: KEEP_ALIVE });
  });
  // Without this, messages are held back until the page is loaded.
  container.startMessages();
  // Otherwise the requests that run here would wait until the page is resumed.
  const onPause = () => tellAll({ type: PAUSED });
  document.addEventListener("freeze", onPause);
  addEventListener("pagehide", onPause);
}

function servedAt(url: string, scope: string): ServedEngine | undefined {
  const asked = new URL(url);
  return served.find(
    (candidate) =>
      candidate.scope === scope &&
      candidate.engine.alive &&
      covers(candidate, asked, location.origin),
  );
}

function connect(
  url: string,
  scope: string,
  port: MessagePort,
  worker: ServiceWorker | undefined,
): void {
  const found = servedAt(url, scope);
  if (found === undefined) {
    port.postMessage({ type: "declined" } satisfies ResponderMessage);
    return;
  }
  if (worker) connected.add(worker);
  const engine = numberOf(found.engine);
  port.postMessage({ type: "accepted", engine } satisfies ResponderMessage);
  void internalsOf(found.engine)
    .connect(port)
    ?.then((lost) => watch(lost, engine));
}

function numberOf(engine: Engine): number {
  const number = numbers.get(engine) ?? ++numbered;
  numbers.set(engine, number);
  return number;
}

/** Tells the service workers when the worker of an engine is lost and could not do so itself. */
function watch(lost: AbortSignal, engine: number): void {
  if (watched.has(lost)) return;
  watched.add(lost);
  const onLoss = () => {
    const { code, message } = toEngineFailure(lost.reason);
    if (code === "engine_unavailable") return;
    tellAll({ type: WORKER_LOST, engine, failure: { code, message } });
  };
  lost.addEventListener("abort", onLoss, { once: true });
}

function tellAll(message: PageToServiceWorker): void {
  for (const worker of connected) tell(worker, message);
}

function tell(worker: ServiceWorker | undefined, message: PageToServiceWorker): void {
  worker?.postMessage(message);
}
