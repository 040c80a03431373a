//! Formats numbers and errors for people.

/** @import { InpageError } from "../../dist/index.js" */

/** @param {number} bytes */
export function bytesInWords(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let power = 0;
  let value = bytes;
  while (value >= 999.5 && power < units.length - 1) {
    value /= 1000;
    power += 1;
  }
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

/**
 * The last segment of a URL's path, decoded where possible.
 *
 * @param {string} url
 */
export function fileNameIn(url) {
  const { pathname, host } = new URL(url, location.href);
  const name = pathname.split("/").filter(Boolean).at(-1) ?? host;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** @param {number | undefined} ms */
export function durationInWords(ms) {
  if (ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

/** @param {number | undefined} rate tokens per second */
export function rateInWords(rate) {
  if (rate === undefined || !Number.isFinite(rate)) return "–";
  return `${rate >= 100 ? Math.round(rate) : rate.toFixed(1)} tokens/s`;
}

/** The remedies for errors, by their codes. */
const REMEDIES = new Map([
  ["no_webgpu_device", "Is hardware acceleration turned on in the browser's settings?"],
  ["invalid_model_file", "Is it a complete GGUF file? A download may have been interrupted."],
  ["unsupported_model", "The message names what this version of inpage does not support."],
  ["out_of_memory", "Close other tabs, or use a smaller model or a shorter prompt."],
  ["device_lost", "The browser lost the GPU. The next request restarts the engine."],
  ["context_length_exceeded", "Use a shorter prompt or fewer tokens."],
  ["engine_unavailable", "The engine was stopped. The next request restarts it."],
  ["internal_error", "This is a bug in inpage. The next request restarts the engine."],
]);

/**
 * An error for people: what happened, and what to do.
 *
 * @param {unknown} error
 */
export function errorInWords(error) {
  if (!(error instanceof Error)) return String(error);
  const { code, param } = /** @type {Partial<InpageError>} */ (error);
  const what = capitalized(error.message || error.name);
  const where = param && !what.toLowerCase().includes(param) ? ` (${param})` : "";
  const remedy = (code && REMEDIES.get(code)) ?? networkRemedy(error.message);
  return `${what}${where}${/[.!?]$/.test(what) ? "" : "."}${remedy ? ` ${remedy}` : ""}`;
}

/**
 * For requests to other servers, browsers report no more than "failed to fetch".
 *
 * @param {string} message
 */
function networkRemedy(message) {
  if (/ answered \d{3}/.test(message)) return "Is the address correct?";
  return /failed to fetch|networkerror|load failed/i.test(message)
    ? "Is the address correct, is there a network connection, and does the server allow requests from other sites (CORS)?"
    : "";
}

/**
 * Capitalizes the first word, unless it is an address or the name of a field.
 *
 * @param {string} text
 */
function capitalized(text) {
  return text.replace(/^[a-z]+(?=[,:]? |$)/, (word) => word[0]?.toUpperCase() + word.slice(1));
}
