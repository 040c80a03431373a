//! The URLs that pages serve and service workers intercept, and their form in the query of a script's URL. `claims.ts` tells which
//! pages serve what at the moment.

import { isRoute } from "./base_paths.js";

/** The endpoint's routes below these base paths, on the site's own origin and on `origins`. */
export interface ServedUrls {
  readonly basePaths: readonly string[];
  /** Other origins. */
  readonly origins: readonly string[];
  /** The site's own files, too, so that it works without a network. */
  readonly offline: boolean;
}

/** True if `url` is one of the endpoint's URLs of `served`, for a site with this origin. */
export function covers(served: ServedUrls, url: URL, ownOrigin: string): boolean {
  const { origin } = url;
  return (
    (origin === ownOrigin || served.origins.includes(origin)) && isRoute(url, served.basePaths)
  );
}

/** True if `all` has every URL of `part`. */
export function includesAll(all: ServedUrls, part: ServedUrls): boolean {
  return (
    part.basePaths.every((base) => all.basePaths.includes(base)) &&
    part.origins.every((origin) => all.origins.includes(origin)) &&
    (all.offline || !part.offline)
  );
}

/** Every URL of `sets`; in a fixed order, so that equal sets have equal queries. */
export function unionOf(sets: readonly ServedUrls[]): ServedUrls {
  const all = (listOf: (served: ServedUrls) => readonly string[]) =>
    [...new Set(sets.flatMap(listOf))].sort();
  return {
    basePaths: all(({ basePaths }) => basePaths),
    origins: all(({ origins }) => origins),
    offline: sets.some(({ offline }) => offline),
  };
}

/**
 * `basePaths` without slashes at their ends.
 *
 * @throws TypeError naming the one that does not start with a slash
 */
export function normalizedBasePaths(basePaths: readonly string[]): string[] {
  return basePaths.map((given, index) => {
    if (!given.startsWith("/")) {
      throw new TypeError(
        `basePaths[${index}] is ${JSON.stringify(given)}: give a path that starts with a slash, such as "/v1"`,
      );
    }
    return given.replace(/\/+$/, "");
  });
}

/**
 * `origins` as the origins of URLs have them. `option` names the list in errors.
 *
 * @throws TypeError naming the one that is not an origin
 */
export function normalizedOrigins(origins: readonly string[], option = "origins"): string[] {
  return origins.map((given, index) => {
    const url = URL.canParse(given) ? new URL(given) : undefined;
    const isOrigin = url !== undefined && url.origin !== "null" && url.href === `${url.origin}/`;
    if (!isOrigin) {
      throw new TypeError(
        `${option}[${index}] is ${JSON.stringify(given)}: give an origin such as "https://api.example.com", without a path (paths belong to basePaths)`,
      );
    }
    return url.origin;
  });
}

/** `script` with `served` in its query, in place of what it had there. */
export function withQuery(script: URL, { basePaths, origins, offline }: ServedUrls): URL {
  const url = new URL(script);
  for (const name of ["base", "origin", "offline"]) url.searchParams.delete(name);
  for (const base of basePaths) url.searchParams.append("base", base);
  for (const origin of origins) url.searchParams.append("origin", origin);
  if (offline) url.searchParams.append("offline", "1");
  return url;
}

/** The settings in the query of a script's URL; `undefined` where it names nothing. */
export function fromQuery({ searchParams }: URL): {
  basePaths: string[] | undefined;
  origins: string[] | undefined;
  offline: boolean;
} {
  const list = (name: string) => (searchParams.has(name) ? searchParams.getAll(name) : undefined);
  return {
    basePaths: list("base"),
    origins: list("origin"),
    offline: searchParams.has("offline"),
  };
}
