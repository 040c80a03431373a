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

/** True if a route of the endpoint is at `url`. */
export function isRoute(url: URL, basePaths: readonly string[]): boolean {
  // The endpoint tolerates one trailing slash.
  const path = url.pathname.replace(/\/$/, "");
  return basePaths.some((base) => {
    const prefix = `${base.replace(/\/+$/, "")}/`;
    if (!path.startsWith(prefix)) return false;
    const rest = path.slice(prefix.length);
    return ROUTE_PATHS.some((route) =>
      route.endsWith("/") ? rest.startsWith(route) && rest !== route : rest === route,
    );
  });
}
