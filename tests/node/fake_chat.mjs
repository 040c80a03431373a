//! An engine that chats without a model, for tests of sessions of the Prompt API. A message is one token, and an image ten more.

import { createLanguageModel } from "../../www/dist/node/prompt_api.js";

/** Tokens of the context. */
export const CONTEXT_TOKENS = 30;

const IMAGE_TOKENS = 10;

const tokensOf = (messages) =>
  messages
    .map(({ content }) => (Array.isArray(content) ? content : []))
    .reduce(
      (sum, parts) => sum + IMAGE_TOKENS * parts.filter(({ type }) => type === "image_url").length,
      messages.length,
    );

/**
 * A `LanguageModel` whose engine gives these messages, one after the other, and the bodies that it was asked with. `refuse` may
 * throw for a body.
 */
export function fakedModel(deltas, { sees = false, refuse = () => {} } = {}) {
  const bodies = [];
  const create = async (body, { signal } = {}) => {
    signal?.throwIfAborted();
    refuse(body);
    // Only counted.
    if (body.max_tokens === 0) return { usage: { prompt_tokens: tokensOf(body.messages) } };
    bodies.push(body);
    const delta = deltas[bodies.length - 1] ?? { content: "ok" };
    return [{ choices: [{ delta }] }, { choices: [] }].values();
  };
  const engine = {
    chat: { completions: { create } },
    info: async () => ({ projector: sees ? { kind: "fake" } : null }),
    tokenize: async ({ messages = [] }) => ({
      count: tokensOf(messages),
      max_model_len: CONTEXT_TOKENS,
    }),
  };
  return { model: createLanguageModel({ engine }), bodies };
}

export const callOf = (name, text) => ({
  tool_calls: [{ index: 0, id: "c1", type: "function", function: { name, arguments: text } }],
});

export const rejectsWith = (name) => (error) => error.name === name;
