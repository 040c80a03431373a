//! Streams a completion and measures its speed.

import { SpeedMeter } from "../page/speed_meter.js";

/**
 * @import { Engine } from "../../dist/index.js"
 * @import { Measures } from "../page/speed_meter.js"
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
  const meter = new SpeedMeter();
  const { measures } = meter;
  const body = {
    ...fields,
    model: "default",
    stream: /** @type {const} */ (true),
    // Usage is in every chunk, because a run that is stopped gets no last chunk.
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  const stream = await engine.completions.create(body, { signal });
  for await (const { choices, usage } of stream) {
    if (usage) measures.usage = usage;
    const choice = choices[0];
    if (choice === undefined) continue;
    measures.finishReason = choice.finish_reason ?? measures.finishReason;
    if (choice.text === "") continue;
    meter.text();
    onText(choice.text, measures);
  }
  return measures;
}
