//! Makes the service worker intercept what the open pages claim: registers its script under a URL that lists all claims,
//! and asks the worker that controls this page whether they are in effect.

import { orAborted } from "../exchange/abort.js";
import { claimsIn } from "../exchange/claims.js";
import { messageOf } from "../exchange/error_response.js";
import {
  CLAIM,
  type InterceptionReport,
  type PageToServiceWorker,
  REPORT,
} from "../exchange/protocol.js";
import { type ServedUrls, fromQuery, unionOf, withQuery } from "../exchange/served_urls.js";
import { InpageError } from "../api/inpage_error.js";
import { siteLocks } from "./site_locks.js";
import { trustedScriptUrl } from "./trusted_script.js";

/** The address of the service worker, and the options of its registration. */
export interface WorkerPlace {
  /** The script's URL without the part of the query that says what to intercept. */
  script: URL;
  /** The absolute URL of the scope. */
  scope: string;
  type: WorkerType;
}

/** The options of a page that say where its service worker is. */
export interface PlaceOptions {
  /** The hosted `inpage/sw.js`, or your own worker that calls `intercept()`; `/sw.js` if omitted. */
  serviceWorkerUrl?: string | URL;
  /** The scope, as for `register()`; the folder of the script if omitted. */
  scope?: string;
  /** `module` for your own worker with imports. */
  type?: WorkerType;
}

/** The address of the service worker that isolates a frame for the engine; it is registered if it is not there. */
export type IsolatedFrameOptions = PlaceOptions;

export function placeOf({ serviceWorkerUrl, scope, type }: PlaceOptions): WorkerPlace {
  const script = new URL(serviceWorkerUrl ?? "/sw.js", document.baseURI);
  // The same as in `register()`.
  const scopeUrl = scope === undefined ? new URL("./", script) : new URL(scope, document.baseURI);
  scopeUrl.hash = "";
  return { script, scope: scopeUrl.href, type: type ?? "classic" };
}

/** A registration, and what its newest worker's URL says to intercept. */
export interface Registered {
  registration: ServiceWorkerRegistration;
  named: ServedUrls;
}

/** The time that a page waits for the worker that should control it, when no newer one is on its way. */
const CLAIM_TIMEOUT_MS = 8000;

/** The time that a service worker may take to start and report. */
const REPORT_TIMEOUT_MS = 4000;

/** The time that a registration may take, the download of the script included. Browsers were seen to leave it pending for ever. */
const REGISTER_TIMEOUT_MS = 20_000;

/** The time to wait for other pages that register the script. */
const TURN_TIMEOUT_MS = 30_000;

/**
 * Registers the script under a URL that names the claims of all open pages, `basePaths` and, unless `narrow`, the claims that it named before.
 * Only one page does so at a time, so that none drops what another has just added.
 *
 * @throws InpageError `service_worker_unavailable` if the script cannot be registered, or not in time
 */
export async function registerForClaims(
  container: ServiceWorkerContainer,
  place: WorkerPlace,
  options: NamedUrls = {},
): Promise<Registered> {
  const { script, scope } = place;
  let late = `another tab of this site has been registering it for ${TURN_TIMEOUT_MS / 1000} s`;
  try {
    const signal = AbortSignal.timeout(TURN_TIMEOUT_MS);
    return await siteLocks().request(`inpage-registration:${scope}`, { signal }, () => {
      late = `the browser has not finished the registration after ${REGISTER_TIMEOUT_MS / 1000} s`;
      const limit = AbortSignal.timeout(REGISTER_TIMEOUT_MS);
      return orAborted(register(container, place, options), limit);
    });
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    const reason = isLate
      ? `${late}. Close all tabs of this site and open it again`
      : messageOf(error);
    throw InpageError.local(
      "service_worker_unavailable",
      `the service worker ${script.href} could not be registered: ${reason}`,
    );
  }
}

/** The URLs that the URL of the script names. */
interface NamedUrls {
  /** Whether origins that the script named before, and no page serves now, are left out. */
  narrow?: boolean;
  /** Base paths besides those that pages serve. */
  basePaths?: readonly string[];
}

async function register(
  container: ServiceWorkerContainer,
  place: WorkerPlace,
  { narrow = false, basePaths: more = [] }: NamedUrls,
): Promise<Registered> {
  const { script, scope, type } = place;
  const present = newestOf(await container.getRegistration(scope), scope);
  warnOfOther(present, place);
  const sets: ServedUrls[] = await claimsIn(scope, siteLocks());
  sets.push({ basePaths: more, origins: [], offline: false });
  if (present && new URL(present.scriptURL).pathname === script.pathname) {
    const { basePaths = [], origins = [], offline } = fromQuery(new URL(present.scriptURL));
    sets.push({ basePaths, origins: narrow ? [] : origins, offline });
  }
  const named = unionOf(sets);
  const url = withQuery(script, named);
  const options: RegistrationOptions = { updateViaCache: "none", scope, type };
  return { registration: await container.register(trustedScriptUrl(url.href), options), named };
}

/** True if another program than inpage has registered `worker`. The URLs of scripts that pages of inpage register name base paths. */
export function isOther({ scriptURL }: ServiceWorker, { script }: WorkerPlace): boolean {
  const url = new URL(scriptURL);
  return url.pathname !== script.pathname && fromQuery(url).basePaths === undefined;
}

