//! Decides which files of the cache belong to a model, and which locations are those of the same model. Reads nothing.

import type { ModelLocation } from "../exchange/protocol.js";
import { cacheKey } from "../model_source/store/cache_key.js";
import { withFiles } from "../options/catalog_name.js";
import { type ModelWithId, resolveModel } from "../options/model.js";

/** A `model` as given to `createEngine`, or the key of one file as listed by `cache.list()`. */
export type CachedModel = string | URL | Pick<ModelWithId, "url" | "folder" | "ignoreQuery">;

/** The number of a part of a split GGUF file, in a URL. */
const PART_NUMBER = /-\d{5}(-of-\d{5}\.gguf)/;

/** A string that is equal for two locations of the same model: signatures, tokens and headers may differ. */
export function identityOf(location: ModelLocation): unknown {
  if (location.kind === "files") return location;
  const { urls, ggufName, ignoreQuery, sha256 } = location;
  return { keys: urls.map((url) => cacheKey(url, ignoreQuery)), ggufName, sha256 };
}

/**
 * Tells for a key whether it is that of a file of the model: of all parts of a split file, and of all files of a
 * folder.
 *
 * @throws TypeError if `model` does not name a URL
 */
export function selectKeys(model: CachedModel): (key: string) => boolean {
  const { location } = resolveModel(model);
  if (location.kind !== "url") throw new TypeError("local files are not cached: name a URL");
  const own = cacheKey(location.urls[0] ?? "", location.ignoreQuery);
  if (location.ggufName !== undefined) {
    const whole = (key: string) => key.replace(PART_NUMBER, "$1");
    return (key) => key === model || whole(key) === whole(own);
  }
  const folder = new URL(own);
  return (key) => {
    const { pathname, search, origin } = new URL(key);
    const name = pathname.startsWith(folder.pathname) && pathname.slice(folder.pathname.length);
    const isInside = name !== false && !name.includes("/");
    return key === model || (isInside && origin === folder.origin && search === folder.search);
  };
}

/**
 * The same for a model of the catalog by its name: the files of the model and of its projector.
 *
 * @throws TypeError if `model` does not name a URL
 */
export async function selectFiles(model: CachedModel): Promise<(key: string) => boolean> {
  const files = await withFiles(model);
  const places = [files.model as CachedModel, files.projector ?? []].flat();
  const selects = places.map(selectKeys);
  return (key) => selects.some((has) => has(key));
}
