//! `serveFromPage`: claims URLs for an engine, and reports when this page's requests for them are intercepted.
//! `interception.ts` sets up the interception, `served_engines.ts` answers.

import { orAborted } from "../exchange/abort.js";
import { type HeldClaim, holdClaim } from "../exchange/claims.js";
import { messageOf } from "../exchange/error_response.js";
import { deleteSite } from "../exchange/kept_site.js";
import type { InterceptionReport } from "../exchange/protocol.js";
import {
  type ServedUrls,
  includesAll,
  normalizedBasePaths,
  normalizedOrigins,
} from "../exchange/served_urls.js";
import type { Engine } from "../engine/engine.js";
import { InpageError, asInpageError } from "../api/inpage_error.js";
import {
  type PlaceOptions,
  type WorkerPlace,
  currentReport,
  inForce,
  isOther,
  placeOf,
  registerForClaims,
  warnOfOther,
} from "../site/interception.js";
import { keepSite } from "./keep_site.js";
import { addServedEngine } from "./served_engines.js";
import { renewSiteLocks, siteLocks } from "../site/site_locks.js";

/** The service worker's script and the requests it intercepts. */
export interface ServeOptions extends PlaceOptions {
  /** The engine's base paths if omitted. */
  basePaths?: readonly string[];
  /** Other origins whose base paths are intercepted too. */
  origins?: readonly string[];
  /**
   * Keep this page and the files that it consists of, so that later visits need no network. `files` are URLs that are not
   * found by themselves, such as data that scripts fetch. The model is kept in any case.
   */
  offline?: boolean | { files: readonly string[] };
}

/** An active connection between the service worker and the engine. */
export interface Serving {
  /**
   * Resolves when the service worker that controls this page has confirmed that it intercepts what this call serves. From
   * then on these requests of this page never reach the network, until `stop()`. docs/guide.md names what no service worker
   * sees, such as synchronous requests.
   *
   * @throws InpageError `service_worker_unavailable`, also after a time limit, or `page_not_controlled` after a forced reload
   */
  readonly ready: Promise<void>;
  /**
   * With `offline`: resolves when the files of this page are kept, also in a visit without a network if an earlier one has kept them.
   * Those of an earlier visit stay if they cannot be kept.
   *
   * @throws InpageError `site_not_kept` if a file cannot be fetched or the files keep changing, `invalid_option` for a URL in `files`
   * that is none, and the errors of `ready`
   */
  readonly keptOffline: Promise<void>;
  /**
   * Stops answering from this page. When this resolves, requests for its URLs go to the network, unless another page
   * serves them.
   * `unregister` also removes the service worker and the files kept for offline visits, for all tabs.
   */
  stop(options?: { unregister?: boolean }): Promise<void>;
}

/** The time that `stop` waits until the claim is gone; a frame that the app removes never reports it. */
const RELEASE_TIMEOUT_MS = 2000;

/** The time that `stop` waits until requests to other origins go to the network again. */
const NARROW_TIMEOUT_MS = 5000;

/**
 * Makes `engine` answer `fetch("/v1/completions")` in this and other tabs of the site.
 *
 * @throws InpageError `invalid_option` if one of `origins` is not an origin, a base path not a path, or the script not a URL
 */
export function serveFromPage(engine: Engine, options: ServeOptions = {}): Serving {
  try {
    return serve(engine, options);
  } catch (error) {
    throw asInpageError(error);
  }
}

function serve(engine: Engine, options: ServeOptions): Serving {
  const served: ServedUrls = {
    basePaths: normalizedBasePaths(options.basePaths ?? engine.basePaths),
    origins: normalizedOrigins(options.origins ?? []),
    offline: (options.offline ?? false) !== false,
  };
  const container: ServiceWorkerContainer | undefined = navigator.serviceWorker;
  if (container === undefined || navigator.locks === undefined) {
    const ready = Promise.reject(
      InpageError.local(
        "service_worker_unavailable",
        "service workers are not available here: the page must be served over https or from localhost, and not be in a private window",
      ),
    );
    ready.catch(() => {});
    return { ready, keptOffline: ready, stop: async () => {} };
  }
  const serving = new PageServing(container, engine, served, placeOf(options));
  if (typeof options.offline === "object") serving.keep(options.offline.files);
  else if (options.offline) serving.keep([]);
  return serving;
}

class PageServing implements Serving {
  readonly ready: Promise<void>;
  keptOffline: Promise<void> = Promise.resolve();
  readonly #container: ServiceWorkerContainer;
  readonly #served: ServedUrls;
  readonly #place: WorkerPlace;
  readonly #id = crypto.randomUUID();
  readonly #removeEngine: () => void;
  readonly #stopped = new AbortController();
  /** Aborts when the claim ends: at the end, and while the page is in the back/forward cache. */
  #released = new AbortController();
  /** The locks of the site, of which the claim is one. */
  #locks = siteLocks();
  #claim: HeldClaim;
  #checked: Promise<void>;
  /** The registration that is watched for other scripts. */
  #watched: ServiceWorkerRegistration | undefined;

