//! Decides which URLs `engine.fetch` answers and which it leaves to the network. What a route does is defined in Rust.

import { isBelowBasePath, isKnownRoute, spelledByEndpoint } from "../exchange/base_paths.js";

/**
 * The site that exists in no network: for SDKs that want an absolute base URL where there is no page, and for the package's
 * own calls. Names below `.invalid` can never be registered.
 */
export const PLACEHOLDER_SITE = "http://inpage.invalid";

/** The sites that stand for the engine where there is no page whose own site could. */
const WITHOUT_PAGE = ["http://localhost", "https://localhost"];

/** Pages whose address says nothing about their site: frames made of a string, and empty windows. */
const WITHOUT_SITE = /^(about|data|blob):/;

/**
 * True for what `engine.fetch` answers:
 *
 * - below a base path of `inpage.invalid` and, in a program that is no page, of `localhost` without a port: everything;
 * - on the page's own site and on `origins`: the routes of the endpoint, and those of OpenAI that it lacks, which it refuses
 *   by name, however their paths are spelled. A site's own `/v1/users/me` is its server's.
 */
export function isAnswered(url: URL, basePaths: readonly string[], origins: readonly string[]) {
  if (isPlaceholder(url)) return isBelowBasePath(url, basePaths);
  return (isOwn(url) || origins.includes(url.origin)) && isKnownRoute(url, basePaths);
}

/** The URL that the endpoint gets. A path that other servers may know by another spelling is spelled as the endpoint does. */
export function endpointUrl(url: URL, basePaths: readonly string[]): string {
  return isPlaceholder(url) ? url.href : spelledByEndpoint(url.href, basePaths);
}

/** True for a site that stands for the engine. */
function isPlaceholder(url: URL): boolean {
  const places = globalThis.location === undefined ? WITHOUT_PAGE : [];
  return url.hostname === "inpage.invalid" || places.includes(url.origin);
}

/** True for the site of this page. Origins are not compared, because those of `file:` and of apps' schemes are opaque. */
function isOwn(url: URL): boolean {
  const { location, document } = globalThis;
  if (location === undefined) return false;
  const href = WITHOUT_SITE.test(location.href) ? document?.baseURI : location.href;
  if (href === undefined || !URL.canParse(href)) return false;
  const own = new URL(href);
  return url.protocol === own.protocol && url.host === own.host;
}

/** The absolute URL of what `fetch` is given; `undefined` if it has none, which `fetch` reports by itself. */
export function urlOf(input: RequestInfo | URL): URL | undefined {
  const isRequest = typeof input === "object" && "url" in input;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  try {
    return new URL(isRequest ? input.url : `${input}`, base);
  } catch {
    return undefined;
  }
}
