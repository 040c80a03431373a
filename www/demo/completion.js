//! Streams a completion and measures its speed.

/** @import { Engine, Usage } from "../dist/index.js" */

/**
 * Measurements of a completion so far.
 *
 * @typedef {object} Measures
 * @property {number | undefined} firstTokenMs from the request to the first text
 * @property {number | undefined} prefillRate prompt tokens per second until then
 * @property {number | undefined} decodeRate tokens per second after it
 * @property {Usage | undefined} usage
 * @property {string | null} finishReason
 */

/**
 * Requests a completion; calls `onText` with each piece of text and the measurements so far.
 *
 * @param {Engine} engine
 * @param {Record<string, unknown> & { prompt: string }} fields
 * @param {AbortSignal} signal
 * @param {(text: string, measures: Measures) => void} onText
 * @returns {Promise<Measures>}
 * @throws whatever the engine throws; the caller keeps the text so far
 */
export async function complete(engine, fields, signal, onText) {
  const askedAt = performance.now();
  const body = {
    ...fields,
    model: "default",
    stream: /** @type {const} */ (true),
    // Usage is in every chunk, because a run that is stopped gets no last chunk.
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  /** @type {Measures} */
  const measures = {
    firstTokenMs: undefined,
    prefillRate: undefined,
    decodeRate: undefined,
    usage: undefined,
    finishReason: null,
  };
  let firstAt = 0;
  const stream = await engine.completions.create(body, { signal });
  for await (const { choices, usage } of stream) {
    if (usage) measures.usage = usage;
    const choice = choices[0];
    if (choice === undefined) continue;
    measures.finishReason = choice.finish_reason ?? measures.finishReason;
    if (choice.text === "") continue;
    const now = performance.now();
    if (measures.firstTokenMs === undefined) {
      firstAt = now;
      measures.firstTokenMs = now - askedAt;
      measures.prefillRate = rate(measures.usage?.prompt_tokens, measures.firstTokenMs);
      // The first token belongs to the prefill, the others to the decode phase.
    } else measures.decodeRate = rate(tokensAfterFirst(measures.usage), now - firstAt);
    onText(choice.text, measures);
  }
  return measures;
}

/** @param {Usage | undefined} usage */
function tokensAfterFirst(usage) {
  return usage && usage.completion_tokens - 1;
}

/**
 * @param {number | undefined} tokens
 * @param {number} ms
 */
function rate(tokens, ms) {
  return tokens !== undefined && tokens > 0 && ms > 0 ? (tokens / ms) * 1000 : undefined;
}
