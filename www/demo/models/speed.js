//! How fast models answered on this device: measured here, and kept for the next visit.

import { recall, remember } from "../page/memory.js";

const KEY = "speeds";

/** Shorter answers say little about the speed of a model. */
const MIN_TOKENS = 8;

/** People read about so many tokens in a second. */
export const READING_RATE = 7;

/**
 * @typedef {object} Measured
 * @property {number} rate tokens per second
 * @property {number} bytes of the model's file
 */

/** @returns {Record<string, Measured>} by device and name */
function kept() {
  try {
    return Object(JSON.parse(recall(KEY) ?? "{}"));
  } catch {
    return {};
  }
}

/** @param {{ device?: string | undefined }} info @param {string} name */
const keyOf = ({ device = "" }, name) => `${device} ${name}`;

/**
 * Keeps a measurement.
 *
 * @param {{ device?: string | undefined, fileBytes?: number | undefined }} info of the engine
 * @param {string} name of the model
 * @param {number | undefined} rate tokens per second
 * @param {number} tokens of the answer that was measured
 */
export function noteSpeed(info, name, rate, tokens) {
  if (rate === undefined || tokens < MIN_TOKENS) return;
  const bytes = Number(info.fileBytes ?? 0);
  remember(KEY, JSON.stringify({ ...kept(), [keyOf(info, name)]: { rate, bytes } }));
}

/**
 * Tokens per second of a model, if it has answered on this device before.
 *
 * @param {{ device?: string | undefined }} info of the engine
 * @param {string} name
 * @returns {number | undefined}
 */
export function measuredSpeed(info, name) {
  const rate = kept()[keyOf(info, name)]?.rate;
  return typeof rate === "number" && rate > 0 ? rate : undefined;
}

/** Smaller models say little about larger ones: their time goes into other things than reading weights. */
const MIN_BASIS_BYTES = 50e6;

/** @typedef {{ rate: number, isMeasured: boolean }} Speed */

/**
 * What is known of the speed of a model here: measured, or derived from a model that was measured. A model reads all its
 * weights for each token, so the speed falls as its size grows.
 *
 * @param {{ device?: string | undefined }} info of the engine
 * @param {string} name
 * @param {number} bytes of the model
 * @returns {Speed | undefined}
 */
export function expectedSpeed(info, name, bytes) {
  const measured = measuredSpeed(info, name);
  if (measured !== undefined) return { rate: measured, isMeasured: true };
  const bandwidths = Object.entries(kept())
    .filter(([key, it]) => key.startsWith(keyOf(info, "")) && it.bytes >= MIN_BASIS_BYTES)
    .map(([, it]) => it.bytes * it.rate);
  if (bandwidths.length === 0 || bytes === 0) return undefined;
  return { rate: Math.max(...bandwidths) / bytes, isMeasured: false };
}
