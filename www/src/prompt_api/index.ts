//! `inpage/prompt-api` in browsers.

// Not from `engine`, of which the entry `index.js` has a copy: both must know the same engines.
import { getEngine } from "../index.js";
import { type PromptApiOptions, install, languageModelWith } from "./language_model.js";

export type {
  Availability,
  CoreOptions,
  CreateOptions,
  LanguageModelStatic,
  PromptApiOptions,
} from "./language_model.js";
export type { PromptInput, PromptMessage, PromptPart } from "./prompts.js";
export type { LanguageModelSession, PromptOptions } from "./session.js";

/** An object like `globalThis.LanguageModel`. The engine is started with the first session. */
export const createLanguageModel: ReturnType<typeof languageModelWith> =
  /* @__PURE__ */ languageModelWith(getEngine);

/** Gives pages `globalThis.LanguageModel` unless there is one; returns whether it did. */
export const installLanguageModel = (options: PromptApiOptions = {}): boolean =>
  install(createLanguageModel(options));
