//! The turns of `useChat`: its requests, and its calls of tools.

import type { ChatCompletionRequest, ChatRequestMessage } from "../api/chat.js";
import type { ChatMessageCall } from "../generated/types.js";
import type { getEngine } from "../engine/get_engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { AssistantMessage } from "../api/growing_message.js";
import { turn } from "../api/turn.js";
import { asError } from "./as_error.js";

/** A request without its messages and without `stream`: answers are streamed. */
export type ChatFields = Partial<Omit<ChatCompletionRequest, "messages" | "stream">>;

/** A call of a tool. */
export interface ToolCallOfChat {
  id: string;
  name: string;
  /** The arguments, as the JSON that the model has written. */
  arguments: unknown;
}

/** The options of a turn. */
export interface TurnOptions {
  /** Options of the engine. Equal options share one engine. */
  engine?: EngineOptions;
  /** Fields of every request: `tools`, `temperature`, `max_tokens`, ... */
  body?: ChatFields;
  /**
   * Runs a tool. What it returns goes to the model, and the model answers again; an error goes to the model as its message.
   * Without it, a call ends the turn.
   */
  onToolCall?: (call: ToolCallOfChat) => unknown;
  /** The maximum number of answers of one turn, of which all but the last may call tools; 5 if it is left out. */
  maxSteps?: number;
}

const MAX_STEPS = 5;

/** Answers `asked`, and reports the conversation so far. Returns the last answer. */
export async function answerTurn(
  get: typeof getEngine,
  { engine: engineOptions, body, onToolCall, maxSteps = MAX_STEPS }: TurnOptions,
  fields: ChatFields | undefined,
  asked: readonly ChatRequestMessage[],
  change: (messages: readonly ChatRequestMessage[]) => void,
  signal: AbortSignal,
): Promise<AssistantMessage> {
  const engine = await get({ ...engineOptions, signal });
  const run = onToolCall && ((call: ChatMessageCall) => resultOf(call, onToolCall));
  const ask = (messages: readonly ChatRequestMessage[], answer: number) => {
    const request: ChatCompletionRequest = { model: "default", ...body, ...fields, messages };
    // After a forced call, the model must be free to answer its results.
    if (answer > 1 && isForced(request.tool_choice)) request.tool_choice = "auto";
    return engine.chat.completions.create({ ...request, stream: true }, { signal });
  };
  let last: readonly ChatRequestMessage[] = asked;
  for await (const { messages } of turn(asked, { ask, run, mostAnswers: maxSteps, signal })) {
    change(messages);
    last = messages;
  }
  return last.at(-1) as AssistantMessage;
}

/** Whether the model has to call a tool. */
function isForced(choice: ChatCompletionRequest["tool_choice"]): boolean {
  return choice === "required" || (typeof choice === "object" && choice !== null);
}

async function resultOf(
  { id, function: called }: ChatMessageCall,
  onToolCall: NonNullable<TurnOptions["onToolCall"]>,
): Promise<ChatRequestMessage> {
  const tool_call_id = id ?? "";
  let content: string;
  try {
    const given: unknown = JSON.parse(called.arguments);
    const result = await onToolCall({ id: tool_call_id, name: called.name, arguments: given });
    content = typeof result === "string" ? result : (JSON.stringify(result) ?? "");
  } catch (reason) {
    content = asError(reason).message;
  }
  return { role: "tool", tool_call_id, content };
}
