//! A provider for AI SDK 6 and 7: models for conversations, completions, vectors and the order of documents.

import type { getEngine } from "../engine/get_engine.js";
import { chatModel } from "./chat_model.js";
import { completionModel } from "./completion_model.js";
import { type ProviderOptions, engineFor } from "./engine_for.js";
import { withLoadProgress } from "./load_progress.js";
import type { EmbeddingModel, LanguageModel, RerankingModel } from "./model_types.js";
import { embeddingModel, rerankingModel } from "./vector_models.js";

export type { ProviderOptions } from "./engine_for.js";

/** Gives models of the engine for the AI SDK. A model has the id `default` if none is given. */
export interface InpageProvider {
  readonly specificationVersion: "v3";
  /** A model that continues a conversation. */
  (modelId?: string): LanguageModel;
  /** The same. */
  chatModel(modelId?: string): LanguageModel;
  /** The same, under the name that registries of providers use. */
  languageModel(modelId: string): LanguageModel;
  /** A model that continues a prompt as it is, without a chat template. */
  completionModel(modelId?: string): LanguageModel;
  /** A model that makes vectors of texts. */
  embeddingModel(modelId?: string): EmbeddingModel;
  /** The same, under its name in AI SDK 6. */
  textEmbeddingModel(modelId?: string): EmbeddingModel;
  /** A model that puts documents in order. */
  rerankingModel(modelId?: string): RerankingModel;
  /**
   * A chat transport whose streams tell the progress of the model's load, too: transient parts of the type `data-model-load`, which
   * `onData` of `useChat` gets.
   */
  withLoadProgress<T extends object>(transport: T): T;
}

/** `createInpage` with engines from `get`. An engine is started with the first call of a model. */
export function providerWith(get: typeof getEngine): (options?: ProviderOptions) => InpageProvider {
  return (options = {}) => {
    const engine = engineFor(get, options);
    const chat = (modelId = "default") => chatModel(modelId, engine);
    const embedding = (modelId = "default") => embeddingModel(modelId, engine);
    const provider = (modelId?: string) => chat(modelId);
    return Object.assign(provider, {
      specificationVersion: "v3" as const,
      chatModel: chat,
      languageModel: chat,
      completionModel: (modelId = "default") => completionModel(modelId, engine),
      embeddingModel: embedding,
      textEmbeddingModel: embedding,
      rerankingModel: (modelId = "default") => rerankingModel(modelId, engine),
      withLoadProgress: <T extends object>(transport: T) =>
        withLoadProgress(get, options, transport),
    });
  };
}
