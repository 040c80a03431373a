//! Which URLs the engine answers. The routes below a base path are defined in Rust.

/** True if `url` lies at or below one of `basePaths`. */
export function isBelowBasePath(url: URL, basePaths: readonly string[]): boolean {
  return basePaths.some((base) => {
    const path = base.replace(/\/+$/, "");
    return url.pathname === path || url.pathname.startsWith(`${path}/`);
  });
}
