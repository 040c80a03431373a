//! The place of the cache on disk: one folder for all programs of the user.

import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/**
 * The folder that `INPAGE_CACHE_DIR` names, or `inpage` in the user's folder for caches. It has `models` and `locks`.
 */
export function cachePlace(
  env: Readonly<Record<string, string | undefined>> = process.env,
  system: string = process.platform,
): string {
  const { INPAGE_CACHE_DIR, LOCALAPPDATA, XDG_CACHE_HOME } = env;
  if (INPAGE_CACHE_DIR) return resolve(INPAGE_CACHE_DIR);
  const home = homedir();
  if (system === "win32") return join(LOCALAPPDATA || join(home, "AppData/Local"), "inpage/Cache");
  if (system === "darwin") return join(home, "Library/Caches/inpage");
  // The specification of XDG asks to ignore relative paths.
  const isUsable = XDG_CACHE_HOME !== undefined && isAbsolute(XDG_CACHE_HOME);
  return join(isUsable ? XDG_CACHE_HOME : join(home, ".cache"), "inpage");
}
