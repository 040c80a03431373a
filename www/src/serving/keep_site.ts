//! Keeps the files of this page for visits without a network: finds them, fetches them, and stores them as one release. The
//! model is not included, because it has its own cache.

import { messageOf } from "../exchange/error_response.js";
import { isFrameUrl } from "../exchange/isolated_frame.js";
import { KEEP_HEADER, fileOf, newestRelease, writeRelease } from "../exchange/kept_site.js";

/** The most readings of all files until two agree. */
const MAX_READINGS = 4;

/**
 * A quoted path of a script, a style sheet or a wasm module: how scripts name modules and workers. Most strings of this form
 * are such paths; one that names nothing is left out, at the price of a request for it. Keys of objects are names of their
 * own: wasm-bindgen calls its imports by the path of a module that does not exist.
 */
const IN_SCRIPTS = /(["'`])([\w@./-]+\.(?:m?js|css|wasm))\1(?!(?<=[{,]\s*\1\2\1)\s*:)/g;
/**
 * The URLs that the tags of a page load. Links that a user follows are not included, because fetching one may have side effects.
 */
const IN_PAGES = /<(?:script|link|img|source)\b[^>]*?\s(?:src|href)\s*=\s*(["']?)([^"'\s>]+)/g;

/** The files of the page cannot be kept. */
class NotKept extends Error {
  readonly code = "site_not_kept";
}

/** The network did not give a file. */
class Unreachable extends NotKept {
  override readonly name = "Unreachable";
}

/**
 * Stores this page and all files that it consists of. They belong together: they are stored when two readings of all of them
 * are the same, which they are not while a new version is being deployed. Without a network, what an earlier visit kept stays.
 *
 * @param more URLs that cannot be found, such as files that scripts fetch
 * @throws the reason of `signal` if that aborts first
 * @throws Error with the code `site_not_kept` if a file cannot be fetched (and this page was not kept before) or the files keep
 * changing; DOMException if one cannot be stored
 */
export async function keepSite(
  scope: string,
  more: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  let known: string | undefined;
  for (let reading = 0; reading < MAX_READINGS; reading++) {
    let files: Map<string, Response>;
    try {
      files = await readSite(scope, more);
    } catch (error) {
      // The files of an earlier visit stay.
      if (error instanceof Unreachable && (await isKept(scope))) return;
      throw error;
    }
    const id = await digestOf(files);
    signal.throwIfAborted();
    if (id === known) return writeRelease(scope, id, files);
    known = id;
  }
  throw new NotKept("the files of the site changed while they were read");
}

/** Whether an earlier visit has kept this page. */
async function isKept(scope: string): Promise<boolean> {
  const release = await newestRelease(scope);
  return (
    release !== undefined &&
    (await fileOf(scope, release, withoutHash(location.href))) !== undefined
  );
}

/**
 * All files of this page, by URL. Each reading asks for everything: a file that was missing in an earlier one may have been
 * deployed since.
 */
async function readSite(scope: string, more: readonly string[]): Promise<Map<string, Response>> {
  const page = withoutHash(location.href);
  const needed = new Set([page, ...more.map((url) => withoutHash(new URL(url, page).href))]);
  const files = new Map<string, Response>();
  const seen = new Set(needed);
  const follow = async (url: string) => {
    const response = await fromNetwork(
      url,
      fetch(url, { cache: "no-cache", headers: { [KEEP_HEADER]: "1" } }),
    );
    const isPage = response.headers.get("content-type")?.startsWith("text/html") ?? false;
    const isNeeded = needed.has(url);
    // Servers of single-page apps answer every unknown path with the page.
    const isMissing = response.status === 404 || response.status === 410 || isPage;
    if (!isNeeded && isMissing) return;
    if (!response.ok) throw new NotKept(`${url} answered ${response.status}`);
    // A new response, because one that was redirected may not answer a navigation; without what is true of the transfer only.
    const headers = new Headers(response.headers);
    for (const name of ["content-encoding", "content-length", "vary"]) headers.delete(name);
    const bytes = await fromNetwork(url, response.arrayBuffer());
    files.set(url, new Response(bytes, { headers }));
    const isScript = /\.m?js$/.test(new URL(url).pathname);
    const patterns = isPage ? [IN_PAGES, IN_SCRIPTS] : isScript ? [IN_SCRIPTS] : [];
    const text = patterns.length > 0 ? new TextDecoder().decode(bytes) : "";
    const named = patterns.flatMap((pattern) => [...text.matchAll(pattern)]);
    await followAll(named.map(([, , path = ""]) => urlOf(path, url)));
  };
  const followAll = (urls: (string | undefined)[]) => {
    const fresh = new Set(
      urls.filter((url): url is string => url !== undefined && !seen.has(url) && isOwn(url, scope)),
    );
    for (const url of fresh) seen.add(url);
    return Promise.all([...fresh].map(follow));
  };
  await Promise.all([...[...needed].map(follow), followAll(loadedByPage(scope))]);
  return files;
}

/** The value of a step of `fetch`, which fails with a `TypeError` if the network does. */
async function fromNetwork<T>(url: string, step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    throw new Unreachable(`${url} cannot be fetched: ${messageOf(error)}`, { cause: error });
  }
}

/** The URLs that the page has loaded, except what scripts fetched and what the service worker makes. */
function loadedByPage(scope: string): string[] {
  const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
  return entries
    .filter(
      ({ initiatorType, name }) =>
        !["fetch", "xmlhttprequest", "beacon"].includes(initiatorType) ||
        new URL(name).pathname.endsWith(".wasm"),
    )
    .map(({ name }) => withoutHash(name))
    .filter((url) => !isFrameUrl(new URL(url), scope));
}

function urlOf(path: string, base: string): string | undefined {
  return URL.canParse(path, base) ? withoutHash(new URL(path, base).href) : undefined;
}

/** Pages outside of the scope are not served offline, but their files may lie anywhere on the origin. */
function isOwn(url: string, scope: string): boolean {
  return new URL(url).origin === new URL(scope).origin;
}

function withoutHash(url: string): string {
  const end = url.indexOf("#");
  return end < 0 ? url : url.slice(0, end);
}

/** A digest that is equal for equal files. */
async function digestOf(files: ReadonlyMap<string, Response>): Promise<string> {
  const parts = await Promise.all(
    [...files.keys()].sort().map(async (url) => {
      const bytes = await files.get(url)?.clone().arrayBuffer();
      return `${url} ${hex(await crypto.subtle.digest("SHA-256", bytes ?? new ArrayBuffer()))}`;
    }),
  );
  const all = new TextEncoder().encode(parts.join("\n"));
  return hex(await crypto.subtle.digest("SHA-256", all)).slice(0, 32);
}

const hex = (buffer: ArrayBuffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