/** The scripts that this page has warned of. */
const warnedOf = new Set<string>();

/** Warns once of a worker in the place of the one that intercepts. */
export function warnOfOther(worker: ServiceWorker | null | undefined, place: WorkerPlace): void {
  if (!worker || !isOther(worker, place) || warnedOf.has(worker.scriptURL)) return;
  warnedOf.add(worker.scriptURL);
  console.warn(
    `inpage: another script is registered as the service worker of ${place.scope}, which can have only one: ${worker.scriptURL}. While it is in control, requests reach the network. Call intercept() of inpage/sw in that script, and name it as serviceWorkerUrl`,
  );
}

/** The script that was registered last: it replaces the others. */
function newestOf(
  registration: ServiceWorkerRegistration | undefined,
  scope: string,
): ServiceWorker | undefined {
  if (registration?.scope !== scope) return undefined;
  return registration.installing ?? registration.waiting ?? registration.active ?? undefined;
}

/**
 * Resolves when the worker that controls this page reports what `isInForce` accepts.
 *
 * @param refusal says why a worker that will not be replaced can never report that; `undefined` if it may
 * @throws InpageError `service_worker_unavailable`, or `page_not_controlled` after a forced reload
 * @throws the reason of `stopped` if that aborts first
 */
export async function inForce(
  container: ServiceWorkerContainer,
  registration: ServiceWorkerRegistration,
  isInForce: (report: InterceptionReport) => boolean | Promise<boolean>,
  refusal: (report: InterceptionReport) => string | undefined,
  stopped: AbortSignal,
): Promise<void> {
  const claim: PageToServiceWorker = { type: CLAIM };
  let end = performance.now() + CLAIM_TIMEOUT_MS;
  let asked: ServiceWorker | null = null;
  for (;;) {
    stopped.throwIfAborted();
    const { controller } = container;
    // The active worker finishes its answers before a newer one replaces it, which may take minutes. Every message would
    // delay it further, so it is asked only if it may intercept the same, and once.
    const next = registration.installing ?? registration.waiting;
    const isReplaced = next !== null;
    if (isReplaced) end = performance.now() + CLAIM_TIMEOUT_MS;
    if (!isReplaced || (controller !== asked && controller?.scriptURL === next.scriptURL)) {
      asked = controller;
      const report = await currentReport(container);
      stopped.throwIfAborted();
      // While it answered, another worker may have taken over.
      const isCurrent = controller !== null && controller === container.controller;
      if (isCurrent && report && (await isInForce(report))) return;

      const { active } = registration;
      const isFinal = !isReplaced && isCurrent && controller.scriptURL === active?.scriptURL;
      const reason = isFinal && report ? refusal(report) : undefined;
      if (reason !== undefined) throw InpageError.local("service_worker_unavailable", reason);
      if (performance.now() > end) throw notInForce(registration, controller, report);
      // On the first load the worker claims its pages itself; after a forced reload it has to be asked.
      if (!isReplaced && active?.state === "activated" && controller === null) {
        active.postMessage(claim);
      }
    }
    await changeOrPause(container, 200);
  }
}

function notInForce(
  { active }: ServiceWorkerRegistration,
  controller: ServiceWorker | null,
  report: InterceptionReport | undefined,
): InpageError {
  if (active === null) {
    return InpageError.local("service_worker_unavailable", "the service worker did not start");
  }
  if (controller?.scriptURL !== active.scriptURL) {
    return InpageError.local(
      "page_not_controlled",
      "the service worker is active but does not control this page: the page was loaded by a forced reload, is outside the scope, or another worker of a narrower scope controls it. Reload it normally, or use engine.fetch, which needs no service worker",
    );
  }
  return InpageError.local(
    "service_worker_unavailable",
    report === undefined
      ? `the service worker ${active.scriptURL} does not answer this page: host the sw.js of the package version that the page uses, or call its intercept() in your own worker`
      : `the service worker ${active.scriptURL} does not see the claim of this page`,
  );
}

/** The URLs that the worker that controls this page intercepts; `undefined` if there is none, or it does not answer. */
export async function currentReport({
  controller,
}: ServiceWorkerContainer): Promise<InterceptionReport | undefined> {
  return controller === null ? undefined : reportOf(controller);
}

/** The URLs that `worker` intercepts; `undefined` if it does not answer. */
export function reportOf(worker: ServiceWorker): Promise<InterceptionReport | undefined> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    const end = (report: InterceptionReport | undefined) => {
      port1.close();
      resolve(report);
    };
    port1.onmessage = ({ data }: MessageEvent<InterceptionReport>) => end(data);
    setTimeout(() => end(undefined), REPORT_TIMEOUT_MS);
    const message: PageToServiceWorker = { type: REPORT };
    worker.postMessage(message, [port2]);
  });
}

export function changeOrPause(container: ServiceWorkerContainer, pause_ms: number): Promise<void> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(pause_ms);
    signal.addEventListener("abort", () => resolve());
    container.addEventListener("controllerchange", () => resolve(), { once: true, signal });
  });
}
