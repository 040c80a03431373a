//! The fields of a request that calls of the AI SDK have for every language model.

import type { ModelCall } from "./model_types.js";

/** The member of `providerOptions` with fields of the endpoint, which replace those of the call. */
export const PROVIDER = "inpage";

/** The fields that the call sets, and those of `providerOptions.inpage`. */
export function fieldsOf(call: ModelCall): Record<string, unknown> {
  const { maxOutputTokens, stopSequences, topP, topK, responseFormat } = call;
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
  return withoutUndefined(fields);
}

/** The members of `providerOptions.inpage`. */
export function ownFields({
  providerOptions,
}: Pick<ModelCall, "providerOptions">): Record<string, unknown> {
  return providerOptions?.[PROVIDER] ?? {};
}

/** The members that have a value. */
export function withoutUndefined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function formatOf(format: NonNullable<ModelCall["responseFormat"]>): object | undefined {
  if (format.type === "text") return undefined;
  const { schema, name = "response", description } = format;
  return schema === undefined
    ? { type: "json_object" }
    : { type: "json_schema", json_schema: withoutUndefined({ name, description, schema }) };
}
