//! A model of the AI SDK that continues a prompt as it is, without a chat template.

import type { Completion, Usage } from "../generated/types.js";
import { finishOf, responseOf, usageOf } from "./answer.js";
import { PROVIDER } from "./call_fields.js";
import { completionBody } from "./completion_body.js";
import type { EngineFor } from "./engine_for.js";
import type { LanguageModel, ModelStreamPart } from "./model_types.js";
import { partStream } from "./part_stream.js";

export function completionModel(modelId: string, engineFor: EngineFor): LanguageModel {
  return {
    specificationVersion: "v3",
    provider: `${PROVIDER}.completion`,
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const { body, warnings } = completionBody(modelId, call);
      const { completions } = await engineFor(call.abortSignal);
      const options = { signal: call.abortSignal };
      const answer = await completions.create({ ...body, stream: false }, options);
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
      const chunks = await completions.create(streamed, { signal: call.abortSignal });
      const stream = partStream(warnings, partsOf(chunks), () => chunks.cancel());
      return { stream, request: { body: streamed } };
    },
  };
}

/** The parts of a streamed completion. Its text is one block. */
async function* partsOf(chunks: AsyncIterable<Completion>): AsyncGenerator<ModelStreamPart, void> {
  const id = "0";
  let isStarted = false;
  let finish: string | null | undefined;
  let usage: Usage | null | undefined;
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
  if (isStarted) yield { type: "text-end", id };
  yield { type: "finish", usage: usageOf(usage), finishReason: finishOf(finish) };
}
