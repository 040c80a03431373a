//! A model of the AI SDK that continues a conversation: text, reasoning and calls of tools.

import { finishOf, responseOf, usageOf } from "./answer.js";
import { partsOf, wholeCall } from "./blocks.js";
import { PROVIDER } from "./call_fields.js";
import { chatBody } from "./chat_body.js";
import type { EngineFor } from "./engine_for.js";
import type { LanguageModel, ModelContent } from "./model_types.js";
import { partStream } from "./part_stream.js";

export function chatModel(modelId: string, engineFor: EngineFor): LanguageModel {
  return {
    specificationVersion: "v3",
    provider: `${PROVIDER}.chat`,
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const { body, warnings } = chatBody(modelId, call);
      const { chat } = await engineFor(call.abortSignal);
      const options = { signal: call.abortSignal };
      const answer = await chat.completions.create({ ...body, stream: false }, options);
      const [choice] = answer.choices;
      const content: ModelContent[] = [];
      const { reasoning_content: reasoning, content: text, tool_calls } = choice?.message ?? {};
      if (reasoning) content.push({ type: "reasoning", text: reasoning });
      if (text) content.push({ type: "text", text });
      for (const { id, function: called } of tool_calls ?? []) {
        content.push(...wholeCall(id, called.name, called.arguments));
      }
      return {
        content,
        finishReason: finishOf(choice?.finish_reason),
        usage: usageOf(answer.usage),
        request: { body },
        response: responseOf(answer),
        warnings,
      };
    },
    async doStream(call) {
      const { body, warnings } = chatBody(modelId, call);
      const { chat } = await engineFor(call.abortSignal);
      const streamed = { ...body, stream: true as const, stream_options: { include_usage: true } };
      const chunks = await chat.completions.create(streamed, { signal: call.abortSignal });
      const stream = partStream(
        warnings,
        partsOf(chunks, ({ delta }) => delta),
        () => chunks.cancel(),
      );
      return { stream, request: { body: streamed } };
    },
  };
}
