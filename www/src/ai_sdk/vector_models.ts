//! Models of the AI SDK that make vectors of texts, or put documents in order.

import { ownFields, PROVIDER, withoutUndefined } from "./call_fields.js";
import type { EngineFor } from "./engine_for.js";
import type { EmbeddingModel, RerankingModel } from "./model_types.js";

/** The maximum number of inputs of a request. */
const MAX_INPUTS = 2048;

export function embeddingModel(modelId: string, engineFor: EngineFor): EmbeddingModel {
  return {
    specificationVersion: "v3",
    provider: `${PROVIDER}.embedding`,
    modelId,
    maxEmbeddingsPerCall: MAX_INPUTS,
    supportsParallelCalls: true,
    async doEmbed(call) {
      const { embeddings } = await engineFor(call.abortSignal);
      const body = { model: modelId, input: call.values, ...ownFields(call) };
      const float = { ...body, encoding_format: "float" as const };
      const { data, usage } = await embeddings.create(float, { signal: call.abortSignal });
      return {
        embeddings: data.map(({ embedding }) => embedding),
        usage: { tokens: usage.prompt_tokens },
        warnings: [],
      };
    },
  };
}

/** A document that is an object is compared as its JSON. */
export function rerankingModel(modelId: string, engineFor: EngineFor): RerankingModel {
  return {
    specificationVersion: "v3",
    provider: `${PROVIDER}.reranking`,
    modelId,
    async doRerank(call) {
      const engine = await engineFor(call.abortSignal);
      const { documents, query, topN } = call;
      const texts =
        documents.type === "text"
          ? documents.values
          : documents.values.map((document) => JSON.stringify(document));
      const body = {
        ...{ model: modelId, query, documents: texts, return_documents: false },
        ...withoutUndefined({ top_n: topN }),
        ...ownFields(call),
      };
      const answer = await engine.rerank(body, { signal: call.abortSignal });
      return {
        ranking: answer.results.map(({ index, relevance_score }) => ({
          ...{ index, relevanceScore: relevance_score },
        })),
        response: { id: answer.id, modelId: answer.model },
      };
    },
  };
}
