//! A `LanguageModel` whose engine chats without a model, for tests of sessions of the Prompt API.

import { createLanguageModel } from "../../www/dist/node/prompt_api.js";
import { fakedEngine } from "./fake_chat_engine.mjs";

export { CONTEXT_TOKENS } from "./fake_chat_engine.mjs";

/** A `LanguageModel` and the bodies that its engine was asked with. The options are those of `fakedEngine`. */
export function fakedModel(deltas, options) {
  const { engine, bodies } = fakedEngine(deltas, options);
  return { model: createLanguageModel({ engine }), bodies };
}

export const callOf = (name, text) => ({
  tool_calls: [{ index: 0, id: "c1", type: "function", function: { name, arguments: text } }],
});

export const rejectsWith = (name) => (error) => error.name === name;
