//! `inpage/prompt-api` outside of a browser, where the engines are those of `index.ts`.

import { type PromptApiOptions, install, languageModelWith } from "../prompt_api/language_model.js";
import { getEngine } from "./index.js";

export type * from "../prompt_api/index.js";

/** An object like `globalThis.LanguageModel`. The engine is started with the first session. */
export const createLanguageModel: ReturnType<typeof languageModelWith> =
  languageModelWith(getEngine);

/** Gives programs `globalThis.LanguageModel` unless there is one that can run; resolves with whether it did. */
export const installLanguageModel = (options: PromptApiOptions = {}): Promise<boolean> =>
  install(createLanguageModel(options));
