//! Where the cache has the files of a model.

/** @import { ModelOption } from "../../dist/index.js" */

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
