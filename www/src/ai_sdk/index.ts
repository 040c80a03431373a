//! `inpage/ai-sdk` in browsers.

// Not from `engine`, of which the entry `index.js` has a copy: both must know the same engines.
import { getEngine } from "../index.js";
import { providerWith } from "./provider.js";

export type { LoadProgressPart } from "./load_progress.js";
export type { EmbeddingModel, LanguageModel, RerankingModel } from "./model_types.js";
export type { InpageProvider, ProviderOptions } from "./provider.js";

/** A provider over an engine, or over the one for these options, which is started with the first call. */
export const createInpage: ReturnType<typeof providerWith> =
  /* @__PURE__ */ providerWith(getEngine);

/** The provider with the default engine. */
export const inpage = /* @__PURE__ */ createInpage();
