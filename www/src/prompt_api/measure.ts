//! The tokens that messages have for a model.

import type { ChatRequestMessage } from "../api/chat.js";
import type { Engine } from "../engine/engine.js";
import { isRefusal } from "./refusal.js";
import { type LanguageModelTool, toolFields } from "./tools.js";

/** The parts of a prompt that are measured besides its messages. */
export interface MeasureOptions {
  tools?: readonly LanguageModelTool[];
  /** Whether the model is asked to answer, which takes tokens, too. */
  asks?: boolean;
  signal?: AbortSignal | undefined;
}

/** The tokens of messages. */
export async function measure(
  engine: Engine,
  messages: readonly ChatRequestMessage[],
  { tools = [], asks = false, signal }: MeasureOptions = {},
): Promise<number> {
  // No template renders an empty conversation.
  if (messages.length === 0) return 0;
  const count = async (counted: readonly ChatRequestMessage[]) => {
    const request = { messages: counted, add_generation_prompt: asks, ...toolFields(tools) };
    return (await engine.tokenize(request, { signal })).count;
  };
  try {
    return await count(messages);
  } catch (error) {
    if (!isRefusal(error) || error.code !== "invalid_value" || !messages.some(hasParts))
      throw error;
    // If the same messages with a readable image are accepted, an image cannot be decoded. Otherwise the error is theirs.
    await count(messages.map(withReadableImages));
    throw new DOMException(error.message, "InvalidStateError");
  }
}

/** The tokens of the context of the model. */
export async function contextOf(engine: Engine, signal?: AbortSignal): Promise<number> {
  const request = { prompt: "", add_special_tokens: false };
  return (await engine.tokenize(request, { signal })).max_model_len;
}

/** An image of one pixel. */
const READABLE_IMAGE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==";

const hasParts = ({ content }: ChatRequestMessage) => Array.isArray(content);

function withReadableImages(message: ChatRequestMessage): ChatRequestMessage {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const part = (given: (typeof content)[number]) =>
    given.type === "image_url" ? { ...given, image_url: READABLE_IMAGE } : given;
  return { ...message, content: content.map(part) };
}
