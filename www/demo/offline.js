//! Keeps the files of demo and package, and answers from them when the network does not. Follows
//! references from file to file, so no list of files can be out of date.

const CACHE = "inpage-demo";

/** Where following starts. The wasm module is named by its glue in a form that is not followed. */
const ENTRIES = ["./", "./main.js", "../dist/index.js", "../dist/wasm/inpage_bg.wasm"];

/** A relative path in quotes: how modules, style sheets and workers are named in these files. */
const REFERENCE = /["'](\.{1,2}\/[^"'\s]+\.(?:css|js|wasm))["']/g;

/** How long the network may keep a page waiting that is here already. */
const PATIENCE_MS = 3000;

/**
 * Fetches all files and keeps them, replacing those of the last visit together.
 *
 * @returns {Promise<boolean>} whether a whole set is kept, be it an older one
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
 * The network's answer, or the kept one when there is none or it takes too long.
 *
 * @param {Request} request
 * @returns {Promise<Response>}
 */
export async function keptAnswer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept === undefined) return fetch(request);
  const impatient = new AbortController();
  // Only the head is waited for: a body that has begun may take its time.
  const timer = setTimeout(() => impatient.abort(), PATIENCE_MS);
  try {
    return await fetch(request, { signal: impatient.signal });
  } catch {
    return kept;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The files at `urls` and all that they name.
 *
 * @param {string[]} urls
 * @returns {Promise<Map<string, Response>>}
 * @throws TypeError if the network fails, or one of `urls` is not there
 */
async function collect(urls) {
  /** @type {Map<string, Response>} */
  const files = new Map();
  const seen = new Set(urls);
  /** @param {string} url */
  const follow = async (url) => {
    const response = await fetch(url, { cache: "no-cache" });
    // A name in a comment need not be a file.
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
