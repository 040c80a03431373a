//! Converts prompts of the Prompt API to messages of a chat.

import type { ChatMessage } from "../generated/types.js";

/** A part of a prompt. Only texts are answered. */
export interface PromptPart {
  type: string;
  value: unknown;
}

/** A message of a prompt. */
export interface PromptMessage {
  role: "system" | "user" | "assistant";
  content: string | readonly PromptPart[];
  /** True for the last message if it is an assistant's that the answer continues. */
  prefix?: boolean;
}

/** A prompt: the user's text, or messages. */
export type PromptInput = string | readonly PromptMessage[];

/** A message as it is sent and kept: also the calls of tools and their results. */
export interface Message extends ChatMessage {
  role: PromptMessage["role"] | "tool";
  content: string;
}

/**
 * The messages, and whether the answer continues the last one.
 *
 * @param isInitial whether a session starts with them: only then may the first one be a system message
 * @throws TypeError if roles or a prefix are in a wrong place
 * @throws DOMException named `NotSupportedError` for images and sounds
 */
export function messagesOf(
  input: PromptInput,
  isInitial = false,
): { messages: Message[]; continues: boolean } {
  const prompts = typeof input === "string" ? [{ role: "user" as const, content: input }] : input;
  let continues = false;
  const messages = prompts.map(({ role, content, prefix = false }: PromptMessage, index) => {
    if (!["system", "user", "assistant"].includes(role)) {
      throw new TypeError(`role: ${role} is not system, user or assistant`);
    }
    if (role === "system" && !(isInitial && index === 0)) {
      throw new TypeError("a system message is the first one of initialPrompts");
    }
    if (prefix && (isInitial || role !== "assistant" || index < prompts.length - 1)) {
      throw new TypeError("prefix is for the last message of a prompt, an assistant's");
    }
    continues ||= prefix;
    return { role, content: textOf(content) };
  });
  return { messages, continues };
}

function textOf(content: PromptMessage["content"]): string {
  if (typeof content === "string") return content;
  return content
    .map(({ type, value }) => {
      if (type !== "text") {
        throw new DOMException(`the model takes text, not ${type}`, "NotSupportedError");
      }
      return `${value}`;
    })
    .join("");
}

/** Fields of a request that make the answer fit a JSON schema or a regular expression. */
export function constraintFields(constraint: object | undefined): Record<string, unknown> {
  if (constraint === undefined) return {};
  if (constraint instanceof RegExp) return { guided_regex: constraint.source };
  return {
    response_format: {
      type: "json_schema",
      json_schema: { name: "response", schema: constraint },
    },
  };
}
