//! The places of a model's files in the cache.

import { cache } from "../../dist/index.js";

/**
 * @import { LoadProgress, ModelOption } from "../../dist/index.js"
 * @import { Choice } from "./choice.js"
 */

/**
 * The URL of a file, or of a folder (it ends with a slash).
 *
 * @param {string} place a URL or `hf:OWNER/NAME/FILE@REVISION`
 */
export function urlOf(place) {
  const hub = /^hf:([^/]+\/[^/@]+)(?:\/([^@]+))?(?:@(.+))?$/.exec(place);
  if (hub === null)
    return URL.canParse(place, location.href) ? new URL(place, location.href).href : place;
  const [, repository, file = "", revision = "main"] = hub;
  return `https://huggingface.co/${repository}/resolve/${revision}/${file}`;
}

/**
 * Whether a stored file is one of a model.
 *
 * @param {string} key of the file in the cache
 * @param {ModelOption} option
 */
export function isFileOf(key, option) {
  const { url, folder } = Object(option);
  const places = [typeof option === "string" ? option : (url ?? folder)].flat();
  return places.some((place) => {
    const whole = typeof place === "string" ? urlOf(place) : "";
    return whole.endsWith("/") ? key.startsWith(whole) : key === whole;
  });
}

/**
 * The stored part of a model whose download is not complete.
 *
 * @param {Choice} choice
 * @returns {Promise<LoadProgress | undefined>}
 */
export async function downloadedOf({ option }) {
  const files = (await cache.list()).filter(({ key }) => isFileOf(key, option));
  const sizes = files.map(({ sizeBytes }) => sizeBytes);
  if (files.length === 0) return undefined;
  return {
    phase: "download",
    loadedBytes: files.reduce((sum, { storedBytes }) => sum + storedBytes, 0),
    totalBytes: sizes.every((it) => it !== undefined)
      ? sizes.reduce((a, b) => a + b, 0)
      : undefined,
  };
}
