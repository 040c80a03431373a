//! The page's part of the service worker door: registers the worker, hands it lines to the engine,
//! and knows when the page is under its control.

import type { Engine } from "./engine.js";
import { InpageError } from "./inpage_error.js";
import {
  CLAIM,
  CONNECT,
  type ConnectMessage,
  KEEP_ALIVE,
  type PageToServiceWorker,
  type ResponderMessage,
} from "../exchange/protocol.js";

/** Where the service worker is and what it intercepts. */
export interface ServeOptions {
  /** The hosted `inpage/sw.js`, or your own worker that calls `intercept()`; `/sw.js` if left out. */
  serviceWorkerUrl?: string | URL;
  /** As for `register()`: by default the folder of the script. */
  scope?: string;
  /** The engine's base paths if left out. */
  basePaths?: readonly string[];
  /** Other origins whose base paths are answered too. */
  origins?: readonly string[];
  /** `module` for an own worker with imports. */
  type?: WorkerType;
}

/** A running service. */
export interface Serving {
  /**
   * Resolves when `fetch` of this page is intercepted.
   *
   * @throws InpageError `service_worker_unavailable`, or `page_not_controlled` after a forced reload
   */
  readonly ready: Promise<void>;
  /** This page answers no longer; with `unregister` the service worker goes too, for all tabs. */
  stop(options?: { unregister?: boolean }): Promise<void>;
}

/** How long a page without a controller waits to be claimed. */
const CLAIM_TIMEOUT_MS = 5000;

/** Browsers end a service worker that got no event for about 30 seconds. */
const KEEP_ALIVE_INTERVAL_MS = 10_000;

/** Lets `fetch("/v1/completions")` of this and other tabs of the site be answered by `engine`. */
export function serveFromPage(engine: Engine, options: ServeOptions = {}): Serving {
  const container: ServiceWorkerContainer | undefined = navigator.serviceWorker;
  if (container === undefined) {
    const ready = Promise.reject(
      InpageError.local(
        "service_worker_unavailable",
        "no service workers here: the page must come from https or localhost, not a private window",
      ),
    );
    ready.catch(() => {});
    return { ready, stop: async () => {} };
  }
  const stopped = new AbortController();

  container.addEventListener(
    "message",
    ({ data, ports }: MessageEvent<Partial<ConnectMessage> | null>) => {
      const port = ports[0];
      if (data?.type !== CONNECT || port === undefined || !engine.alive) return;
      const accepted: ResponderMessage = { type: "accepted" };
      port.postMessage(accepted);
      engine.connect(port);
    },
    { signal: stopped.signal },
  );
  // Messages wait until the page is loaded unless asked for.
  container.startMessages();

  const timer = setInterval(() => {
    const message: PageToServiceWorker = { type: KEEP_ALIVE };
    if (engine.openExchanges > 0) container.controller?.postMessage(message);
  }, KEEP_ALIVE_INTERVAL_MS);
  // Browsers freeze background tabs, and with it the engine for all tabs, but not one with a lock.
  void navigator.locks
    ?.request(
      "inpage-serving",
      { mode: "shared" },
      () =>
        new Promise<void>((resolve) => stopped.signal.addEventListener("abort", () => resolve())),
    )
    .catch(() => {});

  const registration = container.register(workerUrl(engine, options), {
    updateViaCache: "none",
    ...(options.scope === undefined ? {} : { scope: options.scope }),
    ...(options.type === undefined ? {} : { type: options.type }),
  });
  const ready = controlled(container, registration, stopped.signal);
  // Whoever awaits `ready` sees why; nobody awaiting is no unhandled rejection.
  ready.catch(() => {});
  return {
    ready,
    async stop({ unregister = false } = {}) {
      stopped.abort();
      clearInterval(timer);
      if (unregister) await (await registration.catch(() => undefined))?.unregister();
    },
  };
}

/** The script's URL carries what to intercept: the worker has no other memory. */
function workerUrl(engine: Engine, options: ServeOptions): URL {
  const url = new URL(options.serviceWorkerUrl ?? "/sw.js", document.baseURI);
  for (const base of options.basePaths ?? engine.basePaths) url.searchParams.append("base", base);
  for (const origin of options.origins ?? []) url.searchParams.append("origin", origin);
  return url;
}

async function controlled(
  container: ServiceWorkerContainer,
  registering: Promise<ServiceWorkerRegistration>,
  stopped: AbortSignal,
): Promise<void> {
  let registration: ServiceWorkerRegistration;
  try {
    registration = await registering;
  } catch (error) {
    throw InpageError.local(
      "service_worker_unavailable",
      `the service worker could not be registered: ${error instanceof Error ? error.message : error}`,
    );
  }
  const isOurs = () => container.controller?.scriptURL === registration.active?.scriptURL;
  const claim: PageToServiceWorker = { type: CLAIM };
  const end = performance.now() + CLAIM_TIMEOUT_MS;
  while (!(container.controller && registration.active && isOurs())) {
    if (stopped.aborted) throw new DOMException("the service was stopped", "AbortError");
    if (performance.now() > end) {
      throw InpageError.local(
        "page_not_controlled",
        registration.active
          ? "the service worker runs, but does not control this page: it was loaded by a forced reload, or lies outside of the scope; a normal reload helps, and engine.fetch works without it"
          : "the service worker did not start",
      );
    }
    // On the first load the worker claims its pages by itself; after a forced reload it is asked to.
    if (registration.active?.state === "activated") registration.active.postMessage(claim);
    await changeOrPause(container, 200);
  }
}

function changeOrPause(container: ServiceWorkerContainer, pause_ms: number): Promise<void> {
  return new Promise((resolve) => {
    container.addEventListener("controllerchange", () => resolve(), { once: true });
    setTimeout(resolve, pause_ms);
  });
}
