//! A message of the assistant that grows with the chunks of a stream.

import type { ChatDelta, ChatMessage, ChatMessageCall } from "../generated/types.js";

/** The message of the assistant. */
export type AssistantMessage = ChatMessage & { role: "assistant"; content: string };

/** The message before its first chunk. */
export const EMPTY: AssistantMessage = { role: "assistant", content: "" };

/** The message with what a chunk adds. */
export function grown(message: AssistantMessage, delta: ChatDelta): AssistantMessage {
  const { content, reasoning_content: reasoning, tool_calls: calls } = delta;
  return {
    ...message,
    ...(content && { content: message.content + content }),
    ...(reasoning && { reasoning_content: (message.reasoning_content ?? "") + reasoning }),
    ...(calls && { tool_calls: withCalls(message.tool_calls ?? [], calls) }),
  };
}

function withCalls(
  calls: readonly ChatMessageCall[],
  deltas: NonNullable<ChatDelta["tool_calls"]>,
): ChatMessageCall[] {
  const all = [...calls];
  for (const { index, id, function: called } of deltas) {
    const { name, arguments: text } = all[index]?.function ?? { name: "", arguments: "" };
    all[index] = {
      ...{ id: id ?? all[index]?.id ?? null, type: "function" },
      function: { name: called?.name ?? name, arguments: text + (called?.arguments ?? "") },
    };
  }
  return all;
}
