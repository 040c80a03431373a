//! A turn of a conversation: answers of the model and results of tools, until an answer calls none. What is asked, and how a tool
//! is run, is the concern of the caller.

import type { ChatDelta, ChatMessageCall } from "../generated/types.js";
import type { ChatCompletionStream, ChatRequestMessage } from "./chat.js";
import { type AssistantMessage, EMPTY, grown } from "./growing_message.js";

/** The parts of a turn that differ. */
export interface TurnSteps {
  /** Asks for the next answer to these messages. Answers are counted from 1. */
  ask(messages: readonly ChatRequestMessage[], answer: number): Promise<ChatCompletionStream>;
  /** Runs a call. Without it, a call ends the turn. */
  run?: ((call: ChatMessageCall) => Promise<ChatRequestMessage>) | undefined;
  /** The most answers, of which all but the last may call tools. */
  mostAnswers: number;
  /** The beginning of the first answer, which is part of the conversation. */
  begun?: AssistantMessage | undefined;
  signal: AbortSignal;
}

/** The conversation so far, and what an answer has added. */
export interface TurnProgress {
  messages: readonly ChatRequestMessage[];
  delta: ChatDelta;
}

/** Answers `asked`. The last progress ends with the last answer. */
export async function* turn(
  asked: readonly ChatRequestMessage[],
  { ask, run, mostAnswers, begun = EMPTY, signal }: TurnSteps,
): AsyncGenerator<TurnProgress, void> {
  let messages = asked;
  for (let answer = 1; ; answer += 1) {
    let message = answer === 1 ? begun : EMPTY;
    let isShown = false;
    let finish: string | null | undefined;
    for await (const { choices } of await ask(messages, answer)) {
      const [choice] = choices;
      if (choice === undefined) continue;
      message = grown(message, choice.delta);
      finish = choice.finish_reason ?? finish;
      isShown = true;
      yield { messages: [...messages, message], delta: choice.delta };
    }
    signal.throwIfAborted();
    messages = [...messages, message];
    if (!isShown) yield { messages, delta: {} };
    const calls = message.tool_calls ?? [];
    // A call that the token limit has cut off is not run.
    const isCut = finish === "length";
    if (run === undefined || calls.length === 0 || isCut || answer >= mostAnswers) return;
    for (const call of calls) messages = [...messages, await run(call)];
    signal.throwIfAborted();
    yield { messages, delta: {} };
  }
}
