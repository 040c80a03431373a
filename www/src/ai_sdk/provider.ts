//! A provider for AI SDK 6 and 7 whose models complete a prompt as it is, without a chat template.

import type { Completion, Usage } from "../generated/types.js";
import type { Engine } from "../engine/engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { getEngine } from "../engine/get_engine.js";
import { completionBody, PROVIDER } from "./completion_body.js";
import type {
  LanguageModel,
  ModelCall,
  ModelFinish,
  ModelResponse,
  ModelStreamPart,
  ModelUsage,
} from "./model_types.js";

/** An engine, or the options of one that the provider's models share. */
export type ProviderOptions = { engine: Engine } | EngineOptions;

/** Gives models of the engine for the AI SDK. */
export interface InpageProvider {
  /** A model that continues prompts; `default` if no id is given. */
  (modelId?: string): LanguageModel;
  /** The same. */
  completionModel(modelId?: string): LanguageModel;
  /** The same, under the name that registries of providers use. */
  languageModel(modelId: string): LanguageModel;
}

/** `createInpage` with engines from `get`. An engine is started with the first call of a model. */
export function providerWith(get: typeof getEngine): (options?: ProviderOptions) => InpageProvider {
  return (options = {}) => {
    const engine = async (signal: AbortSignal | undefined) =>
      "engine" in options ? options.engine : get({ ...options, ...(signal && { signal }) });
    const model = (modelId = "default") => completionModel(modelId, engine);
    return Object.assign(model, { completionModel: model, languageModel: model });
  };
}

function completionModel(
  modelId: string,
  engineFor: (signal: AbortSignal | undefined) => Promise<Engine>,
): LanguageModel {
  return {
    specificationVersion: "v3",
    provider: `${PROVIDER}.completion`,
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const { body, warnings } = completionBody(modelId, call);
      const { completions } = await engineFor(call.abortSignal);
      const answer = await completions.create({ ...body, stream: false }, signalOf(call));
      const [choice] = answer.choices;
      return {
        content: [{ type: "text", text: choice?.text ?? "" }],
        finishReason: finishOf(choice?.finish_reason),
        usage: usageOf(answer.usage),
        request: { body },
        response: responseOf(answer),
        warnings,
      };
    },
    async doStream(call) {
      const { body, warnings } = completionBody(modelId, call);
      const { completions } = await engineFor(call.abortSignal);
      const streamed = { ...body, stream: true as const, stream_options: { include_usage: true } };
      const chunks = await completions.create(streamed, signalOf(call));
      const parts = partsOf(chunks);
      const stream = new ReadableStream<ModelStreamPart>({
        start(controller) {
          controller.enqueue({ type: "stream-start", warnings });
        },
        async pull(controller) {
          const { done, value } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          await chunks.cancel();
        },
      });
      return { stream, request: { body: streamed } };
    },
  };
}

const signalOf = ({ abortSignal }: ModelCall) => ({ signal: abortSignal });

/** The parts of a streamed completion. Its text is one block. An error of the stream is a part, too. */
async function* partsOf(chunks: AsyncIterable<Completion>): AsyncGenerator<ModelStreamPart, void> {
  const id = "0";
  let isStarted = false;
  let finish: string | null | undefined;
  let usage: Usage | null | undefined;
  try {
    for await (const chunk of chunks) {
      if (!isStarted) {
        isStarted = true;
        yield { type: "response-metadata", ...responseOf(chunk) };
        yield { type: "text-start", id };
      }
      const [choice] = chunk.choices;
      if (choice?.text) yield { type: "text-delta", id, delta: choice.text };
      finish = choice?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
  } catch (error) {
    yield { type: "error", error };
    return;
  }
  if (isStarted) yield { type: "text-end", id };
  yield { type: "finish", usage: usageOf(usage), finishReason: finishOf(finish) };
}

const responseOf = ({ id, created, model }: Completion): ModelResponse => ({
  ...{ id, modelId: model, timestamp: new Date(created * 1000) },
});

function finishOf(raw: string | null | undefined): ModelFinish {
  const unified = raw === "stop" || raw === "length" ? raw : "other";
  return { unified, raw: raw ?? undefined };
}

function usageOf(usage: Usage | null | undefined): ModelUsage {
  const { prompt_tokens: input, completion_tokens: output } = usage ?? {};
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const noCache = input === undefined || cached === undefined ? undefined : input - cached;
  return {
    inputTokens: { total: input, noCache, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: undefined },
  };
}
