//! Answers for the site's own files when there is no network: each page gets the files of one release, so versions are never
//! mixed. With a network, the network answers.

import {
  KEEP_HEADER,
  bindClient,
  fileOf,
  forgetClients,
  newestRelease,
  releaseOfClient,
} from "../exchange/kept_site.js";
import type { FetchEvent, ServiceWorkerScope } from "../worker_scopes.js";

/** The time that a page waits for the network before it is taken from the kept site. */
const NETWORK_TIMEOUT_MS = 4000;

/** True for pages and the files that they consist of. What scripts fetch themselves goes to the network. */
export function isSiteFile({ method, url, mode, destination, headers }: Request): boolean {
  if (method !== "GET" || headers.has("range") || headers.has(KEEP_HEADER)) return false;
  const { origin, pathname } = new URL(url);
  if (origin !== location.origin) return false;
  return mode === "navigate" || destination !== "" || pathname.endsWith(".wasm");
}

/** The network's answer or, for a page without a network and for everything that it loads, the kept one. */
export async function siteAnswer(scope: ServiceWorkerScope, event: FetchEvent): Promise<Response> {
  const { request, clientId, resultingClientId } = event;
  const site = scope.registration.scope;
  if (request.mode === "navigate") {
    const release = await newestRelease(site);
    const page = release && (await pageOf(site, release, request.url));
    if (!page) return fetch(request);
    const answer = await networkAnswer(request);
    if (answer !== undefined) return answer;
    await bindClient(site, resultingClientId, release);
    event.waitUntil(forgetClients(site, async (id) => !!(await scope.clients.get(id))));
    return page;
  }
  const release = await releaseOfClient(site, clientId);
  if (release === undefined) return fetch(request);
  // A worker is a client of its own; what it imports is not.
  if (resultingClientId !== "") await bindClient(site, resultingClientId, release);
  return (await fileOf(site, release, request.url)) ?? fetch(request);
}

const pageOf = async (site: string, release: string, url: string) =>
  (await fileOf(site, release, url)) ?? (await fileOf(site, release, url, { ignoreSearch: true }));

/** `undefined` if the network fails or takes too long. */
function networkAnswer(request: Request): Promise<Response | undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined), NETWORK_TIMEOUT_MS);
    fetch(request).then(resolve, () => resolve(undefined));
  });
}
