//! A model of the AI SDK that continues a prompt as it is, without a chat template.

import { finishOf, responseOf, usageOf } from "./answer.js";
import { partsOf } from "./blocks.js";
import { PROVIDER } from "./call_fields.js";
import { completionBody } from "./completion_body.js";
import type { EngineFor } from "./engine_for.js";
import type { LanguageModel } from "./model_types.js";
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
      const stream = partStream(
        warnings,
        partsOf(chunks, ({ text }) => ({ content: text })),
        () => chunks.cancel(),
      );
      return { stream, request: { body: streamed } };
    },
  };
}
