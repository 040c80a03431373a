//! Measures the speed of an answer while it is streamed.

/** @import { Usage } from "../../dist/index.js" */

/**
 * Measurements of an answer so far.
 *
 * @typedef {object} Measures
 * @property {number | undefined} firstTokenMs from the request to the first text
 * @property {number | undefined} prefillRate prompt tokens per second until then
 * @property {number | undefined} decodeRate tokens per second after it
 * @property {Omit<Usage, "completion_tokens_details"> | undefined} usage
 * @property {string | null} finishReason
 */

export class SpeedMeter {
  /** @type {Measures} */
  measures = {
    firstTokenMs: undefined,
    prefillRate: undefined,
    decodeRate: undefined,
    usage: undefined,
    finishReason: null,
  };

  #askedAt = performance.now();
  #firstAt = 0;

  /** To be called with each piece of text, after `measures.usage` was set. */
  text() {
    const { measures } = this;
    const { usage } = measures;
    const now = performance.now();
    if (measures.firstTokenMs === undefined) {
      this.#firstAt = now;
      measures.firstTokenMs = now - this.#askedAt;
      measures.prefillRate = rate(usage?.prompt_tokens, measures.firstTokenMs);
      // The first token belongs to the prefill, the others to the decode phase.
    } else measures.decodeRate = rate(usage && usage.completion_tokens - 1, now - this.#firstAt);
  }
}

/**
 * @param {number | undefined} tokens
 * @param {number} ms
 */
function rate(tokens, ms) {
  return tokens !== undefined && tokens > 0 && ms > 0 ? (tokens / ms) * 1000 : undefined;
}
