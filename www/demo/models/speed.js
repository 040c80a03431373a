//! The speed of models on this device: measured here, and kept for the next visit.

import { recall, remember } from "../page/memory.js";

const KEY = "speeds";

/** Shorter answers say little about the speed of a model. */
const MIN_TOKENS = 8;

/** People read about so many tokens in a second. */
export const READING_RATE = 7;

/** @returns {Record<string, { rate: number }>} tokens per second by device and name */
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
 * @param {{ device?: string | undefined }} info of the engine
 * @param {string} name of the model
 * @param {number | undefined} rate tokens per second
 * @param {number} tokens of the answer that was measured
 */
export function noteSpeed(info, name, rate, tokens) {
  if (rate === undefined || tokens < MIN_TOKENS) return;
  remember(KEY, JSON.stringify({ ...kept(), [keyOf(info, name)]: { rate } }));
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
