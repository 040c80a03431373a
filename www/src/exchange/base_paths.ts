//! The URLs that the engine answers: the base paths and the paths of the routes below them. A route itself is defined in
//! Rust.

import { type EndpointRoute, PROFILES, ROOT_PATHS, ROUTES } from "../generated/types.js";

/** The route without a base path at `path`, as a path below `base`; `undefined` if there is none. */
export function rootRouteBelow(base: string, path: string): string | undefined {
  const found = Object.entries(ROOT_PATHS).find(([it]) => path.replace(/\/$/, "") === `/${it}`);
  return found && `${withoutSlash(base)}/${found[1]}`;
}

/**
 * Routes of OpenAI's API that the endpoint does not have and answers with 404. Words that the API of a site may well use for
 * something else (`files`, `threads`, `batches`) are not listed. A path that ends with a slash stands for all below it.
 */
const ROUTES_OF_OPENAI = [
  "audio/speech",
  "audio/transcriptions",
  "audio/translations",
  "chat/completions/",
  "edits",
  "fine_tuning/",
  "images/edits",
  "images/generations",
  "images/variations",
  "moderations",
  "realtime/",
  "responses/",
  "vector_stores",
  "vector_stores/",
];

const ROUTE_PATHS = ROUTES.map(({ path }) => path);

const KNOWN_PATHS = [...ROUTE_PATHS, ...ROUTES_OF_OPENAI];

/** The base paths if none are configured (specification 1.2). */
export const DEFAULT_BASE_PATHS: readonly string[] = PROFILES.default.basePaths;

/** The settings of the profile of this name; an engine refuses a name that no profile has. */
const profileOf = (name: string | null | undefined) =>
  Object.entries(PROFILES).find(([it]) => it === name)?.[1] ?? PROFILES.default;

/** The base paths that a profile has. */
export function basePathsOf(profile: string | null | undefined): readonly string[] {
  return profileOf(profile).basePaths;
}

/** True if `url` lies at or below one of `basePaths`, spelled as they are. */
export function isBelowBasePath(url: URL, basePaths: readonly string[]): boolean {
  return basePaths.map(withoutSlash).some((base) => `${url.pathname}/`.startsWith(`${base}/`));
}

/**
 * The route of the endpoint at `url`, spelled as the endpoint knows it, without its base path: `completions`, `models/NAME`;
 * `undefined` if there is none.
 */
export function routeAt(url: URL, basePaths: readonly string[]): string | undefined {
  const found = findRoute(url, basePaths, ROUTE_PATHS);
  return found?.isExact ? found.route : undefined;
}

/** The endpoint's declaration of the route at `url`, spelled as it knows it; `undefined` if there is none. */
export function endpointRoute(url: URL, basePaths: readonly string[]): EndpointRoute | undefined {
  const route = routeAt(url, basePaths);
  return ROUTES.find(
    ({ path }) => path === route || (path.endsWith("/") && route?.startsWith(path)),
  );
}

/** `url`, with the path of a route as the endpoint spells it, which knows no other spelling. */
export function spelledByEndpoint(url: string, basePaths: readonly string[]): string {
  const spelled = new URL(url);
  const found = findRoute(spelled, basePaths, KNOWN_PATHS);
  if (found === undefined || found.isExact) return url;
  spelled.pathname = `${found.base}/${found.route}`;
  return spelled.href;
}

/** A route, and the base path above it. */
interface FoundRoute {
  base: string;
  route: string;
  /** True if the path is spelled as the endpoint knows it. */
  isExact: boolean;
}

/** The route at `url`, however it is spelled: servers ignore differences, so other spellings would reach them. */
function findRoute(
  url: URL,
  basePaths: readonly string[],
  routes: readonly string[],
): FoundRoute | undefined {
  // The endpoint tolerates one trailing slash.
  const path = url.pathname.replace(/\/$/, "");
  const exact = (text: string, start: string) => text.startsWith(start);
  for (const base of basePaths.map(withoutSlash)) {
    const route = routeBelow(path, base, routes, exact);
    if (route !== undefined) return { base, route, isExact: true };
  }
  const plain = plainPath(url.pathname);
  for (const base of basePaths) {
    const route = routeBelow(plain, plainPath(base), routes, startsWith);
    if (route !== undefined) return { base: withoutSlash(base), route, isExact: false };
  }
  return undefined;
}

/** The route at `path` with its parameter. `starts` compares two spellings. */
function routeBelow(
  path: string,
  base: string,
  routes: readonly string[],
  starts: (text: string, start: string) => boolean,
): string | undefined {
  if (!starts(path, `${base}/`)) return undefined;
  const rest = path.slice(base.length + 1);
  for (const route of routes) {
    const parameter = rest.slice(route.length);
    const takesOne = route.endsWith("/");
    if (starts(rest, route) && takesOne === (parameter !== "")) return route + parameter;
  }
  return undefined;
}

const withoutSlash = (base: string) => base.replace(/\/+$/, "");

/** True if `text` starts with `start`. Some servers ignore the case of paths. */
const startsWith = (text: string, start: string) =>
  text.slice(0, start.length).toLowerCase() === start.toLowerCase();

/**
 * `path` without what servers ignore: escapes of ASCII characters, repeated slashes, dot segments and slashes at the end. The
 * escapes of `%` stay, so that what is left can be decoded once.
 */
function plainPath(path: string): string {
  const decoded = path.replace(/%(?!25)([0-7][\da-f])/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const segments: string[] = [];
  for (const segment of decoded.split(/[/\\]/)) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments.map((segment) => `/${segment}`).join("");
}

/** True if a route of the endpoint is at `url`, however it is spelled. */
export function isRoute(url: URL, basePaths: readonly string[]): boolean {
  return findRoute(url, basePaths, ROUTE_PATHS) !== undefined;
}

/** True if a route of the endpoint is at `url`, or one of OpenAI's that it refuses by name. */
export function isKnownRoute(url: URL, basePaths: readonly string[]): boolean {
  return findRoute(url, basePaths, KNOWN_PATHS) !== undefined;
}

/** True if a request that names no model means `default`. */
export function mayOmitModel(
  allowMissingModel: boolean | null | undefined,
  profile: string | null | undefined,
): boolean {
  return allowMissingModel ?? profileOf(profile).allowMissingModel;
}
