//! An engine that chats without a model, in this process or in a page. A message is one token, and an image ten more.

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
 * An engine that gives these messages, one after the other, and the bodies that it was asked with. `refuse` may throw for a
 * body.
 */
export function fakedEngine(deltas, { sees = false, refuse = () => {} } = {}) {
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
  return { engine, bodies };
}
