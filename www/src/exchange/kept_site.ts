//! The site's files in the Cache Storage, as whole releases: the page writes them (`serving/keep_site.ts`), the service worker
//! answers from them (`service_worker/site_answer.ts`). A release is never changed after it was written.

/** Header of requests that read the site in order to keep it. They are never answered from a release. */
export const KEEP_HEADER = "x-inpage-keep";

/** One cache for each release. */
const releaseName = (scope: string, id: string) => `${releasesOf(scope)}${id}`;
const releasesOf = (scope: string) => `inpage-site-release:${scope}:`;

/** A cache of small strings: which release is the newest, and which release a client was started from. */
const notesName = (scope: string) => `inpage-site-notes:${scope}`;

const NEWEST = "newest";

// The keys of a cache are URLs; these are never fetched.
const noteUrl = (scope: string, name: string) => new URL(`.inpage/${name}`, scope).href;

async function readNote(scope: string, name: string): Promise<string | undefined> {
  const note = await caches.match(noteUrl(scope, name), { cacheName: notesName(scope) });
  return note?.text();
}

async function writeNote(scope: string, name: string, text: string): Promise<void> {
  const notes = await caches.open(notesName(scope));
  await notes.put(noteUrl(scope, name), new Response(text));
}

/** The release that later visits start from. */
export const newestRelease = (scope: string) => readNote(scope, NEWEST);

/**
 * Writes a release, then makes it the newest. The previous one is kept, because open pages may have been started from it.
 */
export async function writeRelease(
  scope: string,
  id: string,
  files: ReadonlyMap<string, Response>,
): Promise<void> {
  const before = await newestRelease(scope);
  if (before === id) return;
  const name = releaseName(scope, id);
  try {
    const release = await caches.open(name);
    await Promise.all(Array.from(files, ([url, response]) => release.put(url, response.clone())));
    await writeNote(scope, NEWEST, id);
  } catch (error) {
    await caches.delete(name);
    throw error;
  }
  const kept = [name, ...(before === undefined ? [] : [releaseName(scope, before)])];
  for (const other of await caches.keys()) {
    if (other.startsWith(releasesOf(scope)) && !kept.includes(other)) await caches.delete(other);
  }
}

/** A file of a release. */
export function fileOf(
  scope: string,
  release: string,
  url: string,
  options: CacheQueryOptions = {},
): Promise<Response | undefined> {
  return caches.match(url, { ...options, cacheName: releaseName(scope, release) });
}

const startedFrom = (clientId: string) => `client/${clientId}`;

/** Younger notes are kept: `clients.get` does not find a client that is still loading. */
const LONGEST_LOAD_MS = 10 * 60_000;

/** Notes that this client was started from `release`. */
export async function bindClient(scope: string, clientId: string, release: string): Promise<void> {
  await writeNote(scope, startedFrom(clientId), `${release} ${Date.now()}`);
}

/** The release that this client was started from; `undefined` if the network answered its first request. */
export async function releaseOfClient(
  scope: string,
  clientId: string,
): Promise<string | undefined> {
  return (await readNote(scope, startedFrom(clientId)))?.split(" ")[0];
}

/** Forgets the clients that no longer exist. */
export async function forgetClients(
  scope: string,
  exists: (clientId: string) => Promise<boolean>,
): Promise<void> {
  const notes = await caches.open(notesName(scope));
  const prefix = noteUrl(scope, startedFrom(""));
  for (const { url } of await notes.keys()) {
    if (!url.startsWith(prefix)) continue;
    const id = url.slice(prefix.length);
    const [, time = "0"] = (await readNote(scope, startedFrom(id)))?.split(" ") ?? [];
    const isOld = Date.now() - Number(time) > LONGEST_LOAD_MS;
    if (isOld && !(await exists(id))) await notes.delete(url);
  }
}

/** Deletes everything that was kept for `scope`. */
export async function deleteSite(scope: string): Promise<void> {
  for (const name of await caches.keys()) {
    if (name === notesName(scope) || name.startsWith(releasesOf(scope))) await caches.delete(name);
  }
}
