//! Numbers and errors in words.

/** @import { InpageError } from "../dist/index.js" */

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

/** @param {number | undefined} ms */
export function durationInWords(ms) {
  if (ms === undefined) return "–";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** @param {number | undefined} rate tokens per second */
export function rateInWords(rate) {
  if (rate === undefined || !Number.isFinite(rate)) return "–";
  return `${rate >= 100 ? Math.round(rate) : rate.toFixed(1)} tokens/s`;
}

/** What to do about an error, by its code. */
const REMEDIES = new Map([
  ["no_webgpu_device", "Is hardware acceleration switched on in the browser's settings?"],
  ["invalid_model_file", "Is it a whole GGUF file? A download may have been cut short."],
  ["unsupported_model", "inpage runs GGUF models of the Llama family; this one needs more."],
  ["out_of_memory", "Close other tabs, or take a smaller model or a shorter prompt."],
  ["device_lost", "The GPU was taken away. The next request starts the engine again."],
  ["context_length_exceeded", "Shorten the prompt or lower the number of tokens."],
  ["engine_unavailable", "The engine was ended. The next request starts it again."],
  ["internal_error", "This is a fault of inpage. Another try starts the engine anew."],
]);

/**
 * An error for humans: what happened, and what to do.
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
 * Browsers say no more than "failed to fetch" of another server.
 *
 * @param {string} message
 */
function networkRemedy(message) {
  if (/ answered \d{3}/.test(message)) return "Is the address right?";
  return /failed to fetch|networkerror|load failed/i.test(message)
    ? "Is the address right, is there a connection, and does that server allow other sites to read it (CORS)?"
    : "";
}

/**
 * Addresses and names of fields stay as they are.
 *
 * @param {string} text
 */
function capitalized(text) {
  return text.replace(/^[a-z]+(?=[,:]? |$)/, (word) => word[0]?.toUpperCase() + word.slice(1));
}
