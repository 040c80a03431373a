//! Caches the files of the demo and the package, and answers from the cache when the network does not. The files are
//! found by following references from file to file, so there is no list to keep up to date.

const CACHE = "inpage-demo";

/** The files where following references starts. The reference to the wasm module does not match `REFERENCE`. */
const ENTRIES = ["./", "./main.js", "../dist/index.js", "../dist/wasm/inpage_bg.wasm"];

/** A relative path in quotes: how these files refer to modules, style sheets and workers. */
const REFERENCE = /["'](\.{1,2}\/[^"'\s]+\.(?:css|js|wasm))["']/g;

/** The time to wait for the network when the file is in the cache. */
const NETWORK_TIMEOUT_MS = 3000;

/**
 * Fetches all files and caches them, replacing those of the last visit all at once.
 *
 * @returns {Promise<boolean>} whether a complete set is cached, possibly an older one
 */
export async function keepSite() {
  const cache = await caches.open(CACHE);
  try {
    const files = await collect(ENTRIES.map((path) => new URL(path, location.href).href));
    await Promise.all(Array.from(files, ([url, response]) => cache.put(url, response)));
    for (const { url } of await cache.keys()) if (!files.has(url)) await cache.delete(url);
    return true;
  } catch {
    return (await cache.match(new URL("./", location.href))) !== undefined;
  }
}

/**
 * The network's answer, or the cached one if the network fails or takes too long.
 *
 * @param {Request} request
 * @returns {Promise<Response>}
 */
export async function keptAnswer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept === undefined) return fetch(request);
  const timeout = new AbortController();
  // The timeout applies to the head only: a body that has begun may take longer.
  const timer = setTimeout(() => timeout.abort(), NETWORK_TIMEOUT_MS);
  try {
    return await fetch(request, { signal: timeout.signal });
  } catch {
    return kept;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The files at `urls` and all files that they refer to.
 *
 * @param {string[]} urls
 * @returns {Promise<Map<string, Response>>}
 * @throws TypeError if the network fails, or one of `urls` does not exist
 */
async function collect(urls) {
  /** @type {Map<string, Response>} */
  const files = new Map();
  const seen = new Set(urls);
  /** @param {string} url */
  const follow = async (url) => {
    const response = await fetch(url, { cache: "no-cache" });
    // A path in a comment may not exist.
    if (!response.ok && !urls.includes(url)) return;
    if (!response.ok) throw new TypeError(`${url} answered ${response.status}`);
    files.set(url, response);
    if (url.endsWith(".wasm")) return;
    const named = Array.from(
      (await response.clone().text()).matchAll(REFERENCE),
      ([, path]) => new URL(/** @type {string} */ (path), url).href,
    ).filter((other) => !seen.has(other));
    for (const other of named) seen.add(other);
    await Promise.all([...new Set(named)].map(follow));
  };
  await Promise.all(urls.map(follow));
  return files;
}
