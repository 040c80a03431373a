//! The body of a completion for a call of the AI SDK.

import type { CompletionRequest } from "../api/completions.js";
import type { ModelCall, ModelWarning } from "./model_types.js";

/** The member of `providerOptions` with fields of the endpoint, which replace those of the call. */
export const PROVIDER = "inpage";

/**
 * The body, and what of the call has no meaning for a completion.
 *
 * @throws TypeError if the prompt is a conversation
 */
export function completionBody(
  modelId: string,
  call: ModelCall,
): { body: CompletionRequest; warnings: ModelWarning[] } {
  const { maxOutputTokens, stopSequences, topP, topK, responseFormat, tools } = call;
  const warnings: ModelWarning[] = [];
  if (tools !== undefined && tools.length > 0) {
    warnings.push({
      ...{ type: "unsupported", feature: "tools" },
      details: "a completion calls no tools: give them to a chat model",
    });
  }
  const fields = {
    max_tokens: maxOutputTokens,
    temperature: call.temperature,
    top_p: topP,
    top_k: topK,
    presence_penalty: call.presencePenalty,
    frequency_penalty: call.frequencyPenalty,
    stop: stopSequences !== undefined && stopSequences.length > 0 ? stopSequences : undefined,
    seed: call.seed,
    response_format: responseFormat && formatOf(responseFormat),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const body: CompletionRequest = {
    ...{ model: modelId, prompt: textOf(call.prompt) },
    ...Object.fromEntries(given),
    ...call.providerOptions?.[PROVIDER],
  };
  return { body, warnings };
}

/** The text of the prompt, to which nothing is added. */
function textOf(prompt: ModelCall["prompt"]): string {
  const [message, ...others] = prompt;
  if (message?.role !== "user" || others.length > 0) {
    throw new TypeError(
      "a completion takes one prompt, without instructions and other messages: for a conversation, use a chat model such as that of @ai-sdk/openai-compatible with engine.fetch",
    );
  }
  if (typeof message.content === "string") return message.content;
  return message.content
    .map(({ type, text }) => {
      if (type !== "text" || text === undefined) {
        throw new TypeError(`a completion takes text, not a part of type ${type}`);
      }
      return text;
    })
    .join("");
}

function formatOf(format: NonNullable<ModelCall["responseFormat"]>): object | undefined {
  if (format.type === "text") return undefined;
  const { schema, name = "response" } = format;
  return schema === undefined
    ? { type: "json_object" }
    : { type: "json_schema", json_schema: { name, schema } };
}