  constructor(
    container: ServiceWorkerContainer,
    engine: Engine,
    served: ServedUrls,
    place: WorkerPlace,
  ) {
    this.#container = container;
    this.#served = served;
    this.#place = place;
    this.#removeEngine = addServedEngine(container, {
      ...served,
      scope: place.scope,
      engine,
      id: this.#id,
      onUnseen: () => this.#check(),
    });
    this.#claim = this.#hold();
    this.ready = this.#bringInForce();
    this.#checked = this.ready.catch((error) => this.#warn("are not intercepted", error));

    const { signal } = this.#stopped;
    // A page that claims URLs and cannot answer would delay the requests of others.
    engine.disposed.addEventListener("abort", () => this.#end(), { once: true, signal });
    const onControllerChange = () => {
      if (container.controller === null) {
        const reason = "it was unregistered, or the storage of the site was cleared";
        this.#warn("reach the network, because no service worker controls it now", reason);
      }
      this.#check();
    };
    container.addEventListener("controllerchange", onControllerChange, { signal });
    const onPageHide = ({ persisted }: PageTransitionEvent) => {
      if (persisted) this.#released.abort();
    };
    const onPageShow = ({ persisted }: PageTransitionEvent) => {
      if (!persisted) return;
      this.#released = new AbortController();
      this.#claim = this.#hold();
      this.#check();
    };
    addEventListener("pagehide", onPageHide, { signal });
    addEventListener("pageshow", onPageShow, { signal });
  }

  async stop({ unregister = false } = {}): Promise<void> {
    const { gone } = this.#claim;
    this.#end();
    await orAborted(gone, AbortSignal.timeout(RELEASE_TIMEOUT_MS)).catch(() => {});
    if (this.#served.origins.length > 0) await this.#narrow().catch(() => {});
    if (!unregister) return;
    const { scope } = this.#place;
    const registration = await this.#container.getRegistration(scope);
    if (registration?.scope === scope) await registration.unregister();
    await deleteSite(scope);
  }

  /** Keeps the site for offline visits once it is served. */
  keep(files: readonly string[]): void {
    const { scope } = this.#place;
    const kept = this.ready.then(() => keepSite(scope, files, this.#stopped.signal));
    this.keptOffline = kept.catch((error) => {
      throw asInpageError(error);
    });
    this.keptOffline.catch(() => {});
  }

  #hold(): HeldClaim {
    const { scope } = this.#place;
    this.#locks = siteLocks();
    return holdClaim({ ...this.#served, id: this.#id, scope }, this.#released.signal, this.#locks);
  }

  /** Holds the claim where service workers see it. */
  async #renewClaim(): Promise<void> {
    await renewSiteLocks(this.#locks);
    this.#stopped.signal.throwIfAborted();
    const previous = this.#released;
    this.#released = new AbortController();
    this.#claim = this.#hold();
    previous.abort();
    await this.#claim.held;
  }

  #end(): void {
    this.#stopped.abort(new DOMException("the service was stopped", "AbortError"));
    this.#released.abort();
    this.#removeEngine();
  }

  /** True if the worker intercepts what this page serves, and sees the claim. */
  #isInForce = async ({ intercepted, claims }: InterceptionReport): Promise<boolean> => {
    if (!includesAll(intercepted, this.#served)) return false;
    if (claims.includes(this.#id)) return true;
    await this.#renewClaim();
    return false;
  };

  /** Asks the worker that controls this page, and again if the claim had to be renewed. */
  async #isInForceAlready(): Promise<boolean> {
    for (const _ of [1, 2]) {
      const { controller } = this.#container;
      // Other programs do not answer.
      if (controller === null || isOther(controller, this.#place)) return false;
      const report = await currentReport(this.#container);
      if (report === undefined) return false;
      if (await this.#isInForce(report)) return true;
    }
    return false;
  }

  #watch(registration: ServiceWorkerRegistration): void {
    if (registration === this.#watched) return;
    this.#watched = registration;
    const onUpdate = () => warnOfOther(registration.installing, this.#place);
    registration.addEventListener("updatefound", onUpdate, { signal: this.#stopped.signal });
  }

  async #bringInForce(): Promise<void> {
    // First, because the page that registers next includes all claims that it sees.
    await this.#claim.held;
    this.#stopped.signal.throwIfAborted();
    const registered = await registerForClaims(this.#container, this.#place).catch(
      async (error: unknown) => {
        // Without a network, the worker of an earlier visit may be enough.
        if (!(await this.#isInForceAlready())) throw error;
        return undefined;
      },
    );
    if (registered === undefined) return;
    const { registration } = registered;
    this.#watch(registration);
    await inForce(
      this.#container,
      registration,
      this.#isInForce,
      ({ intercepted, fixed }) => {
        if (includesAll(intercepted, this.#served)) return undefined;
        if (!fixed.basePaths && !fixed.origins && !fixed.offline) return undefined;
        return `the service worker ${this.#place.script.href} intercepts ${JSON.stringify(intercepted)}, as its own call of intercept() says, but this page serves ${JSON.stringify(this.#served)}: add that there, or leave the option out of intercept() so that pages decide`;
      },
      this.#stopped.signal,
    );
  }

  /** Puts the claim into effect again: another worker has taken over, or the page was in the back/forward cache. */
  #check(): void {
    const check = async () => {
      await this.#claim.held;
      if (this.#stopped.signal.aborted) return;
      // Asked first, so that pages with different scripts do not replace each other's in turn.
      if (!(await this.#isInForceAlready())) await this.#bringInForce();
    };
    this.#checked = this.#checked
      .then(check)
      .catch((error) => this.#warn("are no longer intercepted", error));
  }

  #warn(what: string, reason: unknown): void {
    if (this.#stopped.signal.aborted) return;
    console.warn(`inpage: requests of this page ${what}: ${messageOf(reason)}`);
  }

  /** Leaves origins that no page serves any more to the network. */
  async #narrow(): Promise<void> {
    const { registration, named } = await registerForClaims(this.#container, this.#place, {
      narrow: true,
    });
    await inForce(
      this.#container,
      registration,
      ({ intercepted, fixed }) => fixed.origins || includesAll(named, intercepted),
      () => undefined,
      AbortSignal.timeout(NARROW_TIMEOUT_MS),
    );
  }
}
