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
export type { CreateMonitor } from "./download_monitor.js";
export type { ContentType, Expected } from "./expected.js";
export type { PromptImage, PromptInput, PromptMessage, PromptPart } from "./prompts.js";
export type { SamplingMode } from "./sampling_mode.js";
export type { LanguageModelSession, PromptOptions } from "./session.js";
export type { LanguageModelTool } from "./tools.js";

/** An object like `globalThis.LanguageModel`. The engine is started with the first session. */
export const createLanguageModel: ReturnType<typeof languageModelWith> =
  /* @__PURE__ */ languageModelWith(getEngine);

/**
 * Gives pages `globalThis.LanguageModel`, unless the browser has one that can run here. Where there is none, it is set when this
 * returns. Resolves with whether it was set.
 */
export const installLanguageModel = (options: PromptApiOptions = {}): Promise<boolean> =>
  install(createLanguageModel(options));
