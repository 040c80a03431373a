//! The tokens that messages have for a model.

import type { ChatRequestMessage } from "../api/chat.js";
import type { Engine } from "../engine/engine.js";
import type { ChatMessage } from "../generated/types.js";
import { isRefusal } from "./refusal.js";
import { type LanguageModelTool, toolFields } from "./tools.js";

/** What is measured besides the messages. */
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
  const request = { messages, add_generation_prompt: asks, ...toolFields(tools) };
  const hasImages = messages.some(({ content }) => Array.isArray(content));
  if (hasImages) return measureWithImages(engine, request, signal);
  const ofTexts = { ...request, messages: messages as ChatMessage[] };
  return (await engine.tokenize(ofTexts, { signal })).count;
}

/** The tokens of the context of the model. */
export async function contextOf(engine: Engine, signal?: AbortSignal): Promise<number> {
  const request = { prompt: "", add_special_tokens: false };
  return (await engine.tokenize(request, { signal })).max_model_len;
}

/** Asks for an answer of no tokens: the images are decoded, and the model does not run. */
async function measureWithImages(
  engine: Engine,
  request: { messages: readonly ChatRequestMessage[] },
  signal: AbortSignal | undefined,
): Promise<number> {
  const body = { model: "default", ...request, max_tokens: 0, stream: false as const };
  try {
    return (await engine.chat.completions.create(body, { signal })).usage.prompt_tokens;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const { code, message } = error;
    // The message begins with the tokens of the context, and continues with those of the prompt.
    const counts = code === "context_length_exceeded" ? message.match(/\d+(?= tokens)/g) : null;
    if (counts?.[1] !== undefined) return Number(counts[1]);
    // An image that cannot be decoded is numbered.
    const isUnreadable = code === "invalid_value" && /image \d+: /.test(message);
    throw isUnreadable ? new DOMException(message, "InvalidStateError") : error;
  }
}
