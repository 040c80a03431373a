//! The page's part of the service worker door: registers the service worker, gives it ports to the engine, and
//! waits until it controls the page.

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

/** The service worker's script and the requests it intercepts. */
export interface ServeOptions {
  /** The hosted `inpage/sw.js`, or your own worker that calls `intercept()`; `/sw.js` if omitted. */
  serviceWorkerUrl?: string | URL;
  /** As for `register()`; the folder of the script if omitted. */
  scope?: string;
  /** The engine's base paths if omitted. */
  basePaths?: readonly string[];
  /** Other origins whose base paths are intercepted too. */
  origins?: readonly string[];
  /** `module` for your own worker with imports. */
  type?: WorkerType;
}

/** An active connection between the service worker and the engine. */
export interface Serving {
  /**
   * Resolves when requests of this page are intercepted.
   *
   * @throws InpageError `service_worker_unavailable`, or `page_not_controlled` after a forced reload
   */
  readonly ready: Promise<void>;
  /** Stops answering from this page; `unregister` also removes the service worker, for all tabs. */
  stop(options?: { unregister?: boolean }): Promise<void>;
}

/** How long a page without a controller waits for the service worker to claim it. */
const CLAIM_TIMEOUT_MS = 5000;

/** Browsers stop a service worker that gets no event for about 30 seconds. */
const KEEP_ALIVE_INTERVAL_MS = 10_000;

/** Makes `engine` answer `fetch("/v1/completions")` in this and other tabs of the site. */
export function serveFromPage(engine: Engine, options: ServeOptions = {}): Serving {
  const container: ServiceWorkerContainer | undefined = navigator.serviceWorker;
  if (container === undefined) {
    const ready = Promise.reject(
      InpageError.local(
        "service_worker_unavailable",
        "service workers are not available here: the page must be served over https or from localhost, and not be in a private window",
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
  // Without this, messages are held back until the page is loaded.
  container.startMessages();

  const timer = setInterval(() => {
    const message: PageToServiceWorker = { type: KEEP_ALIVE };
    if (engine.openExchanges > 0) container.controller?.postMessage(message);
  }, KEEP_ALIVE_INTERVAL_MS);
  // Browsers freeze background tabs, which would stop the engine for all tabs, but not a tab that holds a lock.
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
  // Without this, a failure that nobody awaits would be reported as an unhandled rejection.
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

/** The script's URL says what to intercept, because the service worker has no other state. */
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
          ? "the service worker is active but does not control this page: the page was loaded by a forced reload, or is outside the scope. Reload it normally, or use engine.fetch, which needs no service worker"
          : "the service worker did not start",
      );
    }
    // On the first load the worker claims its pages itself; after a forced reload it has to be asked.
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
