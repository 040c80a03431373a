//! Streams the answer to a conversation.

import { SpeedMeter } from "../page/speed_meter.js";

/**
 * @import { ChatRequestMessage, Engine } from "../../dist/index.js"
 * @import { Measures } from "../page/speed_meter.js"
 */

/**
 * @typedef {object} Answer
 * @property {string} content
 * @property {string} reasoning
 */

/**
 * Requests the next message; calls `onText` with what there is of it after each piece.
 *
 * @param {Engine} engine
 * @param {Record<string, unknown>} fields of the request besides the messages
 * @param {ChatRequestMessage[]} messages
 * @param {AbortSignal} signal
 * @param {(answer: Answer) => void} onText
 * @returns {Promise<Measures>}
 * @throws whatever the engine throws; the caller keeps the text so far
 */
export async function answer(engine, fields, messages, signal, onText) {
  const meter = new SpeedMeter();
  const { measures } = meter;
  const body = {
    ...fields,
    messages,
    model: "default",
    stream: /** @type {const} */ (true),
    // Usage is in every chunk, because an answer that is stopped gets no last chunk.
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  const text = { content: "", reasoning: "" };
  const stream = await engine.chat.completions.create(body, { signal });
  for await (const { choices, usage } of stream) {
    if (usage) measures.usage = usage;
    const choice = choices[0];
    if (choice === undefined) continue;
    measures.finishReason = choice.finish_reason ?? measures.finishReason;
    const { content, reasoning_content } = choice.delta;
    if (!content && !reasoning_content) continue;
    text.content += content ?? "";
    text.reasoning += reasoning_content ?? "";
    meter.text();
    onText({ ...text });
  }
  return measures;
}
