//! Streams the answer to a conversation.

/** @import { ChatRequestMessage, Engine, Usage } from "../../dist/index.js" */

/**
 * @typedef {object} Answer
 * @property {string} content
 * @property {string} reasoning
 *
 * @typedef {object} End
 * @property {string | null} finishReason
 * @property {Usage | undefined} usage
 */

/**
 * Requests the next message; calls `onText` with what there is of it after each piece.
 *
 * @param {Engine} engine
 * @param {Record<string, unknown>} fields of the request besides the messages
 * @param {ChatRequestMessage[]} messages
 * @param {AbortSignal} signal
 * @param {(answer: Answer) => void} onText
 * @returns {Promise<End>}
 * @throws whatever the engine throws; the caller keeps the text so far
 */
export async function answer(engine, fields, messages, signal, onText) {
  const body = {
    ...fields,
    messages,
    model: "default",
    stream: /** @type {const} */ (true),
    // Usage is in every chunk, because an answer that is stopped gets no last chunk.
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  const text = { content: "", reasoning: "" };
  /** @type {End} */
  const end = { finishReason: null, usage: undefined };
  const stream = await engine.chat.completions.create(body, { signal });
  for await (const { choices, usage } of stream) {
    if (usage) end.usage = usage;
    const choice = choices[0];
    if (choice === undefined) continue;
    end.finishReason = choice.finish_reason ?? end.finishReason;
    const { content, reasoning_content } = choice.delta;
    if (!content && !reasoning_content) continue;
    text.content += content ?? "";
    text.reasoning += reasoning_content ?? "";
    onText({ ...text });
  }
  return end;
}
