//! The body of a completion for a call of the AI SDK.

import type { CompletionRequest } from "../api/completions.js";
import { fieldsOf, ownFields } from "./call_fields.js";
import type { ModelCall, ModelWarning } from "./model_types.js";

/**
 * The body, and what of the call has no meaning for a completion.
 *
 * @throws TypeError if the prompt is a conversation
 */
export function completionBody(
  modelId: string,
  call: ModelCall,
): { body: CompletionRequest; warnings: ModelWarning[] } {
  const { tools } = call;
  const warnings: ModelWarning[] = [];
  if (tools !== undefined && tools.length > 0) {
    warnings.push({
      ...{ type: "unsupported", feature: "tools" },
      details: "a completion calls no tools: give them to a chat model",
    });
  }
  const body: CompletionRequest = {
    ...{ model: modelId, prompt: textOf(call.prompt) },
    ...fieldsOf(call),
    ...ownFields(call),
  };
  return { body, warnings };
}

/** The text of the prompt, to which nothing is added. */
function textOf(prompt: ModelCall["prompt"]): string {
  const [message, ...others] = prompt;
  if (message?.role !== "user" || others.length > 0) {
    throw new TypeError(
      "a completion takes one prompt, without instructions and other messages: for a conversation, use the provider's chat model",
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
