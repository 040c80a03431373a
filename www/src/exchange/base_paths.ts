//! Which URLs the engine answers: the base paths and the paths of the routes below them. What a route does is defined in
//! Rust.

/**
 * The routes below a base path (specification 1.2). A path that ends with a slash takes a parameter. A test of
 * `src/api/routes` compares this list with the routes in Rust.
 */
const ROUTE_PATHS = [
  "completions",
  "chat/completions",
  "responses",
  "embeddings",
  "tokenize",
  "detokenize",
  "apply-template",
  "models",
  "models/",
];

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

/** The base paths if none are configured (specification 1.2). */
export const DEFAULT_BASE_PATHS: readonly string[] = ["/v1", "/openai/v1"];

/** The base paths of profiles that have others. A test of `src/api/routes` compares them with those in Rust. */
const BASE_PATHS_OF_PROFILES: Readonly<Record<string, readonly string[]>> = {
  fireworks: ["/v1", "/openai/v1", "/inference/v1"],
};

/** The base paths that a profile has. */
export function basePathsOf(profile: string | null | undefined): readonly string[] {
  return (profile && BASE_PATHS_OF_PROFILES[profile]) || DEFAULT_BASE_PATHS;
}

/** True if `url` lies at or below one of `basePaths`. */
export function isBelowBasePath(url: URL, basePaths: readonly string[]): boolean {
  return basePaths.some((base) => {
    const path = base.replace(/\/+$/, "");
    return url.pathname === path || url.pathname.startsWith(`${path}/`);
  });
}

/** The route of the endpoint at `url`, without its base path: `completions`, `models/NAME`; `undefined` if there is none. */
export function routeAt(url: URL, basePaths: readonly string[]): string | undefined {
  return findRoute(url, basePaths, ROUTE_PATHS);
}

function findRoute(
  url: URL,
  basePaths: readonly string[],
  routes: readonly string[],
): string | undefined {
  // The endpoint tolerates one trailing slash.
  const path = url.pathname.replace(/\/$/, "");
  for (const base of basePaths) {
    const prefix = `${base.replace(/\/+$/, "")}/`;
    if (!path.startsWith(prefix)) continue;
    const rest = path.slice(prefix.length);
    const isRoute = routes.some((route) =>
      route.endsWith("/") ? rest.startsWith(route) && rest !== route : rest === route,
    );
    if (isRoute) return rest;
  }
  return undefined;
}

/** True if a route of the endpoint is at `url`. */
export function isRoute(url: URL, basePaths: readonly string[]): boolean {
  return routeAt(url, basePaths) !== undefined;
}

/** True if a route of the endpoint is at `url`, or one of OpenAI's that it refuses by name. */
export function isKnownRoute(url: URL, basePaths: readonly string[]): boolean {
  return findRoute(url, basePaths, [...ROUTE_PATHS, ...ROUTES_OF_OPENAI]) !== undefined;
}

/** The profiles in which a request may name no model. A test of `src/api/switches` compares them with those in Rust. */
const PROFILES_WITHOUT_MODEL = ["mistralrs", "mistral.rs", "llamacpp", "llama.cpp"];

/** True if a request that names no model means `default`. */
export function mayOmitModel(
  allowMissingModel: boolean | null | undefined,
  profile: string | null | undefined,
): boolean {
  return allowMissingModel ?? PROFILES_WITHOUT_MODEL.includes(profile ?? "");
}
